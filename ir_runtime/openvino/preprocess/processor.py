"""`PrePostProcessor`, which inserts preprocessing and postprocessing steps into a model."""

from __future__ import annotations

import operator
from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, TypeVar

from ...codes import Code
from ...errors import InputError, IRError
from ...ir.dimension import Dimension
from ...ir.element import ElementType
from ...ir.shape import PartialShape
from ..layout import Layout
from ..layout_helpers import get_layout, set_layout
from ..model import Model
from ..node import Input, Node, Output
from .infos import InputInfo, OutputInfo
from .options import ColorFormat, default_layout, plane_count, plane_shape
from .permutations import axis_of, permutation, refusal, squeeze_layout
from .steps import Context, Planes, Step, convert_layout, convert_type, relayout

__all__ = [
    "InputLowering",
    "OutputLowering",
    "PrePostProcessor",
    "shown_steps",
    "tensor_text",
]


# Lowering of steps to nodes: new Parameters followed by steps, and steps before Results.


def tensor_text(tensor: Output, layout: Layout, color: ColorFormat = ColorFormat.UNDEFINED) -> str:
    """Format shape, layout, type and colour format of a tensor."""
    color_text = "" if color is ColorFormat.UNDEFINED else f", {color.label}"
    shown = "<no layout>" if layout.empty else str(layout)
    return f"{tensor.partial_shape}, {shown}, {tensor.element_type.label}{color_text}"


def shown_steps(planes: Planes, steps: Sequence[Step], context: Context) -> Generator[str, None, Planes]:
    """Apply steps, yield the description of the tensor before and after each, and return the final planes."""
    for step in steps:
        yield f"      {step.name}: ({tensor_text(planes[0], context.layout, context.color)}"
        planes = step.apply(planes, context)
        yield f") -> ({tensor_text(planes[0], context.layout, context.color)})\n"
    return planes


_MEMORY = "memory_type"
_MODEL_COLORS = (ColorFormat.RGB, ColorFormat.BGR, ColorFormat.GRAY, ColorFormat.UNDEFINED)


@dataclass
class InputLowering:
    """Lowers the preprocessing steps of an input of the model to operations, on new Parameters that replace it."""

    info: InputInfo
    parameters: tuple[Node, ...]
    context: Context

    @classmethod
    def of(cls, info: InputInfo, names: Collection[str]) -> InputLowering:
        """Create the Parameters. ``names`` are the names of all tensors of the model.

        Raises:
            InputError: if the settings contradict each other or the model.
        """
        model_shape = info._parameter.output(0)._type.shape
        shape, layout, model_layout = _user_tensor(info, model_shape)
        color = info._tensor._color
        shapes = [plane_shape(color, i, shape, layout) for i in range(plane_count(color))]
        parameters = [_parameter(info, plane, layout, names, i) for i, plane in enumerate(shapes)]
        context = Context(layout, model_layout, info._parameter.get_element_type(), model_shape, color)
        return cls(info, tuple(parameters), context)

    @property
    def planes(self) -> Planes:
        """The tensors of the new Parameters."""
        return tuple(parameter.output(0) for parameter in self.parameters)

    def lower(self) -> Output:
        """Create the operations of all steps, and return the preprocessed tensor.

        Raises:
            InputError: if a step does not fit its tensor, or the result does not fit the model.
        """
        planes, context = self.planes, self.context
        for step in self.info._steps._steps:
            planes = step.apply(planes, context)
        name, color = self.info._parameter.friendly_name, context.color
        if len(planes) > 1 or color not in _MODEL_COLORS:
            raise refusal(
                f"input {name!r} of the model must be RGB, BGR or GRAY, got {color.label}",
                "add convert_color",
            )
        for step in _implicit_steps(planes[0], context):
            planes = step.apply(planes, context)
        if not planes[0]._type.shape.compatible(context.model_shape):
            raise refusal(
                f"after its steps the tensor for input {name!r} has shape {planes[0]._type.shape}, "
                f"but the model expects {context.model_shape}",
                "see print(ppp) for the shape after each step",
            )
        return planes[0]

    def describe(self) -> Iterator[str]:
        """Yield the description of the input piece by piece, up to a step that fails; nothing if the input is unchanged."""
        if not self._is_changed():
            return
        yield from self._head()
        planes, context = self.planes, self.context
        steps = self.info._steps._steps
        if steps:
            yield f"    Pre-processing steps ({len(steps)}):\n"
        planes = yield from shown_steps(planes, steps, context)
        implicit = _implicit_steps(planes[0], context)
        if implicit:
            yield f"    Implicit pre-processing steps ({len(implicit)}):\n"
        yield from shown_steps(planes, implicit, context)

    def _is_changed(self) -> bool:
        tensor, context, former = self.planes[0], self.context, self.info._parameter
        return (
            len(self.parameters) > 1
            or tensor._type.shape != context.model_shape
            or tensor.element_type != context.target_type
            or get_layout(former.output(0)) != context.target_layout
            or self.info._tensor._memory is not None
            or bool(self.info._steps._steps)
        )

    def _head(self) -> Iterator[str]:
        context, former = self.context, self.info._parameter.output(0)
        yield "Input " + (f'"{former.any_name}"' if former.names else "")
        if context.color is not ColorFormat.UNDEFINED:
            yield f" (color {context.color.label})"
        if self.info._tensor._memory is not None:
            yield f" memory type={self.info._tensor._memory}"
        yield ":\n"
        if len(self.planes) == 1:
            yield f"    User's input tensor: {tensor_text(self.planes[0], context.layout)}\n"
        else:
            yield f"    {len(self.planes)} user's tensors expected for each plane:\n"
        for index, plane in enumerate(self.planes if len(self.planes) > 1 else ()):
            name = f"{plane.any_name} " if plane.names else ""
            yield f"       {index}: {name}{tensor_text(plane, context.layout)}\n"
        yield f"    Model's expected tensor: {tensor_text(former, context.target_layout)}\n"


