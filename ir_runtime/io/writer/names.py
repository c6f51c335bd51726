"""Join the names of a tensor into one attribute."""

from __future__ import annotations

from collections.abc import Iterable

from ...codes import Code
from ...errors import InputError
from ...ir.graph import Layer

__all__ = ["join_names", "output_names"]


def join_names(names: Iterable[str]) -> str:
    r"""Join names with commas, escaping commas inside them.

    >>> print(join_names(["x", "y,z"]))
    x,y\,z

    Raises:
        InputError: if two names end in a backslash, which would escape the comma after the first.
    """
    ordered = sorted(names, key=lambda name: name.endswith("\\"))
    if sum(name.endswith("\\") for name in ordered) > 1:
        raise InputError(
            f"a tensor has two names that end in a backslash, {ordered[-2]!r} and {ordered[-1]!r}; "
            "a file can hold one",
            code=Code.BAD_REQUEST,
        )
    return ",".join(name.replace(",", "\\,") for name in ordered)


def output_names(layer: Layer) -> str:
    """Return the names that a Result gives to the output of the model."""
    return join_names(name for port in layer.inputs for name in port.names) if layer.type == "Result" else ""
