"""Parameters and Constants for the unconnected inputs of a fragment."""

from __future__ import annotations

import math

import numpy as np
from lxml.etree import Comment
from numpy.typing import ArrayLike

from ...codes import Code
from ...diagnostics import Diagnostics, Location
from ...errors import InputError
from ...ir.element import ElementType
from ...ir.graph import Layer, PortSpec
from ...ir.shape import PartialShape
from ...ir.tensor import Array, TensorType
from ...ops.infrastructure.ends import Constant, Parameter
from .document import Element
from .pages import value_in

__all__ = ["comment_value", "constant", "element_types", "parameter", "port_name"]


def port_name(layer: Layer, index: int) -> str:
    """Return the operation's name for an input port."""
    port = layer.op.port_of(index) if layer.op else None
    if port is None:
        return f"input{index}"
    return f"{port.name}{index}" if port.variadic else port.name


def element_types(layer: Layer) -> list[ElementType]:
    """Return element types of the inputs: the port's precision, or that of its type variable."""
    declared = [spec.type.element if spec.type else ElementType.dynamic for spec in layer.inputs]
    if layer.op is None:
        return [e if e is not ElementType.dynamic else ElementType.f32 for e in declared]
    ports = [layer.op.port_of(i) for i in range(len(declared))]
    bound = {
        p.element.name: e for p, e in zip(ports, declared, strict=True) if p and e is not ElementType.dynamic
    }
    return [
        e if e is not ElementType.dynamic or p is None else bound.get(p.element.name, p.element.default)
        for p, e in zip(ports, declared, strict=True)
    ]


def comment_value(port: Element, spec: PortSpec) -> list[float] | float | None:
    """Return the value that a comment inside or right after a port gives it."""
    values = (value_in(comment) for comment in _comments(port))
    return next((v for v in values if v is not None and _plausible(v, spec)), None)


def constant(
    number: int,
    name: str,
    value: ArrayLike,
    element: ElementType,
    spec: PortSpec,
    where: Location,
    report: Diagnostics,
) -> Layer | None:
    """Return a Constant with a port's value; report a value that contradicts its dims.

    Raises:
        InputError: if the element type cannot hold the value.
    """
    array = _array(value, element, spec, where)
    declared = spec.type.shape if spec.type else PartialShape.dynamic()
    if declared.is_static and math.prod(declared.static) == array.size:
        array = array.reshape(declared.static)
    elif not declared.contains(array.shape):
        report.error(
            Code.PORT_VALUE,
            f"input port {spec.id} has the value {array.tolist()}, but dims {declared}",
            where,
            "correct the value or the dims",
        )
        return None
    shape = PartialShape(array.shape)
    op = Constant(element_type=element, shape=shape, offset=0, size=array.nbytes, value=array)
    return _outer(number, name, op, where)


def parameter(number: int, name: str, element: ElementType, spec: PortSpec, where: Location) -> Layer:
    """Return a Parameter with the port's dims, or of any shape."""
    shape = spec.type.shape if spec.type else PartialShape.dynamic()
    return _outer(number, name, Parameter(element_type=element, shape=shape), where)


def _array(value: ArrayLike, element: ElementType, spec: PortSpec, where: Location) -> Array:
    """Return the value as an array, if the element type can represent it."""
    try:
        numbers = np.asarray(value)
        with np.errstate(all="ignore"):
            array = numbers.astype(element.dtype)
        fits = numbers.dtype.kind in "biufV" and (not element.integral or np.array_equal(array, numbers))
        if fits or (element is ElementType.string and numbers.dtype.kind in "OSU"):
            return array
    except (TypeError, ValueError, OverflowError, np.exceptions.ComplexWarning):
        pass
    raise InputError(
        f"input port {spec.id} is of type {element.label}, which cannot hold the value {value!r}", where=where
    )


def _comments(port: Element) -> list[str]:
    """Return the comments inside a port, and the one after it on the same line."""
    comments = list(port.iter(Comment))
    after = port.getnext()
    if after is not None and after.tag is Comment and "\n" not in (port.tail or ""):
        comments.append(after)
    return [comment.text or "" for comment in comments]


def _plausible(value: list[float] | float, spec: PortSpec) -> bool:
    """Return whether a value is plausible for a port: lists for vectors, numbers only for single elements."""
    shape = spec.type.shape if spec.type else PartialShape.dynamic()
    if isinstance(value, list) and len(value) != 1:
        return shape.rank in (None, 1)
    return shape.rank in (None, 0, 1) and (shape.is_dynamic or shape in ((), (1,)))


def _outer(number: int, name: str, op: Parameter | Constant, where: Location) -> Layer:
    """Return a layer located at a port, as the page does not print the layer itself."""
    port = PortSpec(0, TensorType(op.element_type, op.shape), (name,), where.line)
    return Layer.inserted(number, name, op, where, (), (port,))
