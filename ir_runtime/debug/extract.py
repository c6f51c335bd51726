"""Extract a part of a model, or one step of a model with variables, with values for its inputs.

A part may read a variable without writing it. Other runtimes refuse such a model and lose the initial value, so parts
are cut out of the stateless model, which has inputs and outputs in place of variables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ..analysis.infer import Inferred
from ..codes import Code
from ..diagnostics import Diagnostics
from ..errors import InputError
from ..ir.graph import Edge, Graph, Layer, Port, PortSpec
from ..ir.tensor import Array, TensorType
from ..openvino.build.ends import Assign, Parameter, ReadValue, Result
from ..openvino.feeding import bind
from ..openvino.model import Model
from ..openvino.names import find_ports, unknown_name
from ..ops import registry
from .reference import Recorder, Reference
from .tensors import Names, name_of

__all__ = ["cut", "extract", "inputs_of", "stateless", "step_of"]


def extract(
    model: Model, outputs: Names, inputs: Names = (), feeds: object = None
) -> tuple[Model, list[Array]]:
    """Extract the part of a model between given tensors.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import debug, opset1
    >>> x = opset1.parameter([2], np.float32, name="x")
    >>> model = ov.Model([opset1.exp(x, name="y")], [x])
    >>> inputs = [np.array([0, 1], np.float32)]
    >>> part, fed = debug.extract(model, ["y"])
    >>> [port.get_any_name() for port in part.inputs], fed
    (['x'], [])

    Args:
        model: the model; it is not changed.
        outputs: the tensors that become outputs: layer names, tensor names, globs or (layer name, output).
        inputs: the tensors that become inputs, likewise; other inputs of the model are kept if needed.
        feeds: inputs of the whole model, as for a compiled model.

    Returns:
        the part, and an array for each of its inputs, computed by the reference; no arrays without ``feeds``.

    Raises:
        InputError: if a name is unknown.
    """
    reference = Reference(model)
    starts = find_ports(reference.graph, _list_selectors(inputs))
    part = cut(model, starts, find_ports(reference.graph, _list_selectors(outputs)))
    if feeds is None:
        return part, []
    return part, inputs_of(part, starts, reference, reference.feeds(feeds))


def _list_selectors(selectors: Names) -> list[str | tuple[str, int] | Port]:
    return [selectors] if isinstance(selectors, str) else list(selectors)


def inputs_of(
    part: Model, starts: Sequence[Port], reference: Reference, feeds: Sequence[Array]
) -> list[Array]:
    """Compute an array for each input of a part made by `cut`, by running the whole model.

    Args:
        part: the part.
        starts: the ports that became inputs; these come before original inputs.
        reference: the reference of the whole model.
        feeds: an array for each input of the whole model.
    """
    feeds_by_layer = {
        layer.id: feed for layer, feed in zip(reference.graph.of_type("Parameter"), feeds, strict=True)
    }
    names = {reference.graph[layer].name: feed for layer, feed in feeds_by_layer.items()}
    recorder = Recorder(starts)
    if any(port.layer not in feeds_by_layer for port in starts):
        reference.run(feeds, recorder)
    first = [
        recorder.tensors[port] if port in recorder.tensors else feeds_by_layer[port.layer] for port in starts
    ]
    return [*first, *(names[node.friendly_name] for node in part.parameters[len(starts) :])]


def cut(model: Model, starts: Sequence[Port], ends: Sequence[Port]) -> Model:
    """Return the layers between given ports as a new model.

    Args:
        model: the model.
        starts: the ports that become inputs, with the names of their tensors.
        ends: the ports that become outputs.
    """
    runnable = model._runnable()
    graph, values = runnable._graph, runnable._values
    layers_between = _between(graph, starts, ends)
    number = max(graph.layers) + 1
    inputs = {
        port: _parameter(graph, port, values[port].type, number + index) for index, port in enumerate(starts)
    }
    results = [_result(graph, port, number + len(inputs) + index) for index, port in enumerate(ends)]
    inner = [_drop_types(layer, values) for layer in graph.layers.values() if layer.id in layers_between]
    layers = [*inputs.values(), *inner, *results]
    moved = {port: Port(layer.id, 0) for port, layer in inputs.items()}
    edges = [
        Edge(moved.get(edge.source, edge.source), edge.target)
        for edge in graph.edges
        if edge.target.layer in layers_between
        and (edge.source in moved or edge.source.layer in layers_between)
    ]
    edges += [
        Edge(moved.get(port, port), Port(layer.id, 0)) for port, layer in zip(ends, results, strict=True)
    ]
    document = replace(model._document, graph=Graph(layers, edges))
    return Model._read(document, Diagnostics())


def _between(graph: Graph, starts: Sequence[Port], ends: Sequence[Port]) -> set[int]:
    layers_between = {port.layer for port in ends if port not in starts}
    waiting = list(layers_between)
    while waiting:
        for source in graph.reads(graph[waiting.pop()]):
            if source not in starts and source.layer not in layers_between:
                layers_between.add(source.layer)
                waiting.append(source.layer)
    return layers_between


def _parameter(graph: Graph, port: Port, type: TensorType, number: int) -> Layer:
    attributes = {"element_type": type.element, "shape": type.shape}
    return _end(graph, port, number, "Parameter", name_of(graph, port), attributes, (), (PortSpec(0, type),))


def _result(graph: Graph, port: Port, number: int) -> Layer:
    name = f"{name_of(graph, port)}/result"
    return _end(graph, port, number, "Result", name, {}, (PortSpec(0),), ())


def _end(
    graph: Graph,
    port: Port,
    number: int,
    type: str,
    name: str,
    attributes: Mapping[str, object],
    inputs: tuple[PortSpec, ...],
    outputs: tuple[PortSpec, ...],
) -> Layer:
    op = registry.require(type)(**attributes)
    return Layer.inserted(number, name, op, graph[port.layer].where, inputs, outputs)


def _drop_types(layer: Layer, values: Inferred) -> Layer:
    """Remove the declared output types of a layer, which reshaping may invalidate; reshape an input to its inferred shape."""
    if layer.type == "Parameter" and layer.op is not None:
        type = values[Port(layer.id, 0)].type
        spec = replace(layer.outputs[0], type=type)
        return replace(layer, op=layer.op.replace(shape=type.shape), outputs=(spec,))
    if layer.type == "Constant":
        return layer
    return replace(layer, outputs=tuple(replace(spec, type=None) for spec in layer.outputs))


def step_of(
    model: Model, feeds: Sequence[Array], states: Mapping[str, object] | None = None
) -> tuple[Model, list[Array]]:
    """Convert one step of a model with variables to a stateless model; also return an array for each of its inputs.

    Args:
        model: the model; it is not changed, and it is returned as is if it has no variables.
        feeds: an array for each input of the model.
        states: values of variables before the run, by id; by default their initial values.

    Raises:
        InputError: if a variable is unknown, or an array does not fit it.
    """
    known_ids = [variable.info.variable_id for variable in model.get_variables()]
    for name in states or {}:
        if name not in known_ids:
            raise (
                unknown_name("variable", name, known_ids)
                if known_ids
                else InputError(f"the model has no variables, and so no {name!r}", code=Code.NO_SUCH_NAME)
            )
    if not known_ids:
        return model, list(feeds)
    step, state_ids = stateless(model)
    values = {**_initial(model, feeds), **(states or {})}
    return step, [*feeds, *bind(step.inputs[len(feeds) :], [np.asarray(values[id]) for id in state_ids])]


def stateless(model: Model) -> tuple[Model, list[str]]:
    """Turn variables into additional inputs and outputs, after the original ones; also return their variable ids.

    Args:
        model: the model; it is not changed.
    """
    step = model.clone()
    parameters: dict[str, Parameter] = {}
    for node in step.get_ops():
        if isinstance(node, ReadValue) and (id := node.get_variable_id()) not in parameters:
            parameters[id] = Parameter(node.get_output_element_type(0), node.get_output_partial_shape(0))
            parameters[id].set_friendly_name(id)
            parameters[id].output(0).set_names({id})
    for node in list(step.get_ops()):
        if isinstance(node, ReadValue):
            node.output(0).replace(parameters[node.get_variable_id()].output(0))
    for node in list(step.sinks):
        if isinstance(node, Assign):
            result = Result.with_names(node.input_value(0))
            result.set_friendly_name(f"{node.get_variable_id()} after the step")
            step.remove_sink(node)
            step.add_results([result])
    step.add_parameters(list(parameters.values()))
    for variable in list(step.get_variables()):
        step.remove_variable(variable)
    step.validate_nodes_and_infer_types()
    return step, list(parameters)


def _initial(model: Model, feeds: Sequence[Array]) -> dict[str, Array]:
    """Compute the initial values of variables, which may depend on the inputs."""
    initial: dict[str, Array] = {}

    def note(layer: Layer, inputs: Sequence[Array], outputs: tuple[Array, ...]) -> tuple[Array, ...]:
        if layer.type == "ReadValue":
            initial.setdefault(layer.attributes["variable_id"], np.array(outputs[0]))
        return outputs

    Reference(model).run(feeds, note)
    return initial
