"""The interface between kernels and the executor.

A kernel is a function of arrays, or an object: a `KernelObject`. It may also say in ``accepts(*arrays)`` whether it
computes inputs of these shapes (see `core.lengths`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar, TypeAlias, TypeVar

from ...ir.operation import Operation
from ...ir.tensor import Array, Value

__all__ = ["Kernel", "KernelObject", "Offer", "name_of", "named"]

Kernel: TypeAlias = Callable[..., "Array | tuple[Array, ...]"]
"""Takes the inputs of a layer, returns its outputs; never changes an input."""

Offer: TypeAlias = Callable[..., "Kernel | None"]
"""Takes an operation and the `Value` of each input; returns a kernel, or ``None`` where it has none."""

Made = TypeVar("Made")


def named(kernel: Made, name: str) -> Made:
    """Let profiles call a kernel, a function or an object, by a name, unless that is empty; returns the kernel.

    For kernels that round what the model does not: the name says in which type they compute.

    >>> name_of(named(lambda x: x, "gemm_bf16"))
    'gemm_bf16'
    """
    if name:
        vars(kernel)["exec_type"] = name
    return kernel


def name_of(kernel: object) -> str:
    """Return the name of a kernel; empty if it has none.

    >>> name_of(abs)
    ''
    """
    return str(getattr(kernel, "exec_type", ""))


class KernelObject(ABC):
    """A kernel that takes part in compiling: it may fuse layers, and packs weights once it is known which.

    >>> import numpy as np
    >>> class Twice(KernelObject):
    ...     def __call__(self, array):
    ...         return array * 2
    >>> kernel = Twice()
    >>> kernel.has_epilogue, kernel.fuse(None, (), 0), kernel.prepare()(np.float32([1, 2]))
    (False, None, array([2., 4.], dtype=float32))
    >>> kernel.reads_bf16(0), kernel.storing_bf16()
    (False, None)
    """

    checks_inputs: ClassVar[bool] = False
    """Whether it checks inputs and results itself, so that the executor need not."""

    @property
    def has_epilogue(self) -> bool:
        """Whether it may fuse layers."""
        return type(self).fuse is not KernelObject.fuse

    def fuse(self, op: Operation, inputs: Sequence[Value], place: int) -> Kernel | None:
        """Return a kernel that also computes the layer that alone reads its result, or ``None``.

        It takes what this kernel takes, then the layer's other inputs.

        Args:
            op: the operation of the layer.
            inputs: the `Value` of each of its inputs.
            place: which of them is this kernel's result.
        """
        return None

    def reads_bf16(self, place: int) -> bool:
        """Return whether input ``place`` may be an array of bf16 where the model has f32: the kernel would round it anyway."""
        return False

    def storing_bf16(self) -> Kernel | None:
        """Return a kernel that rounds its result to bf16, and returns it so; ``None`` if there is none.

        Asked for a result that only kernels read which take it in bf16.
        """
        return None

    def prepare(self) -> Kernel:
        """Return the kernel for the run loop, with packed weights and scratch memory; no layer is fused after that."""
        return self

    @abstractmethod
    def __call__(self, *arrays: Array) -> Array | tuple[Array, ...]:
        """Compute the outputs of the layers."""
