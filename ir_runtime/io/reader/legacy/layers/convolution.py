"""Legacy layers on images: convolutions, pooling, matrix products, and resizing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

from .....codes import Code
from .....ir.element import ElementType
from .....ops import Op, registry
from ..declaration import LegacyLayer, Spelling, attr, layer
from ..site import END, Site, Tensor

# Convolutions, pooling, and matrices of weights.


class Windowed(LegacyLayer):
    """A layer with sliding windows. In IR version 2, each of the two axes has attributes of its own."""

    kernel: tuple[int, ...] = attr(gt=0, doc="the lengths of a window")
    strides: tuple[int, ...] = attr((), ge=0)
    pads_begin: tuple[int, ...] = attr((), ge=0)
    pads_end: tuple[int, ...] | None = attr(None)
    dilations: tuple[int, ...] = attr((), gt=0)
    auto_pad: Literal["", "explicit", "notset", "same_upper", "same_lower", "valid"] = attr("")
    spelled = {
        "kernel": Spelling((("kernel-y",), ("kernel-x",))),
        "strides": Spelling((("stride-y",), ("stride-x",)), "1"),
        "pads_begin": Spelling((("pad-y",), ("pad-x",)), "0"),
        "pads_end": Spelling((("pad-b", "pad-y"), ("pad-r", "pad-x")), "0"),
        "dilations": Spelling((("dilation-y",), ("dilation-x",)), "1"),
    }
    leftovers = frozenset(
        {"stride", "input", "bias_term", "pad", "rank", "weights_axis", "pad_value", "mode"}
    )

    def fill_axes(self, numbers: Sequence[int], default: int) -> tuple[int, ...]:
        """Return an attribute for all axes of the kernel, with ``default`` for 0 and for missing values."""
        return tuple(number or default for number in numbers) or (default,) * len(self.kernel)

    def windows(self, site: Site) -> dict[str, Any]:
        """Return the window attributes of the operation.

        Raises:
            ValidationError: if lists have different lengths.
        """
        begin = self.fill_axes(self.pads_begin, 0)
        end = begin if self.pads_end is None else self.fill_axes(self.pads_end, 0)
        attributes: dict[str, Any] = {
            "strides": self.fill_axes(self.strides, 1),
            "pads_begin": begin,
            "pads_end": end,
            "dilations": self.fill_axes(self.dilations, 1),
        }
        for name, numbers in attributes.items():
            if len(numbers) != len(self.kernel):
                site.refuse(
                    f"attribute {name!r} has length {len(numbers)}, but 'kernel' has length {len(self.kernel)}",
                    Code.BAD_ATTRIBUTE,
                )
        if len(site.ranked(3)) - 2 != len(self.kernel):
            site.refuse(
                f"attribute 'kernel' has length {len(self.kernel)}, but the input has {len(site.dims())} dims",
                Code.BAD_ATTRIBUTE,
            )
        if self.auto_pad.startswith("same") or self.auto_pad == "valid":
            zeros = (0,) * len(self.kernel)
            attributes |= {"auto_pad": self.auto_pad, "pads_begin": zeros, "pads_end": zeros}
        return attributes


class Weighted(Windowed):
    """A convolution with weights and biases, as blobs or as inputs."""

    inputs = (1, 3)
    blobs = ("weights", "biases")
    output: int = attr(gt=0, doc="the number of channels of the output")
    group: int = attr(1, ge=0)

    @property
    def groups(self) -> int:
        return self.group or 1

    def split(self, site: Site, channels: int, what: str) -> int:
        """Return the number of channels in a group; ``what`` names the channels in the message.

        Raises:
            ValidationError: if the number of groups does not divide ``channels``.
        """
        if channels % self.groups:
            site.refuse(f"{self.groups} groups do not divide {channels} {what} channels", Code.BAD_ATTRIBUTE)
        return channels // self.groups

    def weights(self, site: Site, shape: Sequence[int], first: int = 1) -> Tensor:
        """Return the weights in a shape: input ``first`` if there is one, else a blob."""
        if len(site.inputs) > first:
            return site.reshape(site.inputs[first], shape, keep=False)
        return site.blob("weights", shape)

    def add_biases(self, site: Site, result: Tensor, first: int = 2) -> Tensor:
        """Return ``result`` plus the biases, which are input ``first`` or a blob, if there are any."""
        shape = (1, self.output, *(1,) * len(self.kernel))
        if len(site.inputs) > first:
            return site.op("Add-1", result, site.reshape(site.inputs[first], shape, keep=False))
        return site.op("Add-1", result, site.blob("biases", shape)) if "biases" in site.blobs else result


@layer("Convolution")
class Convolution(Weighted):
    """Upgraded to Convolution or GroupConvolution, and an Add for biases."""

    def build(self, site: Site) -> Tensor:
        windows, data = self.windows(site), site.floating(site.inputs[0])
        inner, outer = self.split(site, site.channels(), "input"), self.split(site, self.output, "output")
        if self.groups == 1:
            weights = self.weights(site, (outer, inner, *self.kernel))
            return self.add_biases(site, site.op("Convolution-1", data, weights, **windows))
        weights = self.weights(site, (self.groups, outer, inner, *self.kernel))
        return self.add_biases(site, site.op("GroupConvolution-1", data, weights, **windows))


@layer("Deconvolution")
class Deconvolution(Weighted):
    """Upgraded to ConvolutionBackpropData or GroupConvolutionBackpropData, and an Add for biases."""

    def build(self, site: Site) -> Tensor:
        windows, data = self.windows(site), site.floating(site.inputs[0])
        windows |= self._padding(site, windows)
        windows.pop("auto_pad", None)
        inner, outer = self.split(site, site.channels(), "input"), self.split(site, self.output, "output")
        if self.groups == 1:
            weights = self.weights(site, (inner, outer, *self.kernel))
            return self.add_biases(site, site.op("ConvolutionBackpropData-1", data, weights, **windows))
        weights = self.weights(site, (self.groups, inner, outer, *self.kernel))
        return self.add_biases(site, site.op("GroupConvolutionBackpropData-1", data, weights, **windows))

    def _padding(self, site: Site, windows: dict[str, Any]) -> dict[str, tuple[int, ...]]:
        """Return the padding that gives the declared output lengths: symmetric, or larger at the end."""
        begins, ends, more = [], [], []
        declared = site.output_dims()[2:]
        rows = zip(
            site.dims()[2:],
            self.kernel,
            windows["strides"],
            windows["dilations"],
            windows["pads_begin"],
            windows["pads_end"],
            declared if len(declared) == len(self.kernel) else (-1,) * len(self.kernel),
            strict=True,
        )
        for length, kernel, stride, dilation, begin, end, out in rows:
            whole = stride * (length - 1) + dilation * (kernel - 1) + 1
            if self.auto_pad.startswith("same") and out >= 0:
                total = max(whole - out, 0)
                half = total // 2 if self.auto_pad == "same_upper" else total - total // 2
                begin, end = half, total - half
            extra = out - (whole - begin - end)
            begins.append(begin)
            ends.append(end)
            more.append(extra if 0 < extra < max(stride, dilation) else 0)
        padding = {"pads_begin": tuple(begins), "pads_end": tuple(ends)}
        return padding | ({"output_padding": tuple(more)} if any(more) else {})


@layer("DeformableConvolution")
class DeformableConvolution(Weighted):
    """Upgraded to DeformableConvolution, and an Add for biases."""

    inputs = (2, 4)
    deformable_group: int = attr(1, gt=0)
    spelled = {**Windowed.spelled, "deformable_group": Spelling((("num_deformable_group",),))}

    def build(self, site: Site) -> Tensor:
        windows, (data, offsets) = self.windows(site), site.inputs[:2]
        inner = self.split(site, site.channels(), "input")
        weights = self.weights(site, (self.output, inner, *self.kernel), first=2)
        result = site.op(
            "DeformableConvolution-1",
            data,
            offsets,
            weights,
            group=self.groups,
            deformable_group=self.deformable_group,
            **windows,
        )
        return self.add_biases(site, result, first=3)


@layer("BinaryConvolution")
class BinaryConvolution(Weighted):
    """Upgraded to a Convolution of the input's signs, from Greater and Select, with bits 1 and 0 as weights 1 and -1."""

    inputs = (1, 1)
    input: int = attr(0)
    mode: Literal["xnor-popcount"] = attr("xnor-popcount")
    pad_value: float = attr(0.0)
    leftovers = Windowed.leftovers - {"input", "mode", "pad_value"}

    def build(self, site: Site) -> Tensor:
        windows = self.windows(site)
        data = site.floating(site.inputs[0])
        one, minus = (site.constant(number, ElementType.f32) for number in (1.0, -1.0))
        signs = site.op("Select-1", site.op("Greater-1", data, site.number(0.0, data)), one, minus)
        if self.pad_value and "auto_pad" in windows:
            site.refuse("the meaning of 'auto_pad' with a 'pad_value' is uncertain", Code.BAD_ATTRIBUTE)
        if self.pad_value:
            begin, end = ([0, 0, *windows[name]] for name in ("pads_begin", "pads_end"))
            padding = (
                site.constant(begin),
                site.constant(end),
                site.constant(self.pad_value, ElementType.f32),
            )
            signs = site.op("Pad-1", signs, *padding, pad_mode="constant")
            windows |= dict.fromkeys(("pads_begin", "pads_end"), (0,) * len(self.kernel))
        inner = self.split(site, site.channels(), "input")
        outer = self.split(site, self.output, "output")
        shape = (
            (outer, inner, *self.kernel) if self.groups == 1 else (self.groups, outer, inner, *self.kernel)
        )
        stored = site.add(site.net.signs(site.stored("weights"), shape, site.layer.where), name="weights")[0]
        weights = site.convert(stored, ElementType.f32)
        operation = "Convolution-1" if self.groups == 1 else "GroupConvolution-1"
        return self.add_biases(site, site.op(operation, signs, weights, **windows))


