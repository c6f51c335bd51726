"""Legacy layers that move, select or count elements, and inputs, constants and variables."""

from __future__ import annotations

import math
from typing import Literal, NoReturn

from .....codes import Code
from .....ir.element import ElementType
from .....ir.shape import PartialShape
from ..declaration import PAGE, LegacyLayer, attr, layer
from ..site import END, Blob, Site, Tensor

# Layers that move, slice and repeat parts of tensors.


@layer("Concat")
class Concat(LegacyLayer):
    """Upgraded to Concat."""

    inputs = (1, None)
    axis: int = attr(1)
    leftovers = frozenset({"concat_dim"})

    def build(self, site: Site) -> Tensor:
        return site.op("Concat-1", *site.inputs, axis=site.axis(self.axis, len(site.dims())))


@layer("Permute")
class Permute(LegacyLayer):
    """Upgraded to Transpose."""

    order: tuple[int, ...] = attr(ge=0)

    def build(self, site: Site) -> Tensor:
        return site.op("Transpose-1", site.inputs[0], site.constant(list(self.order)))


@layer("Tile")
class Tile(LegacyLayer):
    """Upgraded to Tile along one axis."""

    axis: int = attr(doc="the axis to repeat")
    tiles: int = attr(gt=0, doc="the number of repetitions")

    def build(self, site: Site) -> Tensor:
        repeats = [1] * len(site.dims())
        repeats[site.axis(self.axis, len(repeats))] = self.tiles
        return site.op("Tile-1", site.inputs[0], site.constant(repeats))


@layer("Split", "Slice")
class Split(LegacyLayer):
    """Upgraded to Split into equal parts, or VariadicSplit into the lengths that the outputs declare."""

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
    """Upgraded to a Slice to the lengths of input 2, to ``dim``, or by ``crop_begin`` and ``crop_end``."""

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
        starts = site.constant(self._check_count(site, begin, "crop_begin" if self.crop_begin else "offset"))
        stops = self._stops(site, axes, begin, starts)
        steps, along = site.constant([1] * len(axes)), site.constant(axes)
        return site.op("Slice-8", site.inputs[0], starts, stops, steps, along)

    def _stops(self, site: Site, axes: list[int], begin: tuple[int, ...], starts: Tensor) -> Tensor:
        if len(site.inputs) == 2:
            return site.op("Add-1", starts, site.lengths(site.inputs[1], axes))
        if self.crop_end:
            ends = self._check_count(site, self.crop_end, "crop_end")
            return site.constant([-end if end else END for end in ends])
        lengths = self._check_count(site, self.dim, "dim") if self.dim else self._declared_lengths(site, axes)
        return site.constant([start + length for start, length in zip(begin, lengths, strict=True)])

    def _declared_lengths(self, site: Site, axes: list[int]) -> list[int]:
        dims = site.ranked_output(len(site.dims()))
        return [dims[axis] for axis in axes]

    def _check_count(self, site: Site, numbers: tuple[int, ...], name: str) -> list[int]:
        if len(numbers) != len(self.axis):
            site.refuse(
                f"attribute {name!r} has length {len(numbers)}, but 'axis' has length {len(self.axis)}",
                Code.BAD_ATTRIBUTE,
            )
        return list(numbers)


@layer("StridedSlice")
class StridedSlice(LegacyLayer):
    """Upgraded to StridedSlice with inverted begin and end masks."""

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
    """Upgraded to Gather; declared dims, else element types, tell which input holds the indices."""

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
    """Upgraded to Pad."""

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
    """Upgraded to OneHot."""

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
    """Upgraded to ReverseSequence."""

    inputs = (2, 2)
    batch_axis: int = attr(0)
    seq_axis: int = attr(1)

    def build(self, site: Site) -> Tensor:
        data, lengths = site.inputs
        axes = {"batch_axis": self.batch_axis, "seq_axis": self.seq_axis}
        return site.op("ReverseSequence-1", data, site.indices(lengths), **axes)