def _implicit_steps(tensor: Output, context: Context) -> Sequence[Step]:
    """Return the steps that are still needed to reach the layout and element type of the model."""
    steps = []
    if tensor.element_type is not context.target_type:
        steps.append(convert_type(context.target_type))
    if not context.target_layout.empty and context.target_layout != context.layout:
        steps.append(convert_layout(context.target_layout))
    return steps


def _user_tensor(info: InputInfo, model_shape: PartialShape) -> tuple[PartialShape, Layout, Layout]:
    """Return the shape and layout of the user's tensor, and the layout of the model's."""
    tensor, steps = info._tensor, info._steps
    layout = default_layout(tensor._color) if tensor._layout is None else tensor._layout
    model_layout = (
        get_layout(info._parameter.output(0)) if info._model._layout is None else info._model._layout
    )
    if model_layout.empty and tensor._layout is not None:
        model_layout = steps._layout_after(layout)
    if layout.empty or model_layout.empty or layout == model_layout:
        shape, former = steps._undo_steps(tensor._shape or model_shape, model_layout)
        layout = former if layout.empty else layout
    else:
        shape, narrowed = squeeze_layout(model_layout, model_shape, layout)
        order = permutation(narrowed, shape, layout)
        if order and shape.rank is not None:
            shape = PartialShape([shape[i] for i in order])
    if tensor._shape is not None:
        shape = tensor._shape
    elif tensor._size is not None:
        axes = [axis_of(layout, name, shape) for name in ("height", "width")]
        shape = shape.replace({axis: Dimension(n) for axis, n in zip(axes, tensor._size, strict=True)})
    return shape, layout, model_layout


def _parameter(
    info: InputInfo, shape: PartialShape, layout: Layout, names: Collection[str], plane: int
) -> Node:
    tensor, former = info._tensor, info._parameter
    element: ElementType = tensor._type or former.get_element_type()
    parameter = Node.create("Parameter", 1, (), {"element_type": element, "shape": shape})
    if tensor._plane_names:
        suffix = f"/{tensor._plane_names[plane]}"
        _check_new(own := [f"{name}{suffix}" for name in former.output(0).names], names)
        parameter.output(0).set_names(set(own))
        parameter.set_friendly_name(f"{former.friendly_name}{suffix}")
    elif plane_count(tensor._color) == 1:
        parameter.output(0).set_names(former.output(0).names)
        parameter.set_friendly_name(former.friendly_name)
    _inform(parameter, former, tensor._memory)
    if not layout.empty:
        set_layout(parameter.output(0), layout)
    return parameter


def _inform(parameter: Node, former: Node, memory: str | None) -> None:
    """Copy the runtime information of the former Parameter, and add the memory type."""
    info = {
        key: entry for key, entry in former.output(0)._entries().items() if memory is None or key != _MEMORY
    }
    if memory:
        info[_MEMORY] = {"version": "0", "value": memory}
    parameter._replace_rt_info(dict(former._entries()))
    parameter.output(0)._replace_rt_info(info)


def _check_new(names: Collection[str], existing: Collection[str]) -> None:
    for name in names:
        if name in existing:
            raise refusal(
                f"the input of a plane cannot be named {name!r}: another tensor has that name",
                "give set_color_format another name",
            )


