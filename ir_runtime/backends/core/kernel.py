"""The interface between kernels and the executor.

A backend offers a `Kernel`: a function of arrays, with what the compiler and the executor need to know about it. A kernel
that can fuse the layers after it starts as a `KernelTemplate`, which fuses them, packs its weights, and becomes a `Kernel`.

Lengths that are unknown at compile time are checked before a kernel runs (`executor.guard.LengthCheck`), by shape inference
for each new shape. This takes some 100 µs: too long for lengths that grow with every run, such as those of caches. A kernel
that can decide by a few comparisons defines ``accepts``.
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
"""A function of a kernel's inputs: True if their lengths are valid for the kernel and the operation; else inference decides.

It need not check ranks, lengths that were known at compile time, or equality of lengths with the same symbol."""


def any_lengths(*arrays: Array) -> bool:
    """Accept all lengths: for kernels that compute any, or raise an error as the reference does.

    >>> any_lengths(1)
    True
    """
    return True


def axis_length(axis: int, length: int) -> Accepts:
    """Return a check that accepts inputs of which the first has ``length`` elements along ``axis``."""
    return lambda x, *_: x.shape[axis] == length


def filter_lengths(channels: int, extents: Sequence[int]) -> Accepts:
    """Return a check that accepts data ``[N, channels, spatial...]`` with at least ``extents`` elements along the spatial axes."""
    lowest = tuple(extents)

    def accepts(x: Array, *_: object) -> bool:
        _, actual, *lengths = x.shape
        return actual == channels and all(map(int.__ge__, lengths, lowest))

    return accepts


def attention_lengths(q: Array, k: Array, v: Array, *rest: Array) -> bool:
    """Return whether queries, keys and values fit each other, and a mask, if given, broadcasts to the scores.

    They fit if all have the same batch and heads, queries and keys the same width, and keys and values the same length.
    """
    *batch, queries, width = q.shape
    *of_keys, keys, depth = k.shape
    if batch != of_keys or width != depth or v.shape[:3] != k.shape[:3]:
        return False
    return not rest or broadcasts(rest[0].shape, (*batch, queries, keys))


def broadcasts(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Return whether an array of ``shape`` broadcasts to ``target`` itself.

    >>> broadcasts((1, 5), (2, 3, 5)), broadcasts((2, 5), (1, 5))
    (True, False)
    """
    return len(shape) <= len(target) and all(
        n in (1, m) for n, m in zip(reversed(shape), reversed(target), strict=False)
    )


Compute: TypeAlias = Callable[..., "Array | tuple[Array, ...]"]
"""A function of arrays that never changes an input."""

ResultShape: TypeAlias = Callable[..., "tuple[int, ...] | None"]
"""A function from a kernel's inputs to the shape of its only result, or ``None`` if it cannot tell."""

Offer: TypeAlias = "Callable[..., Kernel | KernelTemplate | None]"
"""A function from an operation and the `Value` of each input to a kernel, a template, or ``None`` to decline."""

UNREAD: Array = np.empty(0)
"""Stands for an output that nothing reads."""


