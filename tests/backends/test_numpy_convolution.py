"""Convolutions and pooling of the NumPy backend against the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness.kernels import agree, numbers, text, unknown
from harness.layers import layer
from hypothesis import given, settings
from hypothesis import strategies as st

from ir_runtime.backends.numpy import backend
from ir_runtime.backends.numpy.kernels import convolution
from ir_runtime.backends.numpy.kernels.convolution import shifted_products, suits_winograd

pytestmark = pytest.mark.usefixtures("one_and_three_threads")


quick = settings(max_examples=60, deadline=None)


def window(spatial: int, draw: Any) -> dict[str, str]:
    each = st.lists(st.integers(1, 3), min_size=spatial, max_size=spatial)
    pad = st.lists(st.integers(0, 2), min_size=spatial, max_size=spatial)
    return {
        "strides": text(draw(each)),
        "pads_begin": text(draw(pad)),
        "pads_end": text(draw(pad)),
        "auto_pad": draw(st.sampled_from(["explicit", "explicit", "same_upper", "same_lower", "valid"])),
    }


@quick
@given(st.data(), st.booleans())
def test_convolution(data: st.DataObject, dynamic: bool) -> None:
    spatial = data.draw(st.integers(1, 3))
    kernel = data.draw(st.lists(st.integers(1, 3), min_size=spatial, max_size=spatial))
    lengths = data.draw(st.lists(st.integers(7, 9), min_size=spatial, max_size=spatial))
    batch, channels, outputs = (data.draw(st.integers(1, n)) for n in (2, 6, 70))
    dilations = text(data.draw(st.lists(st.integers(1, 2), min_size=spatial, max_size=spatial)))
    op = layer("Convolution-1", **window(spatial, data.draw), dilations=dilations)
    x, w = numbers(batch, channels, *lengths), numbers(outputs, channels, *kernel)
    agree(op, x, w, dynamic=dynamic)


@quick
@given(st.data(), st.booleans())
def test_group_convolution(data: st.DataObject, dynamic: bool) -> None:
    spatial = data.draw(st.integers(1, 3))
    kernel = data.draw(st.lists(st.integers(1, 3), min_size=spatial, max_size=spatial))
    lengths = data.draw(st.lists(st.integers(7, 9), min_size=spatial, max_size=spatial))
    batch, groups, channels, outputs = (data.draw(st.integers(1, n)) for n in (2, 5, 3, 3))
    dilations = text(data.draw(st.lists(st.integers(1, 2), min_size=spatial, max_size=spatial)))
    op = layer("GroupConvolution-1", **window(spatial, data.draw), dilations=dilations)
    x, w = numbers(batch, groups * channels, *lengths), numbers(groups, outputs, channels, *kernel)
    agree(op, x, w, dynamic=dynamic)


@quick
@given(st.data(), st.booleans())
def test_transposed_convolution(data: st.DataObject, dynamic: bool) -> None:
    spatial = data.draw(st.integers(1, 3))
    kernel = data.draw(st.lists(st.integers(1, 3), min_size=spatial, max_size=spatial))
    lengths = data.draw(st.lists(st.integers(5, 7), min_size=spatial, max_size=spatial))
    batch, channels, outputs = (data.draw(st.integers(lo, hi)) for lo, hi in ((0, 2), (1, 6), (1, 40)))
    dilations = text(data.draw(st.lists(st.integers(1, 2), min_size=spatial, max_size=spatial)))
    wanted = data.draw(st.lists(st.integers(4, 20), min_size=spatial, max_size=spatial))
    sized = [np.array(wanted, np.int64)] if data.draw(st.booleans()) else []
    op = layer("ConvolutionBackpropData-1", **window(spatial, data.draw), dilations=dilations)
    agree(
        op, numbers(batch, channels, *lengths), numbers(channels, outputs, *kernel), *sized, dynamic=dynamic
    )


@quick
@given(st.data())
def test_depthwise_convolution(data: st.DataObject) -> None:
    batch, channels, height, width = (data.draw(st.integers(1, n)) for n in (3, 40, 30, 30))
    size = data.draw(st.sampled_from([1, 3, 5]))
    how = window(2, data.draw) | {"auto_pad": "same_upper"}
    op = layer("GroupConvolution-1", **how, dilations=text(data.draw(st.tuples(*[st.integers(1, 2)] * 2))))
    agree(op, numbers(batch, channels, height, width), numbers(channels, 1, 1, size, size))


SAME_PADDING = {"strides": "1,1", "pads_begin": "1,1", "pads_end": "1,1", "dilations": "1,1"}


@pytest.mark.parametrize(
    ("op", "x", "w"),
    [
        ("Convolution-1", (0, 3, 6, 6), (4, 3, 3, 3)),
        ("Convolution-1", (0, 3, 6, 6), (4, 3, 1, 1)),
        ("GroupConvolution-1", (0, 3, 6, 6), (3, 1, 1, 3, 3)),
        ("GroupConvolution-1", (0, 4, 6, 6), (2, 2, 2, 3, 3)),
        ("Convolution-1", (2, 130, 40, 3), (9, 130, 3, 3)),
        ("Convolution-1", (1, 40, 5, 5), (300, 40, 3, 3)),
    ],
)
def test_empty_and_large_convolutions(op: str, x: tuple[int, ...], w: tuple[int, ...]) -> None:
    agree(layer(op, **SAME_PADDING), numbers(*x), numbers(*w))


def test_nan_and_infinity_reach_only_their_windows() -> None:
    x = numbers(1, 3, 9, 9)
    x[0, 1, 4, 4], x[0, 2, 0, 0] = np.nan, np.inf
    agree(layer("Convolution-1", **SAME_PADDING), x, numbers(8, 3, 3, 3))
    agree(layer("GroupConvolution-1", **SAME_PADDING), x, numbers(3, 1, 1, 3, 3))
    many = np.concatenate([x, x, x, x], axis=1)
    agree(layer("GroupConvolution-1", **SAME_PADDING), many, numbers(6, 5, 2, 3, 3))


@pytest.mark.parametrize(
    ("x", "w", "stride", "dilation"),
    [
        ((2, 40, 300), (40, 1, 1, 9), 1, 1),
        ((1, 40, 301), (40, 1, 1, 4), 3, 2),
        ((0, 4, 30), (4, 1, 1, 3), 1, 1),
        ((1, 700, 3, 4, 5), (700, 1, 1, 2, 3, 3), 1, 1),
        ((2, 7, 9, 8, 11), (7, 1, 1, 3, 3, 2), 2, 1),
        ((1, 96, 20, 21), (12, 8, 8, 3, 3), 1, 1),
        ((2, 72, 20, 21), (3, 24, 24, 3, 3), 2, 1),
    ],
)
def test_depthwise_windows_and_groups(
    x: tuple[int, ...], w: tuple[int, ...], stride: int, dilation: int
) -> None:
    axes = len(w) - 3
    each = {"strides": stride, "dilations": dilation, "pads_begin": 1, "pads_end": 1}
    op = layer("GroupConvolution-1", **{name: text([n] * axes) for name, n in each.items()})
    agree(op, numbers(*x, special=True), numbers(*w))
    agree(op, numbers(*x), numbers(*w))


def test_a_map_of_one_position_is_one_product() -> None:
    pointwise = {"strides": "1,1", "pads_begin": "0,0", "pads_end": "0,0", "dilations": "1,1"}
    for dynamic in (False, True):
        op = layer("Convolution-1", **pointwise)
        agree(op, numbers(1, 24, 1, 1), numbers(72, 24, 1, 1), dynamic=dynamic)


@pytest.mark.parametrize("pads", ["1,1", "0,2"])
@pytest.mark.parametrize(
    ("x", "outputs", "dynamic"),
    [
        ((1, 32, 10, 10), 32, False),
        ((2, 33, 13, 15), 35, False),
        ((1, 40, 31, 10), 65, True),
        ((2, 32, 3, 4), 32, True),
        ((0, 32, 12, 12), 32, False),
    ],
)
def test_winograd(x: tuple[int, ...], outputs: int, dynamic: bool, pads: str) -> None:
    op = layer("Convolution-1", **SAME_PADDING | {"pads_begin": pads})
    data, filters = numbers(*x), numbers(outputs, x[1], 3, 3)
    assert suits_winograd(op, filters, (None, None) if dynamic else x[2:])
    agree(op, data, filters, dynamic=dynamic)


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf, 3e38])
def test_winograd_keeps_nan_and_infinity_in_their_windows(special: float) -> None:
    """Winograd's tiles are larger than windows."""
    x, filters = numbers(1, 32, 14, 14), numbers(32, 32, 3, 3)
    x[0, 3, 7, 7] = special
    agree(layer("Convolution-1", **SAME_PADDING), x, filters)
    filters[5, 2, 1, 1] = special
    # Not with both: the sum of two large products may overflow or not, as of their order.
    agree(layer("Convolution-1", **SAME_PADDING), numbers(1, 32, 14, 14), filters)


