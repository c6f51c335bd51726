"""The signature of an operation: declared ports, type variables, and binding them to inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..codes import Code
from ..errors import InferenceError
from .element import ElementType
from .tensor import Value

__all__ = ["Element", "Input", "Output", "bind", "port_at"]


@dataclass(frozen=True, slots=True)
class Element:
    """A type variable of the specification: a name and the element types it may take.

    Ports that share a type variable have the same element type in one layer, unless it is one of
    those (indices, axes, lengths) of which OpenVINO lets every port have its own.
    """

    name: str
    allowed: tuple[ElementType, ...]
    doc: str = ""
    shared: bool = True

    @property
    def default(self) -> ElementType:
        """The type to use where a model fragment does not declare one."""
        usual = (ElementType.f32, ElementType.i64, ElementType.boolean)
        return next((e for e in usual if e in self.allowed), self.allowed[0])


@dataclass(frozen=True, slots=True)
class Input:
    """An input port. A variadic one takes all inputs from its position on."""

    element: Element
    doc: str = ""
    optional: bool = False
    variadic: bool = False
    name: str = ""


@dataclass(frozen=True, slots=True)
class Output:
    """An output port. Its element type is a type variable, a fixed type, or the name of an attribute."""

    element: Element | ElementType | str
    doc: str = ""
    variadic: bool = False
    name: str = ""


def port_at(ports: Sequence[Input], index: int) -> Input | None:
    """Return the input at a position; the variadic one serves all from its place on."""
    if index < len(ports):
        return ports[index]
    return ports[-1] if ports and ports[-1].variadic else None


def bind(ports: Sequence[Input], inputs: Sequence[Value]) -> dict[str, ElementType]:
    """Bind type variables to the element types of the inputs.

    Raises:
        InferenceError: if there are too many or too few inputs, one has a type that is not allowed, or two that
            share a type variable have different ones.
    """
    required = sum(not (p.optional or p.variadic) for p in ports)
    if len(inputs) < required or (inputs and port_at(ports, len(inputs) - 1) is None):
        raise InferenceError(f"takes {_arity(ports, required)}, got {len(inputs)}", code=Code.PORT_COUNT)
    bound: dict[str, ElementType] = {}
    first: dict[str, str] = {}
    for index, value in enumerate(inputs):
        port, element = port_at(ports, index), value.element
        assert port is not None
        if element is ElementType.dynamic:
            continue
        name, variable = _named(port, index), port.element
        if element not in variable.allowed:
            allowed = ", ".join(map(str, variable.allowed))
            raise InferenceError(f"{name} is {element}; allowed are {allowed}", code=Code.ELEMENT_TYPE)
        first.setdefault(variable.name, name)
        if bound.setdefault(variable.name, element) is not element and variable.shared:
            raise InferenceError(
                f"{name} is {element} where {bound[variable.name]} is expected, the type of {first[variable.name]}",
                code=Code.ELEMENT_TYPE,
                hint="a Convert layer gives one of them the type of the other",
            )
    return bound


def _arity(ports: Sequence[Input], required: int) -> str:
    if ports and ports[-1].variadic:
        return f"at least {required} inputs"
    most = len(ports)
    names = ", ".join(p.name for p in ports)
    count = str(most) if most == required else f"{required} to {most}"
    return f"{count} inputs ({names})" if names else "no inputs"


def _named(port: Input, index: int) -> str:
    """Return what messages call an input: one of many by its place, counted from 0."""
    return f"input {index}" if port.variadic else f"input {port.name!r}"
