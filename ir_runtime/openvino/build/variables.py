"""Variables, the tensors that persist between runs."""

from __future__ import annotations

from typing import ClassVar

from ...ir.element import ElementType
from ...ir.shape import PartialShape

__all__ = ["Variable", "VariableInfo"]


class VariableInfo:
    """The id, the shape and the type of a variable.

    >>> import ir_runtime as ov
    >>> VariableInfo.of("count", ov.Type.f32, ov.PartialShape([2])).attributes()["variable_id"]
    'count'
    """

    def __init__(self) -> None:
        self.data_shape: PartialShape = PartialShape.dynamic()
        self.data_type: ElementType = ElementType.dynamic
        self.variable_id = ""

    def attributes(self) -> dict[str, object]:
        """Return id, shape and type as the attributes of ReadValue."""
        return {
            "variable_id": self.variable_id,
            "variable_shape": PartialShape(self.data_shape),
            "variable_type": self.data_type,
        }

    @classmethod
    def of(cls, id: str, element: ElementType, shape: PartialShape) -> VariableInfo:
        """Return the description of the variable ``id`` of type ``element`` and ``shape``."""
        info = cls()
        info.variable_id, info.data_type, info.data_shape = id, element, shape
        return info

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VariableInfo) and self.attributes() == other.attributes()

    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # it is mutable


class Variable:
    """A variable of a model, with a `VariableInfo` that can be replaced.

    >>> import ir_runtime as ov
    >>> from ir_runtime import op
    >>> about = op.util.VariableInfo.of("count", ov.Type.f32, ov.PartialShape([2]))
    >>> variable = op.util.Variable(about)
    >>> variable.info.variable_id, sorted(variable.info.attributes())
    ('count', ['variable_id', 'variable_shape', 'variable_type'])
    >>> about.data_shape = ov.PartialShape([3])
    >>> variable.update(about)
    >>> variable.get_info().data_shape
    <PartialShape: [3]>
    """

    def __init__(self, info: VariableInfo) -> None:
        self._info = info

    @property
    def info(self) -> VariableInfo:
        """The id, shape and type."""
        return self._info

    def get_info(self) -> VariableInfo:
        """Return the id, shape and type."""
        return self._info

    def update(self, variable_info: VariableInfo) -> None:
        """Replace the description."""
        self._info = variable_info