@quick
@given(st.data())
def test_pooling(data: st.DataObject) -> None:
    spatial = data.draw(st.integers(1, 3))
    kernel = data.draw(st.lists(st.integers(2, 3), min_size=spatial, max_size=spatial))
    how = window(spatial, data.draw)
    how["pads_begin"] = how["pads_end"] = text([1] * spatial)
    how |= {"kernel": text(kernel), "rounding_type": data.draw(st.sampled_from(["floor", "ceil"]))}
    batch = data.draw(st.integers(0, 2))
    x = numbers(
        batch, 3, *data.draw(st.lists(st.integers(5, 8), min_size=spatial, max_size=spatial)), special=True
    )
    agree(layer("MaxPool-1", **how), x)
    agree(layer("MaxPool-8", **how), x, unread=(1,))


def test_max_pool_of_nan_only() -> None:
    agree(
        layer("MaxPool-1", kernel="2,2", strides="2,2", pads_begin="0,0", pads_end="0,0"),
        np.full((1, 2, 4, 4), np.nan, np.float32),
    )


def test_max_pool_with_indices_runs_the_reference() -> None:
    op = layer("MaxPool-8", kernel="2,2", strides="2,2", pads_begin="0,0", pads_end="0,0")
    assert backend.kernel(op, [unknown(numbers(1, 2, 4, 4))]) is None