@layer("ShuffleChannels")
class ShuffleChannels(LegacyLayer):
    """Upgraded to ShuffleChannels."""

    axis: int = attr(1)
    group: int = attr(1, gt=0)

    def build(self, site: Site) -> Tensor:
        return site.op("ShuffleChannels-1", site.inputs[0], axis=self.axis, group=self.group)


@layer("DepthToSpace")
class DepthToSpace(LegacyLayer):
    """Upgraded to DepthToSpace, with blocks first unless ``mode`` is depth_first."""

    block_size: int = attr(1, gt=0)
    mode: Literal["blocks_first", "depth_first"] = attr("blocks_first")

    def build(self, site: Site) -> Tensor:
        return site.op("DepthToSpace-1", site.inputs[0], block_size=self.block_size, mode=self.mode)


@layer("SpaceToDepth")
class SpaceToDepth(LegacyLayer):
    """Upgraded to SpaceToDepth, with blocks first unless ``mode`` is depth_first."""

    block_size: int = attr(1, gt=0)
    mode: Literal["blocks_first", "depth_first"] = attr("blocks_first")

    def build(self, site: Site) -> Tensor:
        return site.op("SpaceToDepth-1", site.inputs[0], block_size=self.block_size, mode=self.mode)


@layer("TopK")
class TopK(LegacyLayer):
    """Upgraded to TopK."""

    inputs = (2, 2)
    axis: int = attr(doc="the axis to search")
    mode: Literal["max", "min"] = attr(doc="whether to find the largest or the smallest values")
    sort: Literal["value", "index", "none"] = attr(doc="the order of the results")

    def build(self, site: Site) -> tuple[Tensor, ...]:
        data, count = site.inputs
        count = site.scalar(site.indices(count))
        return site.ops("TopK-1", (data, count), 2, axis=self.axis, mode=self.mode, sort=self.sort)


@layer("ArgMax")
class ArgMax(LegacyLayer):
    """Upgraded to TopK along ``axis``, or over all axes but the first, for indices in f32, values, or both."""

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


# Reshape tensors, and read their lengths.


@layer("Reshape")
class Reshape(LegacyLayer):
    """Upgraded to a Reshape to input 2, else to ``dim`` if it fits, else to declared dims; an equal first dim is copied."""

    inputs = (1, 2)
    dim: tuple[int, ...] = attr((), ge=-1)
    axis: int = attr(0)
    num_axes: int = attr(-1)
    leftovers = frozenset({"special_zero"})

    def build(self, site: Site) -> Tensor:
        if len(site.inputs) == 2:
            return site.op("Reshape-1", site.inputs[0], site.indices(site.inputs[1]), special_zero=True)
        dims, declared = site.dims(), list(site.output_dims())
        pattern = self._pattern(dims)
        if pattern and _reshape(dims, pattern) == tuple(declared):
            return site.reshape(site.inputs[0], pattern)
        if dims and declared and dims[0] == declared[0]:
            declared[0] = 0
        return site.reshape(site.inputs[0], declared)

    def _pattern(self, dims: tuple[int, ...]) -> tuple[int, ...]:
        """Return the target of the Reshape: ``dim`` in place of the axes that it replaces; empty if there are none."""
        start = self.axis if self.axis >= 0 else len(dims) + self.axis + 1
        end = len(dims) if self.num_axes < 0 else start + self.num_axes
        rest = dims[end:] if len(self.dim) != end - start else (0,) * (len(dims) - end)
        return (*(0,) * start, *self.dim, *rest) if self.dim and 0 <= start <= end <= len(dims) else ()


