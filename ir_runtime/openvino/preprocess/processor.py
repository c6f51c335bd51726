"""Put preprocessing and postprocessing into a model. As OpenVINO's ``PrePostProcessor``."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, TypeVar

from ...codes import Code
from ...errors import InputError, IRError
from ..layout_helpers import get_layout, set_layout
from ..model import Model
from ..node import Input, Node, Output
from .infos import InputInfo, OutputInfo
from .lowering import InputLowering, OutputLowering
from .permutations import refusal

__all__ = ["PrePostProcessor"]

_Info = TypeVar("_Info", InputInfo, OutputInfo)


class PrePostProcessor:
    """Describes the user's tensors, and builds the steps between them and a model into the model.

    >>> from ir_runtime import Layout, Type, read_fragment
    >>> model = read_fragment('<layer id="0" type="ReLU" version="opset1"><input><port id="0" precision="FP32">'
    ...     '<dim>1</dim><dim>3</dim><dim>4</dim><dim>5</dim></port></input><output><port id="1"/></output></layer>')
    >>> ppp = PrePostProcessor(model)
    >>> image = ppp.input().tensor().set_element_type(Type.u8).set_layout(Layout("NHWC"))
    >>> expected = ppp.input().model().set_layout(Layout("NCHW"))
    >>> steps = ppp.input().preprocess().convert_element_type().mean([1, 2, 3])
    >>> ppp.build().input().partial_shape, model.input().element_type
    (<PartialShape: [1,4,5,3]>, <Type: 'uint8_t'>)
    >>> ppp.output().tensor() is ppp.output(0).tensor()
    True
    """

    def __init__(self, model: Model) -> None:
        if not isinstance(model, Model):
            raise TypeError(f"expected a model, got {model!r}; ir_runtime.read_model returns one")
        self._model = model
        if model._added:
            model._settled()  # creates Results for added outputs
        self._inputs = [InputInfo(parameter) for parameter in model.get_parameters()]
        self._outputs = [OutputInfo(result) for result in model.get_results()]

    def input(
        self, key: int | str | None = None, *, tensor_name: str | None = None, input_index: int | None = None
    ) -> InputInfo:
        """Return the information about an input by index or tensor name, or about the only input.

        Args:
            key: the index, or the name of the tensor.
            tensor_name: the name, as a keyword.
            input_index: the index, as a keyword.

        Raises:
            InputError: if there is none, or if no key is given and there are several.
        """
        ports = [info._parameter.output(0) for info in self._inputs]
        return _find(self._inputs, ports, _only(key, tensor_name, input_index), "input")

    def output(
        self, key: int | str | None = None, *, tensor_name: str | None = None, output_index: int | None = None
    ) -> OutputInfo:
        """Return the information about an output by index or tensor name, or about the only output.

        Args:
            key: the index, or the name of the tensor.
            tensor_name: the name, as a keyword.
            output_index: the index, as a keyword.

        Raises:
            InputError: if there is none, or if no key is given and there are several.
        """
        ports = [info._result.output(0) for info in self._outputs]
        return _find(self._outputs, ports, _only(key, tensor_name, output_index), "output")

    def build(self) -> Model:
        """Insert the steps into the model, and return it. If one fails, the model is unchanged.

        Raises:
            InputError: if a step does not fit its tensor, or the result does not fit the model.
            ValidationError: if an operation refuses its inputs.
        """
        model = self._model
        with ExitStack() as undo:
            undo.callback(model._update_nodes)
            if self._build_inputs(undo):
                model.validate_nodes_and_infer_types()
            for info in self._outputs:
                _build_output(info, _is_old(model), undo)
            model.validate_nodes_and_infer_types()
            undo.pop_all()
        return model

    def _build_inputs(self, undo: ExitStack) -> bool:
        """Insert the steps of the inputs, and return whether element types or shapes of the inputs change."""
        former, names = list(self._model.get_parameters()), self._names()
        for info in self._inputs:
            if info._parameter not in former:
                raise refusal(
                    f"{info._parameter.friendly_name!r} is not an input of the model any more",
                    "a PrePostProcessor builds once: create another",
                )
        lowered = [InputLowering.of(info, names) for info in self._inputs]
        tensors = [lowering.lower() for lowering in lowered]
        for info, tensor in zip(self._inputs, tensors, strict=True):
            for target in info._parameter.output(0).target_inputs:
                if target.get_node().get_type_name() == "Result":
                    _redirect(target.get_node(), tensor, target.get_source_output(), undo)
                else:
                    _connect(target, tensor, undo)
        undo.callback(_set_parameters, self._model, former)
        _set_parameters(self._model, [parameter for each in lowered for parameter in each.parameters])
        pairs = zip(self._inputs, tensors, strict=True)
        return any(info._parameter.output(0)._type != tensor._type for info, tensor in pairs)

    def _names(self) -> set[str]:
        """Return the names of all tensors."""
        return {name for node in self._model.get_ops() for port in node.outputs() for name in port.names}

    def __str__(self) -> str:
        """Describe the inputs and outputs that have steps, with the tensor before and after each step."""
        lines: list[str] = []
        try:
            names = self._names()
            for info in self._inputs:
                lines.extend(InputLowering.of(info, names).describe())
            for result in self._outputs:
                lines.extend(OutputLowering.of(result).describe())
        except IRError as reason:
            lines.append(f"\nError occurred: {reason}\n")
        return "".join(lines)

    def __repr__(self) -> str:
        return f"<PrePostProcessor: {self}>"


def _connect(target: Input, tensor: Output, undo: ExitStack) -> None:
    undo.callback(target.replace_source_output, target.get_source_output())
    target.replace_source_output(tensor)


def _set_parameters(model: Model, parameters: Sequence[Node]) -> None:
    names = [parameter.output(0)._names for parameter in parameters]
    for former in model.get_parameters():
        model.remove_parameter(former)
    model.add_parameters(parameters)
    for parameter, own in zip(parameters, names, strict=True):
        parameter.output(0).set_names(own)  # planes have no names unless the user sets them


def _is_old(model: Model) -> bool:
    """Return whether outputs are identified by layer names, as before version 11 of the format."""
    return 0 < model._document.version < 11


def _build_output(info: OutputInfo, keeps_layer_name: bool, undo: ExitStack) -> None:
    result, lowering = info._result, OutputLowering.of(info)
    if info._model._layout is not None:
        undo.callback(set_layout, result.output(0), get_layout(result.output(0)))
        set_layout(result.output(0), info._model._layout)
    tensor, source = lowering.lower(), lowering.source
    if tensor != source:
        _redirect(result, tensor, source, undo)
        _name_layers(tensor, source, keeps_layer_name, undo)
    if not lowering.context.layout.empty:
        set_layout(result.output(0), lowering.context.layout)


def _redirect(result: Node, tensor: Output, source: Output, undo: ExitStack) -> None:
    """Connect a Result to another tensor, which takes over names unless the old one is an input."""
    result._edit()
    names, former = result._own_names, source._names
    is_input = source.node.get_type_name() == "Parameter"
    undo.callback(source.set_names, former)
    _connect(result.input(0), tensor, undo)
    undo.callback(result.output(0).set_names, names)
    if not is_input:
        source.set_names([name for name in former if name not in names])
    result.output(0).set_names([name for name in names if not is_input or name not in former])


def _name_layers(tensor: Output, source: Output, keeps_layer_name: bool, undo: ExitStack) -> None:
    """Give the new layer the name of the old one: indexed, or unchanged in old files."""
    layer = source.node.friendly_name
    if keeps_layer_name and source.node.get_output_size() == 1:
        undo.callback(source.node.set_friendly_name, layer)
        source.node.set_friendly_name(tensor.node.get_name())
        tensor.node.set_friendly_name(layer)
    else:
        tensor.node.set_friendly_name(f"{layer}.{source.index}")


def _only(key: int | str | None, *others: int | str | None) -> int | str | None:
    keys = [value for value in (key, *others) if value is not None]
    if len(keys) > 1:
        raise TypeError(f"expected a name or an index, got {' and '.join(map(repr, keys))}")
    return keys[0] if keys else None


def _find(infos: Sequence[_Info], ports: Sequence[Output], key: Any, what: str) -> _Info:
    """Return the info with an index or name, or the only one."""
    hint = f"it has {', '.join(port.label for port in ports)}" if ports else "it has none"
    if isinstance(key, str):
        matches = [info for info, port in zip(infos, ports, strict=True) if key in port.names]
        if not matches:
            raise InputError(f"the model has no {what} {key!r}", code=Code.NO_SUCH_NAME, hint=hint)
        return matches[0]
    if key is None:
        if len(infos) != 1:
            message = f"the model has {len(infos)} {what}s: say which, by index or name"
            raise InputError(message, code=Code.NO_SUCH_NAME, hint=hint)
        return infos[0]
    index = operator.index(key)
    if index < 0:
        raise TypeError(f"an index must be at least 0, got {index}")
    if index >= len(infos):
        raise InputError(f"the model has no {what} {index}", code=Code.NO_SUCH_NAME, hint=hint)
    return infos[index]