@pytest.mark.parametrize(
    ("lengths", "kernel", "dilation", "pad"),
    [
        ((12, 10), (3, 3), 9, 9),
        ((6, 6), (3, 3), 8, 8),
        ((1, 1), (3, 3), 1, 1),
        ((2, 2), (3, 5), 1, 2),
        ((9, 1), (3, 3), 4, 4),
        ((8,), (3,), 7, 7),
        ((3, 2, 3), (3, 3, 3), 2, 2),
    ],
)
def test_windows_that_meet_much_padding(
    monkeypatch: pytest.MonkeyPatch,
    lengths: tuple[int, ...],
    kernel: tuple[int, ...],
    dilation: int,
    pad: int,
) -> None:
    monkeypatch.setattr(convolution, "MIN_SAVED", 0)
    axes = len(lengths)
    each = {"strides": 1, "pads_begin": pad, "pads_end": pad, "dilations": dilation}
    op = layer("Convolution-1", **{name: text([n] * axes) for name, n in each.items()})
    w = numbers(40, 33, *kernel)
    assert shifted_products(op, w, lengths) is not None
    agree(op, numbers(2, 33, *lengths), w)
    w[0, 0, ..., 0] = np.inf
    assert shifted_products(op, w, lengths) is None
    agree(op, numbers(2, 33, *lengths), w)


@pytest.mark.parametrize(
    ("channels", "lengths", "faster"), [(256, (1, 1), True), (16, (4, 4, 4), False), (256, (7, 7), False)]
)
def test_products_of_elements_must_save_enough(channels: int, lengths: tuple[int, ...], faster: bool) -> None:
    axes = len(lengths)
    names = ("strides", "pads_begin", "pads_end", "dilations")
    op = layer("Convolution-1", **dict.fromkeys(names, text([1] * axes)))
    found = shifted_products(op, numbers(channels, channels, *[3] * axes), lengths)
    assert (found is not None) is faster
