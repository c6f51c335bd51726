"""`DiscreteTypeInfo`, the type of an operation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

__all__ = ["DiscreteTypeInfo"]


@dataclass(eq=True)
class DiscreteTypeInfo:
    """The type of an operation: its name as OpenVINO spells it, and the opset that introduced its version.

    >>> import numpy as np
    >>> from ir_runtime import opset1
    >>> info = opset1.relu(opset1.parameter([2], np.float32)).get_type_info()
    >>> info.name, info.version_id
    ('Relu', 'opset1')
    >>> info.hash() == opset1.relu(opset1.parameter([3], np.float32)).get_type_info().hash(), info.parent
    (True, None)
    """

    name: str
    version_id: str

    @property
    def parent(self) -> DiscreteTypeInfo | None:
        """The supertype, which is None, as operations have no common supertypes here."""
        return None

    def hash(self) -> int:
        """Return the hash of the type."""
        return hash((self.name, self.version_id))

    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # unhashable, as in OpenVINO

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.name} {self.version_id}>"
