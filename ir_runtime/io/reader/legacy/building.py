"""The state of a graph under construction from legacy layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from ....codes import Code
from ....diagnostics import Location
from ....errors import ParseError
from ....ir.array import Packed
from ....ir.element import ElementType
from ....ir.graph import Body, Layer
from ....ir.shape import PartialShape
from ....ir.tensor import Array
from ....ops import Op, registry
from ..layers import ConstantReader, report_problem
from ..replacing import Unused

__all__ = ["Blob", "Building", "Means"]


class Blob(NamedTuple):
    """Data of a layer in the ``.bin``."""

    element: ElementType
    offset: int
    size: int
    line: int

    @property
    def length(self) -> int:
        """The number of elements."""
        return self.size * 8 // self.element.bits if self.element.bits else 0


class Means(NamedTuple):
    """The means that ``<pre-process>`` subtracts from the channels of an input: numbers or images."""

    channels: tuple[float | Blob, ...]


@dataclass(slots=True)
class Building(Unused):
    """The graph under construction."""

    constants: ConstantReader
    read_body: Callable[[Layer], Body]
    """Reads and upgrades the body of a TensorIterator."""
    means: dict[int, Means] = field(default_factory=dict)
    """Means by the ids of the inputs that they are subtracted from."""

    def stored(self, blob: Blob, element: ElementType, shape: Sequence[int], where: Location) -> Op:
        """Return a constant with data from the ``.bin``; report missing weights and leave out the value.

        Raises:
            ParseError: if it is not in the ``.bin``, or too small for the shape.
            LimitError: if its size exceeds the limits.
        """
        cls = registry.require("Constant")
        place = {"offset": blob.offset, "size": blob.size, "value": None}
        op = cls(element_type=element, shape=PartialShape(shape), **place)
        try:
            return self.constants.read(op, replace(where, line=blob.line))
        except ParseError as problem:
            if problem.code != Code.WEIGHTS_MISSING:
                raise
            report_problem(self.constants.report, problem, problem.where or where)
            return op

    def signs(self, blob: Blob, shape: Sequence[int], where: Location) -> Op:
        """Return bits of the ``.bin``, lowest of each byte first, as -1 and 1 in i8.

        Raises:
            ParseError: if they are not in the ``.bin``, or too few for the shape.
            LimitError: if its size exceeds the limits.
        """
        count = int(np.prod(shape, dtype=object))
        packed = self.stored(blob, ElementType.u8, ((count + 7) // 8,), where)
        self.constants.sizes.add(ElementType.boolean, count, self.constants.limits, where)
        raw: Array | Packed | None = vars(packed)["value"]
        assert not isinstance(raw, Packed)
        value = None if raw is None else _unpack_signs(raw, count).reshape(shape)
        return packed.replace(element_type=ElementType.i8, shape=PartialShape(shape), value=value)


def _unpack_signs(raw: Array, count: int) -> Array:
    """Return the first bits as -1 and 1."""
    bits = np.unpackbits(np.ascontiguousarray(raw), bitorder="little")[:count]
    return bits.astype(np.int8) * 2 - 1
