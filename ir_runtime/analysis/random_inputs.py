"""Random inputs that a model accepts: consistent lengths, valid indices, masks of ones."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ..ir.blocks import filled
from ..ir.element import ElementType
from ..ir.graph import Graph, Layer, Port
from ..ir.tensor import Array, TensorType, Value
from ..ops._define.describe import group
from .constraints.constraint import BudgetExceededError, Dim
from .constraints.feasible_point import find_feasible_point
from .constraints.probing import Budget, DynamicLayers, Probe
from .constraints.symbols import label, role

__all__ = ["RandomInputs", "random_array", "random_inputs"]

# Input ports of operations that take axes: distinct integers, each below the rank.
_AXES = ("axes", "order")

# Budget of queries, and of inferred layers, to find lengths; one query is usually enough.
_QUESTIONS, _EVALUATIONS = 400, 40_000

# Operations that pass on the values of their first input.
_HANDING_ON = ("movement", "shape", "type")


@dataclass(frozen=True)
class RandomInputs:
    """Random inputs, and the choices made for them.

    Args:
        arrays: the generated arrays, by Parameter id.
        choices: the choices as clauses: ``image=[1,3,64,96]``, ``ids below 100``.
    """

    arrays: Mapping[int, Array]
    choices: tuple[str, ...]


def random_inputs(
    graph: Graph,
    values: Mapping[Port, Value],
    parameters: Mapping[int, TensorType],
    given: Collection[int],
    seed: int = 0,
) -> RandomInputs:
    """Return random arrays for the inputs of a model that have no data.

    Dynamic lengths are chosen so that inference accepts them: a batch of one, sequences of 16. Indices are below the length
    of the axis that they select from, sequence lengths are full, and masks are ones.

    Args:
        graph: the graph of the model, in which every input has a rank.
        values: the inferred values.
        parameters: the type of each Parameter, by id.
        given: the ids of the Parameters that have data.
        seed: the seed of the generator; each input of a model has its own sequence.
    """
    lengths, inferred, fits = _lengths(graph, values, parameters, is_single=not given)
    arrays: dict[int, Array] = {}
    choices: list[str] = []
    for layer in graph.of_type("Parameter"):
        if layer.id in given:
            continue
        type = parameters[layer.id]
        shape = tuple(lengths.get(Dim(layer.id, axis), dim.min) for axis, dim in enumerate(type.shape))
        if type.shape.is_dynamic:
            choices.append(f"{label(layer)}=[{','.join(map(str, shape))}]")
        arrays[layer.id], what = _numbers(graph, inferred, layer, type.element, shape, seed)
        if what:
            choices.append(f"{label(layer)} {what}")
    if not fits:
        choices.append("no lengths were found that the model accepts")
    return RandomInputs(arrays, tuple(choices))


def _lengths(
    graph: Graph, values: Mapping[Port, Value], types: Mapping[int, TensorType], is_single: bool
) -> tuple[Mapping[Dim, int], Mapping[Port, Value], bool]:
    """Return consistent lengths for dynamic dims, the values inferred with them, and whether inference accepts them.

    The batch is one with ``is_single``: no input has data whose batch it would have to match.
    """
    probe = Probe(DynamicLayers(graph, values, types), Budget(_QUESTIONS, _EVALUATIONS))
    if not probe.dims:
        return {}, values, True
    roles = {dim: role(graph[dim.layer], types[dim.layer].shape, dim.axis) for dim in probe.dims}
    try:
        feasible = find_feasible_point(probe, roles)
        lengths, fits = dict(feasible.lengths), feasible.answer.accepted is not False
        single = lengths | {dim: max(probe.bounds(dim).min, 1) for dim in probe.dims if roles[dim] == "batch"}
        if is_single and fits and probe.accepts(single):
            lengths = single
        return lengths, {**values, **probe.values(lengths)}, fits
    except BudgetExceededError:
        return {dim: max(probe.bounds(dim).min, 1) for dim in probe.dims}, values, False


def _numbers(
    graph: Graph,
    values: Mapping[Port, Value],
    layer: Layer,
    element: ElementType,
    shape: tuple[int, ...],
    seed: int,
) -> tuple[Array, str]:
    """Return the array for an input, and a description of its values."""
    port, name = Port(layer.id, 0), label(layer).lower()
    if element.integral and not element.is_encoded:
        if "mask" in name and "pad" not in name:
            return np.ones(shape, element.dtype), "all ones"
        bounds = list(_bounds(graph, values, port))
        if bounds and (most := min(bounds))[1]:
            return np.full(shape, most[0], element.dtype), f"all {most[0]}"
        if bounds and element is not ElementType.boolean:
            rng = _generator(graph, port, seed)
            most_number = max(min(most[0], 1 << (element.bitwidth - element.signed)), 1)
            array = filled(shape, element.dtype, lambda count: rng.integers(0, most_number, count))
            return array, f"below {most_number}"
    return random_array(graph, port, element, shape, seed), ""


def _bounds(graph: Graph, values: Mapping[Port, Value], port: Port) -> Iterator[tuple[int, bool]]:
    """Yield limits on an input's integers from its consumers: an exclusive bound and False, or the exact value and True."""
    waiting, seen = [port], {port}
    while waiting:
        for reader in graph.readers(waiting.pop()):
            layer = graph[reader.layer]
            declared = None if layer.op is None else layer.op.port_of(reader.number)
            inputs = [None if source is None else values.get(source) for source in graph.sources(layer)]
            if declared is not None and declared.name == "indices":
                if (length := _selected_length(layer, inputs)) is not None:
                    yield length, False
            elif declared is not None and declared.name in ("sequence_lengths", "seq_lengths"):
                axis = int(vars(layer.op).get("seq_axis", 1))
                if (length := _length(inputs[0], axis)) is not None:
                    yield length, True
            elif reader.number == 0 and group(type(layer.op)) in _HANDING_ON:
                further = [output for output in layer.output_ports if output not in seen]
                seen.update(further)
                waiting += further


