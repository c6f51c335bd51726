"""Messages for invalid convolutions."""

from __future__ import annotations

from typing import Any

from harness.refusals import Refusal, refusal

LINE: dict[str, Any] = {"strides": (1,), "pads_begin": (0,), "pads_end": (0,), "dilations": (1,)}
PLANE: dict[str, Any] = {name: 2 * numbers for name, numbers in LINE.items()}
BITS = PLANE | {"mode": "xnor-popcount", "pad_value": 0.0}


def plain(name: str, data: str, filters: str, *more: Any, **attributes: Any) -> Refusal:
    return refusal(name, "Convolution-1", data, filters, *more, **LINE | attributes)


def grouped(name: str, data: str, filters: str, **attributes: Any) -> Refusal:
    return refusal(name, "GroupConvolution-1", data, filters, **LINE | attributes)


def transposed(name: str, data: str, filters: str, *more: Any, **attributes: Any) -> Refusal:
    return refusal(name, "ConvolutionBackpropData-1", data, filters, *more, **LINE | attributes)


def deformable(name: str, *inputs: str, **attributes: Any) -> Refusal:
    return refusal(name, "DeformableConvolution-8", *(f"f32 {x}" for x in inputs), **PLANE | attributes)


REFUSALS = [
    plain("channels", "f32 1,3,8", "f32 2,4,3"),
    plain("channels exchanged", "f32 1,3,8", "f32 3,4,3"),
    plain("channels of groups", "f32 1,8,8", "f32 2,4,3"),
    plain("bounded channels", "f32 1,3..5,8", "f32 2,6,3"),
    plain("kernel too long", "f32 1,3,2", "f32 2,3,3"),
    plain("kernel too long for all lengths", "f32 1,3,..2", "f32 2,3,3"),
    plain("kernel too long by dilation", "f32 1,3,4", "f32 2,3,3", dilations=(2,)),
    plain("kernel too long with padding", "f32 1,3,4", "f32 2,3,7", pads_begin=(1,), pads_end=(1,)),
    plain("no kernel", "f32 1,3,8", "f32 2,3,0"),
    plain("rank of the attributes", "f32 1,3,8,8", "f32 2,3,3,3"),
    plain("rank of the data", "f32 3,8", "f32 2,3,3"),
    plain("rank of the filters", "f32 1,3,8", "f32 2,3"),
    plain("filters of groups", "f32 1,3,8", "f32 3,1,1,3"),
    plain("dilations", "f32 1,3,8", "f32 2,3,3", dilations=(1, 1)),
    plain("pads", "f32 1,3,8", "f32 2,3,3", pads_begin=()),
    grouped("groups", "f32 1,6,8", "f32 2,1,4,3"),
    grouped("groups not in front", "f32 1,4,8", "f32 2,1,4,3"),
    grouped("groups that are not known", "f32 1,7,8", "f32 ?,1,4,3"),
    grouped("filters without groups", "f32 1,6,8", "f32 2,3,3"),
    transposed("transposed: channels", "f32 1,3,8", "f32 4,2,3"),
    transposed("transposed: channels exchanged", "f32 1,3,8", "f32 4,3,3"),
    refusal("transposed: groups", "GroupConvolutionBackpropData-1", "f32 1,7,8", "f32 ?,4,1,3", **LINE),
    transposed("transposed: no kernel", "f32 1,3,8", "f32 3,2,0"),
    transposed("transposed: all is cut off", "f32 1,3,1", "f32 3,2,3", pads_begin=(3,), pads_end=(1,)),
    transposed("output_shape", "f32 1,3,8,8", "f32 3,2,3,3", [4], **PLANE),
    transposed("output_shape with N and C", "f32 1,3,8", "f32 3,2,3", [1, 2, 4]),
    transposed("output_shape below 0", "f32 1,3,8", "f32 3,2,3", [-4]),
    transposed("output_shape of rank 2", "f32 1,3,8", "f32 3,2,3", [[4]]),
    transposed("output_padding", "f32 1,3,8", "f32 3,2,3", output_padding=(1, 1)),
    deformable("deformable: channels", "1,3,4,4", "1,8,3,3", "2,2,2,2"),
    deformable("deformable: channels in groups", "1,3,4,4", "1,8,3,3", "2,2,2,2", group=2),
    deformable("offsets: channels", "1,2,4,4", "1,6,3,3", "2,2,2,2"),
    deformable("offsets: size", "1,2,4,4", "1,8,3,2", "2,2,2,2"),
    deformable("offsets: rank", "1,2,4,4", "8,3,3", "2,2,2,2"),
    deformable("mask: channels", "1,2,4,4", "1,8,3,3", "2,2,2,2", "1,3,3,3"),
    deformable("filters do not divide", "1,4,4,4", "1,8,3,3", "3,2,2,2", group=2),
    deformable("data do not divide", "1,4,4,4", "1,24,3,3", "2,4,2,2", deformable_group=3),
    refusal("deformable: strides", "DeformableConvolution-8", "f32 1,2,4", "f32 1,4,3", "f32 2,2,2", **LINE),
    refusal("binary: channels", "BinaryConvolution-1", "f32 1,3,8,8", "u1 2,4,3,3", **BITS),
]
