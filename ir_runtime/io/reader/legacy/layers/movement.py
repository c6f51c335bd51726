"""Move, slice and repeat parts of tensors."""

from __future__ import annotations

from typing import Literal

from .....codes import Code
from .....ir.element import ElementType
from ..declaration import LegacyLayer, attr, layer
from ..site import Site, Tensor

_END = 2**31 - 1
"""The end of an axis of any length."""


@layer("Concat")
class Concat(LegacyLayer):
    """Concat."""

    inputs = (1, None)
    axis: int = attr(1)
    leftovers = frozenset({"concat_dim"})

    def build(self, site: Site) -> Tensor:
        return site.op("Concat-1", *site.inputs, axis=site.axis(self.axis, len(site.dims())))


@layer("Permute")
class Permute(LegacyLayer):
    """Transpose."""

    order: tuple[int, ...] = attr(ge=0)

    def build(self, site: Site) -> Tensor:
        return site.op("Transpose-1", site.inputs[0], site.constant(list(self.order)))


@layer("Tile")
class Tile(LegacyLayer):
    """Tile, along one axis."""

    axis: int = attr(doc="the axis that is repeated")
    tiles: int = attr(gt=0, doc="how often")

    def build(self, site: Site) -> Tensor:
        repeats = [1] * len(site.dims())
        repeats[site.axis(self.axis, len(repeats))] = self.tiles
        return site.op("Tile-1", site.inputs[0], site.constant(repeats))


@layer("Split", "Slice")
class Split(LegacyLayer):
    """Split into equal parts, or VariadicSplit into the lengths declared by the outputs."""

    axis: int = attr(1)
    num_split: int = attr(0, ge=0)
    out_sizes: tuple[int, ...] = attr((), gt=0)
    leftovers = frozenset({"slice_point"})

    def build(self, site: Site) -> tuple[Tensor, ...]:
        rank, count = len(site.dims()), len(site.layer.outputs)
        axis = site.axis(self.axis, rank)
        parts = [site.ranked_output(rank, index) for index in range(count)]
        lengths = [part[axis] for part in parts]
        data, along = site.inputs[0], site.constant(axis)
        if len(set(lengths)) == 1 and self.num_split in (0, count):
            return site.ops("Split-1", (data, along), count, num_splits=count)
        return site.ops("VariadicSplit-1", (data, along, site.constant(lengths)), count)


@layer("Crop")
class Crop(LegacyLayer):
    """Slice to the lengths of input 2, or to ``dim``, or by ``crop_begin`` and ``crop_end``."""

    inputs = (1, 2)
    axis: tuple[int, ...] = attr((1,))
    offset: tuple[int, ...] = attr((), ge=0)
    dim: tuple[int, ...] = attr((), ge=0)
    crop_begin: tuple[int, ...] = attr((), ge=0)
    crop_end: tuple[int, ...] = attr((), ge=0)

    def build(self, site: Site) -> Tensor:
        rank = len(site.dims())
        axes = [site.axis(axis, rank) for axis in self.axis]
        begin = self.crop_begin or self.offset or (0,) * len(axes)
        starts = site.constant(self._fitting(site, begin, "crop_begin" if self.crop_begin else "offset"))
        stops = self._stops(site, axes, begin, starts)
        steps, along = site.constant([1] * len(axes)), site.constant(axes)
        return site.op("Slice-8", site.inputs[0], starts, stops, steps, along)

    def _stops(self, site: Site, axes: list[int], begin: tuple[int, ...], starts: Tensor) -> Tensor:
        if len(site.inputs) == 2:
            return site.op("Add-1", starts, site.lengths(site.inputs[1], axes))
        if self.crop_end:
            ends = self._fitting(site, self.crop_end, "crop_end")
            return site.constant([-end if end else _END for end in ends])
        lengths = self._fitting(site, self.dim, "dim") if self.dim else self._declared_lengths(site, axes)
        return site.constant([start + length for start, length in zip(begin, lengths, strict=True)])

    def _declared_lengths(self, site: Site, axes: list[int]) -> list[int]:
        dims = site.ranked_output(len(site.dims()))
        return [dims[axis] for axis in axes]

    def _fitting(self, site: Site, numbers: tuple[int, ...], name: str) -> list[int]:
        if len(numbers) != len(self.axis):
            site.refuse(
                f"attribute {name!r} has {len(numbers)} numbers, but 'axis' has {len(self.axis)}",
                Code.BAD_ATTRIBUTE,
            )
        return list(numbers)


@layer("StridedSlice")
class StridedSlice(LegacyLayer):
    """StridedSlice with inverted begin and end masks."""

    inputs = (3, 4)
    begin_mask: tuple[int, ...] = attr(())
    end_mask: tuple[int, ...] = attr(())
    new_axis_mask: tuple[int, ...] = attr(())
    shrink_axis_mask: tuple[int, ...] = attr(())
    ellipsis_mask: tuple[int, ...] = attr(())

    def build(self, site: Site) -> Tensor:
        data, *ends = site.inputs
        return site.op(
            "StridedSlice-1",
            data,
            *map(site.indices, ends),
            begin_mask=tuple(int(not bit) for bit in self.begin_mask),
            end_mask=tuple(int(not bit) for bit in self.end_mask),
            new_axis_mask=self.new_axis_mask,
            shrink_axis_mask=self.shrink_axis_mask,
            ellipsis_mask=self.ellipsis_mask,
        )