def _selected_length(layer: Layer, inputs: list[Value | None]) -> int | None:
    """Return the length of the axis along which indices select; ``None`` if it is unknown."""
    settings = vars(layer.op)
    if layer.type == "OneHot":
        depth = inputs[1]
        return int(depth.data.item()) if depth is not None and depth.data is not None else None
    if layer.type == "GatherND":
        lengths = [_length(inputs[0], axis) for axis in range(int(settings.get("batch_dims", 0)), 8)]
        return min((length for length in lengths if length is not None), default=None)
    axis: object = settings.get("axis")
    place = {"Gather": 2, "ScatterUpdate": 3, "ScatterElementsUpdate": 3}.get(layer.type)
    if axis is None and place is not None:
        value = inputs[place] if len(inputs) > place else None
        axis = None if value is None or value.data is None else int(value.data.reshape(-1)[0])
        if axis is None:
            return None
    return _length(inputs[0], int(str(axis or 0)))


def _length(value: Value | None, axis: int) -> int | None:
    shape = None if value is None else value.shape
    if shape is None or shape.rank is None or not -shape.rank <= axis < shape.rank:
        return None
    return shape[axis].min if shape[axis].is_static else None


def _generator(graph: Graph, port: Port, seed: int) -> np.random.Generator:
    parameters = [layer.id for layer in graph.of_type("Parameter")]
    return np.random.default_rng([seed, parameters.index(port.layer)])


def random_array(
    graph: Graph, port: Port, element: ElementType, shape: tuple[int, ...], seed: int = 0
) -> Array:
    """Return a random array for an input: normally distributed floats, integers 0 and 1, or valid axes.

    Args:
        graph: the graph of the model.
        port: the output of the Parameter.
        element: the element type of the input.
        shape: the shape of the input, which is static.
        seed: the seed of the generator; each input of a model has its own sequence.
    """
    rng = _generator(graph, port, seed)
    if element is ElementType.string:
        return np.full(shape, "text", object)
    if element is ElementType.dynamic:
        return filled(shape, np.dtype(np.float32), rng.standard_normal)
    if element.integral and len(shape) == 1 and _are_axes(graph, port):
        return np.arange(shape[0]).astype(element.dtype)
    if element.real and not element.is_encoded:
        if element is ElementType.f8e8m0:
            return filled(shape, element.dtype, lambda count: np.abs(rng.standard_normal(count)))
        return filled(shape, element.dtype, rng.standard_normal)
    return filled(shape, element.dtype, lambda count: rng.integers(0, 2, count))


def _are_axes(graph: Graph, port: Port) -> bool:
    readers = ((graph[layer].op, number) for layer, number in graph.readers(port))
    ports = (op.port_of(number) for op, number in readers if op is not None)
    return any(declared is not None and declared.name in _AXES for declared in ports)
