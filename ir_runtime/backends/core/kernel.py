"""The interface between kernels and the executor.

A backend offers a `Kernel`: a function of arrays with the facts that the compiler and the executor need. If
the kernel depends on following layers, it offers a `KernelTemplate`, which fuses them and then packs its
weights; the result is a kernel again.

Lengths unknown when a kernel was chosen are checked before it runs (`executor.guard.LengthCheck`), by inference
for each new shape. This takes some 100 µs: too long for lengths that grow with every run, such as those of
caches. A kernel that can decide by a few comparisons defines ``accepts``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ...ir.operation import Operation
from ...ir.tensor import Array, Value

if TYPE_CHECKING:
    from .replay import Replayable

__all__ = [
    "Accepts",
    "any_lengths",
    "attention_lengths",
    "axis_length",
    "broadcasts",
    "Compute",
    "filter_lengths",
    "Kernel",
    "KernelTemplate",
    "Offer",
    "ResultShape",
    "UNREAD",
]

Accepts: TypeAlias = Callable[..., bool]
"""Takes the inputs of a kernel. True if their lengths certainly suit it and the operation; else inference decides.

Ranks, lengths that were known when the kernel was chosen, and equal symbols need not be looked at: they hold."""


def any_lengths(*arrays: Array) -> bool:
    """Accept all lengths, for kernels that compute or refuse them like the reference.

    >>> any_lengths(1)
    True
    """
    return True


def axis_length(axis: int, length: int) -> Accepts:
    """Accept a first input with this many elements along an axis."""
    return lambda x, *_: x.shape[axis] == length


def filter_lengths(channels: int, extents: Sequence[int]) -> Accepts:
    """Accept a first input with this many channels, and room for a window without padding along every spatial axis."""
    lowest = tuple(extents)

    def accepts(x: Array, *_: object) -> bool:
        _, found, *lengths = x.shape
        return found == channels and all(map(int.__ge__, lengths, lowest))

    return accepts


def attention_lengths(q: Array, k: Array, v: Array, *rest: Array) -> bool:
    """Accept queries, keys and values with the same heads, and a mask that broadcasts to the scores."""
    *batch, queries, width = q.shape
    *of_keys, keys, depth = k.shape
    if batch != of_keys or width != depth or v.shape[:3] != k.shape[:3]:
        return False
    return not rest or broadcasts(rest[0].shape, (*batch, queries, keys))


def broadcasts(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Return whether a shape broadcasts to a target without changing it.

    >>> broadcasts((1, 5), (2, 3, 5)), broadcasts((2, 5), (1, 5))
    (True, False)
    """
    return len(shape) <= len(target) and all(
        n in (1, m) for n, m in zip(reversed(shape), reversed(target), strict=False)
    )


Compute: TypeAlias = Callable[..., "Array | tuple[Array, ...]"]
"""A function of arrays that never changes an input."""

ResultShape: TypeAlias = Callable[..., "tuple[int, ...] | None"]
"""A function from the inputs of a kernel to the shape of its only result, or ``None`` without a rule."""

Offer: TypeAlias = "Callable[..., Kernel | KernelTemplate | None]"
"""A function from an operation and the `Value` of each input to a kernel, a template, or ``None``."""

UNREAD: Array = np.empty(0)
"""Stands for an output that nothing reads."""


class KernelTemplate(ABC):
    """A kernel during compilation: it may fuse layers, and packs weights afterwards.

    Templates are immutable: fusing a layer returns another one. Calling one prepares and runs it.

    >>> import numpy as np
    >>> class Scaled(KernelTemplate):
    ...     def __init__(self, factor):
    ...         self.factor = factor
    ...     def fuse(self, op, inputs, place):
    ...         return Scaled(self.factor * 2) if op == "double" else None
    ...     def prepare(self):
    ...         factor = self.factor
    ...         return Kernel(lambda array: array * factor)
    >>> template = Scaled(3)
    >>> template.has_epilogue, template.fuse("negate", (), 0), template.reads_bf16(0), template.storing_bf16()
    (True, None, False, None)
    >>> template.fuse("double", (), 0).prepare().run(np.float32([1, 2]))
    array([ 6., 12.], dtype=float32)
    >>> template(np.float32([1, 2]))
    array([3., 6.], dtype=float32)
    """

    __slots__ = ()

    @property
    def has_epilogue(self) -> bool:
        """Whether it can fuse layers."""
        return type(self).fuse is not KernelTemplate.fuse

    def fuse(self, op: Operation, inputs: Sequence[Value], place: int) -> KernelTemplate | None:
        """Return a template that also computes the only consumer of the result, or ``None``.

        It takes the inputs of this one, then the other inputs of that layer.

        Args:
            op: the operation of the layer.
            inputs: the `Value` of each of its inputs.
            place: the index of the input that is the result of this kernel.
        """
        return None

    def reads_bf16(self, place: int) -> bool:
        """Return whether input ``place`` may be bf16 instead of f32, as the kernel would round it anyway."""
        return False

    def storing_bf16(self) -> KernelTemplate | None:
        """Return a template that stores its result in bf16, or ``None``.

        Called for results whose consumers all accept bf16.
        """
        return None

    @abstractmethod
    def prepare(self) -> Kernel:
        """Pack weights, reserve scratch memory, and return the kernel; this ends fusion."""

    def __call__(self, *arrays: Array) -> Array | tuple[Array, ...]:
        """Prepare the kernel if needed, and run it; compiled models run what `prepare` returns."""
        return self.prepare()(*arrays)


