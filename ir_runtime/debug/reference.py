"""Run the reference implementation in the model's types or in f64, optionally changing intermediate results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, MutableMapping, Sequence
from itertools import count
from typing import TypeAlias

import numpy as np

from .._util.forks import cached_property
from ..analysis.infer import Inferred
from ..backends import load
from ..codes import Code
from ..compiler.compile import compile_plan
from ..compiler.memory import Peak, least_memory
from ..compiler.widen import has_f16, widen
from ..errors import InputError, IRError
from ..executor.guard import check_room
from ..executor.plan import ExecutionPlan
from ..executor.step import Step
from ..ir.blocks import by_blocks
from ..ir.element import ElementType
from ..ir.graph import Layer, Port
from ..ir.shape import PartialShape
from ..ir.tensor import Array
from ..openvino.feeding import bind
from ..openvino.model import Model
from .progress import report_progress
from .spilling import keep_copy, run_limits, tensors

__all__ = ["Change", "Recorder", "Reference", "round_as_declared", "chain_changes", "check_types", "in_f32"]

Arrays: TypeAlias = tuple[Array, ...]

Change: TypeAlias = "Callable[[Layer, Sequence[Array], Arrays], Arrays]"
"""A function, called after each layer with the layer, its inputs and its outputs, that returns replacement outputs."""


class Reference:
    """Runs a model layer by layer, using the reference implementation of each operation.

    Args:
        model: the model; it is not changed.
        wide: compute f32, f16 and bf16 in f64.
        backend: the backend whose kernels compute each layer; by default, the reference implementations.
        f16_in_f32: compute f16 in f32, as fast backends and OpenVINO's CPU plugin do; outputs have the declared types.
    """

    def __init__(
        self,
        model: Model,
        wide: bool = False,
        backend: str = "reference",
        f16_in_f32: bool = False,
    ) -> None:
        runnable = model._runnable()
        self.outputs = runnable._const_outputs()
        """The outputs of the model."""
        self.graph, self.types = runnable._graph, runnable._values
        self.inputs = runnable._const_inputs()
        """The inputs of the model."""
        self.model, self._limits, self._wide, self._backend = model, model.limits, wide, backend
        self._needed: dict[tuple[tuple[int, ...], ...], Peak] = {}
        self._shaped: dict[tuple[tuple[int, ...], ...], Reference] = {}
        self.f16_in_f32 = f16_in_f32 and not wide and has_f16(self.graph, self.types)
        """Whether f16 is computed in f32."""
        if wide:
            self.graph, self.types = widen(self.graph, self.types)
        elif self.f16_in_f32:
            self.graph, self.types = widen(self.graph, self.types, ElementType.f32)

    @cached_property
    def _plan(self) -> ExecutionPlan:
        ports = [output._port for output in self.outputs]
        _, chain = load(self._backend)
        return compile_plan(self.graph, self.types, ports, chain, False, self._limits)

    @cached_property
    def in_f32(self) -> Reference:
        """The reference that computes f16 in f32; the same object if the model has no f16."""
        if self.f16_in_f32 or not has_f16(self.graph, self.types):
            return self
        return Reference(self.model, self._wide, self._backend, f16_in_f32=True)

    def computing(self, model: Model) -> Reference:
        """Return a reference with the same settings for another model."""
        return Reference(model, self._wide, self._backend, self.f16_in_f32)

    def needed(self, feeds: Sequence[Array]) -> Peak:
        """Return the peak memory of a run in bytes, and the layer that reaches it.

        Data-dependent dimensions count as their minimum.

        Args:
            feeds: an array for each input.
        """
        shapes = tuple(feed.shape for feed in feeds)
        if shapes not in self._needed:
            of = self.with_shapes(feeds)
            outputs = [output._port for output in of.outputs]
            self._needed[shapes] = least_memory(of.graph, of.types, outputs, patched=True)
        return self._needed[shapes]

    def check_memory(self, feeds: Sequence[Array]) -> None:
        """Check before a run that the memory limit suffices.

        Args:
            feeds: an array for each input.

        Raises:
            LimitError: if the limit is too low; the message states the required size.
        """
        peak = self.needed(feeds)
        self._limits.check("memory", peak.bytes, peak.step.layer.where if peak.step else None)

    def with_shapes(self, feeds: Sequence[Array]) -> Reference:
        """Return the reference of the model reshaped to the inputs, or itself if its input shapes are static."""
        if all(port.partial_shape.is_static for port in self.inputs):
            return self
        shapes = tuple(feed.shape for feed in feeds)
        if shapes not in self._shaped:
            self._shaped[shapes] = self._reshape(shapes)
        return self._shaped[shapes]

    def _reshape(self, shapes: Sequence[tuple[int, ...]]) -> Reference:
        model = self.model.clone()
        try:
            model.reshape({index: PartialShape(shape) for index, shape in enumerate(shapes)})
        except IRError:  # reported better by the run
            return self
        return self.computing(model)

    def feeds(self, inputs: object) -> list[Array]:
        """Return one array for each input of the model.

        Raises:
            InputError: if an input is missing, unknown, or has another type or shape.
        """
        return bind(self.inputs, inputs)

    def run(
        self,
        feeds: Sequence[Array],
        change: Change | None = None,
        inside: Change | None = None,
        copies: int = 1,
    ) -> list[Array]:
        """Run the model, and return its outputs.

        Args:
            feeds: an array for each input.
            change: applied to each layer outside of bodies.
            inside: applied to each execution of a layer in a body.
            copies: the number of copies of a layer's outputs that ``change`` makes at the same time.

        Raises:
            LimitError: if the tensors, with these copies, exceed the memory limit.
        """
        if self._wide:
            feeds = [_widen(feed) for feed in feeds]
        if self.f16_in_f32:
            feeds = [in_f32(feed) for feed in feeds]
        limits = run_limits(self._limits, self.needed(feeds).bytes)
        outputs = self._plan.run(feeds, limits=limits, patch=self._patch(change, inside, copies))
        if self.f16_in_f32:
            for index in range(len(outputs)):
                outputs[index] = self.declared_output(index, outputs[index])
        return outputs

    def declared_output(self, index: int, array: Array) -> Array:
        """Convert an output computed in f32 to its declared type.

        Args:
            index: the number of the output.
            array: the output.
        """
        if self.outputs[index].element_type is not ElementType.f16:
            return array
        with np.errstate(over="ignore"):
            return array.astype(np.float16)

    def _patch(
        self, change: Change | None, inside: Change | None, copies: int
    ) -> Callable[[Step, Sequence[Array], Arrays], Arrays]:
        done, total = count(1), len(self._plan.steps)

        def patch(step: Step, inputs: Sequence[Array], outputs: Arrays) -> Arrays:
            sizes = (8 * output.size if self._wide else output.nbytes for output in outputs)
            check_room(copies * sum(sizes), outputs, step.layer.where)
            if self._wide:  # some operations compute f32 regardless of their inputs
                outputs = tuple(map(_widen, outputs))
            if step.layer not in self.graph:
                return outputs if inside is None else inside(step.layer, inputs, outputs)
            report_progress(next(done) / total, step.layer.name)
            return outputs if change is None else change(step.layer, inputs, outputs)

        return patch


def check_types(types: str) -> None:
    """Check that types are ``real`` or ``declared``.

    Raises:
        InputError: if they are not.
    """
    if types not in ("real", "declared"):
        raise InputError(f"unknown types {types!r}", code=Code.NO_SUCH_NAME, hint="expected real or declared")


def round_as_declared(types: Inferred) -> Change:
    """Return a `Change` that rounds f64 results to the types of tensors declared as f16 or bf16.

    Args:
        types: the inferred values of the model.
    """

    def change(layer: Layer, inputs: Sequence[Array], outputs: Arrays) -> Arrays:
        return tuple(map(_rounded, layer.output_ports, outputs))

    def _rounded(port: Port, array: Array) -> Array:
        element = types[port].element if port in types else None
        if array.dtype != np.float64 or element not in (ElementType.f16, ElementType.bf16):
            return array
        with np.errstate(over="ignore"):
            return by_blocks(lambda block: block.astype(element.dtype), array.dtype, array)

    return change


def chain_changes(*changes: Change | None) -> Change:
    """Return a `Change` that applies several in order."""
    active = [change for change in changes if change is not None]

    def change(layer: Layer, inputs: Sequence[Array], outputs: Arrays) -> Arrays:
        for each in active:
            outputs = each(layer, inputs, outputs)
        return outputs

    return change


class Recorder:
    """A `Change` that copies tensors and changes nothing.

    Args:
        ports: the tensors to copy.
        into: receives the copies.
    """

    def __init__(self, ports: Iterable[Port], into: MutableMapping[Port, Array] | None = None) -> None:
        self._wanted = set(ports)
        self.tensors: MutableMapping[Port, Array] = tensors() if into is None else into
        """The tensors so far."""

    def __call__(self, layer: Layer, inputs: Sequence[Array], outputs: Arrays) -> Arrays:
        self.record(layer, outputs)
        return outputs

    def record(self, layer: Layer, outputs: Sequence[Array]) -> None:
        """Copy the requested outputs of a layer."""
        for port, array in zip(layer.output_ports, outputs, strict=False):
            if port in self._wanted:
                keep_copy(self.tensors, port, array)


def in_f32(array: Array) -> Array:
    """Convert f16 to f32; return other arrays unchanged."""
    return array.astype(np.float32) if array.dtype == np.float16 else array


def _widen(array: Array) -> Array:
    is_real = array.dtype.name in ("float16", "float32", "float64", "bfloat16")  # f8e5m2 also has kind "f"
    return array.astype(np.float64, copy=False) if is_real else array
