"""Constants whose values are computed on first use."""

from __future__ import annotations

from collections.abc import Callable

from .graph import Layer
from .tensor import Array, TensorType, Value

__all__ = ["DeferredValue"]


class DeferredValue(Value):
    """The value of a constant, computed on first use.

    Args:
        type: the tensor type of the value.
        layers: the layers that compute the value from constants, in topological order.
        compute: evaluates the layers.
    """

    __slots__ = ("_array", "_compute", "layers")
    layers: tuple[Layer, ...]
    _array: Array | None
    _compute: Callable[[], Array]

    def __init__(self, type: TensorType, layers: tuple[Layer, ...], compute: Callable[[], Array]) -> None:
        fields = {"type": type, "bounds": None, "quantized": None, "layers": layers, "_array": None}
        for name, value in {**fields, "_compute": compute}.items():
            object.__setattr__(self, name, value)

    @property
    def data(self) -> Array:
        """The contents, computed on first access."""
        if self._array is None:
            object.__setattr__(self, "_array", self._compute())
        assert self._array is not None
        return self._array

    @property
    def is_known(self) -> bool:
        """Always true: the contents are known, or can be computed."""
        return True
