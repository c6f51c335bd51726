"""Normalization of tensors by their own statistics, or by given ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from ..errors import InferenceError
from ..ir.dimension import Dimension
from ..ir.formula import Count
from ..ir.operation import Operands
from ..ir.shape import PartialShape
from ..ir.tensor import Array, Value
from ._define.operation import T_FLOAT, T_INDEX, T_INDEX_64, Input, Op, Output, attr, op
from ._lengths import axes_of, check_vector, count_of, normalize_axes, normalize_axis, reduced_shape
from .kernels.statistics import compute_dtype, mean, sum_along

# Parameters with one number per channel.


def check_channels(data: Value, settings: dict[str, Value]) -> PartialShape:
    """Return the shape of ``data[N, C, ...]``, after checking that each of ``settings`` has length C."""
    shape = data.shape
    if shape.rank is not None and shape.rank < 2:
        raise InferenceError(
            f"data has shape {shape}; at least two axes are expected, [N, C, ...]",
            clause="data has at least two axes, [N, C, ...]",
        )
    channels = Dimension() if shape.rank is None else shape[1]
    for name, value in settings.items():
        check_vector(value, name)
        if value.shape.rank == 1:
            both = channels.merge(value.shape[0])
            if both is None:
                has_rank = shape.rank is not None and shape[1] == channels
                subject = f"data {shape} has" if has_rank else "by the inputs before it there are"
                raise InferenceError(
                    f"{name} has length {value.shape[0]}, but {subject} {channels} channels",
                    clause=f"{name} has one number for each channel",
                )
            channels = both
    if channels == 0:
        raise InferenceError(
            f"axis 1 of data {shape}, the channels, has length 0; at least 1 is expected",
            clause="data has at least one channel",
        )
    return shape if shape.rank is None else shape.replace({1: channels})


def per_channel(numbers: Array, rank: int) -> Array:
    """Reshape a parameter of length C to broadcast along the second axis of a tensor of ``rank``."""
    return numbers.astype(compute_dtype(numbers.dtype), copy=False).reshape(-1, *[1] * (rank - 2))


Axes = tuple[int, ...]
SAME = "the result, of the shape of data"


@op("NormalizeL2-1")
class NormalizeL2(Op):
    """Divide ``data`` by its L2 norm over ``axes``."""

    decisions = (
        "over no axes, each element is divided by itself: 1, and 0 for 0, as the page says; OpenVINO keeps the sign, as the formula of the page does",
    )

    bounded = True
    flops_per_element = 3

    data = Input(T_FLOAT, "tensor to normalize")
    axes = Input(T_INDEX, "axes of the norm, a scalar or 1-D; if empty, each element is normalized alone")
    normalized = Output(T_FLOAT, SAME)

    eps: float = attr(gt=0, doc="small number that keeps the norm from being zero")
    eps_mode: Literal["add", "max"] = attr(
        default_with_warning="add", doc="whether to add eps to the sum of squares, or to take their maximum"
    )

    def infer(self, data: Value, axes: Value) -> PartialShape:
        reduced_shape(data.shape, axes, keep_dims=True)  # rejects invalid axes
        return data.shape

    def evaluate(self, data: Array, axes: Array) -> Array:
        if axes.size == 0:
            return np.asarray(data != 0).astype(data.dtype)
        return self.divide(data, normalize_axes(axes_of(axes), data.ndim))

    def divide(self, data: Array, axes: Axes) -> Array:
        """Divide by the norm over ``axes``, which is not empty."""
        x = data.astype(compute_dtype(data.dtype), copy=False)
        squares = sum_along(np.square(x, dtype=np.float64), axes, keepdims=True)
        guarded = squares + self.eps if self.eps_mode == "add" else np.maximum(squares, self.eps)
        return np.asarray(x / np.sqrt(guarded)).astype(data.dtype, copy=False)


@op("GRN-1", spec="normalization/grn-1")
class GRN(Op):
    """Divide ``data`` by its L2 norm over the channels (the second axis)."""

    bounded = True
    flops_per_element = 3

    data = Input(T_FLOAT, "[N, C, ...], of rank 2 to 4")
    normalized = Output(T_FLOAT, SAME)

    bias: float = attr(default_with_warning="1", gt=0, doc="added to the sum of squares")

    def infer(self, data: Value) -> PartialShape:
        if data.shape.rank not in (None, 2, 3, 4):
            raise InferenceError(
                f"data has shape {data.shape}; 2 to 4 axes are expected, [N, C, ...]",
                clause="data has 2 to 4 axes, [N, C, ...]",
            )
        return data.shape

    def evaluate(self, data: Array) -> Array:
        return NormalizeL2(eps=self.bias, eps_mode="add").divide(data, (1,))


@op("MVN-6", spec="normalization/mvn-6")
class MVN(Op):
    """Subtract the mean of ``data`` over ``axes``, and optionally divide by the standard deviation."""

    decisions = (
        "sums do not overflow, as on the page; OpenVINO's are those of f32, so that all becomes 0 beside one number of 3e38",
    )

    bounded = True
    flops_per_element = 5

    data = Input(T_FLOAT, "tensor to normalize")
    axes = Input(T_INDEX_64, "axes of the mean, 1-D, in any order")
    normalized = Output(T_FLOAT, SAME)

    normalize_variance: bool = attr(
        default_with_warning="false", doc="whether to divide by the standard deviation"
    )
    eps: float = attr(gt=0, doc="small number that keeps the divisor from being zero")
    eps_mode: Literal["inside_sqrt", "outside_sqrt"] = attr(
        default_with_warning="inside_sqrt",
        doc="whether to add eps to the variance, or to the standard deviation",
    )

    def shown(self, inputs: Sequence[PartialShape], output: PartialShape) -> Mapping[str, object]:
        """Return the mode in upper case, as OpenVINO's API presents it."""
        return {"eps_mode": self.eps_mode.upper()}

    def infer(self, data: Value, axes: Value) -> PartialShape:
        _check_axes(data, axes)
        count = count_of(axes, "axes")
        if data.shape.rank is not None and count is not None and count > data.shape.rank:
            raise InferenceError(
                f"axes has length {count}, but data {data.shape} has rank {data.shape.rank}",
                clause="there are no more axes than data has",
            )
        return data.shape

    def evaluate(self, data: Array, axes: Array) -> Array:
        return self.normalize(data, axes_of(axes))

    def normalize(self, data: Array, axes: Axes) -> Array:
        """Normalize over ``axes``, which may contain duplicates."""
        over = _distinct(axes, data.ndim)
        x = data.astype(compute_dtype(data.dtype), copy=False)
        centred = x - mean(x, over, keepdims=True)
        if self.normalize_variance:
            variance = mean(np.square(centred), over, keepdims=True)
            inside = self.eps_mode == "inside_sqrt"
            deviation = np.sqrt(variance + self.eps) if inside else np.sqrt(variance) + self.eps
            centred = centred / deviation
        return np.asarray(centred).astype(data.dtype)


