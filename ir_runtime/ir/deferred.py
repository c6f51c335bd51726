"""Constants whose values are computed on first use."""

from __future__ import annotations

from collections.abc import Callable

from .graph import Layer
from .tensor import Array, TensorType, Value

__all__ = ["DeferredValue"]


class DeferredValue(Value):
    """The value of a constant, computed on first use.

    Args:
        type: its type.
        layers: those that compute it from constants, in order.
        compute: evaluates them.
    """

    __slots__ = ("_array", "_compute", "layers")
    layers: tuple[Layer, ...]
    _array: Array | None
    _compute: Callable[[], Array]

    def __init__(self, type: TensorType, layers: tuple[Layer, ...], compute: Callable[[], Array]) -> None:
        given = {"type": type, "bounds": None, "quantized": None, "layers": layers, "_array": None}
        for name, value in {**given, "_compute": compute}.items():
            object.__setattr__(self, name, value)

    @property
    def data(self) -> Array:
        """The contents."""
        if self._array is None:
            object.__setattr__(self, "_array", self._compute())
        assert self._array is not None
        return self._array

    @property
    def is_known(self) -> bool:
        """Whether every number is known, or can be computed."""
        return True
