"""Methods that change a node: its names, its attributes, and its inputs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from .._util.wrong_arguments import checked
from ..codes import Code
from ..errors import InputError
from ..ir import shape as shapes
from ..ir.element import ElementType
from ..ir.graph import Layer, PortSpec
from ..ir.operation import Operation
from ..ir.tensor import TensorType, Value
from ..ops import find_operation
from .any_value import Entries
from .building.layer import changed, completed, named
from .layers import LayerInfo
from .node_ports import AnyInput, AnyOutput
from .shapes import ShapeLike

__all__ = ["EDITS", "UNKNOWN", "NodeChanges"]

UNKNOWN = Value(TensorType(ElementType.dynamic, shapes.PartialShape.dynamic()))
"""The value of an output before inference."""

_Output = TypeVar("_Output", bound=AnyOutput)
_Input = TypeVar("_Input", bound=AnyInput)


class Edits:
    """Counts changes of nodes, so that models know when the graph that they derived is out of date."""

    count: int = 0

    def next(self) -> int:
        """Count one more, and return the number."""
        self.count += 1
        return self.count


EDITS = Edits()


class NodeChanges(LayerInfo[_Output, _Input]):
    """The changes of a node; models that have it derive their graph again when they need it.

    A layer gets another name, attribute or input; its outputs are inferred again:

    >>> import numpy as np
    >>> from ir_runtime import opset1
    >>> x = opset1.parameter([2, 3], np.float32, name="x")
    >>> node = opset1.reduce_sum(x, np.int64([1]), name="sum")
    >>> node.set_friendly_name("total")
    >>> node.set_attribute("keep_dims", True)
    >>> node.validate_and_infer_types()
    >>> node.friendly_name, node.name.startswith("ReduceSum_"), node.shape
    ('total', True, <Shape: [2,1]>)
    >>> node.set_argument(1, opset1.constant(np.int64([0])).output(0))
    >>> node.validate_and_infer_types()
    >>> node.shape
    <Shape: [1,3]>
    >>> node.set_arguments([x.output(0), opset1.constant(np.int64([0, 1])).output(0)])
    >>> node.constructor_validate_and_infer_types()
    >>> node.shape
    <Shape: [1,1]>
    >>> node.set_output_size(2)
    >>> node.set_output_type(1, ElementType.f16, [5])
    >>> node.output(1).partial_shape
    <PartialShape: [5]>
    """

    layer: Layer

    # Set where it is settled: what it reads, and the values of its outputs.
    _own_sources: list[_Output | None]
    _own_values: tuple[Value, ...]
    _basis: Sequence[object] | None = None
    """What the values follow from, see `_basis_of`; None where that is not known."""
    _given_name: str

    @abstractmethod
    def _edit(self) -> Layer:
        """Prepare for a change, and return the layer as it is."""

    @abstractmethod
    def _update(self) -> None:
        """Infer the outputs from what is read."""

    @abstractmethod
    def _outputs_of(self, value: object) -> list[_Output]:
        """Return the tensors that are read for an argument."""

    @property
    @abstractmethod
    def _sources(self) -> Sequence[_Output | None]:
        """The tensors that are read."""

    @abstractmethod
    def _names_of(self, index: int) -> tuple[str, ...]:
        """Return the names of the tensor of an output."""

    def _rename(self, index: int, names: tuple[str, ...]) -> None:
        """Name a tensor; the own names of a Result are also names of the tensor that it reads."""
        self._edit()
        if self.layer.type != "Result":
            own = (name for target in self._targets(index) for name in target._node._own_names)
            self._set_names(index, tuple(dict.fromkeys((*names, *own))))
            return
        former = self._own_names
        self._set_names(index, names)
        for source in self._sources:
            if source is not None:
                kept = [name for name in source._names if name not in former]
                source._node._rename(source._index, (*kept, *names))

    @property
    def _own_names(self) -> tuple[str, ...]:
        """The names that a Result was given itself; other layers have none."""
        specs = self.layer.inputs[:1] if self.layer.type == "Result" else ()
        return tuple(name for spec in specs for name in spec.names)

    @abstractmethod
    def _targets(self, index: int) -> Iterable[AnyInput]:
        """Yield the inputs that read an output."""

    def _set_names(self, index: int, names: tuple[str, ...]) -> None:
        if self.layer.type == "Result":
            self.layer = replace(self.layer, inputs=named(self.layer.inputs, index, names))
        else:
            self.layer = replace(self.layer, outputs=named(self.layer.outputs, index, names))

    def _operation(self, name: str) -> Operation | None:
        """Return the operation of the layer as it is now, which has that name in its graph."""
        return completed(self.layer) if self.layer.op is None else self.layer.op

    def _basis_of(self, read: Sequence[Value]) -> Sequence[object]:
        """Return what the outputs follow from: the operation, the name that symbols have, and what is read."""
        return self.layer.op, self.layer.name if self.layer.type == "Parameter" else "", *read

    def _set_values(self, values: Sequence[Value], basis: Sequence[object] | None) -> None:
        """Keep what was inferred about the outputs, and from what; their number may have changed."""
        self._own_values, self._basis = tuple(values), basis
        if self.layer.type != "Result" and len(self.layer.outputs) != len(values):
            first = len(self.layer.inputs)
            former = self.layer.outputs[: len(values)]
            more = [PortSpec(first + i) for i in range(len(former), len(values))]
            self.layer = replace(self.layer, outputs=(*former, *more))

    def _replace_rt_info(self, entries: Entries) -> None:
        self.layer = replace(self._edit(), rt_info=entries)

    @property
    def friendly_name(self) -> str:
        """The name of the layer."""
        return self.layer.name

    @friendly_name.setter
    def friendly_name(self, name: str) -> None:
        self.set_friendly_name(name)

    def set_friendly_name(self, name: str) -> None:
        """Give the layer another name."""
        checked(name, str)
        self._edit()
        self.layer = replace(self.layer, name=name, where=replace(self.layer.where, layer=name))

    @property
    def name(self) -> str:
        """The name that the layer was given when it was created."""
        return self._given_name

    def get_name(self) -> str:
        """Return the name that the layer was given when it was created."""
        return self._given_name

    if not TYPE_CHECKING:  # or type checkers would take any name for an attribute

        def __getattr__(self, name: str) -> object:
            """Return what reads or changes an attribute: ``get_axis`` and ``set_axis`` for ``axis``."""
            if name in ("data", "elements"):  # whose properties have raised that there are none
                return self._elements()
            what, _, rest = name.partition("_")
            known = self.get_attributes() if what in ("get", "set") and "layer" in vars(self) else {}
            found = [attribute for attribute in known if attribute.replace("-", "_") == rest]
            if not found:
                return super().__getattr__(name)
            if what == "get":
                return lambda: self.get_attributes()[found[0]]
            return lambda value: self.set_attribute(found[0], value)

    def set_argument(self, index: int, source: _Output) -> None:
        """Let the input ``index`` read the output ``source``; the index after the last adds an input."""
        self._edit()
        if index == len(self._own_sources):
            self._take([*self._own_sources, None])
        self.input(index).replace_source_output(source)

    def set_arguments(self, arguments: Sequence[object]) -> None:
        """Read these tensors only."""
        self._edit()
        sources = [source for argument in arguments for source in self._outputs_of(argument)]
        self._take([None] * len(sources))
        for port, source in zip(self.inputs(), sources, strict=True):
            port.replace_source_output(source)

    def _take(self, sources: Sequence[_Output | None]) -> None:
        """Have as many inputs."""
        self._own_sources = list(sources)
        specs = [*self.layer.inputs, *map(PortSpec, range(len(self.layer.inputs), len(sources)))]
        self.layer = replace(self.layer, inputs=tuple(specs[: len(sources)]))

    def set_attribute(self, name: str, value: object) -> None:
        """Set the attribute ``name`` of the operation to ``value``.

        Raises:
            ValidationError: if it is not allowed.
        """
        self._edit()
        layer = self.layer
        if layer.op is None and find_operation(layer.type, None) is None:
            raise InputError(f"layer {layer.name!r} has no known attributes", code=Code.BAD_REQUEST)
        self.layer = changed(layer, name, value)

    def validate_and_infer_types(self) -> None:
        """Infer the outputs from what is read.

        Raises:
            ValidationError: if the operation refuses its inputs.
        """
        self._edit()
        self._update()

    def constructor_validate_and_infer_types(self) -> None:
        """Infer the outputs from what is read; as `validate_and_infer_types`."""
        self.validate_and_infer_types()

    def set_output_type(self, index: int, element_type: ElementType, shape: ShapeLike) -> None:
        """Set ``element_type`` and ``shape`` of the output ``index``, until types are inferred again."""
        self._edit()
        if index >= len(self._own_values):
            self.set_output_size(index + 1)
        values = list(self._own_values)
        values[index] = Value(TensorType(element_type, shapes.PartialShape(shape)))
        self._own_values, self._basis = tuple(values), None

    def set_output_size(self, size: int) -> None:
        """Have that many outputs; new ones are unknown until types are inferred."""
        self._edit()
        first = len(self.layer.inputs)
        specs = [*self.layer.outputs, *(PortSpec(first + i) for i in range(len(self.layer.outputs), size))]
        self.layer = replace(self.layer, outputs=tuple(specs[:size]))
        more = [UNKNOWN] * (size - len(self._own_values))
        self._own_values, self._basis = (*self._own_values, *more)[:size], None
