"""Read the ports of a layer: ids, names, and declared types."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from ...codes import Code
from ...diagnostics import Diagnostics, Location, Mark
from ...ir.dimension import Dimension
from ...ir.element import ElementType
from ...ir.graph import PortSpec, RtInfo
from ...ir.shape import PartialShape
from ...ir.sizes import span_of
from ...ir.tensor import TensorType
from ...limits import Limits
from .document import Element, attributes, integer

__all__ = ["NO_INFO", "PortReader", "check_size", "dim_text", "first_info", "rt_info", "tensor_names"]


@dataclass(frozen=True, slots=True)
class PortReader:
    """Reads the ports of one file; adds errors to ``report``."""

    file: str
    report: Diagnostics
    limits: Limits
    types: dict[tuple[str | None, ...], TensorType] = field(default_factory=dict)
    """Cache of types by precision and dims: many ports of a model declare the same type."""

    def read(self, groups: Sequence[Element], side: str, where: Location) -> list[PortSpec]:
        """Read the ports of a layer on one ``side``, the elements ``<input>`` or ``<output>``."""
        ports = [self._port(port, where) for group in groups for port in group if port.tag == "port"]
        if len(ports) > 1 and len({port.id for port in ports}) < len(ports):
            self._twice(ports, side, where)
        return ports

    def _port(self, port: Element, where: Location) -> PortSpec:
        number = integer(port, "id", self.file)
        dims = [dim_text(dim) for dim in port if dim.tag == "dim"]
        names = port.get("names")
        return PortSpec(
            number,
            self._type(port, dims, where),
            tensor_names(names) if names else (),
            port.sourceline,
            rt_info(port) if len(port) > len(dims) else NO_INFO,
        )

    def _twice(self, ports: Sequence[PortSpec], side: str, where: Location) -> None:
        seen = set()
        for port in ports:
            if port.id in seen:
                self.report.error(Code.DUPLICATE_ID, f"two {side} ports have the id {port.id}", where)
            seen.add(port.id)

    def _type(self, port: Element, dims: Sequence[str], where: Location) -> TensorType:
        """Return the declared type. Without dims it is ambiguous: a scalar, or a tensor of unknown rank."""
        key = (port.get("precision"), *dims)
        type = self.types.get(key)
        if type is None:
            before = len(self.report)
            type = TensorType(self._precision(port, where), self._dims(port, dims, where))
            if len(self.report) == before:
                self.types[key] = type
        return type

    def _precision(self, port: Element, where: Location) -> ElementType:
        text = port.get("precision")
        try:
            return ElementType.of_port(text) if text else ElementType.dynamic
        except ValueError:
            self._bad_port(
                port,
                f"precision {_brief([text])}, which is not an element type",
                "expected FP32, FP16, BF16, I64, I32, I8, U8, BOOL or the like",
                Mark("precision"),
                where,
            )
            return ElementType.dynamic

    def _dims(self, port: Element, texts: Sequence[str], where: Location) -> PartialShape:
        if not texts:
            return PartialShape.dynamic()
        place = replace(where, line=port.sourceline)
        if len(texts) > self.limits.rank:
            self.limits.check("rank", len(texts), place)
        try:
            shape = PartialShape(texts)
        except ValueError:
            self._bad_port(
                port,
                f"dims {_brief(texts)}, which cannot be read",
                "dims must be integers from 0 to 2^63-1, or -1 where any length is allowed",
                Mark(dim=next((i for i, text in enumerate(texts) if not _is_length(text)), None)),
                where,
            )
            return PartialShape.dynamic()
        if span_of(shape) > self.limits.elements:
            check_size(shape, self.limits, place)
        return shape

    def _bad_port(self, port: Element, what: str, hint: str, mark: Mark, where: Location) -> None:
        side = port.getparent().tag
        number = integer(port, "id", self.file)
        mark = replace(mark, port=number, output=side == "output")
        place = replace(where, line=port.sourceline)
        self.report.error(Code.BAD_ELEMENT, f"{side} port {number} has {what}", place, hint, mark=mark)


def check_size(shape: PartialShape, limits: Limits, where: Location | None = None) -> None:
    """Raise `LimitError` for a tensor that is too large for any value of its dynamic dims."""
    if shape.rank is None:
        return
    limits.check("rank", shape.rank, where)
    limits.check("elements", span_of(shape), where)


def dim_text(dim: Element) -> str:
    """Return the text of a ``<dim>``; on a page it may contain a comment."""
    return (dim.xpath("string()") if len(dim) else dim.text) or ""


def _is_length(text: str) -> bool:
    try:
        Dimension(text)
    except ValueError:
        return False
    return True


def _brief(texts: Sequence[str | None]) -> str:
    """Format strings from a file for a message, truncated if long."""
    return ", ".join(repr(text and text[:20]) for text in texts[:8]) + (" …" if len(texts) > 8 else "")


def tensor_names(text: str | None) -> tuple[str, ...]:
    r"""Split a ``names`` attribute at commas that are not escaped by a backslash.

    >>> tensor_names(r"x,y\,z")
    ('x', 'y,z')
    """
    if not text:
        return ()
    return tuple(n.replace("\\,", ",") for n in re.split(r"(?<!\\),", text))


def rt_info(element: Element) -> RtInfo:
    """Return ``<rt_info>`` as nested read-only mappings of strings."""
    return first_info(list(element.iterchildren("rt_info")))


def first_info(elements: Sequence[Element]) -> RtInfo:
    """Return the first ``<rt_info>`` of an element, as `rt_info` does."""
    return _entries(elements[0]) if elements else NO_INFO


NO_INFO: RtInfo = MappingProxyType({})


def _entries(element: Element) -> RtInfo:
    return MappingProxyType(
        {str(child.get("name", child.tag)): _entry(child) for child in element.iterchildren("*")}
    )


def _entry(element: Element) -> RtInfo | str:
    if len(element):
        return _entries(element)
    rest = {key: value for key, value in attributes(element).items() if key != "name"}
    return rest["value"] if rest.keys() == {"value"} else MappingProxyType(rest)
