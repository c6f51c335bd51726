"""The state of a graph that is built from legacy layers: free ids and names, and data of the ``.bin``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from ...diagnostics import Location
from ...ir.array import Packed
from ...ir.element import ElementType
from ...ir.graph import Body, Layer
from ...ir.shape import PartialShape
from ...ir.tensor import Array
from ...ops import Op, registry
from ..constants import ConstantReader

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
    """What ``<pre-process>`` subtracts from each channel of an input: a number, or an image in the ``.bin``."""

    channels: tuple[float | Blob, ...]


@dataclass(slots=True)
class Building:
    """The graph that is built."""

    constants: ConstantReader
    ids: Iterator[int]
    """Ids that no layer of the file has."""
    names: set[str]
    """Names that are taken."""
    read_body: Callable[[Layer], Body]
    """Reads and upgrades the body of a TensorIterator."""
    numbers: dict[str, int] = field(default_factory=dict)
    """The last number behind a name that was wanted more than once, so that looking for the next takes no time."""
    means: dict[int, Means] = field(default_factory=dict)
    """Means by the ids of the inputs that they are subtracted from."""

    def new_id(self) -> int:
        """Return an id that no layer has."""
        return next(self.ids)

    def new_name(self, wanted: str) -> str:
        """Return a name that no layer has: the one that is wanted, or that with a number."""
        name, number = wanted, self.numbers.get(wanted, 1)
        while name in self.names:
            number += 1
            name = f"{wanted}_{number}"
        self.numbers[wanted] = number
        self.names.add(name)
        return name

    def stored(self, blob: Blob, element: ElementType, shape: Sequence[int], where: Location) -> Op:
        """Return a constant with data of the ``.bin``.

        Raises:
            ParseError: if it is not in the ``.bin``, or too small for the shape.
            LimitError: if there is more of it than the limits allow.
        """
        cls = registry.require("Constant")
        place = {"offset": blob.offset, "size": blob.size, "value": None}
        op = cls(element_type=element, shape=PartialShape(shape), **place)
        return self.constants.read(op, replace(where, line=blob.line))

    def signs(self, blob: Blob, shape: Sequence[int], where: Location) -> Op:
        """Return bits of the ``.bin``, the lowest of each byte first, as -1 and 1 in i8.

        Raises:
            ParseError: if they are not in the ``.bin``, or too few for the shape.
            LimitError: if there is more of it than the limits allow.
        """
        count = int(np.prod(shape, dtype=object))
        packed = self.stored(blob, ElementType.u8, ((count + 7) // 8,), where)
        self.constants.sizes.add(ElementType.boolean, count, self.constants.limits, where)
        raw: Array | Packed = vars(packed)["value"]
        assert not isinstance(raw, Packed)
        bits = np.unpackbits(np.ascontiguousarray(raw), bitorder="little")[:count]
        value = (bits.astype(np.int8) * 2 - 1).reshape(shape)
        return packed.replace(element_type=ElementType.i8, shape=PartialShape(shape), value=value)
