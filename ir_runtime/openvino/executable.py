"""A model compiled for a backend: its execution plans and current runs."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from threading import get_ident
from typing import TYPE_CHECKING

from .._util.absent import ExplainsAbsent
from .._util.forks import register
from ..backends import load
from ..backends.common.kept_memory import kept_memory
from ..backends.core.threads import at_most
from ..executor.compile import compile_plan
from ..executor.context import State
from ..executor.plan import ExecutionPlan
from ..executor.quantized_variables import APPEND
from ..executor.step import Observer, Patch
from ..ir.element import ElementType
from ..ir.quantized_cache import Held
from ..ir.tensor import Array
from ..limits import Limits
from .const_ports import ConstOutput
from .feeding import Binder
from .names import find_port, one_key
from .precision import as_followed, precision_of
from .results import OVDict, unshared
from .streams import Streams
from .tensor import Tensor
from .view import View

if TYPE_CHECKING:
    from .execution_graph import Performance
    from .patching import Replacements

__all__ = ["Executable"]

_MAY_BE_STRINGS = (ElementType.string, ElementType.dynamic)


class Executable(ExplainsAbsent):
    """A model with kernels chosen, ready to run any number of times, also at once.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import opset1
    >>> x = opset1.parameter([2], np.float32, name="x")
    >>> compiled = ov.compile_model(ov.Model([opset1.exp(x, name="y")], [x]))
    >>> compiled.inputs, [port.shape for port in compiled.outputs]
    ([<ConstOutput: names[x] shape[2] type: f32>], [<Shape: [2]>])

    Args:
        model: what to run; later changes to it do not matter.
        backend: the backend asked for, if any.
        config: OpenVINO's properties, checked.
        limits: bounds on what running it may ask for; by default those the model was read with.
        strict: refuse inputs of another element type than the model's, instead of casting them.
    """

    def __init__(
        self,
        model: View,
        backend: str | None = None,
        config: Mapping[str, object] | None = None,
        limits: Limits | None = None,
        strict: bool = False,
    ) -> None:
        self._model = model
        self.config: dict[str, object] = dict(config or {})
        self.strict: bool = strict
        self.limits: Limits = limits or model._document.limits
        self._streams = Streams.of(self.config)
        self._requested_backend = backend or _text(self.config.get("BACKEND"))
        self.backend: str
        self.backend, self._chain = load(self._requested_backend, model._is_large)
        is_stateful = bool(model._graph.of_type("ReadValue"))
        self._precision = precision_of(self.config, self._chain, is_stateful)
        self._inputs, self._outputs = tuple(model._const_inputs()), tuple(model._const_outputs())
        self._binder = Binder(self._inputs, strict)
        self._weights = model._document.weights
        self._weights.check()
        self._returns_strings = any(o.element_type in _MAY_BE_STRINGS for o in self._outputs)
        self._plan = self._compile(fold=self.backend != "reference")
        packs = any(step.kernel_name == APPEND for step in self._plan.steps)
        ran = self._precision if packs else replace(self._precision, kv_cache="f32")
        self.config |= as_followed(self.config, ran)
        self._unfused_plan: ExecutionPlan | None = None
        self._drawn: dict[int, int] = {}
        """How far the random operations have drawn, by the ids of the objects that they are."""
        self._running: dict[object, int] = {}
        """The current runs, which share the threads, and the thread of each."""
        self._lock = threading.Lock()
        self._memory = kept_memory()
        self._performance: Performance | None = None
        if self.config.get("PERF_COUNT"):
            from .execution_graph import Performance

            self._performance = Performance()
        register(self)

    @property
    def inputs(self) -> list[ConstOutput]:
        """The inputs, in the order of the file."""
        return list(self._inputs)

    @property
    def outputs(self) -> list[ConstOutput]:
        """The outputs, in the order of the file, then those asked for."""
        return list(self._outputs)

    def input(
        self, key: int | str | None = None, *, index: int | None = None, tensor_name: str | None = None
    ) -> ConstOutput:
        """Return an input by index or name; without a key, the only one.

        Raises:
            InputError: if the index or the name is unknown; without a key, if the model has none or several.
        """
        return find_port(self._inputs, one_key(key, index, tensor_name), "input")

    def output(
        self, key: int | str | None = None, *, index: int | None = None, tensor_name: str | None = None
    ) -> ConstOutput:
        """Return an output by index or name; without a key, the only one.

        Raises:
            InputError: if the index or the name is unknown; without a key, if the model has none or several.
        """
        return find_port(self._outputs, one_key(key, index, tensor_name), "output")

    def _compile(self, fold: bool) -> ExecutionPlan:
        ports = [output._port for output in self._outputs]
        with at_most(self._streams.threads):
            return compile_plan(
                self._model._graph,
                self._model._values,
                ports,
                self._chain,
                fold,
                self.limits,
                None,
                self._precision,
            )

    def _computed(self, element: ElementType) -> ElementType:
        """Return the element type in which results of layers are held that the model declares in one."""
        is_widened = element is ElementType.f16 and self._chain and self._precision.f16 == "f32"
        return ElementType.f32 if is_widened else element

    def _unfused(self) -> ExecutionPlan:
        with self._lock:
            if self._unfused_plan is None:
                self._unfused_plan = self._compile(fold=False)
            return self._unfused_plan

    def _run(
        self,
        inputs: object,
        kept: Sequence[Tensor | None] = (),
        observers: Sequence[Observer] = (),
        every_layer: bool = False,
        variables: dict[str, Held] | None = None,
        patch: Patch | None = None,
    ) -> OVDict:
        feeds = self._binder.bind(inputs, kept)
        return self._run_arrays(feeds, observers, every_layer, variables, patch)

    def _patch(self, replacements: Replacements | None) -> Patch | None:
        if not replacements:
            return None
        from .patching import patch_of

        return patch_of(self._model._graph, replacements)

    def _run_arrays(
        self,
        feeds: Sequence[Array],
        observers: Sequence[Observer] = (),
        every_layer: bool = False,
        variables: dict[str, Held] | None = None,
        patch: Patch | None = None,
    ) -> OVDict:
        plan = self._unfused() if every_layer else self._plan
        if self._performance is not None and not every_layer:
            observers = [*observers, self._performance]
        if self.backend != "reference":  # which has all that it reads in memory
            self._weights.check()
        state = State({} if variables is None else variables, {}, self._advance)
        if self._streams.threads == 1:
            arrays = plan.run(feeds, observers, state, self.limits, patch, 1)
        else:
            run = object()
            try:
                self._running[run] = get_ident()
                threads = self._streams.share(len(self._running))
                arrays = plan.run(feeds, observers, state, self.limits, patch, threads)
            finally:
                if run in self._running:
                    del self._running[run]
        if state.assigned:
            state.commit(feeds)
        shared = [*feeds, *state.arrays] if state.values else feeds
        return OVDict(self._outputs, unshared(arrays, shared, plan.base_buffers))

    def _shown(self, found: OVDict, decode_strings: bool = True) -> OVDict:
        """Return the results of a run as callers see them."""
        return found._with_strings(decode_strings) if self._returns_strings else found

    def _advance(self, operation: object, count: int) -> int:
        """Advance the random numbers of an operation; return their former position."""
        with self._lock:
            start = self._drawn.get(id(operation), 0)
            self._drawn[id(operation)] = start + count
        return start

    def after_fork(self) -> None:
        """In a child process, forget the runs of other threads."""
        self._lock, me = threading.Lock(), get_ident()
        self._running = {run: thread for run, thread in self._running.items() if thread == me}


def _text(value: object) -> str | None:
    return None if value is None else str(value)