@dataclass
class OutputLowering:
    """Lowers the postprocessing steps of an output of the model to operations, or describes them."""

    info: OutputInfo
    context: Context

    @classmethod
    def of(cls, info: OutputInfo) -> OutputLowering:
        """Combine the user's description with the layout in the model."""
        layout = info._model._layout
        context = Context(get_layout(info._result.output(0)) if layout is None else layout)
        context.target_layout = info._tensor._layout or Layout()
        context.target_type = info._tensor._type or context.target_type
        return cls(info, context)

    @property
    def source(self) -> Output:
        """The operand of the Result."""
        return self.info._result.input_value(0)

    def lower(self) -> Output:
        """Create the operations of all steps, and return the user's tensor.

        Raises:
            InputError: if a step does not fit its tensor.
        """
        planes: Planes = (self.source,)
        context = self.context
        for step in self.info._steps._steps:
            planes = step.apply(planes, context)
        for step in self._implicit_steps(planes[0]):
            planes = step.apply(planes, context)
        return planes[0]

    def describe(self) -> Iterator[str]:
        """Yield the description of the output piece by piece, up to a step that fails; nothing if the output is unchanged."""
        steps, output = self.info._steps._steps, self.info._result.output(0)
        if not self._is_changed(output):
            return
        context = self.context
        yield "Output " + (f'"{", ".join(sorted(output.names))}"' if output.names else "") + ":\n"
        yield f"    Model's data tensor: {tensor_text(output, context.layout)}\n"
        if steps:
            yield f"    Post-processing steps ({len(steps)}):\n"
        planes = yield from shown_steps((self.source,), steps, context)
        implicit = self._implicit_steps(planes[0])
        if implicit:
            yield f"    Post-processing implicit steps ({len(implicit)}):\n"
        planes = yield from shown_steps(planes, implicit, context)
        yield f"    User's output tensor: {tensor_text(planes[0], context.layout)}\n"

    def _is_changed(self, output: Output) -> bool:
        target = self.info._tensor
        return (
            bool(self.info._steps._steps)
            or target._type not in (None, output.element_type)
            or target._layout not in (None, self.context.layout)
        )

    def _implicit_steps(self, tensor: Output) -> Sequence[Step]:
        """Return the steps that are still needed to reach the element type and layout of the user's tensor."""
        target, context, steps = self.info._tensor._type, self.context, []
        if target is not None and tensor.element_type not in (target, tensor.element_type.dynamic):
            steps.append(convert_type(target))
        if not context.target_layout.empty and context.target_layout != context.layout:
            steps.append(relayout(context.target_layout))
        return steps


_Info = TypeVar("_Info", InputInfo, OutputInfo)


class PrePostProcessor:
    """Collects descriptions of the user's tensors, and inserts the steps between them and a model into the model.

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
            model._editable_members()  # for its effect: creates Results for added outputs
        self._inputs = [InputInfo(parameter) for parameter in model.get_parameters()]
        self._outputs = [OutputInfo(result) for result in model.get_results()]

    def input(
        self, key: int | str | None = None, *, tensor_name: str | None = None, input_index: int | None = None
    ) -> InputInfo:
        """Return the description of an input by index or tensor name, or of the only input.

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
        """Return the description of an output by index or tensor name, or of the only output.

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
            ValidationError: if the operands of an operation are invalid.
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
        """Insert the steps of the inputs, and return whether the element type or shape of an input changes."""
        former, names = list(self._model.get_parameters()), self._names()
        for info in self._inputs:
            if info._parameter not in former:
                raise refusal(
                    f"{info._parameter.friendly_name!r} is not an input of the model any more",
                    "a PrePostProcessor builds once: create another",
                )
        lowerings = [InputLowering.of(info, names) for info in self._inputs]
        tensors = [lowering.lower() for lowering in lowerings]
        for info, tensor in zip(self._inputs, tensors, strict=True):
            for target in info._parameter.output(0).target_inputs:
                if target.get_node().get_type_name() == "Result":
                    _redirect(target.get_node(), tensor, target.get_source_output(), undo)
                else:
                    _connect(target, tensor, undo)
        undo.callback(_set_parameters, self._model, former)
        _set_parameters(
            self._model, [parameter for lowering in lowerings for parameter in lowering.parameters]
        )
        pairs = zip(self._inputs, tensors, strict=True)
        return any(info._parameter.output(0)._type != tensor._type for info, tensor in pairs)

    def _names(self) -> set[str]:
        """Return the names of all tensors."""
        return {name for node in self._model.get_ops() for port in node.outputs() for name in port.names}

    def __str__(self) -> str:
        """Return a description of the changed inputs and outputs, with the tensor before and after each step."""
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
        parameter.output(0).set_names(own)  # separate planes have no names unless the user sets them


def _is_old(model: Model) -> bool:
    """Return whether outputs are identified by layer name, as in IR versions before 11."""
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
    """Connect a Result to another tensor, which takes over the names of ``source`` unless that is an input."""
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
    """Name the layer of ``tensor`` after that of ``source``, followed by the output index.

    With ``keeps_layer_name``, as in old IR versions, a layer with one output instead leaves its name to the new layer, and
    gets another.
    """
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
    """Return the description with an index or tensor name, or the only one."""
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
