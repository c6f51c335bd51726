"""Every operation, grouped as the specification groups them.

A module of this package is a group, or a package where a group is large; its name is the group's.
Modules that start with an underscore are what groups share. A module is imported when a model has one of its
operations, or somebody asks for all of them: `registry` knows where they are. Other packages add operations with `op`, and announce the module that does so
as an entry point of the group ``ir_runtime.ops``.
"""

from __future__ import annotations

from functools import cache

from ..ir.shape import PartialShape
from ..ir.tensor import Array, Value
from ._define.operation import (
    Element,
    InferenceError,
    Input,
    Op,
    Output,
    attr,
    blob_field,
    body_field,
    op,
    registry,
)
from ._define.types import T_ANY, T_BOOLEAN, T_FLOAT, T_INDEX, T_INTEGER, T

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
    "load_extensions",
    "op",
    "registry",
]


@cache
def load_extensions() -> None:
    """Import what installed packages announce as operations; asked for when a type is unknown."""
    from importlib.metadata import entry_points

    for extension in entry_points(group="ir_runtime.ops"):
        extension.load()
