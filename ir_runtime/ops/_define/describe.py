"""Descriptions of operations: the declaration as plain data, recorded examples, and the reference page."""

from __future__ import annotations

import inspect
import json
import re
import textwrap
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from linecache import getlines
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, Union, get_args, get_origin

from ...ir.element import ElementType
from ...ir.shape import PartialShape
from .attributes import Attribute
from .engines import engines
from .operation import Element, Input, Op, Output, clauses

__all__ = [
    "Described",
    "Recorded",
    "Samples",
    "TESTED_AGAINST",
    "Tensor",
    "group",
    "link",
    "page",
    "record",
    "recorded",
    "source",
    "summary",
]


# Test records of operations: an executed example, and the references that its samples were compared with.
#
# ``make index`` writes `_examples.json` from the test samples; a test checks that it is up to date.

Described: TypeAlias = dict[str, Any]
"""An operation, or a part of one, as JSON data."""


class Tensor(NamedTuple):
    """A tensor of an example: port, element type, shape, and elements as NumPy prints them."""

    port: str
    type: str
    shape: Sequence[int]
    text: str


class Samples(NamedTuple):
    """The number of test samples of an operation by reference (``by_hand``: computed manually), with ranks and types."""

    reference: int
    plugin: int
    by_hand: int
    ranks: Sequence[int]
    types: Sequence[str]


class Recorded(NamedTuple):
    """An executed example and the samples of an operation; ``samples`` is ``None`` if it is tested in whole models."""

    xml: str
    inputs: Sequence[Tensor]
    outputs: Sequence[Tensor]
    samples: Samples | None
    flops: str
    macs: str
    """FLOPs and multiply-accumulates of the example: a number, or a formula of dynamic lengths; empty if unknown."""


def recorded(name: str) -> Recorded | None:
    """Return the test record of an operation such as ``ReduceL2-4``; ``None`` for extensions."""
    entry = _load_examples().get(name)
    if entry is None:
        return None
    inputs, outputs = ([Tensor(*tensor) for tensor in entry[side]] for side in ("inputs", "outputs"))
    samples = Samples(**entry["samples"]) if "samples" in entry else None
    return Recorded(entry["xml"], inputs, outputs, samples, entry.get("flops", ""), entry.get("macs", ""))


@cache
def _load_examples() -> Mapping[str, Described]:
    text = files("ir_runtime.ops").joinpath("_examples.json").read_text(encoding="utf-8")
    entries: Mapping[str, Described] = json.loads(text)
    return entries


# The declaration of an operation as plain data.


# The OpenVINO version that the tests compare operations with; tests/ops/test_table.py checks it.
TESTED_AGAINST = "OpenVINO 2026.4.1"
SPECIFICATION = (
    "https://docs.openvino.ai/2026/documentation/openvino-ir-format/operation-sets/operation-specs"
)
_GROUPS = __package__.rpartition(".")[0]


def group(cls: type) -> str:
    """Return the group of the specification, which is the module's name; empty for third-party operations."""
    package, _, path = cls.__module__.partition(f"{_GROUPS}.")
    return "" if package else path.partition(".")[0]


def summary(cls: type[Op]) -> str:
    """Return the first line of the operation's description."""
    return _doc(cls).partition("\n")[0]


def link(cls: type[Op]) -> str | None:
    """Return the URL of the operation's specification; ``None`` for third-party operations."""
    if cls.spec:
        return f"{SPECIFICATION}/{cls.spec}.html"
    return f"{SPECIFICATION}/{group(cls)}/{_kebab(cls.name)}-{cls.since}.html" if group(cls) else None


def source(cls: type[Op]) -> str:
    """Return the file and line where the operation is declared, as ``path:line``."""
    path = Path(inspect.getsourcefile(cls) or "?")
    package = Path(__file__).parents[3]
    shown = path.relative_to(package).as_posix() if path.is_relative_to(package) else str(path)
    return f"{shown}:{_line(cls, path)}"


def _line(cls: type[Op], path: Path) -> int:
    """Return the line of the decorator; this is faster than `inspect`, which parses the whole file."""
    declared = f'@op("{cls.versioned_name()}"'
    lines = (number for number, line in enumerate(getlines(str(path)), 1) if line.startswith(declared))
    return next(lines, 0) or inspect.getsourcelines(cls)[1]


def record(cls: type[Op]) -> Described:
    """Return the description of an operation as JSON data, of which `page` is the rendering."""
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
        "engines": _engines(cls) if group(cls) else None,
        "spec": link(cls),
        "tested_against": TESTED_AGAINST if group(cls) else None,
        "source": source(cls),
        "flops_per_element": _flops_per_element(cls),
        "tests": _tests(cls),
    }


def _engines(cls: type[Op]) -> Described | None:
    """Return the outcomes of other runtimes at each decision, or ``None`` if none is recorded."""
    recording = engines(cls.versioned_name())
    outcomes = [list(recording.outcomes.get(decision, ())) for decision in cls.decided()]
    if not any(outcomes):
        return None
    return {"day": recording.day, "runtimes": list(recording.runtimes), "outcomes": outcomes}


def _flops_per_element(cls: type[Op]) -> int | None:
    """Return the FLOPs per element of the first output; ``None`` if the operation counts them otherwise."""
    counted = cls.flops is Op.flops and cls.macs is Op.macs and not cls.flops_per_input
    return cls.flops_per_element if counted else None


def _tests(cls: type[Op]) -> Described | None:
    """Return the recorded example and sample counts, or ``None`` if there is no record."""
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
    """Return the distinct type variables of the ports."""
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


# The reference page of an operation in Markdown, which ``ir-runtime ops NAME`` prints.

_WIDTH = 100


