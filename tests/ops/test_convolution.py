"""Convolutions: inference from partial shapes, memory and time."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from harness.sample import value

from ir_runtime.errors import InferenceError
from ir_runtime.ir.dimension import Symbol
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.shape import Dimension, PartialShape
from ir_runtime.ir.tensor import Value
from ir_runtime.ops.convolution import (
    Convolution,
    ConvolutionBackpropData,
    DeformableConvolution8,
    GroupConvolution,
    GroupConvolutionBackpropData,
)

F32 = ElementType.f32


def plain(spatial: int = 1, **changed: Any) -> dict[str, Any]:
    zeros, ones = (0,) * spatial, (1,) * spatial
    return {"strides": ones, "pads_begin": zeros, "pads_end": zeros, "dilations": ones} | changed


def shape_of(cls: Any, data: str, filters: str, **attributes: Any) -> PartialShape:
    values = (Value.unknown(F32, PartialShape(s)) for s in (data, filters))
    (found,) = cls(**attributes).infer_types(*values)
    return found.shape


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


@pytest.mark.parametrize(
    ("data", "filters", "expected"),
    [
        ("1,12,8", "?,2,3,3", "1,8,6"),
        ("1,4..9,8", "?,2,2,3", "1,4..8,6"),
        ("1,4..9,8", "..5,1,2,3", "1,2..4,6"),
        ("1,12,8", "2..,1,3..6,3", "1,2..4,6"),
        ("1,12..,8", "?,1,..3,3", "1,?,6"),
        ("1,12..,8", "?,1,1..3,3", "1,4..,6"),
    ],
)
def test_groups_follow_from_the_channels(data: str, filters: str, expected: str) -> None:
    assert str(shape_of(GroupConvolution, data, filters, **plain())) == f"[{expected}]"


def test_no_number_of_groups_has_the_channels() -> None:
    with pytest.raises(
        InferenceError, match=r"7 channels, but filters \[\?,2,3,3\] are made for a multiple of 3"
    ):
        shape_of(GroupConvolution, "1,7,8", "?,2,3,3", **plain())


def test_a_length_that_stays_keeps_its_symbol() -> None:
    length = Dimension.between(1, None, Symbol("length"))
    data = Value.unknown(F32, PartialShape([1, 3, length]))
    filters = Value.unknown(F32, PartialShape([2, 3, 3]))
    for how in (plain(pads_begin=(1,), pads_end=(1,)), plain(auto_pad="same_upper")):
        (found,) = Convolution(**how).infer_types(data, filters)
        assert found.shape[2].symbol is length.symbol


def test_nothing_fits_at_run_time() -> None:
    with pytest.raises(InferenceError, match="dim 2 of data is 2, but the kernel covers 3"):
        Convolution(**plain()).evaluate(np.zeros((1, 1, 2), "f4"), np.zeros((1, 1, 3), "f4"))


def test_no_data_gives_no_output() -> None:
    data, filters = np.zeros((1, 1, 0, 5), "f4"), np.zeros((2, 1, 3, 3), "f4")
    found = Convolution(**plain(2, auto_pad="same_upper", strides=(1, 2))).evaluate(data, filters)
    assert found.shape == (1, 2, 0, 3)


def test_patches_are_copied_in_parts() -> None:
    """The patches of the whole layer would take 1.8 GB."""
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


def test_offsets_tell_the_shape() -> None:
    values = [value(f"f32 {s}") for s in ("?,2,?,?", "3,8,4,5", "2,2,2,2")]
    assert str(DeformableConvolution8(**plain(2)).infer_types(*values)[0].shape) == "[3,2,4,5]"