@op("MVN-1", spec="normalization/mvn-1")
class MVN1(Op):
    """The same as version 6, with the axes as an attribute.

    OpenVINO writes both ``across_channels`` and ``reduction_axes``; the axes take precedence.
    """

    decisions = (
        "sums do not overflow, as on the page; OpenVINO's are those of f32, so that all becomes 0 beside one number of 3e38",
    )

    bounded = True
    flops_per_element = 5

    data = Input(T_FLOAT, "[N, C, ...] unless reduction_axes are given")
    normalized = Output(T_FLOAT, SAME)

    across_channels: bool = attr(
        False, doc="whether all channels share a mean; ignored if reduction_axes are given"
    )
    reduction_axes: Axes = attr((), doc="axes of the mean; negative ones count from the end")
    normalize_variance: bool = attr(
        default_with_warning="false", doc="whether to divide by the standard deviation"
    )
    eps: float = attr(gt=0, doc="added to the variance")

    def infer(self, data: Value) -> PartialShape:
        if data.shape.rank is not None:
            _distinct(self.reduction_axes, data.shape.rank)
        return data.shape

    def evaluate(self, data: Array) -> Array:
        axes = self.reduction_axes or tuple(range(1 if self.across_channels else 2, data.ndim))
        modern = MVN(normalize_variance=self.normalize_variance, eps=self.eps, eps_mode="inside_sqrt")
        return modern.normalize(data, axes)


@op("LRN-1", spec="normalization/lrn-1")
class LRN(Op):
    """Divide ``data`` by a power of a scaled sum of squares in a window around each element."""

    decisions = (
        "the window is size long, or one less where that is even, as in OpenVINO's reference and plugin; the page adds one",
        "bias is not rounded; OpenVINO's plugin rounds it to an integer",
    )

    bounded = True

    data = Input(T_FLOAT, "tensor to normalize")
    axes = Input(T_INDEX, "axes of the window, 1-D")
    normalized = Output(T_FLOAT, SAME)

    alpha: float = attr(default_with_warning="0", doc="factor of the mean square")
    beta: float = attr(gt=0, doc="exponent of the divisor")
    bias: float = attr(default_with_warning="0", doc="added to the mean square before it is raised")
    size: int = attr(ge=1, doc="length of the window")

    def infer(self, data: Value, axes: Value) -> PartialShape:
        _check_axes(data, axes)
        return data.shape

    def evaluate(self, data: Array, axes: Array) -> Array:
        over = _distinct(axes_of(axes), data.ndim)
        x = data.astype(compute_dtype(data.dtype), copy=False)
        squares = np.square(x, dtype=np.float64)
        for axis in over:
            squares = _window_sum(squares, axis, (self.size - 1) // 2)
        scale = self.alpha / self.size ** len(over)
        return np.asarray(x / (self.bias + scale * squares) ** self.beta).astype(data.dtype)

    def flops(self, operands: Operands) -> Count:
        """Return the FLOPs per element of the window sum, plus five to square, scale, add, raise and divide."""
        axes = operands.content(1)
        window: int = self.size ** (1 if axes is None else axes.size)
        return (window + 5) * operands.result


def _window_sum(x: Array, axis: int, reach: int) -> Array:
    """Return the sum of the elements at most ``reach`` away from each element along an axis."""
    if not x.size:
        return x
    reach = min(reach, x.shape[axis])
    sides = [(reach, reach) if i == axis else (0, 0) for i in range(x.ndim)]
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, sides), 2 * reach + 1, axis)
    return np.asarray(windows.sum(-1))