@layer("Gather")
class Gather(LegacyLayer):
    """Gather. Files have data and indices in either order, told apart by types or else by declared dims."""

    inputs = (2, 2)
    axis: int = attr(0)

    def build(self, site: Site) -> Tensor:
        data, indices = site.inputs
        if self._is_swapped(site, data, indices):
            data, indices = indices, data
        return site.op("Gather-1", data, site.indices(indices), site.constant(self.axis))

    def _is_swapped(self, site: Site, data: Tensor, indices: Tensor) -> bool:
        """Return whether the first input holds the indices."""
        fits = [self._fits(site, *order) for order in ((0, 1), (1, 0))]
        if fits[0] != fits[1]:
            return fits[1]
        return data.element.is_integral() and indices.element.is_real()

    def _fits(self, site: Site, data: int, indices: int) -> bool:
        dims, index = site.dims(data), site.dims(indices)
        if not -len(dims) <= self.axis < len(dims):
            return False
        axis = self.axis % len(dims)
        return (*dims[:axis], *index, *dims[axis + 1 :]) == site.output_dims()


@layer("Pad")
class Pad(LegacyLayer):
    """Pad."""

    pads_begin: tuple[int, ...] = attr(ge=0)
    pads_end: tuple[int, ...] = attr(ge=0)
    pad_mode: Literal["constant", "edge", "reflect", "symmetric"] = attr("constant")
    pad_value: float = attr(0.0)

    def build(self, site: Site) -> Tensor:
        data = site.inputs[0]
        pads = (site.constant(list(self.pads_begin)), site.constant(list(self.pads_end)))
        value = (site.number(self.pad_value, data),) if self.pad_mode == "constant" else ()
        return site.op("Pad-1", data, *pads, *value, pad_mode=self.pad_mode)


@layer("OneHot")
class OneHot(LegacyLayer):
    """OneHot."""

    axis: int = attr(-1)
    depth: int = attr(ge=0)
    on_value: float = attr(1.0)
    off_value: float = attr(0.0)

    def build(self, site: Site) -> Tensor:
        element = site.declared() or ElementType.f32
        values = (site.constant(number, element) for number in (self.on_value, self.off_value))
        return site.op(
            "OneHot-1", site.indices(site.inputs[0]), site.constant(self.depth), *values, axis=self.axis
        )


@layer("ReverseSequence")
class ReverseSequence(LegacyLayer):
    """ReverseSequence."""

    inputs = (2, 2)
    batch_axis: int = attr(0)
    seq_axis: int = attr(1)

    def build(self, site: Site) -> Tensor:
        data, lengths = site.inputs
        axes = {"batch_axis": self.batch_axis, "seq_axis": self.seq_axis}
        return site.op("ReverseSequence-1", data, site.indices(lengths), **axes)


@layer("ShuffleChannels")
class ShuffleChannels(LegacyLayer):
    """ShuffleChannels."""

    axis: int = attr(1)
    group: int = attr(1, gt=0)

    def build(self, site: Site) -> Tensor:
        return site.op("ShuffleChannels-1", site.inputs[0], axis=self.axis, group=self.group)


@layer("DepthToSpace")
class DepthToSpace(LegacyLayer):
    """DepthToSpace, the blocks first unless ``mode`` says depth."""

    block_size: int = attr(1, gt=0)
    mode: Literal["blocks_first", "depth_first"] = attr("blocks_first")

    def build(self, site: Site) -> Tensor:
        return site.op("DepthToSpace-1", site.inputs[0], block_size=self.block_size, mode=self.mode)


@layer("SpaceToDepth")
class SpaceToDepth(LegacyLayer):
    """SpaceToDepth, the blocks first unless ``mode`` says depth."""

    block_size: int = attr(1, gt=0)
    mode: Literal["blocks_first", "depth_first"] = attr("blocks_first")

    def build(self, site: Site) -> Tensor:
        return site.op("SpaceToDepth-1", site.inputs[0], block_size=self.block_size, mode=self.mode)


@layer("TopK")
class TopK(LegacyLayer):
    """TopK."""

    inputs = (2, 2)
    axis: int = attr(doc="the axis that is searched")
    mode: Literal["max", "min"] = attr(doc="which numbers are looked for")
    sort: Literal["value", "index", "none"] = attr(doc="the order of the results")

    def build(self, site: Site) -> tuple[Tensor, ...]:
        data, count = site.inputs
        count = site.scalar(site.indices(count))
        return site.ops("TopK-1", (data, count), 2, axis=self.axis, mode=self.mode, sort=self.sort)


@layer("ArgMax")
class ArgMax(LegacyLayer):
    """TopK along ``axis``, or over all axes but the first; then Convert of indices to f32, or Concat of both."""

    axis: int | None = attr(None)
    top_k: int = attr(gt=0)
    out_max_val: bool = attr(False)

    def build(self, site: Site) -> Tensor:
        data, axis = site.floating(site.inputs[0]), self.axis
        if axis is None:
            data, axis = site.reshape(data, (0, -1)), 1
        count = site.constant(self.top_k)
        values, indices = site.ops("TopK-1", (data, count), 2, axis=axis, mode="max", sort="value")
        if self.axis is not None:
            return values if self.out_max_val else site.convert(indices, ElementType.f32)
        rows = [site.convert(indices, ElementType.f32), *([values] if self.out_max_val else [])]
        dims = (0, len(rows), self.top_k, *(1,) * (len(site.output_dims()) - 3))
        return site.reshape(site.op("Concat-1", *rows, axis=1) if len(rows) > 1 else rows[0], dims)
