"""From ``<layer>`` elements to layers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from ..codes import Code
from ..diagnostics import Diagnostics, Location
from ..errors import IRError, ParseError, ValidationError
from ..ir.element import ElementType
from ..ir.graph import Layer, PortSpec
from ..ir.shape import PartialShape
from ..ir.tensor import TensorType
from ..limits import DEFAULT, Limits
from ..ops import Op, load_extensions, registry
from .document import Element, integer
from .weights import Weights

__all__ = ["LayerReader", "rt_info"]


@dataclass(slots=True)
class LayerReader:
    """Reads layers of one file; what is wrong with them goes into ``report``."""

    file: str
    report: Diagnostics
    weights: Weights = field(default_factory=Weights)
    limits: Limits = DEFAULT

    def layer(self, element: Element, version: str | None = None) -> Layer:
        """One layer. ``version`` stands in where the element has none."""
        type = element.get("type")
        number = integer(element, "id", self.file)
        if not type:
            where = Location(self.file, element.sourceline, element.get("name") or str(number))
            raise ParseError("'type' of <layer> is missing", code=Code.BAD_ELEMENT, where=where)
        version = element.get("version") or version or "opset1"
        cls = self._resolve(type, version)
        operation = cls.versioned_name() if cls else type
        name = element.get("name") or f"{type}_{number}"
        where = Location(self.file, element.sourceline, name, operation)
        data = _attributes(element)
        return Layer(
            id=number,
            name=name,
            type=cls.name if cls else type,
            version=version,
            op=self._operation(cls, type, version, data, where),
            where=where,
            inputs=self._inputs(element, where),
            outputs=tuple(self._ports(element, "output", where)),
            attributes=data,
            rt_info=rt_info(element),
        )

    def _resolve(self, type: str, version: str) -> type[Op] | None:
        opset = re.fullmatch(r"opset(\d{1,4})", version)
        number = int(opset.group(1)) if opset else None
        found = registry.resolve(type, number)
        if found is None:
            load_extensions()
            found = registry.resolve(type, number)
        return found

    def _operation(
        self, cls: type[Op] | None, type: str, version: str, data: Mapping[str, str], where: Location
    ) -> Op | None:
        if cls is None:
            self.report.error(Code.UNKNOWN_OPERATION, *unknown_operation(type, version, where))
            return None
        for name in data.keys() - {a.xml for a in cls.schema().values()}:
            self.report.warning(
                Code.UNKNOWN_ATTRIBUTE,
                f"{cls.versioned_name()} has no attribute {name!r}; it is ignored",
                where,
            )
        try:
            return self._build(cls, data, where)
        except ValidationError as problem:
            for found in problem.diagnostics:
                self.report.error(found.code, found.message, where, found.hint)
        except IRError as problem:
            self.report.error(problem.code, problem.message, where, problem.hint)
        return None

    def _build(self, cls: type[Op], data: Mapping[str, str], where: Location) -> Op:
        if cls.name != "Constant":
            return cls.parse(data)
        layout = cls.parse(data, value=None)
        shape, element = self._shape_of(layout), vars(layout)["element_type"]
        offset, size = vars(layout)["offset"], vars(layout)["size"]
        return cls.parse(data, value=self.weights.tensor(element, shape, offset, size, where))

    def _shape_of(self, constant: Op) -> tuple[int, ...]:
        shape = vars(constant)["shape"]
        if not shape.is_static:
            raise ValidationError(f"a constant has a fixed shape, not {shape}", code=Code.BAD_ATTRIBUTE)
        self._check_size(shape)
        return shape.static  # type: ignore[no-any-return]

    def _check_size(self, shape: PartialShape) -> None:
        self.limits.check("rank", shape.rank or 0)
        elements = 1
        for dim in shape if shape.rank is not None else ():
            elements *= max(dim.min, 1)
        self.limits.check("elements", elements)

    def _inputs(self, element: Element, where: Location) -> tuple[PortSpec, ...]:
        ports = tuple(self._ports(element, "input", where))
        names = tensor_names(element.get("output_names"))  # a Result may name the output of the model
        return tuple(replace(port, names=(*names, *port.names)) for port in ports) if names else ports

    def _ports(self, element: Element, side: str, where: Location) -> Iterator[PortSpec]:
        seen = set()
        for port in element.iterfind(f"{side}/port"):
            number = integer(port, "id", self.file)
            if number in seen:
                self.report.error(Code.DUPLICATE_ID, f"two {side} ports have the id {number}", where)
            seen.add(number)
            yield PortSpec(
                number,
                self._type(port, where),
                tensor_names(port.get("names")),
                port.sourceline,
                rt_info(port),
            )

    def _type(self, port: Element, where: Location) -> TensorType:
        precision = port.get("precision")
        try:
            element = ElementType.parse(precision) if precision else ElementType.dynamic
            shape = PartialShape([d.text or "" for d in port.iterfind("dim")])
            self._check_size(shape)
        except ValueError:
            found = [d.text for d in port.iterfind("dim")]
            self.report.error(
                Code.BAD_ELEMENT,
                f"port {port.get('id')} has dims {found} and precision {precision!r}, which cannot be read",
                Location(where.file, port.sourceline, where.layer, where.operation),
                "dims are whole numbers, or -1 where any length goes; a precision is FP32, I64, BOOL …",
            )
            return TensorType(ElementType.dynamic, PartialShape.dynamic())
        return TensorType(element, shape)


def unknown_operation(type: str, version: str, where: Location) -> tuple[str, Location, str]:
    """Message, place and hint for an operation that there is not."""
    versions = registry.versions(type)
    if versions:
        oldest = versions[0]
        return f"{version} has no {oldest.name}; it starts with opset{oldest.since}", where, ""
    near = registry.near(type)
    hint = f"did you mean {near}? " if near else ""
    hint += "declare an operation of your own with ir_runtime.ops.op; see examples/custom_op"
    return f"there is no operation {type!r} ({version})", where, hint


def _attributes(element: Element) -> Mapping[str, str]:
    data = element.find("data")
    return MappingProxyType({} if data is None else {str(k): str(v) for k, v in data.attrib.items()})


def tensor_names(text: str | None) -> tuple[str, ...]:
    r"""Split a ``names`` attribute at commas, except where a backslash keeps them.

    >>> tensor_names(r"x,y\,z")
    ('x', 'y,z')
    """
    if not text:
        return ()
    return tuple(n.replace("\\,", ",") for n in re.split(r"(?<!\\),", text))


def rt_info(element: Element) -> Mapping[str, Any]:
    """What ``<rt_info>`` says, as nested mappings of strings."""
    info = element.find("rt_info")
    return MappingProxyType({} if info is None else _entries(info))


def _entries(element: Element) -> dict[str, Any]:
    return {str(child.get("name", child.tag)): _entry(child) for child in element.iterchildren("*")}


def _entry(element: Element) -> Any:
    if len(element):
        return _entries(element)
    rest = {str(k): str(v) for k, v in element.attrib.items() if k != "name"}
    return rest["value"] if rest.keys() == {"value"} else rest
