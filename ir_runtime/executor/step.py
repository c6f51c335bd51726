"""Steps of a plan, the contracts of their outputs, and observers of runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from ..analysis.error_context import Expected
from ..backends import Compute, Kernel
from ..backends.core.replay import Slots
from ..codes import Code
from ..errors import ExecutionError
from ..ir.element import ElementType
from ..ir.graph import Layer
from ..ir.tensor import Array, TensorType

__all__ = [
    "Declared",
    "Observer",
    "OutputContract",
    "Patch",
    "Profile",
    "Slots",
    "Step",
    "TimedStep",
    "as_array",
    "as_outputs",
    "base_buffer_of",
]


@dataclass(frozen=True, slots=True)
class Declared:
    """The element types that the model declares, for a step computed in other types.

    Args:
        reads: the declared type of each input; ``None`` if it is computed in that type.
        writes: the declared type of each output; ``None`` likewise.
        is_hidden: whether the step is only an inserted conversion, hidden from observers.
    """

    reads: tuple[ElementType | None, ...]
    writes: tuple[ElementType | None, ...]
    is_hidden: bool = False


def _cast(arrays: Sequence[Array], elements: Sequence[ElementType | None]) -> tuple[Array, ...]:
    """Cast arrays to the given element types; ``None`` leaves an array unchanged."""
    return tuple(
        array if element is None else array.astype(element.dtype, copy=False)
        for array, element in zip(arrays, elements, strict=True)
    )


_LACKING = "it must return an array for each of them"


def as_array(result: Any) -> Any:
    """Return a NumPy scalar as an array, as kernels need an address; other results as they are."""
    return np.asarray(result) if isinstance(result, np.generic) else result


def as_outputs(results: Any, count: int) -> tuple[Any, ...]:
    """Return the results of a kernel as a tuple; extra outputs of an operation are allowed.

    Raises:
        ExecutionError: if there are fewer than ``count``.
    """
    outputs = tuple(map(as_array, results)) if isinstance(results, tuple) else (as_array(results),)
    if len(outputs) < count:
        raise ExecutionError(f"it has {count} outputs, but its code returned {len(outputs)}", hint=_LACKING)
    return outputs


@dataclass(frozen=True, slots=True)
class Step:
    """A layer at run time, and the layers fused into its kernel.

    Backends compute f16 in f32; observers and patches see the types that the model declares.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import opset1
    >>> class Names:
    ...     def before(self, step, inputs):
    ...         print(step.layer.type, step.layer.name)
    ...     def after(self, step, outputs, seconds):
    ...         print(outputs[0])
    >>> x = opset1.parameter([2], np.float32, name="x")
    >>> compiled = ov.compile_model(ov.Model([opset1.exp(x, name="y")], [x]))
    >>> _ = compiled(np.zeros(2, np.float32), observers=[Names()])
    Exp y
    [1. 1.]
    >>> steps = []
    >>> class Keep(Names):
    ...     def before(self, step, inputs):
    ...         steps.append(step)
    >>> _ = compiled(np.zeros(2, np.float32), observers=[Keep()])
    [1. 1.]
    >>> [layer.name for layer in steps[0].layers], steps[0].run([np.zeros(2, np.float32)])
    (['y'], (array([1., 1.], dtype=float32),))
    >>> slots = [np.zeros(2, np.float32), None, None]
    >>> steps[0].store(slots, [np.ones(2, np.float32)])
    >>> half = opset1.parameter([2], np.float16, name="half")
    >>> compiled = ov.compile_model(ov.Model([opset1.exp(half)], [half]), backend="numpy")
    >>> _ = compiled(np.zeros(2, np.float16), observers=[Keep()])
    [1. 1.]
    >>> step, wide = steps[1], np.full(2, 1.0001, np.float32)
    >>> step.is_hidden, step.shown_inputs([wide])[0].dtype, step.shown_outputs((wide,))[0].dtype
    (False, dtype('float16'), dtype('float16'))
    >>> bool((step.patched((wide,), step.shown_outputs((wide,)))[0] == wide).all())  # unpatched values stay unrounded
    True

    Args:
        layer: the first layer.
        kernel: computes the outputs of the last layer.
        reads: the slots of the kernel's inputs.
        writes: the slots of its outputs.
        frees: the slots that no later step reads.
        also: the remaining layers, in order.
        expected: the inference of the layers, which explains failures.
        pattern: the name of the pattern that the layers match; empty if they match none.
        kernel_name: the name of the kernel in profiles; empty for the name of the backend.
        declared: the element types that the model declares, if the step computes in other types.
        types: the types of the outputs.
    """

    layer: Layer
    kernel: Kernel
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    frees: tuple[int, ...] = ()
    also: tuple[Layer, ...] = ()
    expected: Expected | None = None
    pattern: str = ""
    kernel_name: str = ""
    declared: Declared | None = None
    types: tuple[TensorType, ...] = ()
    compute: Compute = field(init=False, repr=False, compare=False)
    """The kernel's function; it takes all inputs."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "compute", self.kernel.whole)

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Every layer that this step computes, in order."""
        return (self.layer, *self.also)

    @property
    def is_hidden(self) -> bool:
        """Whether the step is hidden from observers, as the model has no such layer."""
        return self.declared is not None and self.declared.is_hidden

    def shown_inputs(self, args: Sequence[Array]) -> Sequence[Array]:
        """Return inputs in the declared types, as observers see them."""
        return args if self.declared is None else _cast(args, self.declared.reads)

    def shown_outputs(self, results: tuple[Array, ...]) -> tuple[Array, ...]:
        """Return outputs in the declared types, as observers see them."""
        return results if self.declared is None else _cast(results, self.declared.writes)

    def patched(self, results: tuple[Array, ...], patched: tuple[Array, ...]) -> tuple[Array, ...]:
        """Return the outputs that later steps read: outputs that the patch changed, and the unrounded results otherwise.

        Args:
            results: the outputs of the kernel.
            patched: the outputs that the patch returned, in the declared types.
        """
        if self.declared is None:
            return patched
        shown = self.shown_outputs(results)
        return tuple(
            result if before.tobytes() == after.tobytes() else after.astype(result.dtype, copy=False)
            for result, before, after in zip(results, shown, patched, strict=True)
        )

    def run(self, args: Sequence[Array]) -> tuple[Array, ...]:
        """Compute the outputs of the last layer; results that it does not declare are dropped.

        Raises:
            ExecutionError: if the kernel returns fewer outputs than the layer declares.
        """
        results = self.compute(*args)
        if results.__class__ is np.ndarray and not self.writes[1:]:
            return (results,)
        return as_outputs(results, len(self.writes))[: len(self.writes)]

    def store(self, env: Slots, results: Sequence[Array]) -> None:
        """Store results for later steps, and empty the slots that no later step reads.

        Args:
            env: the slots of the run.
            results: the outputs of the step, in order.
        """
        for slot, array in zip(self.writes, results, strict=True):
            env[slot] = array
        for slot in self.frees:
            env[slot] = None


Patch: TypeAlias = Callable[[Step, Sequence[Array], tuple[Array, ...]], tuple[Array, ...]]
"""Takes a step, its inputs and its outputs; returns the outputs that later steps read instead.

