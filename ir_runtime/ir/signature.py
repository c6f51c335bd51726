"""The signature of an operation: declared ports, type variables, and their binding to the types of inputs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ..codes import Code
from ..errors import InferenceError
from .computable import refuse_to_compute
from .element import ElementType

__all__ = ["FLOATS", "Element", "Input", "Output", "bind", "port_at", "promotions"]

FLOATS = (ElementType.f32, ElementType.f16, ElementType.bf16, ElementType.f64)
"""The floating-point types that operations compute in."""
_DYNAMIC = ElementType.dynamic


@dataclass(frozen=True, slots=True)
class Element:
    """A type variable of the specification: a name and the element types that it may take.

    Ports with the same type variable have the same element type in a layer. If ``shared`` is false, as for indices, axes
    and lengths, each port may have its own, as in OpenVINO.
    """

    name: str
    allowed: tuple[ElementType, ...]
    doc: str = ""
    shared: bool = True

    @property
    def default(self) -> ElementType:
        """The type assumed where a model fragment declares none: f32, i64 or boolean if allowed."""
        usual = (ElementType.f32, ElementType.i64, ElementType.boolean)
        return next((e for e in usual if e in self.allowed), self.allowed[0])


@dataclass(frozen=True, slots=True)
class Input:
    """An input port. A variadic port takes all inputs from its position on.

    A ``mixed`` port shares a type variable with other ports in the specification, but OpenVINO accepts another
    floating-point type there, such as f32 slopes for f16 data. Mixed inputs are computed in the widest of their types
    (`promotions`); the other ports bind the type variable.
    """

    element: Element
    doc: str = ""
    optional: bool = False
    variadic: bool = False
    name: str = ""
    mixed: bool = False
    unchecked: bool = False
    """Whether OpenVINO also creates nodes with other types at this port, although it cannot compute them."""


@dataclass(frozen=True, slots=True)
class Output:
    """An output port. Its element type is a type variable, a fixed type, or the name of an attribute."""

    element: Element | ElementType | str
    doc: str = ""
    variadic: bool = False
    name: str = ""


def port_at(ports: Sequence[Input], index: int) -> Input | None:
    """Return the port of the input at ``index``, the last one repeating if variadic; ``None`` if there is none."""
    if index < len(ports):
        return ports[index]
    return ports[-1] if ports and ports[-1].variadic else None


def bind(ports: Sequence[Input], inputs: Sequence[ElementType]) -> dict[str, ElementType]:
    """Bind type variables to the element types of the inputs.

    Raises:
        InferenceError: if there are too many or too few inputs, a type is not allowed, or inputs that share a type
            variable have different types.
    """
    if len(inputs) != len(ports):
        required = sum(not (p.optional or p.variadic) for p in ports)
        if len(inputs) < required or (inputs and port_at(ports, len(inputs) - 1) is None):
            arity = _arity(ports, required)
            raise InferenceError(
                f"takes {arity}, got {len(inputs)}",
                code=Code.PORT_COUNT,
                clause=f"the operation takes {arity}",
            )
    bound: dict[str, ElementType] = {}
    first: dict[str, int] = {}
    for index, element in enumerate(inputs):
        port = ports[index] if index < len(ports) else ports[-1]
        if element is _DYNAMIC:
            continue
        variable = port.element
        if element not in variable.allowed:
            allowed = ", ".join(e.label for e in variable.allowed)
            reason = InferenceError(
                f"{_port_name(port, index)} is {element.label}; allowed are {allowed}",
                code=Code.ELEMENT_TYPE,
                clause=f"{_clause_name(port)} is {allowed}",
            )
            if not port.unchecked:
                raise reason
            refuse_to_compute(reason)
        if port.mixed and element in FLOATS and bound.get(variable.name, element) in FLOATS:
            continue
        if variable.name not in bound:
            bound[variable.name], first[variable.name] = element, index
        elif bound[variable.name] is not element and variable.shared:
            expected, other = bound[variable.name], first[variable.name]
            name = _port_name(ports[min(other, len(ports) - 1)], other)
            raise InferenceError(
                f"{_port_name(port, index)} is {element.label} where {expected.label} is expected, the type of {name}",
                code=Code.ELEMENT_TYPE,
                hint="a Convert layer gives one of them the type of the other",
                clause=f"{_clause_name(port)} has the type of {name}",
            )
    return bound


def promotions(ports: Sequence[Input], inputs: Sequence[ElementType]) -> dict[str, ElementType]:
    """Return the floating-point type to compute in, for each type variable whose inputs have different types.

    OpenVINO's CPU plugin computes mixed inputs in f32 and rounds results to the inferred type; its reference refuses
    most. The widest type gives the same results as the plugin, unless an input is f64, which stays f64 here.

    >>> f16, bf16, f32 = ElementType.f16, ElementType.bf16, ElementType.f32
    >>> number = Element("T", FLOATS)
    >>> ports = [Input(number), Input(number, mixed=True)]
    >>> promotions(ports, [f16, f32]), promotions(ports, [f16, bf16]), promotions(ports, [f16, f16])
    ({'T': <Type: 'float32'>}, {'T': <Type: 'float32'>}, {})
    """
    of_mixed = {port.element.name for port in ports if port.mixed}
    types: dict[str, set[ElementType]] = {}
    for index, element in enumerate(inputs):
        port = port_at(ports, index)
        if port is not None and element in FLOATS and port.element.name in of_mixed:
            types.setdefault(port.element.name, set()).add(element)
    return {name: _widest(several) for name, several in types.items() if len(several) > 1}


def _widest(types: Collection[ElementType]) -> ElementType:
    """Return the narrowest floating-point type that represents all values of the given types."""
    widest = max(types, key=lambda element: element.bits)
    if widest.bits == 16:  # neither f16 nor bf16 represents all values of the other
        return ElementType.f32
    return widest


def _arity(ports: Sequence[Input], required: int) -> str:
    if ports and ports[-1].variadic:
        return f"at least {required} inputs"
    most = len(ports)
    names = ", ".join(p.name for p in ports)
    count = str(most) if most == required else f"{required} to {most}"
    return f"{count} inputs ({names})" if names else "no inputs"


def _clause_name(port: Input) -> str:
    """Return the name of an input in clauses."""
    return "each input" if port.variadic else f"input {port.name!r}"


def _port_name(port: Input, index: int) -> str:
    """Return the name of an input in messages: the index, from 0, for an input of a variadic port."""
    return f"input {index}" if port.variadic else f"input {port.name!r}"
