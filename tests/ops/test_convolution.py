"""Convolutions: what is refused and how it is said, what is inferred from little, memory and time."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from harness.sample import value

from ir_runtime.errors import InferenceError, ValidationError
from ir_runtime.ir.dimension import Symbol
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.shape import Dimension, PartialShape
from ir_runtime.ir.tensor import Value
from ir_runtime.ops.convolution.backward import ConvolutionBackpropData, GroupConvolutionBackpropData
from ir_runtime.ops.convolution.binary import BinaryConvolution
from ir_runtime.ops.convolution.deformable import DeformableConvolution8
from ir_runtime.ops.convolution.forward import Convolution, GroupConvolution

F32 = ElementType.f32


def plain(spatial: int = 1, **changed: Any) -> dict[str, Any]:
    zeros, ones = (0,) * spatial, (1,) * spatial
    return {"strides": ones, "pads_begin": zeros, "pads_end": zeros, "dilations": ones} | changed


def shape_of(cls: Any, data: str, filters: str, **attributes: Any) -> PartialShape:
    values = (Value.unknown(F32, PartialShape(s)) for s in (data, filters))
    (found,) = cls(**attributes).infer_types(*values)
    return found.shape


@pytest.mark.parametrize(
    ("cls", "data", "filters", "message"),
    [
        (Convolution, "1,3,8", "2,4,3", "data has 3 channels, filters expect 4"),
        (Convolution, "1,3..5,8", "2,6,3", "data has 3..5 channels, filters expect 6"),
        (Convolution, "1,3,2", "2,3,3", "kernel of extent 3 exceeds the padded length 2 of spatial axis 0"),
        (Convolution, "1,3,..2", "2,3,3", "kernel of extent 3 exceeds the padded length 2 of spatial axis 0"),
        (Convolution, "1,3,8", "2,3,0", "kernel has length 0 along spatial axis 0, at least 1 is expected"),
        (Convolution, "1,3,8,8", "2,3,3,3", "data [1,3,8,8] has 2 spatial axes, the attributes are for 1"),
        (Convolution, "3,8", "2,3,3", "data must have rank 3, 4 or 5, found [3,8]"),
        (Convolution, "1,3,8", "2,3,3,3", "filters must have rank 3, [C_out, C_in, kernel...], found"),
        (GroupConvolution, "1,6,8", "2,1,4,3", "data has 6 channels, filters expect 8"),
        (GroupConvolution, "1,7,8", "?,1,4,3", "data has 7 channels, filters expect a multiple of 4"),
        (GroupConvolution, "1,6,8", "2,3,3", "filters must have rank 4, [G, C_out, C_in, kernel...], found"),
    ],
)
def test_contradictions_are_named(cls: Any, data: str, filters: str, message: str) -> None:
    with pytest.raises(InferenceError) as caught:
        shape_of(cls, data, filters, **plain())
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"dilations": (1, 1)}, "strides and dilations differ in length: [1] and [1, 1]"),
        ({"pads_begin": ()}, "strides and pads_begin differ in length: [1] and []"),
        ({"strides": (0,)}, "attribute 'strides'"),
        ({"pads_end": (-1,)}, "attribute 'pads_end'"),
        ({"auto_pad": "SAME"}, "attribute 'auto_pad'"),
    ],
)
def test_attributes_that_contradict(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Convolution(**plain(**changed))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("data", "filters", "attributes", "expected"),
    [
        ("...", "...", plain(2), "?,?,1..,1.."),
        ("...", "4,3,3,3", plain(2), "?,4,1..,1.."),
        ("1,3,..9", "2,3,2..4", plain(), "1,2,1..8"),
        ("1,3,5..9", "2,3,2..4", plain(), "1,2,2..8"),
        ("1,3,5..9", "2,3,0..2", plain(), "1,2,4..9"),
        ("1,3,..9", "2,3,3", plain(auto_pad="same_upper", strides=(2,)), "1,2,..5"),
        ("1,3,?", "2,3,?", plain(auto_pad="same_lower"), "1,2,?"),
        ("?,3,4..6", "2,3,3", plain(pads_begin=(1,), pads_end=(1,)), "?,2,4..6"),
        ("1,3,0", "2,3,3", plain(auto_pad="same_upper"), "1,2,0"),
    ],
)
def test_inferred_from_little(data: str, filters: str, attributes: dict[str, Any], expected: str) -> None:
    assert str(shape_of(Convolution, data, filters, **attributes)) == f"[{expected}]"


def test_groups_follow_from_the_channels() -> None:
    assert shape_of(GroupConvolution, "1,12,8", "?,2,3,3", **plain()) == [1, 8, 6]


def test_a_length_that_stays_keeps_its_symbol() -> None:
    length = Dimension.between(1, None, Symbol("length"))
    data = Value.unknown(F32, PartialShape([1, 3, length]))
    filters = Value.unknown(F32, PartialShape([2, 3, 3]))
    for how in (plain(pads_begin=(1,), pads_end=(1,)), plain(auto_pad="same_upper")):
        (found,) = Convolution(**how).infer_types(data, filters)
        assert found.shape[2].symbol is length.symbol


def test_nothing_fits_at_run_time() -> None:
    with pytest.raises(InferenceError, match="exceeds the padded length"):
        Convolution(**plain()).evaluate(np.zeros((1, 1, 2), "f4"), np.zeros((1, 1, 3), "f4"))


def test_no_data_gives_no_output() -> None:
    data, filters = np.zeros((1, 1, 0, 5), "f4"), np.zeros((2, 1, 3, 3), "f4")
    found = Convolution(**plain(2, auto_pad="same_upper", strides=(1, 2))).evaluate(data, filters)
    assert found.shape == (1, 2, 0, 3)


def test_patches_are_copied_in_parts() -> None:
    """Patches of a whole layer take 1.8 GB here."""
    data, filters = np.ones((1, 32, 1200, 160), "f4"), np.ones((4, 32, 9, 9), "f4")
    tracemalloc.start()
    found = Convolution(**plain(2)).evaluate(data, filters)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * data.nbytes
    np.testing.assert_allclose(found, 32 * 81)


def both_ways(data: str, filters: str, shape: Any = None, **attributes: Any) -> PartialShape:
    values = [value(f"f32 {data}"), value(f"f32 {filters}")] + ([] if shape is None else [value(shape)])
    cls = GroupConvolutionBackpropData if filters.count(",") > data.count(",") else ConvolutionBackpropData
    (found,) = cls(**attributes).infer_types(*values)
    return found.shape


@pytest.mark.parametrize(
    ("data", "filters", "shape", "attributes", "message"),
    [
        ("1,3,8", "4,2,3", None, plain(), "data has 3 channels, filters expect 4"),
        ("1,7,8", "?,4,1,3", None, plain(), "data has 7 channels, filters expect a multiple of 4"),
        ("1,3,8", "3,2,0", None, plain(), "kernel has length 0 along a spatial axis, at least 1 is expected"),
        (
            "1,3,1",
            "3,2,3",
            None,
            plain(pads_begin=(3,), pads_end=(1,)),
            "pads 3 and 1 cut more than the 3 there are",
        ),
        (
            "1,3,8",
            "3,2,3",
            np.array([4, 4]),
            plain(),
            "output_shape has 2 lengths, the attributes are for 1 spatial axes",
        ),
        ("1,3,8", "3,2,3", np.array([-4]), plain(), "output_shape asks for length -4"),
        ("1,3,8", "3,2,3", np.array([[4]]), plain(), "output_shape must be 1-D, not of shape [1,1]"),
    ],
)
def test_contradictions_of_transposed_ones(
    data: str, filters: str, shape: Any, attributes: dict[str, Any], message: str
) -> None:
    with pytest.raises(InferenceError) as caught:
        both_ways(data, filters, shape, **attributes)
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("data", "filters", "shape", "attributes", "expected"),
    [
        ("...", "...", None, plain(), "?,?,1.."),
        ("1,3,2..4", "3,2,3", None, plain(strides=(2,)), "1,2,5..9"),
        ("1,3,4", "3,2,2..3", None, plain(dilations=(2,), output_padding=(1,)), "1,2,7..9"),
        ("1,3,4", "3,2,3", "i64 1", plain(), "1,2,?"),
        ("1,3,4", "3,2,3", "i64 ?", plain(), "1,2,?"),
        ("?,3,?", "3,2,3", np.array([9]), plain(), "?,2,9"),
        ("1,12,4", "?,3,2,3", None, plain(), "1,8,6"),
        ("1,3,4", "3,2,3", None, plain(auto_pad="same_upper", pads_begin=(9,)), "1,2,6"),
    ],
)
def test_inferred_from_little_of_transposed_ones(
    data: str, filters: str, shape: Any, attributes: dict[str, Any], expected: str
) -> None:
    assert str(both_ways(data, filters, shape, **attributes)) == f"[{expected}]"


def test_a_wrong_number_of_output_paddings() -> None:
    with pytest.raises(ValidationError, match="strides and output_padding differ in length"):
        ConvolutionBackpropData(**plain(output_padding=(1, 1)))


@pytest.mark.parametrize(
    ("shapes", "attributes", "message"),
    [
        (("1,3,4,4", "1,8,3,3", "2,2,2,2"), {}, "data has 3 channels, filters expect 2"),
        (("1,2,4,4", "1,6,3,3", "2,2,2,2"), {}, "offsets of 6 channels, 8 are expected"),
        (("1,2,4,4", "1,8,3,2", "2,2,2,2"), {}, "offsets [1,8,3,2] do not fit the output [1,2,3,3]"),
        (("1,2,4,4", "8,3,3", "2,2,2,2"), {}, "offsets must have rank 4, found [8,3,3]"),
        (("1,2,4,4", "1,8,3,3", "2,2,2,2", "1,3,3,3"), {}, "mask of 3 channels, 4 are expected"),
        (("1,4,4,4", "1,8,3,3", "3,2,2,2"), {"group": 2}, "C_out 3 does not divide into 2 groups"),
        (("1,4,4,4", "1,24,3,3", "2,4,2,2"), {"deformable_group": 3}, "C_in 4 does not divide into 3 groups"),
    ],
)
def test_contradictions_of_deformable_ones(
    shapes: tuple[str, ...], attributes: dict[str, Any], message: str
) -> None:
    with pytest.raises(InferenceError) as caught:
        DeformableConvolution8(**plain(2, **attributes)).infer_types(*(value(f"f32 {s}") for s in shapes))
    assert message in caught.value.message


@pytest.mark.parametrize("cls", [DeformableConvolution8, BinaryConvolution])
def test_two_spatial_axes_are_required(cls: Any) -> None:
    more = {"mode": "xnor-popcount", "pad_value": 0.0} if cls is BinaryConvolution else {}
    with pytest.raises(ValidationError, match=r"strides must have a number for Y and one for X, not \[1\]"):
        cls(**plain(), **more)


def test_offsets_tell_the_shape() -> None:
    values = [value(f"f32 {s}") for s in ("?,2,?,?", "3,8,4,5", "2,2,2,2")]
    assert str(DeformableConvolution8(**plain(2)).infer_types(*values)[0].shape) == "[3,2,4,5]"