@layer("Pooling")
class Pooling(Windowed):
    """Upgraded to MaxPool or AvgPool, with the rounding that gives the declared lengths."""

    method: Literal["max", "avg"] = attr("max", xml="pool-method")
    exclude_pad: bool = attr(False, xml="exclude-pad")
    rounding_type: Literal["", "floor", "ceil"] = attr("")
    spelled = {**Windowed.spelled, "rounding_type": Spelling((("rounding-type",),))}
    leftovers = Windowed.leftovers | {"output", "group", "pool", "global_pool"}

    def build(self, site: Site) -> Tensor:
        windows = self.windows(site)
        del windows["dilations"]
        rounding = [*filter(None, (self.rounding_type,)), "floor", "ceil"]
        candidates = [self._operation(1, windows, kind) for kind in rounding]
        candidates.append(self._operation(14, windows, "ceil_torch"))
        operation = site.first_that_fits(candidates, site.inputs)
        # Indices are an output of newer versions.
        return site.add(operation, site.inputs, len(operation.outputs))[0]

    def _operation(self, version: int, windows: dict[str, Any], rounding: str) -> Op:
        name = "MaxPool" if self.method == "max" else "AvgPool"
        cls = registry.resolve(name, version)
        assert cls is not None
        more: dict[str, Any] = {}
        if self.method == "avg":
            # Without padding, the mean of windows that extend beyond the end is over elements inside.
            is_padded = any((*windows["pads_begin"], *windows["pads_end"])) or windows.get(
                "auto_pad"
            ) not in (
                None,
                "valid",
            )
            more["exclude_pad"] = self.exclude_pad or not is_padded
        return cls(kernel=self.kernel, rounding_type=rounding, **windows, **more)


