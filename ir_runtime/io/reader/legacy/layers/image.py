"""Image resizing."""

from __future__ import annotations

from typing import Literal

from .....codes import Code
from .....ir.element import ElementType
from ..declaration import LegacyLayer, attr, layer
from ..site import Site, Tensor

_END = 2**31 - 1
"""The end of an axis of any length."""


def _resize(
    site: Site,
    data: Tensor,
    axes: list[int],
    sizes: Tensor | None,
    factor: float,
    mode: str,
    **settings: object,
) -> Tensor:
    """Interpolate to given lengths, or by a factor."""
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
    """Return whether the output lengths are the cropped input lengths multiplied by ``factor``."""
    dims, output_dims = site.dims(), site.output_dims()
    return (
        factor > 0
        and len(dims) == len(output_dims)
        and all(int((dims[axis] - cropped) * factor) == output_dims[axis] for axis in axes)
    )


def _declared_lengths(site: Site, axes: list[int]) -> Tensor:
    """Return the declared lengths of the output."""
    dims = site.ranked_output(len(site.dims()))
    return site.constant([dims[axis] for axis in axes])


@layer("Interp")
class Interp(LegacyLayer):
    """Slice if pads are negative; and bilinear Interpolate, with corners aligned or not."""

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
                "'pad_beg' and 'pad_end' above 0 have no certain meaning: runtimes of that time read beyond the input",
                Code.BAD_ATTRIBUTE,
            )
        site.ranked(3)
        corners = "align_corners" if self.align_corners else "asymmetric"
        axes = list(range(2, len(site.dims())))
        factor = self.factor or self.zoom_factor / (self.shrink_factor or 1.0)
        sizes: Tensor | None
        if len(site.inputs) == 2:
            sizes = self._from_input(site, axes)
        elif self.height and self.width and len(axes) == 2:
            sizes = site.constant([self.height, self.width])
        elif factor != 1 and _is_multiple(site, axes, factor, -self.pad_beg - self.pad_end):
            sizes = None
        else:
            sizes = _declared_lengths(site, axes)
        data = self._crop(site, axes)
        return _resize(site, data, axes, sizes, factor, "linear_onnx", coordinate_transformation_mode=corners)

    def _crop(self, site: Site, axes: list[int]) -> Tensor:
        """Crop the input by negative pads."""
        if not (self.pad_beg or self.pad_end):
            return site.inputs[0]
        ends = (-self.pad_beg, self.pad_end or _END, 1)
        return site.op(
            "Slice-8",
            site.inputs[0],
            *(site.constant([end] * len(axes)) for end in ends),
            site.constant(axes),
        )

    def _from_input(self, site: Site, axes: list[int]) -> Tensor:
        """Return the lengths held by the second input, or else its own shape's lengths."""
        dims = site.dims(1)
        if len(dims) > 1:
            return site.lengths(site.inputs[1], axes)
        sizes = site.indices(site.inputs[1])
        if dims == (len(axes),):
            return sizes
        return site.op("Gather-1", sizes, site.constant(axes), site.constant(0))


@layer("Resample")
class Resample(LegacyLayer):
    """Interpolate, nearest or linear, aligned to pixel centers."""

    inputs = (1, 2)
    type: Literal["caffe.ResampleParameter.NEAREST", "caffe.ResampleParameter.LINEAR"] = attr(
        doc="how numbers between others are found"
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
            # So until 2020.1; 2020.4, which no longer wrote such files, took the place at the corner, rounded down.
            nearest = {"nearest_mode": "round_prefer_ceil"}
            return _resize(site, site.inputs[0], axes, sizes, factor, "nearest", **nearest)
        return _resize(site, site.inputs[0], axes, sizes, factor, "linear", antialias=self.antialias)