class KernelTemplate(ABC):
    """A kernel at compile time, which may still fuse the layers after it.

    Templates are immutable: `fuse` returns a new one. `prepare` ends fusion, packs weights, and returns the `Kernel`.

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
        """Whether it can fuse any layers."""
        return type(self).fuse is not KernelTemplate.fuse

    def fuse(self, op: Operation, inputs: Sequence[Value], place: int) -> KernelTemplate | None:
        """Return a template that also computes the layer that reads this one's result, or ``None`` if it cannot.

        Its inputs are those of this template, then the other inputs of that layer.

        Args:
            op: the operation of the layer.
            inputs: the `Value` of each of its inputs.
            place: the index of the input that is the result of this kernel.
        """
        return None

    def reads_bf16(self, place: int) -> bool:
        """Return whether input ``place`` may be passed as bf16 instead of f32, since the kernel rounds it to bf16 anyway."""
        return False

    def storing_bf16(self) -> KernelTemplate | None:
        """Return a template that stores its result in bf16, or ``None`` if unsupported.

        It is called if all consumers of the result accept bf16.
        """
        return None

    @abstractmethod
    def prepare(self) -> Kernel:
        """Pack weights, allocate scratch memory, and return the kernel; no layers can be fused afterwards."""

    def __call__(self, *arrays: Array) -> Array | tuple[Array, ...]:
        """Prepare the kernel, and run it once; compiled models prepare it once and run the result."""
        return self.prepare()(*arrays)


@dataclass(frozen=True, slots=True, eq=False)
class Kernel(KernelTemplate):
    """A function of arrays that computes a layer, with its requirements and properties.

    It is also a template that fuses no layers. The executor calls `run`. Calling the kernel itself takes all inputs of the
    layer and returns all of its outputs.

    >>> import numpy as np
    >>> kernel = Kernel(np.add, name="add", accepts=any_lengths)
    >>> kernel(np.float32([1, 2]), np.float32([3, 4])), kernel.prepare() is kernel, kernel.fuse(None, (), 0)
    (array([4., 6.], dtype=float32), True, None)
    """

    run: Compute
    """Computes the outputs of the layer, or just the `only` one, from its inputs, or just its `operands`."""
    name: str = ""
    """The name shown in profiles, such as a narrower type that it computes in; if empty, the name of the backend."""
    operands: tuple[int, ...] | None = None
    """The indices of the inputs that `run` takes, if it holds copies of the constant ones; ``None`` for all."""
    only: tuple[int, int] | None = None
    """If `run` returns a single output of several: the index of that output, and the number of outputs."""
    accepts: Accepts | None = None
    """Checks lengths quickly before a run; if ``None``, shape inference decides about each new shape."""
    checks_inputs: bool = False
    """Whether it checks inputs and results itself, so that the executor need not."""
    view: bool = False
    """Whether its outputs are always views of an input, which take no memory."""
    result_shape: ResultShape | None = None
    """Computes the shape of its result faster than inference, for lengths that grow with every run; ``None`` if unknown."""
    of_shapes: bool = False
    """Whether its results depend only on the shapes of its inputs."""
    replay: Replayable | None = None
    """How its calls are recorded for replay; ``None`` if they cannot be."""
    has_host_calls: bool = False
    """Whether it registers all of its Python calls (`core.replay.HostCalls`), so that a replay can contain its step."""

    @classmethod
    def unary(
        cls,
        run: Callable[[Array], Array | tuple[Array, ...]],
        place: int = 0,
        view: bool = False,
        only: tuple[int, int] | None = None,
    ) -> Kernel:
        """Return a kernel that reads one input of the layer, of any lengths.

        Args:
            run: computes the result; raises an error for lengths that the operation refuses.
            place: the index of the input.
            view: whether the result is always a view of the input.
            only: if ``run`` returns a single output of several: the index of that output, and the number of outputs.

        >>> import numpy as np
        >>> Kernel.unary(np.negative, place=1)(np.zeros(2), np.ones(2))
        array([-1., -1.])
        """
        return cls(run, operands=(place,), only=only, accepts=any_lengths, view=view)

    @property
    def whole(self) -> Compute:
        """A function from all inputs of the layer to all of its outputs; `run` itself if it takes and returns all."""
        if self.only is not None or (self.operands is not None and len(self.operands) != 1):
            return self.__call__
        if self.operands is None:
            return self.run
        run, (place,) = self.run, self.operands
        return lambda *arrays: run(arrays[place])

    def wrapped(self, run: Compute) -> Kernel:
        """Return a copy with another ``run``, a function of all inputs that checks them and calls this kernel.

        The checks must depend only on shapes: a replay skips them.
        """
        replay = None if self.replay is None else replace(self.replay, alone=True)
        return replace(self, run=run, operands=None, only=None, view=False, replay=replay)

    def prepare(self) -> Kernel:
        """Return the kernel itself."""
        return self

    def __call__(self, *arrays: Array) -> Array | tuple[Array, ...]:
        """Run the kernel on all inputs of the layer; return all outputs, with `UNREAD` for those that it does not compute."""
        if self.operands is not None:
            arrays = tuple([arrays[place] for place in self.operands])
        outputs: Any = self.run(*arrays)
        if self.only is None or isinstance(outputs, tuple):
            return outputs  # type: ignore[no-any-return]
        index, count = self.only
        return tuple(outputs if i == index else UNREAD for i in range(count))