def page(cls: type[Op]) -> str:
    """Return the reference page of an operation version in Markdown."""
    return "\n".join(_page(record(cls))) + "\n"


def _page(description: Described) -> Iterator[str]:
    yield f"# {description['operation']}"
    yield ""
    yield from (textwrap.fill(line, _WIDTH) for line in description["doc"].splitlines())
    yield from _section("Inputs", map(_input, description["inputs"]))
    yield from _section("Outputs", map(_output, description["outputs"]))
    yield from _section("Attributes", map(_attribute, description["attributes"]))
    yield from _section("Types", map(_element, description["types"]))
    for title in ("Clauses", "Decisions"):
        yield from _section(title, _number_sentences(title[0], description[title.lower()]))
    yield from _engine_table(description["engines"])
    if description["tests"]:
        yield from _example(description["tests"])
        yield from _flops(description["tests"], description["flops_per_element"])
        yield from _test_summary(description["tests"]["samples"], description["tested_against"])
    yield "\n## Where it is\n"
    yield f"* Since opset{description['version']}, in the group {description['group'] or 'extension'}"
    if description["spec"]:
        yield f"* Specification: <{description['spec']}>"
    yield f"* Declared in `{description['source']}`"


def _section(title: str, items: Iterable[str]) -> Iterator[str]:
    lines = [_item(item) for item in items]
    if lines:
        yield from (f"\n## {title}\n", *lines)


def _item(text: str) -> str:
    return textwrap.fill(
        f"* {text}", _WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def _input(port: Described) -> str:
    kind = f"type {port['type']}" + " (or another floating-point type, as in OpenVINO)" * port["mixed"]
    qualifiers = [kind, *["optional"] * port["optional"], *["any number"] * port["variadic"]]
    return _entry(port["name"], qualifiers, port["doc"])


def _output(port: Described) -> str:
    return _entry(port["name"], [f"type {port['type']}", *["any number"] * port["variadic"]], port["doc"])


def _attribute(attribute: Described) -> str:
    return _entry(attribute["name"], [attribute["kind"], *_allowed_values(attribute)], attribute["doc"])


def _allowed_values(attribute: Described) -> Iterator[str]:
    if not attribute["required"]:
        default = attribute["default"]
        yield "optional" if default is None else f"default {_default(default)}"
    elif attribute["openvino_default"] is None:
        yield "required"
    else:
        yield f"required (OpenVINO takes {attribute['openvino_default'] or 'an empty list'} where it is missing)"
    for key, sign in (("greater_than", ">"), ("at_least", ">="), ("at_most", "<=")):
        if attribute[key] is not None:
            yield f"{sign} {attribute[key]:g}"


def _default(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(map(str, value))}]"
    return repr(value) if value == "" else str(value)


def _element(element: Described) -> str:
    return _entry(element["name"], element["allowed"], "")


def _number_sentences(letter: str, sentences: Sequence[str]) -> Iterator[str]:
    return (f"{letter}{number}: {sentence}" for number, sentence in enumerate(sentences, 1))


def _engine_table(engines: Described | None) -> Iterator[str]:
    """Yield a Markdown table of the outcomes of other runtimes at each decision."""
    if engines is None:
        return
    yield "\n## Engines at decisions\n"
    yield f"Asked on {engines['day']} with the cases of the conformance suite that show the decisions:\n"
    yield f"| | {' | '.join(engines['runtimes'])} |"
    yield "|---" * (len(engines["runtimes"]) + 1) + "|"
    for number, outcomes in enumerate(engines["outcomes"], 1):
        cells = [outcome.replace("|", "\\|") for outcome in outcomes]
        cells = cells or ["no case shows it", *[""] * (len(engines["runtimes"]) - 1)]
        yield f"| D{number} | {' | '.join(cells)} |"


def _entry(name: str, qualifiers: Sequence[str], doc: str) -> str:
    return f"`{name}`: {', '.join(qualifiers)}" + (f"; {doc}" if doc else "")


def _example(tests: Described) -> Iterator[str]:
    yield "\n## Example\n"
    yield f"```xml\n{tests['example']}\n```"
    for side in ("inputs", "outputs"):
        tensors = "\n".join(map(_tensor, tests[side]))
        yield f"\n{side.capitalize()}:\n\n```text\n{tensors}\n```"


def _flops(tests: Described, per_element: int | None) -> Iterator[str]:
    sentences = []
    if per_element is not None:
        sentences.append(
            f"{per_element} for each element of the first output"
            if per_element
            else "None: elements are only moved"
        )
    if tests["flops"] and per_element != 0:
        added = f", of {tests['macs']} multiply-accumulates" if tests["macs"] != "0" else ""
        sentences.append(f"{tests['flops']} in the example{added}")
    if sentences:
        yield "\n## FLOPs\n"
        yield "; ".join(sentences) + "."


def _tensor(tensor: Described) -> str:
    shape = ",".join(map(str, tensor["shape"]))
    return f"{tensor['port']}  {tensor['type']} [{shape}]\n{tensor['text']}"


def _test_summary(samples: Described | None, against: str) -> Iterator[str]:
    yield "\n## Tested against\n"
    if samples is None:
        yield f"{against}, in whole models."
        return
    by = [
        f"{samples[key]} {text}"
        for key, text in (
            ("reference", "with its reference"),
            ("plugin", "with its CPU plugin"),
            ("by_hand", "with results computed by hand"),
        )
        if samples[key]
    ]
    total = samples["reference"] + samples["plugin"] + samples["by_hand"]
    ranks = ", ".join(map(str, samples["ranks"]))
    types = ", ".join(samples["types"])
    text = f"{against}: {total} samples, {', '.join(by)}; inputs of rank {ranks}, in {types}."
    yield textwrap.fill(text, _WIDTH)
