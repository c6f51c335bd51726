"""The precision of a compilation: the rounding that kernels may add. Backends read it while compiling."""

from __future__ import annotations

from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass

from ..._util.scoped import setting

__all__ = ["EXACT", "Precision", "current", "within"]


@dataclass(frozen=True, slots=True)
class Precision:
    """The rounding that kernels may add to the model's; none by default.

    >>> Precision() == Precision("f32", 0, "f32"), Precision("bf16").products
    (True, 'bf16')

    Args:
        products: the type to which kernels round the inputs of products of f32, whose sums stay f32: ``f32`` or ``bf16``.
        dynamic_group: how many activations share a scale where they are rounded to 8 bits to be multiplied with compressed
            weights; 0 where they are not rounded.
        kv_cache: the type in which variables hold the keys and values of attention between runs: ``f32`` or ``u8``.
        weights: the type to which large constant weights are rounded where few rows of f32 are multiplied by them, in f32:
            ``f32`` or ``bf16``.
        flush_denormals: whether denormal (subnormal) numbers are zero to kernels, and among their results.
        f16: the type in which layers of f16 are computed: ``f32`` or ``f16``.
    """

    products: str = "f32"
    dynamic_group: int = 0
    kv_cache: str = "f32"
    weights: str = "f32"
    flush_denormals: bool = False
    f16: str = "f32"


EXACT = Precision()
"""Nothing is rounded that the model does not round."""

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

    Kernels query it when they are offered; preparation and runs are outside of it.
    """
    return _CURRENT.get()