Breakpoints, pinned decisions and injected faults are patches."""


class Observer(Protocol):
    """Watches a run. Profilers, tracers, NaN traps and progress bars are observers.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import opset1
    >>> class Count:
    ...     layers = 0
    ...     def before(self, step, inputs):
    ...         self.layers += 1
    ...     def after(self, step, outputs, seconds):
    ...         pass
    >>> x = opset1.parameter([2], np.float32, name="x")
    >>> compiled = ov.compile_model(ov.Model([opset1.exp(opset1.abs(x))], [x]), backend="reference")
    >>> _ = compiled(np.zeros(2, np.float32), observers=[counter := Count()])
    >>> counter.layers
    2
    """

    def before(self, step: Step, inputs: Sequence[Array]) -> None:
        """Handle the start of ``step`` on ``inputs``."""

    def after(self, step: Step, outputs: Sequence[Array], seconds: float) -> None:
        """Handle the end of ``step``, with its ``outputs`` and its duration in ``seconds``."""


@dataclass(frozen=True, slots=True)
class OutputContract:
    """The type that was inferred for an output of a layer, and that its value must have."""

    layer: Layer
    type: TensorType
    dtype: np.dtype[np.generic] | None
    shape: tuple[int, ...] | None
    """The shape; ``None`` if it is dynamic."""

    @classmethod
    def of(cls, layer: Layer, type: TensorType) -> OutputContract:
        """Return the contract of an output from its inferred type."""
        dtype = None if type.element is ElementType.dynamic else type.element.dtype
        return cls(layer, type, dtype, type.shape.static if type.shape.is_static else None)

    def check(self, array: Array) -> None:
        """Check the shape and element type of a value.

        Raises:
            ExecutionError: if they contradict the inferred type; it names the layer.
        """
        fits = array.shape == self.shape or self.type.shape.contains(array.shape)
        if fits and (self.dtype is None or array.dtype == self.dtype):
            return
        raise ExecutionError(
            f"returned {_describe(array)}, but {self.type} was inferred",
            code=Code.LAYER_FAILED,
            where=self.layer.where,
            hint="the type that the file declares for the layer contradicts what it computes",
        )


def _describe(array: Array) -> str:
    try:
        element = ElementType.from_dtype(array.dtype).label
    except ValueError:  # third-party operations may return data types that are no element type
        element = array.dtype.name
    return f"{element}[{','.join(map(str, array.shape))}]"


def base_buffer_of(array: Array) -> int:
    """Return the `id` of the object that owns an array's memory, which is equal for all its views."""
    owner: object = array
    base: object = array.base
    while base is not None:
        owner, base = base, base.base if isinstance(base, np.ndarray) else None
    return id(owner)


class TimedStep(NamedTuple):
    """An executed step.

    Args:
        step: the step.
        start: the start time, by ``time.perf_counter``.
        seconds: the duration.
        depth: the nesting depth in bodies of steps.
    """

    step: Step
    start: float
    seconds: float
    depth: int


@dataclass
class Profile:
    """An observer that times each step, in the order in which steps end."""

    steps: list[TimedStep] = field(default_factory=list)
    _depth: int = 0

    @property
    def times(self) -> list[tuple[Step, float]]:
        """Each step with its duration in seconds."""
        return [(timed.step, timed.seconds) for timed in self.steps]

    def before(self, step: Step, inputs: Sequence[Array]) -> None:
        """Record the start of a step."""
        self._depth += 1

    def after(self, step: Step, outputs: Sequence[Array], seconds: float) -> None:
        """Record the duration of a step."""
        self._depth -= 1
        self.steps.append(TimedStep(step, time.perf_counter() - seconds, seconds, self._depth))
