"""Lower the steps to nodes: new Parameters with steps after them, and steps before Results."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Sequence
from dataclasses import dataclass

from ...ir.dimension import Dimension
from ...ir.element import ElementType
from ...ir.shape import PartialShape
from ..layout import Layout
from ..layout_helpers import get_layout, set_layout
from ..node import Node, Output
from .infos import InputInfo, OutputInfo
from .options import ColorFormat, default_layout, plane_count, plane_shape
from .permutations import axis_of, permutation, refusal, squeezed
from .steps import Context, Planes, Step, convert_layout, convert_type, relayout

__all__ = ["InputLowering", "OutputLowering", "shown_steps", "tensor_text"]


def tensor_text(tensor: Output, layout: Layout, color: ColorFormat = ColorFormat.UNDEFINED) -> str:
    """Format shape, layout, type and colour format of a tensor."""
    color_text = "" if color is ColorFormat.UNDEFINED else f", {color.label}"
    shown = "<no layout>" if layout.empty else str(layout)
    return f"{tensor.partial_shape}, {shown}, {tensor.element_type.label}{color_text}"


def shown_steps(planes: Planes, steps: Sequence[Step], context: Context) -> Generator[str, None, Planes]:
    """Apply steps, yield the tensor before and after each, and return the last."""
    for step in steps:
        yield f"      {step.name}: ({tensor_text(planes[0], context.layout, context.color)}"
        planes = step.apply(planes, context)
        yield f") -> ({tensor_text(planes[0], context.layout, context.color)})\n"
    return planes


_MEMORY = "memory_type"
_MODEL_COLORS = (ColorFormat.RGB, ColorFormat.BGR, ColorFormat.GRAY, ColorFormat.UNDEFINED)


@dataclass
class InputLowering:
    """New Parameters that replace one, and their preprocessing."""

    info: InputInfo
    parameters: tuple[Node, ...]
    context: Context

    @classmethod
    def of(cls, info: InputInfo, names: Collection[str]) -> InputLowering:
        """Create the Parameters; ``names`` are those of all tensors of the model.

        Raises:
            InputError: if the settings contradict each other or the model.
        """
        model_shape = info._parameter.output(0)._type.shape
        shape, layout, model_layout = _expected_tensor(info, model_shape)
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
        """Create the operations of all steps, and return the tensor for the model.

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
        """Yield the description of the input in pieces, until a step fails; nothing if the input is unchanged."""
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
    """Return the remaining steps to the element type and layout of the model."""
    steps = []
    if tensor.element_type is not context.target_type:
        steps.append(convert_type(context.target_type))
    if not context.target_layout.empty and context.target_layout != context.layout:
        steps.append(convert_layout(context.target_layout))
    return steps


def _expected_tensor(info: InputInfo, model_shape: PartialShape) -> tuple[PartialShape, Layout, Layout]:
    """Return shape and layout of the user's tensor, and the layout of the model."""
    tensor, steps = info._tensor, info._steps
    layout = default_layout(tensor._color) if tensor._layout is None else tensor._layout
    model_layout = (
        get_layout(info._parameter.output(0)) if info._model._layout is None else info._model._layout
    )
    if model_layout.empty and tensor._layout is not None:
        model_layout = steps._layout_after(layout)
    if layout.empty or model_layout.empty or layout == model_layout:
        shape, former = steps._before(tensor._shape or model_shape, model_layout)
        layout = former if layout.empty else layout
    else:
        shape, narrowed = squeezed(model_layout, model_shape, layout)
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
    """Copy the runtime information of the old Parameter to the new one, and add the memory type."""
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
    """An output of the model, and its postprocessing."""

    info: OutputInfo
    context: Context

    @classmethod
    def of(cls, info: OutputInfo) -> OutputLowering:
        """Combine the settings with what the model states."""
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
        """Yield the description of the output in pieces, until a step fails; nothing if the output is unchanged."""
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
        """Return the remaining steps to the element type and layout of the user's tensor."""
        target, context, steps = self.info._tensor._type, self.context, []
        if target is not None and tensor.element_type not in (target, tensor.element_type.dynamic):
            steps.append(convert_type(target))
        if not context.target_layout.empty and context.target_layout != context.layout:
            steps.append(relayout(context.target_layout))
        return steps
