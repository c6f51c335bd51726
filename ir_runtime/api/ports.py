"""Layers and their outputs, as users hold them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..ir.element import ElementType
from ..ir.graph import Layer, Port
from ..ir.shape import PartialShape
from ..ir.tensor import Array, TensorType

if TYPE_CHECKING:
    from .model import Model

__all__ = ["Node", "Output"]


class Output:
    """An output of a layer: a tensor of the model. As OpenVINO's ``Output`` and ``ConstOutput``.

    Its type is what was inferred when it was asked for; reshaping the model makes it out of date.
    """

    def __init__(
        self,
        model: Model,
        port: Port,
        type: TensorType,
        names: tuple[str, ...] = (),
        result: Layer | None = None,
    ) -> None:
        self._model, self._port, self._type, self._result = model, port, type, result
        self._names = names

    @property
    def names(self) -> set[str]:
        """The names of the tensor."""
        return set(self._names)

    @property
    def any_name(self) -> str:
        """One of the names; `RuntimeError` if there is none."""
        if not self._names:
            raise RuntimeError(f"{self} has no name; use its index, or the name of its layer")
        return self._names[0]

    @property
    def label(self) -> str:
        """A name to show: the tensor's, else the layer's, with the port where it has several."""
        if self._names:
            return self._names[0]
        layer = self._layer
        return layer.name if len(layer.outputs) == 1 else f"{layer.name}:{self._port.number}"

    @property
    def partial_shape(self) -> PartialShape:
        """The shape, as far as it is known."""
        return self._type.shape

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape, all of which must be known."""
        if self._type.shape.is_dynamic:
            raise RuntimeError(
                f"the shape of {self.label!r} is dynamic: {self._type.shape}; see partial_shape"
            )
        return self._type.shape.static

    @property
    def element_type(self) -> ElementType:
        """The element type."""
        return self._type.element

    @property
    def index(self) -> int:
        """Which output of its layer this is."""
        return 0 if self._result else self._port.number

    @property
    def node(self) -> Node:
        """The layer: for an output of a model, its Result."""
        return Node(self._model, self._result or self._layer)

    @property
    def rt_info(self) -> Mapping[str, Any]:
        """What the file says beside."""
        spec = self._layer.outputs[self._port.number : self._port.number + 1]
        return spec[0].rt_info if spec else {}

    @property
    def _layer(self) -> Layer:
        return self._model._graph[self._port.layer]

    def get_names(self) -> set[str]:
        """The names of the tensor."""
        return self.names

    def get_any_name(self) -> str:
        """One of the names."""
        return self.any_name

    def get_partial_shape(self) -> PartialShape:
        """The shape, as far as it is known."""
        return self.partial_shape

    def get_shape(self) -> tuple[int, ...]:
        """The shape, all of which must be known."""
        return self.shape

    def get_element_type(self) -> ElementType:
        """The element type."""
        return self.element_type

    def get_index(self) -> int:
        """Which output of its layer this is."""
        return self.index

    def get_node(self) -> Node:
        """The layer."""
        return self.node

    def get_rt_info(self) -> Mapping[str, Any]:
        """What the file says beside."""
        return self.rt_info

    def answers_to(self, name: str) -> bool:
        """Whether this is the tensor, or an output of the layer, of that name."""
        own = (self._layer.name, f"{self._layer.name}:{self._port.number}")
        return name in self._names or name in own or (self._result is not None and name == self._result.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Output) and (self._port, self._result) == (other._port, other._result)

    def __hash__(self) -> int:
        return hash((self._port, self._result.id if self._result else None))

    def __repr__(self) -> str:
        names = ", ".join(self._names)
        return f"<{type(self).__name__}: names[{names}] shape{self._type.shape} type: {self._type.element}>"


class Node:
    """A layer of a model. As OpenVINO's ``Node``, to look at."""

    def __init__(self, model: Model, layer: Layer) -> None:
        self._model, self.layer = model, layer

    @property
    def friendly_name(self) -> str:
        """The name of the layer."""
        return self.layer.name

    def get_friendly_name(self) -> str:
        """The name of the layer."""
        return self.layer.name

    def get_name(self) -> str:
        """The name of the layer."""
        return self.layer.name

    @property
    def type(self) -> str:
        """The operation, such as ``Convolution``."""
        return self.layer.type

    def get_type_name(self) -> str:
        """The operation, such as ``Convolution``."""
        return self.layer.type

    def get_attributes(self) -> dict[str, Any]:
        """The attributes of the operation, with their defaults."""
        return self.layer.op.attributes() if self.layer.op else dict(self.layer.attributes)

    def get_rt_info(self) -> Mapping[str, Any]:
        """What the file says beside."""
        return self.layer.rt_info

    @property
    def data(self) -> Array:
        """The contents of a Constant."""
        return self.get_data()

    def get_data(self) -> Array:
        """The contents of a Constant; `RuntimeError` for other layers."""
        if self.layer.type != "Constant" or self.layer.op is None:
            raise RuntimeError(f"{self} is no Constant")
        return self.layer.op.evaluate()  # type: ignore[no-any-return]

    def outputs(self) -> list[Output]:
        """Every output."""
        count = 1 if self.layer.type == "Result" else len(self.layer.outputs)
        return [self._model._output(Port(self.layer.id, i)) for i in range(count)]

    def output(self, index: int = 0) -> Output:
        """One output."""
        return self.outputs()[index]

    def input_values(self) -> list[Output]:
        """The outputs of other layers that this one reads."""
        sources = self._model._graph.sources(self.layer)
        return [self._model._output(port) for port in sources if port is not None]

    def input_value(self, index: int) -> Output:
        """The output of another layer that an input reads."""
        return self.input_values()[index]

    def get_output_size(self) -> int:
        """How many outputs there are."""
        return len(self.outputs())

    def get_input_size(self) -> int:
        """How many inputs there are."""
        return len(self.layer.inputs)

    def get_output_partial_shape(self, index: int) -> PartialShape:
        """The shape of an output, as far as it is known."""
        return self.output(index).partial_shape

    def get_output_shape(self, index: int) -> tuple[int, ...]:
        """The shape of an output, all of which must be known."""
        return self.output(index).shape

    def get_output_element_type(self, index: int) -> ElementType:
        """The element type of an output."""
        return self.output(index).element_type

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and self.layer is other.layer

    def __hash__(self) -> int:
        return hash(self.layer.id)

    def __repr__(self) -> str:
        types = ", ".join(f"{o.partial_shape}, {o.element_type}" for o in self.outputs())
        return f"<{self.layer.type}: {self.layer.name!r} ({types})>"