@layer("FullyConnected", "InnerProduct")
class FullyConnected(LegacyLayer):
    """Upgraded to a Reshape that flattens all dims but the first, MatMul, and an Add for biases."""

    inputs = (1, 3)
    blobs = ("weights", "biases")
    out_size: int = attr(gt=0, xml="out-size")
    leftovers = frozenset({"alpha", "beta", "axis", "bias_term", "transpose"})

    def build(self, site: Site) -> Tensor:
        dims, data = site.ranked(2), site.floating(site.inputs[0])
        # Some versions did not flatten three dims: then the output has three as well.
        is_flat = len(dims) == 2 or len(site.output_dims()) == len(dims) == 3
        if not is_flat:
            data = site.reshape(data, (0, -1))
        columns = dims[-1] if is_flat else math.prod(dims[1:])
        shape = (self.out_size, columns)
        weights = site.inputs[1] if len(site.inputs) > 1 else site.blob("weights", shape)
        result = site.op("MatMul-1", data, weights, transpose_a=False, transpose_b=True)
        if len(site.inputs) > 2:
            return site.op("Add-1", result, site.inputs[2])
        biases = (*(1,) * (len(site.output_dims()) - 1), self.out_size)
        return site.op("Add-1", result, site.blob("biases", biases)) if "biases" in site.blobs else result


# Image resizing.


def _resize(
    site: Site,
    data: Tensor,
    axes: list[int],
    sizes: Tensor | None,
    factor: float,
    mode: str,
    **settings: object,
) -> Tensor:
    """Return a tensor interpolated along ``axes`` to the lengths ``sizes``, or by ``factor`` if these are ``None``.

    ``settings`` are further attributes of Interpolate.
    """
    scales = site.constant([factor] * len(axes), ElementType.f32)
    by = "scales" if sizes is None else "sizes"
    sizes = site.constant([1] * len(axes)) if sizes is None else sizes
    return site.op(
        "Interpolate-4",
        site.floating(data),
        sizes,
        scales,
        site.constant(axes),
        mode=mode,
        shape_calculation_mode=by,
        **settings,
    )


