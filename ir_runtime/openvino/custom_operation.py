"""The operation of layers that a subclass of `ir_runtime.Op` implements, delegating inference and evaluation to the node."""

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

__all__ = ["CustomNode", "CustomOperation", "make_class", "collect_attributes"]


class CustomNode(Protocol):
    """A node with its own methods for inference and evaluation, that is, an instance of `ir_runtime.Op`."""

    def _infer_types(self, inputs: Sequence[Value]) -> Sequence[TensorType]:
        """Return the types of the outputs for these inputs."""

    def has_evaluate(self) -> bool:
        """Return whether the node can be run."""

    def evaluate(self, output_values: list[Tensor], input_values: list[Tensor]) -> bool:
        """Compute ``output_values`` from ``input_values``, and return whether that is possible."""

    def visit_attributes(self, visitor: object) -> bool:
        """Pass the attributes to ``visitor.on_attributes``, which may change them."""


class CustomOperation(Op):
    """An operation that delegates to the methods of a node."""

    values: ClassVar[Input] = Input(T_ANY, "the operands of the node", variadic=True)
    results: ClassVar[Output] = Output(ElementType.dynamic, "the outputs of the node", variadic=True)
    pure = False
    keeps_types = True
    node: CustomNode
    create: ClassVar[Callable[[], CustomNode] | None] = None
    """Creates a node for a layer read from a file."""

    @classmethod
    def schema(cls) -> Mapping[str, Any]:
        """Return an empty schema, as the node holds the attributes."""
        return {}

    @classmethod
    def of(cls, node: CustomNode) -> Self:
        """Return the operation that delegates to a node."""
        operation = cls.__new__(cls)
        vars(operation)["node"] = node
        return operation

    @classmethod
    def parse(cls, data: Mapping[str, str], /, **payloads: Any) -> Self:
        """Create a node with the attributes of a layer as read from a file, and return its operation."""
        assert cls.create is not None, "only classes that were added as extensions are looked up"
        node = cls.create()
        node.visit_attributes(_Restorer(data))
        return cls.of(node)

    @classmethod
    def versioned_name(cls) -> str:
        """Return the name without a version, as there is only one version."""
        return cls.name

    def attributes(self) -> dict[str, Any]:
        """Return the attributes that the node passes to a visitor."""
        return collect_attributes(self.node)

    def infer_types(self, *inputs: Value, **context: Any) -> tuple[TensorType, ...]:
        """Return the types of the outputs, inferred by the node."""
        return tuple(self.node._infer_types(inputs))

    def infer_values(self, *inputs: Value, **context: Any) -> tuple[Value, ...]:
        """Return the outputs as values with a type only."""
        return tuple(map(Value, self.infer_types(*inputs)))

    def evaluator(self, types: Sequence[ElementType]) -> Callable[..., Any]:
        """Return a function that computes the outputs with the node's ``evaluate``.

        Raises:
            ExecutionError: when called, if the node lacks ``evaluate``, or it returns False.
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


def make_class(
    name: str, version: str, create: Callable[[], CustomNode] | None = None
) -> type[CustomOperation]:
    """Return the class for an operation type.

    If ``create`` is given, files with the operation can be read, in place of a class of that name registered before.
    """

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


class _Collector:
    """A visitor that collects attributes."""

    def __init__(self) -> None:
        self.attributes: dict[str, Any] = {}

    def on_attributes(self, attributes: dict[str, Any]) -> None:
        self.attributes |= attributes


class _Restorer:
    """A visitor that replaces attributes with those of a file."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts

    def on_attributes(self, attributes: dict[str, Any]) -> None:
        for name, value in attributes.items():
            if name in self._texts:
                attributes[name] = _parse_like(self._texts[name], value)


def _parse_like(text: str, like: object) -> Any:
    """Parse a string as a value of the same type as ``like``."""
    if isinstance(like, list | tuple):
        parts = text.split(",") if text else []
        return type(like)(_parse_like(part, like[0] if like else "") for part in parts)
    if isinstance(like, bool):
        return text == "true"
    return type(like)(text) if isinstance(like, int | float) else text


def collect_attributes(node: CustomNode) -> dict[str, Any]:
    """Return the attributes that a node passes to a visitor."""
    visitor = _Collector()
    node.visit_attributes(visitor)
    return visitor.attributes


def attribute_texts(node: CustomNode) -> dict[str, str]:
    """Return the attributes of a node as files spell them."""
    attributes = collect_attributes(node)
    return {n: attribute_text(tuple(v) if isinstance(v, list) else _short(v)) for n, v in attributes.items()}


def _short(value: object) -> object:
    """Convert an integral float to int, as OpenVINO writes it without a fraction."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
