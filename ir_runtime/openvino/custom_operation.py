"""The operation of a layer implemented by a subclass of `ir_runtime.Op`: its node infers and computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Protocol, Self

from ..errors import ExecutionError
from ..io.writer import attribute_text
from ..ir.array import as_booleans
from ..ir.element import ElementType
from ..ir.shape import PartialShape
from ..ir.tensor import Array, TensorType, Value
from ..ops import T_ANY, Input, Op, Output, registry
from .tensor import Tensor

__all__ = ["CustomNode", "CustomOperation", "declared_class", "kept_attributes"]


class CustomNode(Protocol):
    """A node that infers and computes its outputs by its own methods."""

    def _infer_given(self, inputs: Sequence[Value]) -> Sequence[TensorType]:
        """Infer the types of the outputs for given inputs."""

    def has_evaluate(self) -> bool:
        """Return whether it computes."""

    def evaluate(self, output_values: list[Tensor], input_values: list[Tensor]) -> bool:
        """Compute the outputs into tensors."""

    def visit_attributes(self, visitor: object) -> bool:
        """Give the attributes to the ``on_attributes`` of a visitor, which may change them."""


class CustomOperation(Op):
    """An operation that a node defines by its methods."""

    values: ClassVar[Input] = Input(T_ANY, "what the node reads", variadic=True)
    results: ClassVar[Output] = Output(ElementType.dynamic, "what the node gives", variadic=True)
    pure = False
    keeps_types = True
    node: CustomNode
    create: ClassVar[Callable[[], CustomNode] | None] = None
    """Creates the node of a layer that was read."""

    @classmethod
    def schema(cls) -> Mapping[str, Any]:
        """Return no attributes, as the node holds them."""
        return {}

    @classmethod
    def of(cls, node: CustomNode) -> Self:
        """Return the operation of a node."""
        operation = cls.__new__(cls)
        vars(operation)["node"] = node
        return operation

    @classmethod
    def parse(cls, data: Mapping[str, str], /, **payloads: Any) -> Self:
        """Create a node with the attributes of a file."""
        assert cls.create is not None, "only classes that were added as extensions are looked up"
        node = cls.create()
        node.visit_attributes(_Restoring(data))
        return cls.of(node)

    @classmethod
    def versioned_name(cls) -> str:
        """Return the name alone, as there is only one version."""
        return cls.name

    def attributes(self) -> dict[str, Any]:
        """Return the attributes that the node reports to a visitor."""
        return kept_attributes(self.node)

    def infer_types(self, *inputs: Value, **context: Any) -> tuple[TensorType, ...]:
        """Let the node infer the types of its outputs."""
        return tuple(self.node._infer_given(inputs))

    def infer_values(self, *inputs: Value, **context: Any) -> tuple[Value, ...]:
        """Infer types only."""
        return tuple(map(Value, self.infer_types(*inputs)))

    def evaluator(self, types: Sequence[ElementType]) -> Callable[..., Any]:
        """Return a function that computes the outputs by the node's ``evaluate``.

        Raises:
            ExecutionError: when called, if the node cannot compute.
        """

        def evaluate(*arrays: Array) -> tuple[Array, ...]:
            tensors = [Tensor.of(array, element) for array, element in zip(arrays, types, strict=True)]
            types_of_outputs = self.infer_types(
                *(Value(TensorType(t.element_type, PartialShape(t._held.shape))) for t in tensors)
            )
            outputs = [
                Tensor(type.element, [d.min if d.is_static else 0 for d in type.shape])
                for type in types_of_outputs
            ]
            if not self.node.has_evaluate() or not self.node.evaluate(outputs, tensors):
                raise ExecutionError(
                    f"operation {self.name!r} does not compute",
                    hint="its class must define evaluate, which must return True",
                )
            return tuple(as_booleans(output._data) for output in outputs)

        return evaluate


def declared_class(
    name: str, version: str, create: Callable[[], CustomNode] | None = None
) -> type[CustomOperation]:
    """Return the operation class of a type; ``create`` makes it available for reading files."""

    class Declared(CustomOperation):
        pass

    number = version.removeprefix("opset")
    Declared.name, Declared.since = name, int(number) if number.isdecimal() else 0
    Declared.create = create
    if create is not None:
        for former in registry.versions(name):
            if issubclass(former, CustomOperation):  # a redefined class replaces the previous one
                registry.remove(former)
        registry.add(Declared)
    return Declared


class _Collecting:
    """Collects attributes."""

    def __init__(self) -> None:
        self.found: dict[str, Any] = {}

    def on_attributes(self, attributes: dict[str, Any]) -> None:
        self.found |= attributes


class _Restoring:
    """Replaces attributes by those of a file."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts

    def on_attributes(self, attributes: dict[str, Any]) -> None:
        for name, value in attributes.items():
            if name in self._texts:
                attributes[name] = _parse_like(self._texts[name], value)


def _parse_like(text: str, like: object) -> Any:
    """Parse a value of the same type as another one."""
    if isinstance(like, list | tuple):
        parts = text.split(",") if text else []
        return type(like)(_parse_like(part, like[0] if like else "") for part in parts)
    if isinstance(like, bool):
        return text == "true"
    return type(like)(text) if isinstance(like, int | float) else text


def kept_attributes(node: CustomNode) -> dict[str, Any]:
    """Return the attributes that a node reports."""
    visitor = _Collecting()
    node.visit_attributes(visitor)
    return visitor.found


def attribute_texts(node: CustomNode) -> dict[str, str]:
    """Return the attributes of a node in file format."""
    attributes = kept_attributes(node)
    return {n: attribute_text(tuple(v) if isinstance(v, list) else _short(v)) for n, v in attributes.items()}


def _short(value: object) -> object:
    """Drop a zero fraction, as OpenVINO does when writing numbers."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
