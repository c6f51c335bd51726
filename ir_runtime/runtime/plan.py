"""A compiled model: a straight line of steps over numbered slots."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ..backends import Kernel
from ..codes import Code
from ..errors import ExecutionError, IRError
from ..ir.graph import Layer
from ..ir.tensor import Array
from .context import RUN, Run, State

__all__ = ["ExecutionPlan", "Observer", "Step"]


@dataclass(frozen=True, slots=True)
class Step:
    """One layer at run time, and those that its kernel computes with it.

    ``frees`` are the slots nobody reads afterwards.
    """

    layer: Layer
    kernel: Kernel
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    frees: tuple[int, ...] = ()
    also: tuple[Layer, ...] = ()

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Every layer that this step computes, in order."""
        return (self.layer, *self.also)

    def run(self, args: Sequence[Array]) -> tuple[Array, ...]:
        """Compute the outputs that the last layer declares; an operation may have more."""
        results = self.kernel(*args)
        outputs = results if isinstance(results, tuple) else (results,)
        return outputs[: len(self.writes)]


class Observer(Protocol):
    """Watches a run. Profilers, tracers, NaN traps and progress bars are observers."""

    def before(self, step: Step, inputs: Sequence[Array]) -> None:
        """Called before a layer runs."""

    def after(self, step: Step, outputs: Sequence[Array], seconds: float) -> None:
        """Called after a layer ran."""


@dataclass(frozen=True, slots=True)
class ExecutionPlan:
    """Steps in order. A plan holds no activations, so any number of runs may share it."""

    steps: tuple[Step, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    slots: tuple[Array | None, ...]
    """Constants in place, the rest empty."""
    around: tuple[Callable[[], AbstractContextManager[object]], ...] = ()
    """What the backends want around a run."""

    def run(
        self, feeds: Sequence[Array], observers: Sequence[Observer] = (), state: State | None = None
    ) -> list[Array]:
        """Run every step on arrays for the inputs; return arrays for the outputs.

        Args:
            feeds: an array for each input.
            observers: told of every step.
            state: the variables. What is assigned waits in it to be committed.

        Raises:
            ExecutionError: if a layer fails on its data; it names the layer.
        """
        running = RUN.set(Run(observers, state or State()))
        try:
            with ExitStack() as stack:
                stack.enter_context(np.errstate(all="ignore"))
                for enter in self.around:
                    stack.enter_context(enter())
                return self.execute(feeds, observers)
        except _Watching as caught:
            raise caught.reason from None
        finally:
            RUN.reset(running)

    def execute(self, feeds: Sequence[Array], observers: Sequence[Observer]) -> list[Array]:
        """The steps themselves, of a model or of a body inside a run."""
        env: list[Any] = list(self.slots)
        for slot, array in zip(self.inputs, feeds, strict=True):
            env[slot] = array
        step: Step | None = None
        try:
            for step in self.steps:
                args = [env[slot] for slot in step.reads]
                results = step.run(args) if not observers else _watched(step, args, observers)
                for slot, array in zip(step.writes, results, strict=True):
                    env[slot] = array
                for slot in step.frees:
                    env[slot] = None
        except Exception as reason:
            if isinstance(reason, _Watching) or _placed(reason):
                raise
            assert step is not None
            raise failure(step.layer, reason, step.also) from reason
        return [env[slot] for slot in self.outputs]


class _Watching(Exception):
    """Carries an observer's own exception past the handler that blames the layer."""

    def __init__(self, reason: Exception) -> None:
        super().__init__()
        self.reason = reason


def _watched(step: Step, args: Sequence[Array], observers: Sequence[Observer]) -> tuple[Array, ...]:
    _tell(observers, "before", step, args)
    start = time.perf_counter()
    results = step.run(args)
    seconds = time.perf_counter() - start
    _tell(observers, "after", step, results, seconds)
    return results


def _tell(observers: Sequence[Observer], event: str, *what: Any) -> None:
    for observer in observers:
        try:
            getattr(observer, event)(*what)
        except Exception as reason:
            raise _Watching(reason) from reason


def _placed(reason: Exception) -> bool:
    """Whether a layer of a body is blamed already."""
    return isinstance(reason, ExecutionError) and reason.where is not None


def failure(layer: Layer, reason: Exception, also: Sequence[Layer] = ()) -> ExecutionError:
    """What happened, and in which layer, or in which layers that run as one."""
    message = reason.message if isinstance(reason, IRError) else f"{type(reason).__name__}: {reason}"
    together = f", together with {', '.join(map(str, also))}" if also else ""
    return ExecutionError(
        f"failed on the data it was given{together}: {message}", code=Code.LAYER_FAILED, where=layer.where
    )
