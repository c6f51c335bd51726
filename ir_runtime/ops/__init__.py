"""The operations, one module or package for each group of the specification.

Modules that start with an underscore are shared by groups. `registry` imports a module when a model first uses one of
its operations. Third-party packages define operations with `op`, and announce their module as an entry point of the
group ``ir_runtime.ops``.
"""

from __future__ import annotations

from functools import cache

from ..ir.shape import PartialShape
from ..ir.tensor import Array, Value
from ._define.operation import (
    T_ANY,
    T_BOOLEAN,
    T_FLOAT,
    T_INDEX,
    T_INTEGER,
    Element,
    InferenceError,
    Input,
    Op,
    Output,
    T,
    attr,
    blob_field,
    body_field,
    op,
    registry,
)

__all__ = [
    "Array",
    "Element",
    "InferenceError",
    "Input",
    "Op",
    "Output",
    "PartialShape",
    "T",
    "T_ANY",
    "T_BOOLEAN",
    "T_FLOAT",
    "T_INDEX",
    "T_INTEGER",
    "Value",
    "attr",
    "blob_field",
    "body_field",
    "find_operation",
    "load_extensions",
    "op",
    "registry",
]


@cache
def load_extensions() -> None:
    """Import the modules that installed packages announce as entry points; called when a type is unknown."""
    from importlib.metadata import entry_points

    for extension in entry_points(group="ir_runtime.ops"):
        extension.load()


def find_operation(type: str, opset: int | None = None) -> type[Op] | None:
    """Return the version of an operation in an opset, the newest by default; search extensions for unknown types."""
    operation = registry.resolve(type, opset)
    if operation is None:
        load_extensions()
        operation = registry.resolve(type, opset)
    return operation
