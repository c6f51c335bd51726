"""Convert a model with variables to a stateless one, whose variables are inputs and outputs.

A part of a model may read a variable without writing it. Other runtimes refuse such a part and lose the
initial value, so parts are cut out of the stateless model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..codes import Code
from ..errors import InputError
from ..ir.graph import Layer
from ..ir.tensor import Array
from ..openvino.build.ends import Assign, Parameter, ReadValue, Result
from ..openvino.feeding import bind
from ..openvino.model import Model
from ..openvino.names import unknown_name
from .reference import Reference

__all__ = ["stateless", "step_of"]


def step_of(
    model: Model, feeds: Sequence[Array], states: Mapping[str, object] | None = None
) -> tuple[Model, list[Array]]:
    """Return a model whose variables are inputs and outputs, and an array for each of its inputs.

    Args:
        model: the model; it is not changed, and returned itself if it has no variables.
        feeds: an array for each of its inputs.
        states: values of variables before the step, by id; by default their initial values.

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
    """Return a model whose variables are inputs and outputs, after its own, and the ids of these inputs.

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
    """Return the initial values of the variables for some inputs."""
    initial: dict[str, Array] = {}

    def note(layer: Layer, inputs: Sequence[Array], outputs: tuple[Array, ...]) -> tuple[Array, ...]:
        if layer.type == "ReadValue":
            initial.setdefault(layer.attributes["variable_id"], np.array(outputs[0]))
        return outputs

    Reference(model).run(feeds, note)
    return initial
