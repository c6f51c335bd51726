"""Reshape tensors, and read their lengths."""

from __future__ import annotations

import math

from .....codes import Code
from .....ir.element import ElementType
from ..declaration import LegacyLayer, attr, layer
from ..site import Site, Tensor


@layer("Reshape")
class Reshape(LegacyLayer):
    """Reshape to input 2, to a matching ``dim``, or to the declared dims; an equal first dim is copied."""

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
        """Return ``dim`` in place of the axes that it replaces, with the other axes kept around it."""
        start = self.axis if self.axis >= 0 else len(dims) + self.axis + 1
        end = len(dims) if self.num_axes < 0 else start + self.num_axes
        rest = dims[end:] if len(self.dim) != end - start else (0,) * (len(dims) - end)
        return (*(0,) * start, *self.dim, *rest) if self.dim and 0 <= start <= end <= len(dims) else ()


def _reshape(dims: tuple[int, ...], pattern: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the dims that a pattern gives: 0 copies one, -1 is inferred."""
    if any(number == 0 and axis >= len(dims) for axis, number in enumerate(pattern)):
        return None
    lengths = [number or dims[axis] for axis, number in enumerate(pattern)]
    rest = math.prod(number for number in lengths if number != -1)
    if -1 in lengths:
        lengths[lengths.index(-1)] = math.prod(dims) // rest if rest else 0
    return tuple(lengths)


@layer("Flatten")
class Flatten(LegacyLayer):
    """Reshape that merges the dims from ``axis`` to ``end_axis``."""

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
    """Squeeze of the axes in input 2, or of all dims of 1."""

    inputs = (1, 2)

    def build(self, site: Site) -> Tensor:
        data, *axes = site.inputs
        return site.op("Squeeze-1", data, *map(site.indices, axes))


@layer("Unsqueeze")
class Unsqueeze(LegacyLayer):
    """Unsqueeze."""

    inputs = (2, 2)

    def build(self, site: Site) -> Tensor:
        data, axes = site.inputs
        return site.op("Unsqueeze-1", data, site.indices(axes))


@layer("Shape", "ShapeOf")
class Shape(LegacyLayer):
    """ShapeOf."""

    def build(self, site: Site) -> Tensor:
        declared = site.declared()
        if declared is ElementType.i32:
            return site.op("ShapeOf-3", site.inputs[0], output_type=declared)
        return site.op("ShapeOf-3", site.inputs[0], output_type=ElementType.i64)


@layer("Broadcast")
class Broadcast(LegacyLayer):
    """Broadcast."""

    inputs = (2, 2)

    def build(self, site: Site) -> Tensor:
        data, shape = site.inputs
        return site.op("Broadcast-1", data, site.indices(shape))


@layer("Fill")
class Fill(LegacyLayer):
    """Broadcast of a scalar."""

    inputs = (2, 2)

    def build(self, site: Site) -> Tensor:
        shape, value = site.inputs
        return site.op("Broadcast-1", site.scalar(value), site.indices(shape))


@layer("Range")
class Range(LegacyLayer):
    """Range, of tensors of one element."""

    inputs = (3, 3)

    def build(self, site: Site) -> Tensor:
        element = site.declared() or site.precision
        ends = (site.convert(site.scalar(tensor), element) for tensor in site.inputs)
        return site.op("Range-4", *ends, output_type=element)
