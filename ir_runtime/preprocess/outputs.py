"""From an output of the model to the user's tensor: the steps before a Result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..openvino.layout import Layout
from ..openvino.layout_helpers import get_layout
from ..openvino.node import Output
from .infos import OutputInfo
from .shapes import relayout
from .show import shown_steps, tensor_text
from .step import Context, Planes, Step
from .values import convert_type

__all__ = ["OutputLowering"]


@dataclass
class OutputLowering:
    """An output of the model, and the tensor that the user wants."""

    info: OutputInfo
    context: Context

    @classmethod
    def of(cls, info: OutputInfo) -> OutputLowering:
        """Take what was set, and what the model says."""
        known = info._model._layout
        context = Context(get_layout(info._result.output(0)) if known is None else known)
        context.target_layout = info._tensor._layout or Layout()
        context.target_type = info._tensor._type or context.target_type
        return cls(info, context)

    @property
    def source(self) -> Output:
        """What the Result reads."""
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
        """Yield the text about the output, bit by bit, until a step fails; nothing if nothing is done."""
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
        wanted = self.info._tensor
        return (
            bool(self.info._steps._steps)
            or wanted._type not in (None, output.element_type)
            or wanted._layout not in (None, self.context.layout)
        )

    def _implicit_steps(self, tensor: Output) -> Sequence[Step]:
        """Return the steps that lead to the type and the layout that the user wants, where no step did."""
        wanted, context, steps = self.info._tensor._type, self.context, []
        if wanted is not None and tensor.element_type not in (wanted, tensor.element_type.dynamic):
            steps.append(convert_type(wanted))
        if not context.target_layout.empty and context.target_layout != context.layout:
            steps.append(relayout(context.target_layout))
        return steps