@dataclass(frozen=True, slots=True, eq=False)
class Kernel(KernelTemplate):
    """A function of arrays, with its inputs, requirements, results and allocations.

    It is a template that fuses nothing and is prepared already. Runs call `run` itself; calling the kernel takes all
    inputs of the layer and returns all of its outputs.

    >>> import numpy as np
    >>> kernel = Kernel(np.add, name="add", accepts=any_lengths)
    >>> kernel(np.float32([1, 2]), np.float32([3, 4])), kernel.prepare() is kernel, kernel.fuse(None, (), 0)
    (array([4., 6.], dtype=float32), True, None)
    """

    run: Compute
    """A function from the layer's inputs, or its `operands`, to its outputs, or the `only` one."""
    name: str = ""
    """Shown in profiles: the type that it computes in, where the model has another. Empty for the backend's name."""
    operands: tuple[int, ...] | None = None
    """The indices of the inputs of `run`, which has copied the constant ones; ``None`` for all."""
    only: tuple[int, int] | None = None
    """The index of the only used output, if `run` returns just that, and the number of outputs."""
    accepts: Accepts | None = None
    """Which lengths it computes as the operation does; ``None``: inference decides about each new shape."""
    checks_inputs: bool = False
    """It checks inputs and results itself, so that the executor need not."""
    view: bool = False
    """Its outputs are always views of an input, and take no memory."""
    result_shape: ResultShape | None = None
    """The shape of its result, where a rule is faster than inference: for lengths that grow with every run."""
    of_shapes: bool = False
    """Its results follow from the shapes of its inputs alone, and never change."""
    replay: Replayable | None = None
    """How its calls are recorded; ``None`` where they cannot be."""
    has_host_calls: bool = False
    """It notes all that it does in Python (`core.replay.HostCalls`), so that its step can be part of a replay."""

    @classmethod
    def unary(
        cls,
        run: Callable[[Array], Array | tuple[Array, ...]],
        place: int = 0,
        view: bool = False,
        only: tuple[int, int] | None = None,
    ) -> Kernel:
        """Return a kernel that reads one input: it accepts all lengths, or refuses them itself.

        Args:
            run: takes the input.
            place: its index.
            view: the same as the field.
            only: likewise.

        >>> import numpy as np
        >>> Kernel.unary(np.negative, place=1)(np.zeros(2), np.ones(2))
        array([-1., -1.])
        """
        return cls(run, operands=(place,), only=only, accepts=any_lengths, view=view)

    @property
    def whole(self) -> Compute:
        """A function of all inputs of the layer that returns all of its outputs; `run`, where that does."""
        if self.only is not None or (self.operands is not None and len(self.operands) != 1):
            return self.__call__
        if self.operands is None:
            return self.run
        run, (place,) = self.run, self.operands
        return lambda *arrays: run(arrays[place])

    def wrapped(self, run: Compute) -> Kernel:
        """Return this kernel with another function of all inputs, which calls it after checks.

        Equal shapes pass equal checks, so recording is unaffected, and a replay skips the checks.
        """
        replay = None if self.replay is None else replace(self.replay, alone=True)
        return replace(self, run=run, operands=None, only=None, view=False, replay=replay)

    def prepare(self) -> Kernel:
        """Return the kernel itself."""
        return self

    def __call__(self, *arrays: Array) -> Array | tuple[Array, ...]:
        """Run the kernel on all inputs of the layer."""
        if self.operands is not None:
            arrays = tuple([arrays[place] for place in self.operands])
        outputs: Any = self.run(*arrays)
        if self.only is None or isinstance(outputs, tuple):
            return outputs  # type: ignore[no-any-return]
        index, count = self.only
        return tuple(outputs if i == index else UNREAD for i in range(count))
