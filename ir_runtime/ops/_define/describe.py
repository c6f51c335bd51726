"""The declaration of an operation as plain data."""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Mapping
from linecache import getlines
from pathlib import Path
from typing import Literal, Union, get_args, get_origin

from ...ir.element import ElementType
from ...ir.shape import PartialShape
from .attributes import Attribute
from .clauses import clauses
from .examples import Described, recorded
from .operation import Element, Input, Op, Output

__all__ = ["TESTED_AGAINST", "group", "link", "record", "source", "summary"]

# The OpenVINO version that tests compare operations with; tests/ops/test_table.py checks it.
TESTED_AGAINST = "OpenVINO 2026.4.1"
SPECIFICATION = (
    "https://docs.openvino.ai/2026/documentation/openvino-ir-format/operation-sets/operation-specs"
)
_GROUPS = __package__.rpartition(".")[0]


def group(cls: type[Op]) -> str:
    """Return the specification's group, the module name; empty for third-party operations."""
    package, _, path = cls.__module__.partition(f"{_GROUPS}.")
    return "" if package else path.partition(".")[0]


def summary(cls: type[Op]) -> str:
    """Return a summary in one line."""
    return _doc(cls).partition("\n")[0]


def link(cls: type[Op]) -> str | None:
    """Return the URL of its specification; ``None`` for third-party operations."""
    if cls.spec:
        return f"{SPECIFICATION}/{cls.spec}.html"
    return f"{SPECIFICATION}/{group(cls)}/{_kebab(cls.name)}-{cls.since}.html" if group(cls) else None


def source(cls: type[Op]) -> str:
    """Return the file and line of its declaration."""
    path = Path(inspect.getsourcefile(cls) or "?")
    package = Path(__file__).parents[3]
    shown = path.relative_to(package).as_posix() if path.is_relative_to(package) else str(path)
    return f"{shown}:{_line(cls, path)}"


def _line(cls: type[Op], path: Path) -> int:
    """Return the line of the decorator, faster than `inspect`, which parses the whole file."""
    declared = f'@op("{cls.versioned_name()}"'
    lines = (number for number, line in enumerate(getlines(str(path)), 1) if line.startswith(declared))
    return next(lines, 0) or inspect.getsourcelines(cls)[1]


def record(cls: type[Op]) -> Described:
    """Return the page as plain data, for JSON."""
    return {
        "operation": cls.versioned_name(),
        "name": cls.name,
        "version": cls.since,
        "group": group(cls) or None,
        "summary": summary(cls),
        "doc": _doc(cls),
        "inputs": [_input_record(port) for port in cls.inputs],
        "outputs": [_output_record(port) for port in cls.outputs],
        "attributes": [_attribute_record(a) for a in _attributes(cls)],
        "types": [
            {"name": e.name, "allowed": [t.label for t in e.allowed], "doc": e.doc} for e in _elements(cls)
        ],
        "clauses": list(clauses(cls.versioned_name())) if group(cls) else [],
        "decisions": list(cls.decided()),
        "spec": link(cls),
        "tested_against": TESTED_AGAINST if group(cls) else None,
        "source": source(cls),
        "flops_per_element": _flops_per_element(cls),
        "tests": _tests(cls),
    }


def _flops_per_element(cls: type[Op]) -> int | None:
    """Return the FLOPs per element of the first output; ``None`` if counted differently."""
    counted = cls.flops is Op.flops and cls.macs is Op.macs and not cls.flops_per_input
    return cls.flops_per_element if counted else None


def _tests(cls: type[Op]) -> Described | None:
    """Return an executed example, and the references that samples were compared with."""
    recording = recorded(cls.versioned_name()) if group(cls) else None
    if recording is None:
        return None
    return {
        "example": recording.xml,
        "inputs": [tensor._asdict() for tensor in recording.inputs],
        "outputs": [tensor._asdict() for tensor in recording.outputs],
        "samples": recording.samples and recording.samples._asdict(),
        "flops": recording.flops or None,
        "macs": recording.macs or None,
    }


def _input_record(port: Input) -> Described:
    return {
        "name": port.name,
        "type": port.element.name,
        "optional": port.optional,
        "variadic": port.variadic,
        "mixed": port.mixed,
        "doc": _text(port.doc),
    }


def _output_record(port: Output) -> Described:
    return {"name": port.name, "type": _type(port), "variadic": port.variadic, "doc": _text(port.doc)}


def _attribute_record(a: Attribute) -> Described:
    return {
        "name": a.xml,
        "kind": _kind(a.type),
        "required": a.required,
        "default": None if a.required else _plain(a.default),
        "openvino_default": a.default_with_warning,
        "greater_than": a.gt,
        "at_least": a.ge,
        "at_most": a.le,
        "doc": _text(a.doc),
    }


def _attributes(cls: type[Op]) -> list[Attribute]:
    return [a for a in cls.schema().values() if not a.external]


def _elements(cls: type[Op]) -> list[Element]:
    """Return the type variables of the ports without duplicates."""
    ports: tuple[Input | Output, ...] = (*cls.inputs, *cls.outputs)
    return list(dict.fromkeys(p.element for p in ports if isinstance(p.element, Element)))


def _type(port: Output) -> str:
    element = port.element
    if isinstance(element, ElementType):
        return element.label
    return element.name if isinstance(element, Element) else element


def _doc(cls: type[Op]) -> str:
    return _text(inspect.cleandoc(cls.__doc__ or ""))


def _text(doc: str) -> str:
    return doc.replace("``", "`")


def _kind(kind: object) -> str:
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return " | ".join(_kind(a) for a in args if a is not type(None))
    if origin is Literal:
        return " | ".join(map(str, args))
    if origin is tuple:
        item = _kind(args[0])
        return f"({item})[]" if " " in item else f"{item}[]"
    return _NAMES.get(kind, getattr(kind, "__name__", str(kind)))


_NAMES: Mapping[object, str] = {
    ElementType: "element type",
    PartialShape: "shape",
    bool: "boolean",
    str: "string",
}


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, ElementType):
        return value.label
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _kebab(name: str) -> str:
    """Convert to kebab case: ``ReduceL2`` to ``reduce-l2``, ``Col2Im`` to ``col2im``."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", name).lower()