def _is_multiple(site: Site, axes: list[int], factor: float, cropped: int = 0) -> bool:
    """Return whether the declared output lengths are the input lengths, less ``cropped``, times ``factor``."""
    dims, output_dims = site.dims(), site.output_dims()
    return (
        factor > 0
        and len(dims) == len(output_dims)
        and all(int((dims[axis] - cropped) * factor) == output_dims[axis] for axis in axes)
    )


def _declared_lengths(site: Site, axes: list[int]) -> Tensor:
    """Return the declared output lengths along axes, as a constant."""
    dims = site.ranked_output(len(site.dims()))
    return site.constant([dims[axis] for axis in axes])


@layer("Interp")
class Interp(LegacyLayer):
    """Upgraded to a bilinear Interpolate, after a Slice if pads are negative."""

    inputs = (1, 2)
    height: int = attr(0, ge=0)
    width: int = attr(0, ge=0)
    factor: float = attr(0.0)
    shrink_factor: float = attr(1.0)
    zoom_factor: float = attr(1.0)
    align_corners: bool = attr(True)
    pad_beg: int = attr(0)
    pad_end: int = attr(0)
    leftovers = frozenset({"mode", "antialias", "axes", "shape_calculation_mode"})

    def build(self, site: Site) -> Tensor:
        if self.pad_beg > 0 or self.pad_end > 0:
            site.refuse(
                "the meaning of 'pad_beg' and 'pad_end' above 0 is uncertain: runtimes of that time read beyond the input",
                Code.BAD_ATTRIBUTE,
            )
        site.ranked(3)
        corners = "align_corners" if self.align_corners else "asymmetric"
        axes = list(range(2, len(site.dims())))
        factor = self.factor or self.zoom_factor / (self.shrink_factor or 1.0)
        sizes: Tensor | None
        if len(site.inputs) == 2:
            sizes = self._input_lengths(site, axes)
        elif self.height and self.width and len(axes) == 2:
            sizes = site.constant([self.height, self.width])
        elif factor != 1 and _is_multiple(site, axes, factor, -self.pad_beg - self.pad_end):
            sizes = None
        else:
            sizes = _declared_lengths(site, axes)
        data = self._crop(site, axes)
        return _resize(site, data, axes, sizes, factor, "linear_onnx", coordinate_transformation_mode=corners)

    def _crop(self, site: Site, axes: list[int]) -> Tensor:
        """Return the input cropped by negative pads."""
        if not (self.pad_beg or self.pad_end):
            return site.inputs[0]
        ends = (-self.pad_beg, self.pad_end or END, 1)
        return site.op(
            "Slice-8",
            site.inputs[0],
            *(site.constant([end] * len(axes)) for end in ends),
            site.constant(axes),
        )

    def _input_lengths(self, site: Site, axes: list[int]) -> Tensor:
        """Return the output lengths: the values of a 1-D second input, else the lengths of its shape."""
        dims = site.dims(1)
        if len(dims) > 1:
            return site.lengths(site.inputs[1], axes)
        sizes = site.indices(site.inputs[1])
        if dims == (len(axes),):
            return sizes
        return site.op("Gather-1", sizes, site.constant(axes), site.constant(0))


@layer("Resample")
class Resample(LegacyLayer):
    """Upgraded to a nearest or linear Interpolate, aligned to pixel centers."""

    inputs = (1, 2)
    type: Literal["caffe.ResampleParameter.NEAREST", "caffe.ResampleParameter.LINEAR"] = attr(
        doc="the interpolation mode"
    )
    antialias: bool = attr(False)
    factor: float = attr(0.0)
    leftovers = frozenset({"height", "width", "coordinate_transformation_mode", "nearest_mode"})

    def build(self, site: Site) -> Tensor:
        site.ranked(3)
        axes = list(range(2, len(site.dims())))
        sizes: Tensor | None = None
        if len(site.inputs) == 2:
            every = site.indices(site.inputs[1])
            sizes = site.op("Gather-1", every, site.constant(axes), site.constant(0))
        elif not _is_multiple(site, axes, self.factor):
            sizes = _declared_lengths(site, axes)
        factor = self.factor if self.factor > 0 else 1.0
        if self.type.endswith("NEAREST"):
            # As in releases up to 2020.1. Release 2020.4, which no longer wrote such files, rounded asymmetric coordinates down.
            nearest = {"nearest_mode": "round_prefer_ceil"}
            return _resize(site, site.inputs[0], axes, sizes, factor, "nearest", **nearest)
        return _resize(site, site.inputs[0], axes, sizes, factor, "linear", antialias=self.antialias)
