"""Replacement of a layer by other operations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from ...codes import Code
from ...errors import ValidationError
from ...ir.element import ElementType
from ...ir.graph import Edge, Layer, Port, PortSpec
from ...ir.shape import PartialShape
from ...ir.signature import port_at
from ...ir.tensor import TensorType
from ...ops import Op, registry
from ...ops._define.attributes import attribute_text

__all__ = ["Rebuilt", "Replacement", "Tensor", "Unused"]

f32, i64 = ElementType.f32, ElementType.i64


class Tensor(NamedTuple):
    """A tensor of the new graph: an input of the replaced layer, or the output of an added operation."""

    port: Port | None
    """Its port in the new graph; ``None`` for an input without an edge."""
    element: ElementType = ElementType.dynamic
    spec: PortSpec | None = None
    """The input port of the replaced layer, for an input."""
    is_severed: bool = False
    """Whether a bad edge to the input has been reported, so that its absence is not reported again."""


class Draft(NamedTuple):
    """An operation added to replace a layer, before it becomes a layer."""

    id: int
    name: str
    op: Op
    inputs: tuple[Tensor, ...]
    elements: tuple[ElementType, ...]


@dataclass(slots=True)
class Unused:
    """Generates unused layer ids and names."""

    ids: Iterator[int]
    """The next unused ids."""
    names: set[str]
    """Names already in use."""
    numbers: dict[str, int] = field(default_factory=dict, kw_only=True)
    """The last suffix used for each repeated name."""

    def new_id(self) -> int:
        """Return an unused id."""
        return next(self.ids)

    def new_name(self, requested: str) -> str:
        """Return an unused name: the requested one, with a number if it is taken."""
        name, number = requested, self.numbers.get(requested, 1)
        while name in self.names:
            number += 1
            name = f"{requested}_{number}"
        self.numbers[requested] = number
        self.names.add(name)
        return name


@dataclass(slots=True)
class Replacement:
    """The operations that replace a layer."""

    layer: Layer
    """The layer as read from the file."""
    inputs: tuple[Tensor, ...]
    net: Unused
    drafts: list[Draft] = field(default_factory=list, kw_only=True)
    main: Tensor | None = field(default=None, kw_only=True)
    """The tensor whose operation keeps the name of the layer; by default the first output."""

    def refuse(self, message: str, code: str = Code.CONTRADICTION, hint: str = "") -> NoReturn:
        """Raise a ValidationError with the reason why the layer cannot be replaced."""
        raise ValidationError(message, code=code, hint=hint)

    def op(self, versioned_name: str, *inputs: Tensor, **attributes: Any) -> Tensor:
        """Add an operation, and return its first output."""
        return self.ops(versioned_name, inputs, 1, **attributes)[0]

    def ops(
        self, versioned_name: str, inputs: Sequence[Tensor], outputs: int, **attributes: Any
    ) -> tuple[Tensor, ...]:
        """Add an operation by its versioned name and attributes, and return its ``outputs``, a number of tensors.

        Raises:
            ValidationError: if an attribute is not allowed.
        """
        name, _, version = versioned_name.rpartition("-")
        cls = registry.resolve(name, int(version))
        assert cls is not None, versioned_name
        return self.add(cls(**attributes), inputs, outputs)

    def add(
        self, op: Op, inputs: Sequence[Tensor] = (), outputs: int = 1, name: str = ""
    ) -> tuple[Tensor, ...]:
        """Add an operation with a number of ``outputs``, and return these.

        The name of the layer is that of the replaced layer, followed by ``name`` or else the operation.
        """
        number = self.net.new_id()
        full_name = self.net.new_name(f"{self.layer.name}/{name or op.name.lower()}")
        elements = tuple(_element(op, index, inputs) for index in range(outputs))
        self.drafts.append(Draft(number, full_name, op, tuple(inputs), elements))
        return tuple(Tensor(Port(number, index), element) for index, element in enumerate(elements))

    def constant(self, values: ArrayLike, element: ElementType = i64, name: str = "") -> Tensor:
        """Add a constant, and return its output.

        Raises:
            ValidationError: if a value does not fit the element type.
        """
        try:
            with np.errstate(over="ignore"):
                array = np.asarray(values, element.dtype)
        except (OverflowError, ValueError):
            self.refuse(f"an attribute has a value that {element.label} cannot represent", Code.BAD_ATTRIBUTE)
        cls = registry.require("Constant")
        # Offset and size are 0, as the value is not in the .bin.
        op = cls(element_type=element, shape=PartialShape(array.shape), offset=0, size=0, value=array)
        return self.add(op, name=name or "constant")[0]

    def number(self, value: float, like: Tensor) -> Tensor:
        """Add a scalar constant with the element type of a tensor, f32 if that is unknown."""
        return self.constant(value, f32 if like.element is ElementType.dynamic else like.element)

    def convert(self, tensor: Tensor, element: ElementType) -> Tensor:
        """Return a tensor converted to an element type, or unchanged if it has that type."""
        if tensor.element is element:
            return tensor
        return self.op("Convert-1", tensor, destination_type=element)

    def scalar(self, tensor: Tensor) -> Tensor:
        """Return a tensor of one element reshaped to a scalar."""
        return self.op("Reshape-1", tensor, self.constant([], i64), special_zero=False)

    def reshape(self, tensor: Tensor, dims: Sequence[int], keep: bool = True) -> Tensor:
        """Return a reshaped tensor; in ``dims``, -1 is inferred, and 0 keeps a dim unless ``keep`` is false."""
        return self.op("Reshape-1", tensor, self.constant(list(dims), i64, "shape"), special_zero=keep)

    def lengths(self, tensor: Tensor, axes: Sequence[int]) -> Tensor:
        """Return the lengths of axes of a tensor, by ShapeOf and Gather."""
        shape = self.op("ShapeOf-3", tensor, output_type=i64)
        return self.op("Gather-1", shape, self.constant(list(axes)), self.constant(0))

    def identity(self, tensor: Tensor) -> Tensor:
        """Return a tensor unchanged, through an added operation that can have the name of the layer."""
        return self.op("Concat-1", tensor, axis=0)

    def finish(self, outputs: Sequence[Tensor]) -> Rebuilt:
        """Return the layers that replace the layer; one of them has its id, name and output ports."""
        own = {draft.id for draft in self.drafts}
        outputs = [t if t.port and t.port.layer in own else self.identity(t) for t in outputs]
        main = self.main or (outputs[0] if outputs else Tensor(Port(self.drafts[-1].id, 0)))
        assert main.port is not None
        renamed = main.port.layer

        def move(port: Port) -> Port:
            return Port(self.layer.id, port.number) if port.layer == renamed else port

        declared = {
            tensor.port: spec
            for tensor, spec in zip(outputs, self.layer.outputs, strict=False)
            if tensor.port
        }
        layers, edges, severed = [], [], []
        for draft in self.drafts:
            number, name = (self.layer.id, self.layer.name) if draft.id == renamed else (draft.id, draft.name)
            specs = tuple(
                _output_spec(declared.get(Port(draft.id, index)), len(draft.inputs) + index, element)
                for index, element in enumerate(draft.elements)
            )
            ports = _input_specs(draft.inputs)
            layer = replace(
                Layer.inserted(number, name, draft.op, self.layer.where, ports, specs),
                attributes=_texts(draft.op),
            )
            layers.append(_drop_operation(layer) if _lacks_value(draft.op) else layer)
            for index, tensor in enumerate(draft.inputs):
                target = Port(number, index)
                if tensor.port is not None:
                    edges.append(Edge(move(tensor.port), target))
                elif tensor.is_severed:
                    severed.append(target)
        results = [t if t.port is None else t._replace(port=move(t.port)) for t in outputs]
        return Rebuilt(layers, edges, severed, results)


class Rebuilt(NamedTuple):
    """The layers that replace a layer."""

    layers: list[Layer]
    edges: list[Edge]
    severed: list[Port]
    """Inputs whose edges are missing due to errors that have been reported."""
    outputs: list[Tensor]
    """Replacements for the outputs of the layer."""


def _element(op: Op, index: int, inputs: Sequence[Tensor]) -> ElementType:
    """Return the element type of an output; dynamic if the inputs do not determine it."""
    port = op.outputs[min(index, len(op.outputs) - 1)]
    if isinstance(port.element, ElementType):
        return port.element
    if isinstance(port.element, str):
        element: ElementType = vars(op)[port.element]
        return element
    for place, tensor in enumerate(inputs):
        declared = port_at(op.inputs, place)
        if (
            declared is not None
            and declared.element == port.element
            and tensor.element is not ElementType.dynamic
        ):
            return tensor.element
    return ElementType.dynamic


def _lacks_value(op: Op) -> bool:
    """Return whether an operation is a Constant whose weights are missing."""
    return op.name == "Constant" and vars(op)["value"] is None


def _drop_operation(constant: Layer) -> Layer:
    """Return a Constant with missing weights as a layer without an operation, whose port declares its type."""
    attributes = vars(constant.op)
    type = TensorType(attributes["element_type"], attributes["shape"])
    return replace(constant, op=None, outputs=tuple(replace(port, type=type) for port in constant.outputs))


def _texts(op: Op) -> Mapping[str, str]:
    """Return the attributes of an operation as written in a file."""
    values = (
        (attribute.xml, vars(op)[name]) for name, attribute in op.schema().items() if not attribute.external
    )
    return MappingProxyType(
        {name: attribute_text(value) for name, value in values if value not in (None, ())}
    )


def _input_specs(inputs: Sequence[Tensor]) -> tuple[PortSpec, ...]:
    """Return input ports; ports of the replaced layer keep their ids and dims, others get unused ids."""
    ids = [tensor.spec.id for tensor in inputs if tensor.spec is not None]
    reserved = set(ids) if len(set(ids)) == len(ids) else set()
    free = iter(number for number in range(len(reserved) + len(inputs)) if number not in reserved)
    specs = []
    for tensor in inputs:
        spec = tensor.spec
        number = spec.id if spec is not None and spec.id in reserved else next(free)
        specs.append(
            PortSpec(number) if spec is None else PortSpec(number, _dims_only(spec.type), (), spec.line)
        )
    return tuple(specs)


def _output_spec(spec: PortSpec | None, number: int, element: ElementType) -> PortSpec:
    """Return an output port with the dims that the file declares and the computed element type."""
    if spec is None:
        return PortSpec(number)
    shape = spec.type.shape if spec.type else PartialShape.dynamic()
    return PortSpec(spec.id, TensorType(element, shape), spec.names, spec.line)


def _dims_only(type: TensorType | None) -> TensorType | None:
    return None if type is None else TensorType(ElementType.dynamic, type.shape)
