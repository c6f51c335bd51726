"""Conversions that NumPy does as specified: to f32 and f64, and between integers."""

from __future__ import annotations

from operator import methodcaller

from ....ir.element import ElementType
from ....ir.tensor import Value
from ....ops.type import Convert
from ... import Kernel
from .._backend import backend

__all__: list[str] = []

_REAL = (ElementType.f16, ElementType.f32, ElementType.f64)
_INTEGERS = tuple(ElementType.parse(f"{sign}{bits}") for sign in "iu" for bits in (8, 16, 32, 64))


@backend.accelerates(Convert)
def convert(op: Convert, data: Value) -> Kernel | None:
    """Return a single NumPy call, without the checks of the reference."""
    source, target = data.element, op.destination_type
    if source not in (*_REAL, *_INTEGERS, ElementType.boolean):
        return None
    whole = target in _INTEGERS and source not in _REAL  # modulo their size
    if not whole and target not in _REAL[1:]:
        return None
    return Kernel.unary(methodcaller("astype", target.dtype, copy=False))