def _reshape(dims: tuple[int, ...], pattern: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the dims that a Reshape gives: 0 in the pattern copies a dim, and -1 is inferred; ``None`` if it is invalid."""
    if any(number == 0 and axis >= len(dims) for axis, number in enumerate(pattern)):
        return None
    lengths = [number or dims[axis] for axis, number in enumerate(pattern)]
    rest = math.prod(number for number in lengths if number != -1)
    if -1 in lengths:
        lengths[lengths.index(-1)] = math.prod(dims) // rest if rest else 0
    return tuple(lengths)


@layer("Flatten")
class Flatten(LegacyLayer):
    """Upgraded to a Reshape that merges the dims from ``axis`` to ``end_axis``."""

    axis: int = attr(0)
    end_axis: int = attr(-1)

    def build(self, site: Site) -> Tensor:
        dims = site.dims()
        if not dims:
            return site.reshape(site.inputs[0], (-1,))
        first, last = site.axis(self.axis, len(dims)), site.axis(self.end_axis, len(dims), "end_axis")
        if last < first:
            site.refuse(
                f"attribute 'end_axis' is {self.end_axis}, which is before 'axis'", Code.BAD_ATTRIBUTE
            )
        return site.reshape(site.inputs[0], (*(0,) * first, -1, *dims[last + 1 :]))


@layer("Squeeze")
class Squeeze(LegacyLayer):
    """Upgraded to a Squeeze of the axes in input 2, or of all dims of length 1."""

    inputs = (1, 2)

    def build(self, site: Site) -> Tensor:
        data, *axes = site.inputs
        return site.op("Squeeze-1", data, *map(site.indices, axes))


@layer("Unsqueeze")
class Unsqueeze(LegacyLayer):
    """Upgraded to Unsqueeze."""

    inputs = (2, 2)

    def build(self, site: Site) -> Tensor:
        data, axes = site.inputs
        return site.op("Unsqueeze-1", data, site.indices(axes))


@layer("Shape", "ShapeOf")
class Shape(LegacyLayer):
    """Upgraded to ShapeOf."""

    def build(self, site: Site) -> Tensor:
        declared = site.declared()
        if declared is ElementType.i32:
            return site.op("ShapeOf-3", site.inputs[0], output_type=declared)
        return site.op("ShapeOf-3", site.inputs[0], output_type=ElementType.i64)


@layer("Broadcast")
class Broadcast(LegacyLayer):
    """Upgraded to Broadcast."""

    inputs = (2, 2)

    def build(self, site: Site) -> Tensor:
        data, shape = site.inputs
        return site.op("Broadcast-1", data, site.indices(shape))


@layer("Fill")
class Fill(LegacyLayer):
    """Upgraded to a Broadcast of a scalar."""

    inputs = (2, 2)

    def build(self, site: Site) -> Tensor:
        shape, value = site.inputs
        return site.op("Broadcast-1", site.scalar(value), site.indices(shape))


@layer("Range")
class Range(LegacyLayer):
    """Upgraded to Range, after inputs of one element are reshaped to scalars."""

    inputs = (3, 3)

    def build(self, site: Site) -> Tensor:
        element = site.declared() or site.precision
        ends = (site.convert(site.scalar(tensor), element) for tensor in site.inputs)
        return site.op("Range-4", *ends, output_type=element)


# Sparse tensors, and buckets.


@layer("SparseToDense")
class SparseToDense(LegacyLayer):
    """Upgraded to a Broadcast of the default value, and ScatterNDUpdate."""

    inputs = (3, 4)

    def build(self, site: Site) -> Tensor:
        indices, shape, values, *default = site.inputs
        rest = site.scalar(default[0]) if default else site.number(0, values)
        dense = site.op("Broadcast-1", rest, site.indices(shape))
        return site.op("ScatterNDUpdate-4", dense, site.indices(indices), values)


@layer("Bucketize")
class Bucketize(LegacyLayer):
    """Upgraded to Bucketize."""

    inputs = (2, 2)
    with_right_bound: bool = attr(doc="whether buckets include their right bounds")

    def build(self, site: Site) -> Tensor:
        result = site.op(
            "Bucketize-3", *site.inputs, output_type=ElementType.i32, with_right_bound=self.with_right_bound
        )
        return site.convert(result, site.declared() or ElementType.i32)


# Inputs, constants and variables.


@layer("Input")
class Input(LegacyLayer):
    """Upgraded to Parameter, and Subtract if ``<pre-process>`` has means."""

    inputs = (0, 0)

    def build(self, site: Site) -> Tensor:
        element = site.declared() or site.precision
        shape = PartialShape(site.output_dims())
        input = site.op("Parameter-1", element_type=element, shape=shape)
        site.main = input
        means = site.net.means.get(site.layer.id)
        if means is None:
            return input
        channels = means.channels
        numbers = [mean for mean in channels if isinstance(mean, float)]
        if len(numbers) == len(channels):
            subtracted = site.constant(numbers, ElementType.f32, "mean")
            subtracted = site.reshape(subtracted, (len(channels), *(1,) * 2))
        else:
            subtracted = site.op("Concat-1", *(self._image(site, mean) for mean in channels), axis=0)
        return site.op("Subtract-1", site.convert(input, ElementType.f32), subtracted)

    def _image(self, site: Site, mean: float | Blob) -> Tensor:
        """Return the mean of a channel as an image, with a leading dim of 1."""
        height, width = site.output_dims()[-2:]
        if isinstance(mean, float):
            return site.op(
                "Broadcast-1", site.constant(mean, ElementType.f32), site.constant([1, height, width])
            )
        stored = site.net.stored(mean, mean.element, (1, height, width), site.layer.where)
        return site.convert(site.add(stored, name="mean")[0], ElementType.f32)


@layer("Const")
class Const(LegacyLayer):
    """Upgraded to Constant, and Convert if it is stored in f16."""

    inputs = (0, 0)
    blobs = ("custom",)

    def build(self, site: Site) -> Tensor:
        blob = site.blobs.get("custom")
        value = site.blob("custom", site.output_dims(), raw=None if blob is None else blob.element)
        return site.convert(value, ElementType.f32) if value.element is ElementType.f16 else value


@layer("Memory")
class Memory(LegacyLayer):
    """Upgraded to ReadValue with zeros as its initial value, or Assign."""

    inputs = (0, 1)
    id: str = attr(doc="the name that the two layers of a pair share")
    index: int = attr(1)
    size: int = attr(2)

    def build(self, site: Site) -> Tensor | tuple[Tensor, ...]:
        if self.size != 2:
            site.refuse(
                f"attribute 'size' is {self.size}; only pairs of layers are defined", Code.BAD_ATTRIBUTE
            )
        if site.inputs:
            site.op("Assign-6", site.inputs[0], variable_id=self.id)
            return ()
        zeros = site.op(
            "Broadcast-1", site.constant(0, ElementType.f32), site.constant(list(site.output_dims()))
        )
        shape = PartialShape(site.output_dims())
        return site.op(
            "ReadValue-6", zeros, variable_id=self.id, variable_type=ElementType.f32, variable_shape=shape
        )


# Layers that are refused because their meaning is uncertain.


def _uncertain(type: str, anchor: str, why: str) -> type[LegacyLayer]:
    """Declare a layer type that is refused; ``anchor`` is its section in the catalogue."""

    class Uncertain(LegacyLayer):
        inputs = (0, None)
        is_certain = False

        def build(self, site: Site) -> NoReturn:
            site.refuse(
                f"what {type} computes is not certain: {why}",
                Code.UNKNOWN_OPERATION,
                f"convert the original model again; the layer is described at {PAGE}#{anchor}",
            )

    Uncertain.__doc__ = f"Refused: {why}."
    Uncertain.__name__ = Uncertain.__qualname__ = type
    return layer(type)(Uncertain)


for _type, _why in (
    ("ExperimentalSparseWeightedSum", "its page does not say what padding and weights of empty rows are"),
    ("SimplerNMS", "its page does not give the widths and heights that anchors have by default"),
    ("SparseFillEmptyRows", "its page does not say what fills the rest of outputs of fixed lengths"),
    ("SparseSegmentMean", "its page does not say what fills the rest of an output as long as the indices"),
    ("SparseSegmentSqrtN", "its page does not say what fills the rest of an output as long as the indices"),
    ("SparseSegmentSum", "its page does not say what fills the rest of an output as long as the indices"),
    ("Unique", "outputs as long as the input are filled in another way than by any operation of today"),
):
    _uncertain(_type, _type, _why)

_uncertain("RNN", "toc", "the catalogue has no page of it")
