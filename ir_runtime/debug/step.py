"""Run a model layer by layer, to inspect or replace intermediate results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextvars import copy_context
from dataclasses import dataclass

import numpy as np

from .._util.scoped import enter_all
from ..executor.context import State
from ..executor.interpreter import run_located
from ..executor.plan import ExecutionPlan
from ..executor.step import Slots, Step
from ..ir.graph import Layer
from ..ir.tensor import Array
from ..openvino.compiled import CompiledModel
from ..openvino.feeding import bind
from ..openvino.patching import convert_outputs
from ..openvino.results import OVDict, unshare

__all__ = ["Stepping", "Stop", "step"]


@dataclass
class Stop:
    """A layer that has just run.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import debug, opset1
    >>> x = opset1.parameter([2], np.float32, name="x")
    >>> model = ov.Model([opset1.exp(x, name="y")], [x])
    >>> inputs = [np.array([0, 1], np.float32)]
    >>> run = debug.step(ov.compile_model(model), inputs)
    >>> stop = next(iter(run))
    >>> stop.operation, stop.outputs
    ('Exp-1', [array([1.      , 2.718282], dtype=float32)])
    >>> found = run.finish()
    >>> stop.name
    'y'

    Args:
        layer: the layer.
        inputs: its inputs.
        outputs: its outputs. Later layers read the arrays in this list, which may be replaced before the iteration continues.
    """

    layer: Layer
    inputs: tuple[Array, ...]
    outputs: list[Array]

    @property
    def name(self) -> str:
        """The name of the layer."""
        return self.layer.name

    @property
    def operation(self) -> str:
        """The operation of the layer, such as ``Convolution-1``."""
        return self.layer.operation

    def __repr__(self) -> str:
        shapes = ", ".join(f"{array.dtype.name}{list(array.shape)}" for array in self.outputs)
        return f"<Stop: {self.name!r} ({self.operation}) {shapes}>"


class Stepping(Iterator[Stop]):
    """An iterator that runs a model and stops after each layer; `finish` runs to the end, where ``results`` are available.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import debug, opset1
    >>> x = opset1.parameter([2], np.float32, name="x")
    >>> model = ov.Model([opset1.exp(x, name="y")], [x])
    >>> inputs = [np.array([0, 1], np.float32)]
    >>> run = debug.step(ov.compile_model(model), inputs)
    >>> [stop.layer.name for stop in run]
    ['y']
    >>> run.results[0]
    array([1.      , 2.718282], dtype=float32)
    >>> debug.step(ov.compile_model(model), inputs).finish()[0]
    array([1.      , 2.718282], dtype=float32)
    """

    def __init__(self, compiled: CompiledModel, inputs: object) -> None:
        self._compiled = compiled
        self._plan: ExecutionPlan = compiled._compile_unfused()
        self._feeds = bind(compiled._inputs, inputs, strict=compiled.strict)
        self._state = State(compiled._variables, advance=compiled._advance)
        self._context = copy_context()
        self._stops = self._run()
        self._results: OVDict | None = None

    def __next__(self) -> Stop:
        return next(self._stops)

    def finish(self) -> OVDict:
        """Run the remaining layers without stopping, and return the model outputs."""
        for _ in self._stops:
            pass
        return self.results

    @property
    def results(self) -> OVDict:
        """The model outputs.

        Raises:
            RuntimeError: if the run has not ended.
        """
        if self._results is None:
            raise RuntimeError("the run has not ended: continue the iteration, or call finish()")
        return self._results

    def _run(self) -> Iterator[Stop]:
        plan = self._plan
        env = plan.fill_slots(self._feeds)
        self._context.run(self._begin, env)
        for planned in plan.steps:
            inputs = [env[slot] for slot in planned.reads]
            outputs = self._context.run(self._compute, planned, inputs)
            if not planned.is_hidden:
                shown = self._context.run(planned.shown_outputs, outputs)
                stop = Stop(planned.layers[-1], tuple(planned.shown_inputs(inputs)), list(shown))
                yield stop
                outputs = planned.patched(outputs, convert_outputs(stop.layer, stop.outputs, shown))
            planned.store(env, outputs)
        self._end([env[slot] for slot in plan.outputs])

    def _begin(self, env: Slots) -> None:
        run = self._plan.begin(self._feeds, (), self._state, self._compiled.limits)
        run.envs.append((env, self._plan.slots))

    def _compute(self, planned: Step, inputs: Sequence[Array]) -> tuple[Array, ...]:
        with np.errstate(all="ignore"), enter_all(self._plan.around):
            return run_located(planned, inputs)

    def _end(self, outputs: list[Array]) -> None:
        self._state.commit(self._feeds)
        shared = [*self._feeds, *self._state.arrays]
        results = OVDict(self._compiled.outputs, unshare(outputs, shared, self._plan.base_buffers))
        self._results = self._compiled._convert_strings(results)


def step(compiled: CompiledModel, inputs: object = None) -> Stepping:
    """Run a compiled model layer by layer.

    Constant folding and fusion are off; the kernels are those of the backend. Replacement arrays must have the shapes of
    the computed ones.

    >>> import numpy as np, ir_runtime
    >>> model = ir_runtime.read_fragment('<layer id="0" name="e" type="Exp" version="opset1">'
    ...     '<input><port id="0"><dim>1</dim></port></input><output><port id="1"/></output></layer>')
    >>> run = step(ir_runtime.compile_model(model), np.float32([0]))
    >>> for stop in run:
    ...     stop.outputs[0] = stop.outputs[0] + 1
    >>> run.results[0]
    array([2.], dtype=float32)

    Args:
        compiled: the compiled model.
        inputs: as for calling the compiled model.

    Returns:
        an iterator over the layers, in execution order.

    Raises:
        InputError: if an input is missing, unknown, or has another type or shape.
    """
    return Stepping(compiled, inputs)
