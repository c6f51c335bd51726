"""The host table: words that a kernel library needs from its process, filled when the library is loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..machine_code.table import TABLE, WORDS
from . import ir

if TYPE_CHECKING:
    from .vectors import Emit, Value

__all__ = ["call_host", "host_word"]


def host_word(emit: Emit, name: str) -> Value:
    """Load a word of the host table."""
    table = emit.builder.module.declare_table(TABLE, len(WORDS))
    place = emit.builder.element_pointer(table, emit.i64(WORDS.index(name)), ir.I64)
    return emit.builder.load(place, ir.I64, 8)


def call_host(emit: Emit, name: str, returns: ir.Type, *arguments: Value) -> Value:
    """Call a function of the host table."""
    return emit.builder.call_pointer(emit.pointer(host_word(emit, name)), arguments, returns)
