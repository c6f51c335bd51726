"""Moves of spatial blocks into the batch or the channels and back, and image patches."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from ...errors import InferenceError, ValidationError
from ...ir.dimension import Dimension, Interval
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from ...limits import check_array_size
from .._define.operation import T_ANY, T_INDEX, T_INDEX_64, T_PLAIN, Input, Op, Output, T, attr, op
from .._lengths import check_vector, common_count, count_of, lengths_of, listed, product
from ..kernels.convolution import pad_spatial, windows_of

# Space to batch, space to depth, and back.


class BatchSpaceBase(Op):
    """Base of BatchToSpace and SpaceToBatch."""

    flops_per_element = 0

    data = Input(T_ANY, "[batch, spatial...]")
    block_shape = Input(T_INDEX, "1-D: length of a block along each axis; 1 for the batch")

    def margins(
        self, data: Value, block_shape: Value, **margins: Value
    ) -> tuple[list[Interval], list[Interval]] | None:
        """Check the inputs; return the length of a block and the sum of both margins along each axis.

        Returns ``None`` if the rank of ``data`` is unknown.
        """
        rank = data.shape.rank
        count = common_count(block_shape=block_shape, **margins)
        if rank is None:
            return None
        if rank < 2:
            raise InferenceError(
                f"data has shape {data.shape}; a batch and a spatial axis are expected",
                clause="data has a batch and at least one spatial axis",
            )
        if count not in (None, rank):
            raise InferenceError(
                f"block_shape has length {count}, but data {data.shape} has rank {rank}",
                clause="block_shape has a number for each axis of data",
            )
        blocks = _at_least(1, block_shape, rank, "block_shape")
        begins, ends = (_at_least(0, value, rank, name) for name, value in margins.items())
        total = [begin + end for begin, end in zip(begins, ends, strict=True)]
        firsts = (("block_shape", blocks[0], 1), *zip(margins, (begins[0], ends[0]), (0, 0), strict=True))
        for name, number, expected in firsts:
            if number.is_static and number != expected:
                raise InferenceError(
                    f"element 0 of {name}, for the batch, is {int(number)}; {expected} is expected",
                    clause=f"element 0 of {name}, for the batch, is {expected}",
                )
        return blocks, total


@op("BatchToSpace-2")
class BatchToSpace(BatchSpaceBase):
    """Move parts of the batch of ``data`` into blocks along the spatial axes, then crop the spatial axes."""

    crops_begin = Input(T_INDEX, "1-D: elements to crop at the start of each axis; 0 for the batch")
    crops_end = Input(T_INDEX, "1-D: elements to crop at the end of each axis; 0 for the batch")
    output = Output(T_ANY, "the data with a smaller batch and longer spatial axes")

    def infer(self, data: Value, block_shape: Value, crops_begin: Value, crops_end: Value) -> PartialShape:
        margins = self.margins(data, block_shape, crops_begin=crops_begin, crops_end=crops_end)
        if margins is None:
            return PartialShape.dynamic()
        blocks, crops = margins
        dims = [
            divided(
                data.shape[0], product(blocks[1:]), f"axis 0 of data {data.shape}, the batch,", "the batch"
            )
        ]
        lengths = zip(data.shape[1:], blocks[1:], crops[1:], strict=True)
        for axis, (dim, block, crop) in enumerate(lengths, 1):
            left = dim * block - crop
            if left.max is not None and left.max < 0:
                raise InferenceError(
                    f"crops_begin and crops_end cut {crop} elements from axis {axis}, which has only {dim * block}",
                    clause="crops_begin and crops_end leave a length that is not negative",
                )
            dims.append(Dimension.of(left))
        return PartialShape(dims)

    def evaluate(self, data: Array, block_shape: Array, crops_begin: Array, crops_end: Array) -> Array:
        shape = self.infer(*map(Value.constant, (data, block_shape, crops_begin, crops_end))).static
        view, whole = self.parts(data, block_shape[1:].tolist())
        begins = crops_begin.tolist()
        return view.reshape(whole)[tuple(slice(b, b + n) for b, n in zip(begins, shape, strict=True))]

    def parts(self, data: Array, blocks: Sequence[int]) -> tuple[Array, tuple[int, ...]]:
        """Return a view with each spatial axis followed by its block axis, and the shape that merges the two."""
        split = data.reshape(*blocks, len(data) // math.prod(blocks), *data.shape[1:])
        spatial = len(blocks)
        return _interleave(split.transpose(*range(spatial, split.ndim), *range(spatial)), 1)


@op("SpaceToBatch-2")
class SpaceToBatch(BatchSpaceBase):
    """Pad the spatial axes of ``data`` with zeros, then move blocks along them into the batch."""

    pads_begin = Input(T_INDEX, "1-D: zeros to add before each axis; 0 for the batch")
    pads_end = Input(T_INDEX, "1-D: zeros to add after each axis; 0 for the batch")
    output = Output(T_ANY, "the data with a larger batch and shorter spatial axes")

    def infer(self, data: Value, block_shape: Value, pads_begin: Value, pads_end: Value) -> PartialShape:
        margins = self.margins(data, block_shape, pads_begin=pads_begin, pads_end=pads_end)
        if margins is None:
            return PartialShape.dynamic()
        blocks, pads = margins
        spatial = [
            divided(
                Dimension.of(dim + pad),
                block,
                f"axis {axis} of data {data.shape}, once padded,",
                "each axis of data, once padded",
            )
            for axis, (dim, block, pad) in enumerate(zip(data.shape, blocks, pads, strict=True))
        ]
        return PartialShape([data.shape[0] * product(blocks[1:]), *spatial[1:]])

    def evaluate(self, data: Array, block_shape: Array, pads_begin: Array, pads_end: Array) -> Array:
        shape = self.infer(*map(Value.constant, (data, block_shape, pads_begin, pads_end))).static
        padded = np.pad(data, list(zip(pads_begin.tolist(), pads_end.tolist(), strict=True)))
        return self.parts(padded, block_shape[1:].tolist()).reshape(shape)

    def parts(self, padded: Array, blocks: Sequence[int]) -> Array:
        """Return a view ``[block..., batch, grid...]`` of padded data."""
        split = _divide(padded, 1, blocks)
        return split.transpose(*range(padded.ndim, split.ndim), *range(padded.ndim))


class DepthSpaceBase(Op):
    """Base of DepthToSpace and SpaceToDepth."""

    bounded = True
    flops_per_element = 0

    data = Input(T_ANY, "[batch, channels, spatial...]")

    block_size: int = attr(1, gt=0, doc="length of a block along each spatial axis")
    mode: Literal["blocks_first", "depth_first"] = attr(
        default_with_warning="blocks_first",
        doc="order of channels in the deeper tensor: by position in the block, then by channel, or vice versa",
    )

    def block(self, rank: int | None) -> int:
        """Return the number of elements of a block, after checking the rank; 1 if the rank is unknown."""
        if rank is not None and rank < 3:
            raise InferenceError(
                f"data has rank {rank}; a batch, channels and a spatial axis are expected",
                clause="data has at least 3 axes, [N, C, ...]",
            )
        return 1 if rank is None else int(self.block_size ** (rank - 2))


@op("DepthToSpace-1")
class DepthToSpace(DepthSpaceBase):
    """Move parts of the channels of ``data`` into blocks along the spatial axes."""

    output = Output(T_ANY, "the data with fewer channels and longer spatial axes")

    def infer(self, data: Value) -> PartialShape:
        size = self.block(data.shape.rank)
        if data.shape.rank is None:
            return PartialShape.dynamic()
        batch, channels, *spatial = data.shape
        return PartialShape(
            [
                batch,
                divided(channels, size, f"axis 1 of data {data.shape}, the channels,", "the channels"),
                *(d * self.block_size for d in spatial),
            ]
        )

    def evaluate(self, data: Array) -> Array:
        view, shape = self.parts(data)
        return view.reshape(shape)

    def parts(self, data: Array) -> tuple[Array, tuple[int, ...]]:
        """Return a view with each spatial axis followed by its block axis, and the shape that merges the two."""
        batch, channels, *spatial = self.infer(Value.constant(data)).static
        count, blocks = len(spatial), [self.block_size] * len(spatial)
        if self.mode == "depth_first":
            split = data.reshape(batch, channels, *blocks, *data.shape[2:])
            split = split.transpose(0, 1, *range(2 + count, split.ndim), *range(2, 2 + count))
        else:
            split = data.reshape(batch, *blocks, channels, *data.shape[2:])
            split = split.transpose(0, *range(1 + count, split.ndim), *range(1, 1 + count))
        return _interleave(split, 2)


@op("SpaceToDepth-1")
class SpaceToDepth(DepthSpaceBase):
    """Move blocks along the spatial axes of ``data`` into the channels."""

    output = Output(T_ANY, "the data with more channels and shorter spatial axes")

    def infer(self, data: Value) -> PartialShape:
        size = self.block(data.shape.rank)
        if data.shape.rank is None:
            return PartialShape.dynamic()
        batch, channels, *spatial = data.shape
        shorter = [
            divided(d, self.block_size, f"axis {axis} of data {data.shape}", "each spatial axis")
            for axis, d in enumerate(spatial, 2)
        ]
        return PartialShape([batch, channels * size, *shorter])

    def evaluate(self, data: Array) -> Array:
        shape = self.infer(Value.constant(data)).static
        return self.parts(data).reshape(shape)

    def parts(self, data: Array) -> Array:
        """Return a view with the block axes before or after the channels, as ``mode`` requires."""
        split = _divide(data, 2, [self.block_size] * (data.ndim - 2))
        grid, blocks = range(2, data.ndim), range(data.ndim, split.ndim)
        first = (1, *blocks) if self.mode == "depth_first" else (*blocks, 1)
        return split.transpose(0, *first, *grid)


def divided(length: Dimension, by: Interval | int, name: str, what: str) -> Dimension:
    """Return ``length / by``, both of which may be dynamic; raise if ``length`` is not divisible.

    Args:
        length: the length.
        by: the divisor, at least 1.
        name: a description of the axis and its tensor, for messages.
        what: a description of the axis for the clause, independent of the tensor.

    >>> divided(Dimension(5, 20), 4, "batch 5..20", "the batch"), divided(Dimension(6), Dimension(1, 3), "batch 6", "the batch")
    (<Dimension: 2..5>, <Dimension: 2..6>)
    """
    if by == 1:
        return length
    least, most = (by.min or 1, by.max) if isinstance(by, Interval) else (by, by)
    low = min(length.min, 1) if most is None else -(-length.min // most)
    high = None if length.max is None else length.max // least
    if high is not None and low > high:
        raise InferenceError(
            f"{name} has length {length}, which does not divide into blocks of {by}",
            clause=f"blocks divide {what}",
        )
    return Dimension.between(low, high)


def _at_least(least: int, value: Value, rank: int, name: str) -> list[Interval]:
    """Return the elements of an input as intervals, one for each of ``rank`` axes if they are unknown; raise if one is less than ``least``."""
    numbers = value.numbers()
    if numbers is None:
        return [Dimension.between(least)] * rank
    bounded: list[Interval] = []
    for index, number in enumerate(numbers):
        low, high = (number.min, number.max) if isinstance(number, Interval) else (number, number)
        if high is not None and high < least:
            raise InferenceError(
                f"element {index} of {name} is {high}; at least {least} is expected",
                clause=f"each number in {name} is at least {least}",
            )
        bounded.append(Dimension.between(max(low or 0, least), high))
    return bounded


def _divide(x: Array, lead: int, blocks: Sequence[int]) -> Array:
    """Split each axis after the first ``lead`` into blocks; return a view ``[leading..., grid..., block...]``."""
    pairs = [pair for n, b in zip(x.shape[lead:], blocks, strict=True) for pair in (n // b, b)]
    split = x.reshape(*x.shape[:lead], *pairs)
    return split.transpose(*range(lead), *range(lead, split.ndim, 2), *range(lead + 1, split.ndim, 2))


def _interleave(x: Array, lead: int) -> tuple[Array, tuple[int, ...]]:
    """Reorder ``[leading..., grid..., block...]`` to ``[leading..., grid, block, grid, block...]``.

    Returns the view, and its shape with each pair of grid and block axes merged.
    """
    count = (x.ndim - lead) // 2
    pairs = [axis for i in range(lead, lead + count) for axis in (i, i + count)]
    shape = [math.prod(x.shape[i : i + count + 1 : count]) for i in range(lead, lead + count)]
    return x.transpose(*range(lead), *pairs), (*x.shape[:lead], *shape)


# Image patches (im2col) and their inverse (col2im).


class ImagePatches(Op):
    """Base of operations on image patches, whose attributes have one number for rows and one for columns."""

    def verify(self) -> None:
        """Require two numbers in each list."""
        for name, numbers in self.attributes().items():
            if isinstance(numbers, tuple) and len(numbers) != 2:
                raise ValidationError(
                    f"attribute {name!r} must have a number for rows and one for columns, not {listed(numbers)}",
                    clause=f"attribute {name!r} has two numbers, for rows and columns",
                )


@op("ExtractImagePatches-3")
class ExtractImagePatches(ImagePatches):
    """Extract patches of ``data``, and flatten each into the channels."""

    flops_per_element = 0

    data = Input(T_PLAIN, "[batch, channels, rows, columns]")
    patches = Output(T_PLAIN, "[batch, patch rows * patch columns * channels, rows, columns]")

    sizes: tuple[int, ...] = attr(gt=0, doc="rows and columns of a patch")
    strides: tuple[int, ...] = attr(gt=0, doc="distance between patches")
    rates: tuple[int, ...] = attr(gt=0, doc="distance between the elements of a patch")
    auto_pad: Literal["valid", "same_upper", "same_lower"] = attr(
        doc="valid: whole patches only; same: pad with zeros, with the odd one at the end (upper) or start (lower)"
    )

    def infer(self, data: Value) -> PartialShape:
        if data.shape.rank is None:
            return PartialShape.dynamic(4)
        if data.shape.rank != 4:
            raise InferenceError(
                f"data has shape {data.shape}; [batch, channels, rows, columns] is expected",
                clause="data is [batch, channels, rows, columns]",
            )
        batch, channels, *lengths = data.shape
        counts = [self._count(axis, length) for axis, length in enumerate(lengths)]
        return PartialShape([batch, channels * math.prod(self.sizes), *counts])

    def _extent(self, axis: int) -> int:
        return (self.sizes[axis] - 1) * self.rates[axis] + 1

    def _count(self, axis: int, length: Dimension) -> Dimension:
        stride = self.strides[axis]
        lost = self._extent(axis) - 1 if self.auto_pad == "valid" else 0
        if stride == 1 and not lost:
            return length
        return Dimension.of(length.map(lambda n: -(-max(n - lost, 0) // stride)))

    def _pads(self, axis: int, length: int, count: int) -> tuple[int, int]:
        if self.auto_pad == "valid":
            return 0, 0
        total = max((count - 1) * self.strides[axis] + self._extent(axis) - length, 0)
        small, large = total // 2, total - total // 2
        return (small, large) if self.auto_pad == "same_upper" else (large, small)

    def evaluate(self, data: Array) -> Array:
        shape = self.infer(Value.constant(data)).static
        if 0 in shape:
            return np.zeros(shape, data.dtype)
        pads = [self._pads(axis, data.shape[2 + axis], shape[2 + axis]) for axis in (0, 1)]
        windows = windows_of(pad_spatial(data, pads), self.sizes, self.strides, self.rates)
        return windows.transpose(0, 4, 5, 1, 2, 3).reshape(shape)


@op("Col2Im-15")
class Col2Im(ImagePatches):
    """Combine the columns of ``data``, flattened patches, into an image; overlapping elements are added."""

    flops_per_element = 0
    flops_per_input = {"data": 1}

    data = Input(T, "[batch, channels * patch elements, patches]; the batch axis is optional")
    output_size = Input(T_INDEX_64, "rows and columns of the image")
    kernel_size = Input(T_INDEX_64, "rows and columns of a patch")
    image = Output(T, "[batch, channels, rows, columns], without batch if data has none")

    strides: tuple[int, ...] = attr((1, 1), gt=0, doc="distance between patches")
    dilations: tuple[int, ...] = attr((1, 1), gt=0, doc="distance between the elements of a patch")
    pads_begin: tuple[int, ...] = attr(
        (0, 0), ge=0, doc="rows and columns of padding before the image, which are dropped"
    )
    pads_end: tuple[int, ...] = attr(
        (0, 0), ge=0, doc="rows and columns of padding after the image, which are dropped"
    )

    def infer(self, data: Value, output_size: Value, kernel_size: Value) -> PartialShape:
        for name, value in (("output_size", output_size), ("kernel_size", kernel_size)):
            check_vector(value, name)
            if count_of(value, name) not in (None, 2):
                raise InferenceError(
                    f"{name} has length {value.count}; a number for rows and one for columns are expected",
                    clause=f"{name} has two numbers, for rows and columns",
                )
        if data.shape.rank not in (None, 2, 3):
            raise InferenceError(
                f"data has shape {data.shape}; [batch, channels * patch elements, patches] is expected, or without "
                f"batch",
                clause="data is [batch, channels * patch elements, patches], or without batch",
            )
        if data.shape.rank is None:
            return PartialShape.dynamic()
        *batch, columns, patches = data.shape
        size = lengths_of(output_size, "output_size") or (Dimension(), Dimension())
        kernel = lengths_of(kernel_size, "kernel_size") or (Dimension(), Dimension())
        if 0 in kernel:
            raise InferenceError(
                f"kernel_size is {listed(kernel)}; lengths of at least 1 are expected",
                clause="kernel_size is at least 1",
            )
        if all(d.is_static for d in (*size, *kernel)):
            expected = math.prod(self._counts([int(d) for d in size], [int(d) for d in kernel]))
            if not patches.contains(expected):
                raise InferenceError(
                    f"data {data.shape} holds {patches} patches, but an image of {listed(size)} with patches of "
                    f"{listed(kernel)} has {expected}",
                    clause="data has as many patches as output_size, kernel_size, strides, dilations and pads ask for",
                )
        return PartialShape(
            [
                *batch,
                divided(columns, product(kernel), "the axis of channels of data", "the channels of data"),
                *size,
            ]
        )

    def _counts(self, size: list[int], kernel: list[int]) -> list[int]:
        counts = []
        for axis in (0, 1):
            length = size[axis] + self.pads_begin[axis] + self.pads_end[axis]
            extent = self.dilations[axis] * (kernel[axis] - 1) + 1
            if extent > length:
                raise InferenceError(
                    f"patches cover {extent} elements along spatial axis {axis}, but output_size with pads has only "
                    f"{length}",
                    clause="patches are not larger than output_size with pads",
                )
            counts.append((length - extent) // self.strides[axis] + 1)
        return counts

    def evaluate(self, data: Array, output_size: Array, kernel_size: Array) -> Array:
        *lead, rows, columns = shape = self.infer(
            *map(Value.constant, (data, output_size, kernel_size))
        ).static
        kernel = kernel_size.tolist()
        counts = self._counts([rows, columns], kernel)
        taps = data.reshape(*lead, *kernel, *counts)
        around = [b + e for b, e in zip(self.pads_begin, self.pads_end, strict=True)]
        check_array_size(math.prod(lead) * (rows + around[0]) * (columns + around[1]), data.itemsize)
        image = np.zeros((*lead, rows + around[0], columns + around[1]), data.dtype)
        for row, column in itertools.product(*map(range, kernel)):
            places = [
                slice(start * d, start * d + (count - 1) * s + 1, s)
                for start, d, s, count in zip(
                    (row, column), self.dilations, self.strides, counts, strict=True
                )
            ]
            image[..., places[0], places[1]] += taps[..., row, column, :, :]
        top, left = self.pads_begin
        return image[..., top : top + rows, left : left + columns].reshape(shape)