@op("GroupNormalization-12")
class GroupNormalization(Op):
    """Normalize groups of channels of ``data``, then scale and shift each channel."""

    bounded = True
    flops_per_element = 7

    data = Input(T_FLOAT, "[N, C, ...]")
    scale = Input(T_FLOAT, "factor of each channel, [C]", mixed=True)
    bias = Input(T_FLOAT, "added to each channel, [C]", mixed=True)
    normalized = Output(T_FLOAT, SAME)

    num_groups: int = attr(ge=1, doc="number of groups, which divides the number of channels")
    epsilon: float = attr(gt=0, doc="added to the variance")

    def infer(self, data: Value, scale: Value, bias: Value) -> PartialShape:
        shape = check_channels(data, {"scale": scale, "bias": bias})
        if shape.rank is None:
            return shape
        channels = shape[1]
        rest = channels.is_static and channels.min % self.num_groups
        if rest or (channels.max is not None and channels.max < self.num_groups):
            raise InferenceError(
                f"axis 1 of data {shape}, the channels, has length {channels}, which num_groups {self.num_groups} does "
                f"not divide",
                clause="num_groups divides the channels",
            )
        return shape

    def evaluate(self, data: Array, scale: Array, bias: Array) -> Array:
        batch, channels, *rest = data.shape
        grouped = data.reshape(batch, self.num_groups, channels // self.num_groups, *rest)
        grouped = grouped.astype(compute_dtype(data.dtype), copy=False)
        modern = MVN(normalize_variance=True, eps=self.epsilon, eps_mode="inside_sqrt")
        normal = modern.normalize(grouped, tuple(range(2, grouped.ndim))).reshape(data.shape)
        factor, shift = (per_channel(a, data.ndim) for a in (scale, bias))
        return np.asarray(normal * factor + shift).astype(data.dtype, copy=False)


@op("BatchNormInference-5")
class BatchNormInference(Op):
    """Scale and shift each channel of ``data``: ``gamma`` (x - ``mean``) / sqrt(``variance``) + ``beta``."""

    bounded = True
    flops_per_element = 2

    data = Input(T_FLOAT, "[N, C, ...]")
    gamma = Input(T_FLOAT, "factor of each channel, [C]")
    beta = Input(T_FLOAT, "added to each channel, [C]")
    mean = Input(T_FLOAT, "mean of each channel, [C]")
    variance = Input(T_FLOAT, "variance of each channel, [C]")
    normalized = Output(T_FLOAT, SAME)

    epsilon: float = attr(default_with_warning="0", ge=0, doc="added to the variance")

    def infer(self, data: Value, gamma: Value, beta: Value, mean: Value, variance: Value) -> PartialShape:
        return check_channels(data, {"gamma": gamma, "beta": beta, "mean": mean, "variance": variance})

    def evaluate(self, data: Array, gamma: Array, beta: Array, mean: Array, variance: Array) -> Array:
        g, b, m, v = (per_channel(a, data.ndim) for a in (gamma, beta, mean, variance))
        x = data.astype(compute_dtype(data.dtype), copy=False)
        deviation = np.sqrt(v + v.dtype.type(self.epsilon))
        return np.asarray((x - m) / deviation * g + b).astype(data.dtype, copy=False)


@op("BatchNormInference-1")
class BatchNormInference1(Op):
    """The same as version 5, with ``data`` as the third input, as in files; the specification shows another order."""

    flops_per_element = 2

    gamma = Input(T_FLOAT, "factor of each channel, [C]")
    beta = Input(T_FLOAT, "added to each channel, [C]")
    data = Input(T_FLOAT, "[N, C, ...]")
    mean = Input(T_FLOAT, "mean of each channel, [C]")
    variance = Input(T_FLOAT, "variance of each channel, [C]")
    normalized = Output(T_FLOAT, SAME)

    epsilon: float = attr(default_with_warning="0", ge=0, doc="added to the variance")

    def modern(self) -> BatchNormInference:
        """Return the equivalent operation of version 5."""
        return BatchNormInference(epsilon=self.epsilon)

    def infer(self, gamma: Value, beta: Value, data: Value, mean: Value, variance: Value) -> PartialShape:
        return self.modern().infer(data, gamma, beta, mean, variance)

    def evaluate(self, gamma: Array, beta: Array, data: Array, mean: Array, variance: Array) -> Array:
        return self.modern().evaluate(data, gamma, beta, mean, variance)


def _check_axes(data: Value, axes: Value) -> None:
    check_vector(axes, "axes")
    values = axes.ints()
    if values is not None and data.shape.rank is not None:
        _distinct(values, data.shape.rank)


def _distinct(axes: Axes, rank: int) -> Axes:
    """Return nonnegative axes in ascending order, without duplicates."""
    return tuple(sorted({normalize_axis(axis, rank) for axis in axes}))
