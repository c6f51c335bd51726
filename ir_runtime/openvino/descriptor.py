"""The description of a tensor: its names, shape and type."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable

from .._util.wrong_arguments import ArgumentTypeError
from ..codes import Code
from ..ir.tensor import TensorType
from .ports import TypedPort

__all__ = ["DescriptorTensor", "NamedPort", "listed_names"]


class NamedPort(TypedPort):
    """A port whose tensor can be given names."""

    @abstractmethod
    def set_names(self, names: Iterable[str]) -> None:
        """Give the tensor these names only."""

    @abstractmethod
    def add_names(self, names: Iterable[str]) -> None:
        """Give the tensor these names, too."""


class DescriptorTensor(NamedPort):
    """The tensor of an output or an input: its names, shape and type. As OpenVINO's ``DescriptorTensor``."""

    def __init__(self, port: NamedPort) -> None:
        self._of = port

    @property
    def _type(self) -> TensorType:
        return self._of._type

    @property
    def _names(self) -> tuple[str, ...]:
        return self._of._names

    @property
    def _owner(self) -> str:
        return self._of._owner

    @property
    def size(self) -> int:
        """The number of bytes, where the shape is known."""
        count = 1
        for length in self.shape:
            count *= length
        return self.element_type.nbytes(count)

    def set_names(self, names: Iterable[str]) -> None:
        """Give the tensor these names only."""
        self._of.set_names(names)

    def add_names(self, names: Iterable[str]) -> None:
        """Give the tensor these names, too."""
        self._of.add_names(names)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DescriptorTensor) and self._of == other._of

    def __hash__(self) -> int:
        return hash(self._of)


def listed_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of a tensor. A text is none of several: it would become a name for each letter."""
    found = tuple(names) if isinstance(names, Iterable) and not isinstance(names, str) else (None,)
    if not all(isinstance(name, str) for name in found):
        raise ArgumentTypeError(f"expected a set of names, got {names!r}", code=Code.BAD_REQUEST)
    return tuple(map(str, found))
