"""The precision of a compilation: the rounding that kernels may add to that of the model."""

from __future__ import annotations

from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass

from ..._util.scoped import setting

__all__ = ["EXACT", "Precision", "current", "within"]


@dataclass(frozen=True, slots=True)
class Precision:
    """The rounding that kernels may add to that of the model; by default none.

    >>> Precision() == Precision("f32", 0, "f32"), Precision("bf16").products
    (True, 'bf16')

    Args:
        products: the type to which kernels round the operands of f32 products, ``f32`` or ``bf16``; sums stay f32.
        dynamic_group: the group size of dynamic quantization: how many activations, rounded to 8 bits for products with
            compressed weights, share a scale; 0 to keep them f32.
        kv_cache: the type in which variables store the keys and values of attention between runs, ``f32`` or ``u8``.
        weights: the type to which large constant weights are rounded if few f32 rows are multiplied by them, ``f32`` or
            ``bf16``; products and sums stay f32.
        flush_denormals: whether kernels treat denormals as zero, in inputs and results.
        f16: the type in which f16 layers are computed, ``f32`` or ``f16``.
    """

    products: str = "f32"
    dynamic_group: int = 0
    kv_cache: str = "f32"
    weights: str = "f32"
    flush_denormals: bool = False
    f16: str = "f32"


EXACT = Precision()
"""No rounding beyond that of the model."""

_CURRENT: ContextVar[Precision] = ContextVar("precision", default=EXACT)


def within(precision: Precision) -> AbstractContextManager[None]:
    """Set the precision of compilations in the block.

    >>> with within(Precision("bf16")):
    ...     current().products
    'bf16'
    >>> current().products
    'f32'
    """
    return setting(_CURRENT, precision)


def current() -> Precision:
    """Return the precision of the current compilation.

    It is valid while backends offer kernels, but not in `KernelTemplate.prepare` or in runs.
    """
    return _CURRENT.get()
