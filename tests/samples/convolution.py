"""Samples of convolutions: one to three spatial axes, all padding modes, all types."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from harness.sample import Sample, case, numbers

from ir_runtime.ir.element import ElementType

WRAPS = "integers: the plugin saturates, the reference's arithmetic wraps around"
EMPTY_SUM = "the plugin leaves the memory as it was where there is nothing to add up"


def windows(spatial: int) -> dict[str, Any]:
    """Attributes of windows without padding, dilation or strides."""
    zeros, ones = (0,) * spatial, (1,) * spatial
    return {"strides": ones, "pads_begin": zeros, "pads_end": zeros, "dilations": ones}


def conv(data: Any, filters: Any, **attributes: Any) -> Sample:
    """A convolution, by default without padding."""
    plain = windows(data.ndim - 2)
    group = filters.ndim == data.ndim + 1
    return case("GroupConvolution-1" if group else "Convolution-1", data, filters, **plain | attributes)


def around(pads: int, spatial: int = 2) -> dict[str, Any]:
    return {"pads_begin": (pads,) * spatial, "pads_end": (pads,) * spatial}


def f64() -> dict[str, Any]:
    return {"_oracle": "plugin", "_rtol": 1e-6, "_atol": 1e-5, "_differs": "the plugin computes f64 as f32"}


HALVED = "the plugin halves i8 weights where the processor has no products of four 8-bit numbers; then sums are others"


def summed(sample: Sample) -> Sample:
    """An i8 convolution with stride and dilation 1, its expected result summed product by product."""
    data, filters = (x.astype(np.int64) for x in sample.inputs)
    if filters.ndim == data.ndim:
        filters = filters[None]
    groups, outputs, each, *kernel = filters.shape
    pads = [(0, 0), (0, 0), *zip(sample.attributes["pads_begin"], sample.attributes["pads_end"], strict=True)]
    padded = np.pad(data, pads)
    lengths = [n - k + 1 for n, k in zip(padded.shape[2:], kernel, strict=True)]
    found = np.zeros((len(data), groups * outputs, *lengths), np.int64)
    for place in np.ndindex(*kernel):
        part = padded[:, :, *(slice(at, at + n) for at, n in zip(place, lengths, strict=True))]
        for channel in range(groups * outputs):
            group, output = divmod(channel, outputs)
            for index in range(each):
                found[:, channel] += part[:, group * each + index] * filters[group, output, index, *place]
    return replace(sample, oracle="none", differs=HALVED, expect=(found.astype(np.int8),))


def is_i8(sample: Sample) -> bool:
    plain = sample.op in ("Convolution-1", "GroupConvolution-1")
    return plain and sample.oracle != "none" and sample.inputs[0].dtype == np.int8


ONE = [
    conv(numbers(1, 5, 128), numbers(16, 5, 4), strides=(2,), auto_pad="valid"),
    conv(numbers(2, 3, 9), numbers(4, 3, 3)),
    conv(numbers(2, 3, 9), numbers(4, 3, 3), strides=(2,), pads_begin=(2,), pads_end=(1,)),
    conv(numbers(2, 3, 10), numbers(4, 3, 4), strides=(3,), auto_pad="same_upper"),
    conv(numbers(2, 3, 10), numbers(4, 3, 4), strides=(3,), auto_pad="same_lower"),
    conv(numbers(1, 2, 9), numbers(1, 2, 3), dilations=(4,)),
    conv(numbers(1, 2, 3), numbers(5, 2, 3)),
]
TWO = [
    conv(numbers(1, 3, 8, 9), numbers(2, 3, 5, 5), **around(2)),
    conv(numbers(2, 3, 7, 6), numbers(4, 3, 1, 1), strides=(2, 2)),
    conv(numbers(2, 3, 7, 6), numbers(4, 3, 3, 2), strides=(2, 1), dilations=(2, 3), **around(1)),
    conv(numbers(1, 2, 7, 8), numbers(3, 2, 2, 4), strides=(2, 3), auto_pad="same_upper"),
    conv(numbers(1, 2, 7, 8), numbers(3, 2, 2, 4), strides=(2, 3), auto_pad="same_lower"),
    conv(numbers(1, 2, 7, 8), numbers(3, 2, 2, 2), dilations=(3, 2), auto_pad="same_lower"),
    conv(numbers(1, 2, 7, 8), numbers(3, 2, 2, 4), auto_pad="VALID", **around(7)),
    conv(numbers(1, 2, 2, 2), numbers(1, 2, 1, 1), strides=(5, 5), auto_pad="same_upper"),
    conv(numbers(1, 2, 4, 4), numbers(2, 2, 3, 3), pads_begin=(0, 3), pads_end=(2, 0)),
    conv(numbers(0, 2, 4, 4), numbers(2, 2, 3, 3)),
    conv(numbers(1, 2, 4, 4), numbers(0, 2, 3, 3)),
    conv(
        numbers(1, 0, 4, 4),
        numbers(2, 0, 3, 3),
        _oracle="none",
        _differs=EMPTY_SUM,
        _expect=(np.zeros((1, 2, 2, 2), "f4"),),
    ),
]
THREE = [
    conv(numbers(1, 3, 5, 6, 7), numbers(2, 3, 3, 3, 3), strides=(2, 2, 2), **around(1, 3)),
    conv(numbers(2, 2, 4, 5, 6), numbers(3, 2, 2, 3, 1), dilations=(1, 2, 3)),
    conv(numbers(1, 2, 4, 5, 6), numbers(3, 2, 2, 3, 4), strides=(1, 2, 3), auto_pad="same_upper"),
    conv(numbers(1, 2, 4, 5, 6), numbers(3, 2, 2, 3, 4), strides=(1, 2, 3), auto_pad="same_lower"),
]
GROUPS = [
    conv(numbers(1, 4, 9), numbers(4, 1, 1, 5), **around(2, 1)),
    conv(numbers(2, 4, 9), numbers(2, 3, 2, 3), strides=(2,)),
    conv(numbers(1, 3, 8), numbers(1, 2, 3, 3), auto_pad="same_lower", strides=(2,)),
    conv(numbers(1, 12, 6, 7), numbers(4, 1, 3, 5, 5), **around(2)),
    conv(numbers(2, 6, 6, 7), numbers(6, 1, 1, 3, 3), **around(1), strides=(2, 2)),
    conv(numbers(2, 6, 6, 7), numbers(6, 2, 1, 3, 3), dilations=(2, 2)),
    conv(numbers(2, 6, 6, 7), numbers(3, 2, 2, 2, 2), auto_pad="same_upper", strides=(2, 3)),
    conv(numbers(2, 6, 6, 7), numbers(2, 1, 3, 2, 2), auto_pad="valid"),
    conv(numbers(2, 4, 4, 3, 3), numbers(2, 3, 2, 2, 2, 2), pads_begin=(1, 0, 0), pads_end=(0, 1, 2)),
    conv(numbers(1, 16, 5, 9), numbers(4, 4, 4, 3, 3), **around(1)),
    conv(numbers(1, 16, 4, 8), numbers(1, 16, 16, 3, 2), strides=(1, 2)),
    conv(numbers(1, 3, 3, 4, 9), numbers(3, 1, 1, 2, 3, 3), **around(1, 3)),
    conv(numbers(1, 3, 4, 5, 5), numbers(3, 1, 1, 3, 3, 3), **around(1, 3), strides=(2, 2, 2)),
    conv(numbers(0, 4, 6), numbers(2, 3, 2, 3)),
    conv(numbers(2, 1, 7), numbers(1, 4, 1, 3), auto_pad="same_upper"),
    conv(numbers(1, 8, 5, 5), numbers(8, 1, 1, 5, 5)),
    conv(numbers(1, 4, 9, 9), numbers(4, 2, 1, 3, 3), dilations=(3, 2), strides=(2, 1), **around(2)),
    conv(numbers(1, 6, 4, 4), numbers(3, 1, 2, 1, 1), strides=(3, 2)),
    conv(numbers(1, 4, 5, 4, 6), numbers(2, 2, 2, 3, 2, 3), auto_pad="same_lower", strides=(1, 2, 3)),
    conv(numbers(1, 4, 3, 3, dtype="f64"), numbers(2, 1, 2, 2, 2, dtype="f64"), **f64()),
    conv(numbers(1, 4, 3, 3, dtype="f16"), numbers(2, 1, 2, 2, 2, dtype="f16")),
    conv(numbers(1, 4, 3, 3, dtype="bf16"), numbers(2, 1, 2, 2, 2, dtype="bf16")),
    conv(numbers(1, 4, 3, 3, dtype="i32"), numbers(2, 1, 2, 2, 2, dtype="i32")),
    conv(numbers(1, 4, 9, dtype="i8"), numbers(4, 1, 1, 5, dtype="i8"), **around(2, 1)),
]
TYPES = [
    conv(numbers(1, 3, 5, 5, dtype="f64"), numbers(2, 3, 3, 3, dtype="f64"), **f64()),
    *(
        conv(numbers(1, 3, 5, 5, dtype=dtype), numbers(2, 3, 3, 3, dtype=dtype), **around(1))
        for dtype in ("f16", "bf16", "i64", "i32", "i16", "i8", "u8")
    ),
    *(
        conv(
            np.full((1, 1, 2), 100, ElementType.parse(dtype).dtype),
            np.full((1, 1, 2), 3, ElementType.parse(dtype).dtype),
            _oracle="none",
            _differs=WRAPS,
            _expect=(np.full((1, 1, 1), wrapped, ElementType.parse(dtype).dtype),),
        )
        for dtype, wrapped in (("i8", 600 - 512), ("u8", 600 - 512), ("i16", 600), ("i32", 600))
    ),
    conv(
        np.full((1, 1, 1), 2**30, np.int32),
        np.full((1, 1, 1), 3, np.int32),
        _oracle="none",
        _differs=WRAPS,
        _expect=(np.full((1, 1, 1), 3 * 2**30 - 2**32, np.int32),),
    ),
]
SPECIAL = [
    conv(np.array([[[1, np.nan, 2, np.inf, 3, 4]]], "f4"), np.array([[[1, 1]]], "f4"), pads_end=(1,)),
]


def back(data: Any, filters: Any, *shape: int, **attributes: Any) -> Sample:
    """A transposed convolution, by default without padding; optionally to a given output shape."""
    plain = windows(data.ndim - 2)
    group = "Group" if filters.ndim == data.ndim + 1 else ""
    inputs = (data, filters, np.array(shape)) if shape else (data, filters)
    constant = {"_constant": (2,)} if shape else {}
    return case(f"{group}ConvolutionBackpropData-1", *inputs, **plain | constant | attributes)


SAME = ("same_upper", "same_lower")
BACK = [
    back(numbers(2, 3, 5), numbers(3, 4, 3)),
    back(numbers(2, 3, 5), numbers(3, 4, 3), strides=(2,), pads_begin=(2,), pads_end=(1,)),
    back(numbers(2, 3, 5), numbers(3, 4, 3), strides=(3,), dilations=(2,), output_padding=(2,)),
    *(back(numbers(1, 3, 5), numbers(3, 2, 4), strides=(2,), auto_pad=pad) for pad in (*SAME, "valid")),
    *(back(numbers(1, 3, 5), numbers(3, 2, 4), 9, strides=(2,), auto_pad=pad) for pad in SAME),
    *(back(numbers(1, 3, 5), numbers(3, 2, 4), 10, strides=(2,), auto_pad=pad) for pad in SAME),
    *(
        back(numbers(1, 3, 5), numbers(3, 2, 3), 10, strides=(2,), auto_pad=pad, output_padding=(1,))
        for pad in SAME
    ),
    back(numbers(1, 3, 4, 5), numbers(3, 2, 4, 4), strides=(2, 2), **around(1)),
    back(numbers(2, 3, 4, 5), numbers(3, 2, 3, 2), strides=(1, 3), dilations=(2, 1), output_padding=(0, 1)),
    back(numbers(2, 3, 4, 5), numbers(3, 2, 1, 1), strides=(2, 2)),
    *(back(numbers(1, 2, 4, 5), numbers(2, 3, 3, 4), 7, 11, strides=(2, 2), auto_pad=pad) for pad in SAME),
    back(numbers(1, 2, 1, 1), numbers(2, 3, 3, 4), **around(1)),
    back(numbers(0, 3, 4, 5), numbers(3, 2, 4, 4)),
    back(
        numbers(1, 2, 3, 4, 2), numbers(2, 3, 3, 2, 3), strides=(2, 1, 3), **around(1, 3), dilations=(1, 2, 1)
    ),
    *(
        back(numbers(1, 2, 2, 3, 2), numbers(2, 3, 3, 2, 3), 4, 5, 4, strides=(2, 2, 2), auto_pad=pad)
        for pad in SAME
    ),
    *(
        back(numbers(1, 2, 4, dtype=dtype), numbers(2, 3, 3, dtype=dtype), strides=(2,))
        for dtype in ("f16", "bf16")
    ),
    back(numbers(1, 2, 4, dtype="f64"), numbers(2, 3, 3, dtype="f64"), **f64()),
    back(np.array([[[1, np.nan, 2, np.inf, 3, 4]]], "f4"), np.array([[[1, 1]]], "f4"), strides=(3,)),
    back(numbers(2, 4, 5), numbers(2, 2, 3, 3)),
    back(numbers(1, 4, 5), numbers(4, 1, 1, 4), strides=(2,), **around(1, 1)),
    *(back(numbers(1, 4, 5), numbers(2, 2, 1, 4), 9, strides=(2,), auto_pad=pad) for pad in SAME),
    *(
        back(numbers(1, 4, 3, 5), numbers(2, 2, 3, 4, 3), strides=(2, 1), auto_pad=pad)
        for pad in (*SAME, "valid")
    ),
    back(numbers(1, 6, 3, 4), numbers(3, 2, 1, 3, 3), strides=(2, 2), **around(1), output_padding=(1, 1)),
    back(numbers(2, 6, 3, 4), numbers(6, 1, 2, 2, 2), dilations=(2, 3)),
    back(
        numbers(1, 4, 2, 3, 2),
        numbers(2, 2, 1, 2, 2, 2),
        strides=(2, 2, 2),
        pads_begin=(1, 0, 0),
        pads_end=(0, 1, 0),
    ),
    back(numbers(0, 4, 5), numbers(2, 2, 3, 3)),
    back(numbers(1, 4, 3, dtype="f16"), numbers(2, 2, 1, 2, dtype="f16")),
    back(numbers(1, 4, 3, dtype="f64"), numbers(2, 2, 1, 2, dtype="f64"), **f64()),
    back(numbers(1, 4, 3, 5), numbers(2, 2, 1, 2, 3), strides=(1, 2), output_padding=(0, 1)),
]


def deform(
    data: Any,
    filters: Any,
    rows: int,
    columns: int,
    *,
    far: float = 1,
    parts: int = 1,
    mask: bool = False,
    **attributes: Any,
) -> list[Sample]:
    """A deformable convolution in both versions, or in version 8 alone if only that has the attributes."""
    plain = windows(2) | {
        "group": 1,
        "deformable_group": parts,
    }
    elements = parts * filters.shape[2] * filters.shape[3]
    label = ElementType.from_dtype(data.dtype).label
    offsets = numbers(len(data), 2 * elements, rows, columns, low=-far, high=far, dtype=label)
    inputs = [data, offsets, filters]
    if mask:
        inputs.append(numbers(len(data), elements, rows, columns, low=0, high=1, dtype=label))
    versions = (8,) if mask or "bilinear_interpolation_pad" in attributes else (1, 8)
    return [case(f"DeformableConvolution-{v}", *inputs, **plain | attributes) for v in versions]


PAD = {"bilinear_interpolation_pad": True}
DEFORMED = [
    *deform(numbers(1, 2, 5, 6), numbers(3, 2, 3, 2), 3, 5),
    *deform(numbers(1, 2, 5, 6), numbers(3, 2, 3, 2), 3, 5, far=0),
    *deform(numbers(1, 2, 5, 6), numbers(3, 2, 3, 2), 3, 5, far=7),
    *deform(numbers(2, 2, 5, 6), numbers(3, 2, 3, 3), 5, 6, far=2, **around(1)),
    *deform(numbers(2, 4, 5, 6), numbers(2, 2, 2, 2), 4, 5, group=2),
    *deform(numbers(2, 4, 5, 6), numbers(2, 4, 2, 2), 4, 5, parts=2),
    *deform(numbers(1, 4, 5, 6), numbers(4, 2, 2, 2), 4, 5, parts=4, group=2),
    *deform(numbers(1, 2, 7, 8), numbers(3, 2, 2, 3), 3, 2, strides=(2, 3), dilations=(2, 2)),
    *deform(numbers(1, 2, 7, 8), numbers(3, 2, 2, 4), 4, 3, strides=(2, 3), auto_pad="same_upper"),
    *deform(numbers(1, 2, 7, 8), numbers(3, 2, 2, 4), 4, 3, strides=(2, 3), auto_pad="same_lower"),
    *deform(numbers(1, 2, 4, 4), numbers(3, 2, 2, 2), 3, 3, auto_pad="valid"),
    *(
        sample
        for far in (0.5, 2, 7)
        for sample in (
            *deform(numbers(1, 2, 5, 6), numbers(3, 2, 3, 2), 5, 7, far=far, **around(1), **PAD),
            *deform(numbers(2, 2, 5, 6), numbers(3, 2, 3, 2), 5, 7, far=far, mask=True, **around(1), **PAD),
            *deform(numbers(2, 4, 5, 6), numbers(2, 2, 3, 2), 3, 5, far=far, mask=True, parts=2, group=2),
        )
    ),
    *deform(numbers(1, 2, 4, 4, dtype="f16"), numbers(3, 2, 2, 2, dtype="f16"), 3, 3),
    *deform(numbers(1, 2, 4, 4, dtype="bf16"), numbers(3, 2, 2, 2, dtype="bf16"), 3, 3),
    *(
        replace(s, oracle="plugin", rtol=1e-6, atol=1e-5, differs="the plugin computes f64 as f32")
        for s in deform(numbers(1, 2, 4, 4, dtype="f64"), numbers(3, 2, 2, 2, dtype="f64"), 3, 3)
    ),
]


def bits(data: Any, filters: Any, **attributes: Any) -> Sample:
    """A binary convolution."""
    plain = windows(2) | {
        "mode": "xnor-popcount",
        "pad_value": 0,
    }
    return case(
        "BinaryConvolution-1", data, filters, **plain | attributes, _constant=(1,), _types={1: ElementType.u1}
    )


def random_bits(*shape: int, dtype: str = "f32") -> Any:
    return numbers(*shape, dtype="u8", low=0, high=1).astype(ElementType.parse(dtype).dtype)


def mirrored(*shape: int) -> Any:
    """Filters whose bytes are bit palindromes.

    The plugin reads bytes from the low bit, u1 constants and the reference from the high bit. The plugin also fails if the
    channels do not fill bytes.
    """
    half = random_bits(math.prod(shape) // 8, 4, dtype="u8")
    return np.concatenate([half, half[:, ::-1]], 1).reshape(shape)


def bits_apart(data: Any, filters: Any, *, pads: int = 0, dtype: str = "f32", **attributes: Any) -> Sample:
    """A binary convolution on which the plugin differs, computed bit by bit."""
    padded = np.pad(
        data, [(0, 0), (0, 0), (pads, pads), (pads, pads)], constant_values=attributes.get("pad_value", 0)
    )
    rows, columns = filters.shape[2:]
    high, wide = padded.shape[2] - rows + 1, padded.shape[3] - columns + 1
    right = np.zeros((len(data), len(filters), high, wide))
    for n, o, i, j in np.ndindex(*right.shape):
        equal = padded[n, :, i : i + rows, j : j + columns] == filters[o]
        right[n, o, i, j] = equal.sum() - (~equal).sum()
    element = ElementType.parse(dtype).dtype
    more = {"_oracle": "none", "_differs": BITS, "_expect": (right.astype(element),)}
    return bits(data.astype(element), filters, **around(pads), **attributes, **more)


BITS = (
    "the plugin reads u1 from the low end, wants whole bytes of channels, f32, and leaves out a padding of 0"
)
BINARY = [
    bits(random_bits(1, 8, 1, 9), mirrored(4, 8, 1, 1)),
    bits(random_bits(2, 8, 4, 5), mirrored(1, 8, 3, 2)),
    bits(random_bits(2, 16, 4, 5), mirrored(3, 16, 2, 2)),
    bits(random_bits(2, 8, 4, 5), mirrored(4, 8, 3, 2), **around(2), pad_value=1),
    bits(random_bits(1, 8, 6, 7), mirrored(2, 8, 2, 2), strides=(2, 3), dilations=(2, 1)),
    *(
        bits(random_bits(1, 8, 7, 8), mirrored(3, 8, 2, 4), strides=(2, 3), auto_pad=pad, pad_value=1)
        for pad in (*SAME, "valid")
    ),
    bits_apart(random_bits(1, 1, 4, 5), random_bits(1, 1, 2, 2, dtype="u8")),
    bits_apart(random_bits(2, 3, 4, 5), random_bits(2, 3, 3, 2, dtype="u8"), pads=1),
    bits_apart(random_bits(2, 3, 4, 5), random_bits(2, 3, 3, 2, dtype="u8"), pads=1, pad_value=0.5),
    *(
        bits_apart(random_bits(1, 2, 4, 4), random_bits(3, 2, 2, 2, dtype="u8"), dtype=dtype)
        for dtype in ("f64", "f16", "bf16", "i64", "i32", "i8", "u8")
    ),
    bits_apart(np.full((1, 1, 2, 2), np.nan, "f4"), random_bits(1, 1, 2, 1, dtype="u8")),
]

_ALL = [*ONE, *TWO, *THREE, *GROUPS, *TYPES, *SPECIAL, *BACK, *DEFORMED, *BINARY]
SAMPLES = [summed(sample) if is_i8(sample) else sample for sample in _ALL]
