"""Type variables shared by many specifications."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import TypeAlias

from ...ir.element import ElementType as E
from ...ir.signature import FLOATS, Element
from ...ir.tensor import Array

Types: TypeAlias = Sequence[E]
"""The element type of each input, passed by `Op.evaluator` if requested."""

SIGNED = (E.i64, E.i32, E.i16, E.i8)
UNSIGNED = (E.u64, E.u32, E.u16, E.u8)
INTEGERS = SIGNED + UNSIGNED
NUMBERS = FLOATS + INTEGERS
EVERY = tuple(e for e in E if e is not E.dynamic)

T = Element("T", NUMBERS, "any numeric type")
T_FLOAT = Element("T", FLOATS, "any floating-point type")
T_SHORT_FLOAT = Element("T", (E.f32, E.f16, E.bf16), "f32, f16 or bf16")
T_INTEGER = Element("T", INTEGERS, "any integer type")
T_ANY = Element("T", EVERY, "any type")
T_PLAIN = Element("T", (*NUMBERS, E.boolean), "any numeric type or boolean")
T_BOOLEAN = Element("T_BOOL", (E.boolean,), "boolean")
T_INDEX = Element("T_IND", INTEGERS, "any integer type", shared=False)
T_INDEX_64 = Element("T_IND", (E.i64, E.i32), "i64 or i32", shared=False)
T_AXIS = Element("T_AXIS", INTEGERS, "any integer type", shared=False)
T_SHAPE = Element("T_SHAPE", INTEGERS, "any integer type", shared=False)


def elements(arrays: Sequence[Array], types: Types) -> tuple[E, ...]:
    """Return the element type of each array: the given one, or else that of its dtype."""
    pairs = zip_longest(arrays, types, fillvalue=E.dynamic)
    return tuple(E.from_dtype(a.dtype) if e is E.dynamic else e for a, e in pairs)


def check_index_types(**attributes: E) -> None:
    """Require that index type attributes are i64 or i32; for `Op.verify`."""
    for name, element in attributes.items():
        if element not in (E.i64, E.i32):
            raise ValueError(f"attribute {name!r} must be i64 or i32, not {element.label}")
