"""The clauses of operations, each with a layer that violates it: a sample, mutated until a check refuses it.

A mutation makes one input or attribute wrong: another type, rank or length, a number out of range, an unknown name.
The violated clause is read from the error, so that its text is written only once, at the check.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_origin

import numpy as np

import ir_runtime
import ir_runtime.ops
from harness.nets import Net
from harness.refusals import Call, Refusal, cases, groups
from harness.sample import Sample, all_samples, value
from harness.sample import text as to_text
from ir_runtime.diagnostics import Diagnostic
from ir_runtime.errors import IRError
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Array, Value
from ir_runtime.ops import Op, registry
from ir_runtime.ops._define.attributes import Attribute
from ir_runtime.ops._define.describe import group
from ir_runtime.ops._define.operation import clauses as numbered

__all__ = ["Site", "Violation", "clauses", "index", "sites", "unrefused", "violated", "violations"]

_SAMPLES = 4
"""Samples of an operation that are changed: the smallest of those with different attributes."""
_SMALL = 16
_FEW = 2048
"""Bytes of inputs up to which a layer is run."""
_TYPES = ("f32", "i64", "i32", "boolean", "f16", "f64", "u8", "string", "u4")
_NUMBERS = (-1, -2, -100, 0, 1, 2, 7, 100)
_REALS = (-1.0, 0.0, 2.0, np.nan, np.inf)


@dataclass(frozen=True)
class Violation:
    """A model with a layer that violates a clause of its operation, and arrays for its inputs."""

    clause: str
    source: Refusal | Net
    arrays: Sequence[Array] = ()

    @property
    def net(self) -> Net:
        """The model."""
        return self.source if isinstance(self.source, Net) else self.source.net()

    @property
    def feeds(self) -> Sequence[Array]:
        """An array for each input: zeros if types or shapes alone violate the clause."""
        if isinstance(self.source, Net):
            return self.arrays
        fed = [x for number, x in enumerate(self.source.inputs) if self.source.is_fed(number)]
        return [_array(value(x)) for x in fed]

    @property
    def types(self) -> Sequence[ElementType]:
        """The element types of the inputs."""
        if isinstance(self.source, Net):
            return [ElementType.from_dtype(array.dtype) for array in self.arrays]
        inputs = self.source.inputs
        return [value(x).element for number, x in enumerate(inputs) if self.source.is_fed(number)]

    def cited(self) -> list[str]:
        """The clauses that errors cite when the model is read, and when it runs if it is valid."""
        return [_without_number(finding.clause) for finding in _findings(self.net, self.feeds)]


def _array(known: Value) -> Array:
    contents = known.known()
    if contents is not None:
        return contents
    shape = [dim.min for dim in known.shape] if known.shape.rank is not None else []
    return np.zeros(shape, known.element.dtype)


@dataclass(frozen=True, order=True)
class Site:
    """A clause in the source: file, line, text, and a pattern that matches its formatted texts."""

    file: str
    line: int
    text: str
    pattern: re.Pattern[str]


@cache
def sites() -> Sequence[Site]:
    """The clauses stated by checks of operations, ordered by file and line."""
    package = Path(ir_runtime.ops.__file__).parent
    found = []
    for path in sorted(package.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.keyword) and node.arg == "clause" and _is_text(node.value):
                pattern = "".join(_patterns(node.value))
                text = (
                    str(node.value.value) if isinstance(node.value, ast.Constant) else ast.unparse(node.value)
                )
                found.append(
                    Site(str(path.relative_to(package)), node.value.lineno, text, re.compile(pattern))
                )
    return sorted(found, key=lambda site: (site.file, site.line))


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and bool(node.value))


def _patterns(node: ast.expr) -> Iterator[str]:
    for part in node.values if isinstance(node, ast.JoinedStr) else [node]:
        yield re.escape(str(part.value)) if isinstance(part, ast.Constant) else ".*"


def index() -> dict[str, list[str]]:
    """The clauses of each operation in numerical order: the contents of ``_clauses.json``."""
    return {
        cls.versioned_name(): [violation.clause for violation in violations(cls.versioned_name())]
        for cls in registry
        if group(cls)
    }


def clauses() -> tuple[Path, str]:
    """The path and contents of the file of numbered clauses."""
    lines = [f'  "{name}": {json.dumps(listed)}' for name, listed in sorted(index().items()) if listed]
    return Path(ir_runtime.ops.__file__).with_name("_clauses.json"), "{\n" + ",\n".join(lines) + "\n}\n"


def unrefused() -> list[Site]:
    """The clauses without a violating layer."""
    every = {
        violation.clause for cls in registry if group(cls) for violation in violations(cls.versioned_name())
    }
    return [site for site in sites() if not any(map(site.pattern.fullmatch, every))]


@cache
def violations(operation: str) -> Sequence[Violation]:
    """The known violations of an operation's clauses, in numerical order."""
    (cls,) = (cls for cls in registry if cls.versioned_name() == operation)
    found: dict[str, Violation] = {}
    for refusal in _candidates(cls):
        clause = violated(refusal)
        if clause and clause not in found:
            violation = Violation(clause, replace(refusal, name=clause))
            if clause in violation.cited():
                found[clause] = violation
    for violation in _of_nets().get(operation, ()):
        found.setdefault(violation.clause, violation)
    return sorted(found.values(), key=lambda violation: _rank(cls, violation.clause))


def violated(refusal: Refusal) -> str:
    """Return the clause that a layer violates; empty if none."""
    values = [value(x) for x in refusal.inputs]
    cls = refusal.cls
    try:
        with np.errstate(all="ignore"):
            data = {name: to_text(value) for name, value in refusal.attributes.items()}
            layer = cls.parse({**data, **cls.omitted_defaults(data)})
            layer.infer_values(*values)
            if _size(values) <= _FEW and all(v.known() is not None for v in values):
                layer.evaluator([v.element for v in values])(*(v.known() for v in values))
    except IRError as problem:
        findings = getattr(problem, "diagnostics", ()) or (problem,)
        return _without_number(findings[0].clause)
    except Exception:
        return ""
    return ""


def _size(values: Sequence[Value]) -> int:
    return sum(array.nbytes for value in values if (array := value.known()) is not None)


def _without_number(clause: str) -> str:
    return re.sub(r"^\w+-\d+ C\d+: ", "", clause)


def _rank(cls: type[Op], clause: str) -> tuple[object, ...]:
    """Sort key: existing clauses keep their numbers wherever their checks move; new ones follow in order of declaration."""
    listed = list(numbered(cls.versioned_name()))
    return (listed.index(clause) if clause in listed else len(listed), *_place(cls, clause))


def _place(cls: type[Op], clause: str) -> tuple[object, ...]:
    """Where a clause is declared: at a port, an attribute, a check of the class, or a shared check."""
    if clause.startswith("the operation takes"):
        return (0, 0)
    for number, port in enumerate(cls.inputs):
        name = "each input" if port.variadic else f"input {port.name!r}"
        if clause.startswith(f"{name} is "):
            return (1, number, 0)
        if clause.startswith(f"{name} has the type of "):
            return (1, number, 1)
    attributes = [attribute.clause for attribute in cls.schema().values()]
    if clause in attributes:
        return (2, attributes.index(clause))
    modules = [
        base.__module__.partition("ir_runtime.ops.")[2].replace(".", "/") + ".py" for base in cls.__mro__
    ]
    places = [site for site in sites() if site.pattern.fullmatch(clause)]
    own = [(3, modules.index(site.file), "", site.line, clause) for site in places if site.file in modules]
    shared = [(4, 0, site.file, site.line, clause) for site in places]
    return min(own or shared, default=(5, 0, "", 0, clause))


@cache
def _of_nets() -> Mapping[str, list[Violation]]:
    """The violations found in the message tests' models with bodies, by operation."""
    found: dict[str, list[Violation]] = {}
    for case in cases("control"):
        if isinstance(case, Refusal | Call):
            continue
        made = case()
        if isinstance(made, str):
            continue
        net, feeds = made if isinstance(made, tuple) else (made, ())
        for finding in _findings(net, feeds):
            if finding.clause and finding.where is not None:
                violation = Violation(_without_number(finding.clause), net, feeds)
                found.setdefault(finding.where.operation, []).append(violation)
    return found


def _findings(net: Net, feeds: Sequence[Array]) -> Sequence[Diagnostic]:
    """The errors of a model; if it has none, those of a run."""
    if errors := ir_runtime.validate(net.xml(), net.weights or None).errors:
        return errors
    try:
        model = ir_runtime.read_model(net.xml(), net.weights)
        ir_runtime.compile_model(model, backend="reference")(list(feeds))
    except IRError as problem:
        return [problem.diagnostic]
    return []


@cache
def _messages() -> Mapping[str, list[Refusal]]:
    """The refusals of the message tests, by operation."""
    found: dict[str, list[Refusal]] = {}
    for name in groups():
        for refusal in cases(name):
            if isinstance(refusal, Refusal):
                found.setdefault(refusal.op, []).append(refusal)
    return found


@cache
def _samples() -> Mapping[str, list[Sample]]:
    found: dict[str, list[Sample]] = {}
    for sample in all_samples():
        found.setdefault(sample.op, []).append(sample)
    return found


def _candidates(cls: type[Op]) -> Iterator[Refusal]:
    """Yield layers that may violate a clause."""
    name = cls.versioned_name()
    seen: dict[tuple[object, ...], Sample] = {}
    for sample in sorted(_samples().get(name, ()), key=lambda s: sum(x.size for x in s.inputs)):
        if all(x.size for x in sample.inputs):
            seen.setdefault((len(sample.inputs), *sorted(map(str, sample.attributes.items()))), sample)
    chosen = list(seen.values())
    step = max(1, len(chosen) // _SAMPLES)
    for sample in chosen[::step]:
        yield from _changed(sample)
    # Older or newer versions have the same checks.
    for other in registry.versions(cls.name):
        for refusal in _messages().get(other.versioned_name(), ()):
            yield replace(refusal, op=name)


def _changed(sample: Sample) -> Iterator[Refusal]:
    """Yield a sample's layer with one input or attribute wrong."""
    values = sample.values()
    inputs = [x if v.element is ElementType.from_dtype(x.dtype) else v for x, v in zip(sample.inputs, values, strict=True)] if not any(x.dtype == object for x in sample.inputs) else values  # fmt: skip
    right = Refusal(str(sample), sample.op, tuple(inputs), sample.attributes, fed=_fed(sample))
    for attribute in sample.cls.schema().values():
        if not attribute.external:
            yield from _with_attribute(right, attribute)
    for number in range(len(values)):
        for other in _other_inputs(
            values[number], [element.label for element in _declared_types(sample, number)]
        ):
            yield replace(right, inputs=(*inputs[:number], other, *inputs[number + 1 :]))
    yield replace(right, inputs=tuple(inputs[:-1]))
    yield replace(right, inputs=(*inputs, *inputs[-1:]))
    yield replace(right, inputs=())


def _fed(sample: Sample) -> tuple[int, ...]:
    """Return the inputs that are data: floating-point, or longer than a list of lengths."""
    data = (i for i, v in enumerate(sample.values()) if v.element.real or sample.inputs[i].size > _SMALL)
    return tuple(i for i in data if i not in sample.constant)


def _declared_types(sample: Sample, number: int) -> Sequence[ElementType]:
    port = sample.cls.port_of(number)
    return () if port is None else port.element.allowed


def _other_inputs(known: Value, allowed: Sequence[str]) -> Iterator[Any]:
    array, element = known.known(), known.element
    assert array is not None
    shape = list(array.shape)
    for label in (*(name for name in _TYPES if name not in allowed), *(n for n in _TYPES if n in allowed)):
        if label != element.label:
            yield Value.unknown(ElementType.parse(label), PartialShape(shape))
    if element is ElementType.string or ElementType.from_dtype(array.dtype) is not element:
        shapes = [[*shape, 1], [1, *shape], shape[:-1], shape[1:], [], [2] * 6]
        yield from (Value.unknown(element, PartialShape(other)) for other in shapes if other != shape)
        return
    yield from _reshaped(array)
    if array.size and array.size <= _SMALL:
        yield from _renumbered(array, element)


def _reshaped(array: Array) -> Iterator[Array]:
    yield array[..., None]
    yield array[None]
    for axis in range(array.ndim):
        yield np.repeat(array, 2, axis)
        yield np.concatenate([array, array.take([0], axis)], axis) if array.shape[axis] else array
        yield array.take(range(max(array.shape[axis] - 1, 0)), axis)
        yield array.take([], axis)
        yield array.take(0, axis) if array.shape[axis] else array
    yield array.ravel()[0] * np.ones((), array.dtype) if array.size else array
    yield np.resize(array, [2] * 6)
    yield np.resize(array, array.size + 3)


def _renumbered(array: Array, element: ElementType) -> Iterator[Array]:
    """Yield the array with other values."""
    if element is ElementType.boolean:
        return
    numbers = _REALS if element.real else _NUMBERS
    if element.label.startswith("u"):
        numbers = tuple(n for n in numbers if n >= 0)
    for number in numbers:
        yield np.full_like(array, number)
        for place in {0, array.size - 1} if array.size > 1 else ():
            changed = array.copy()
            changed.flat[place] = number
            yield changed
    yield array.ravel()[::-1].reshape(array.shape)


def _with_attribute(right: Refusal, attribute: Attribute) -> Iterator[Refusal]:
    without = {name: value for name, value in right.attributes.items() if name != attribute.xml}
    yield replace(right, attributes=without)
    for other in _wrong_values(attribute, right.attributes.get(attribute.xml, attribute.default)):
        yield replace(right, attributes={**without, attribute.xml: other})


def _wrong_values(attribute: Attribute, value: Any) -> Iterator[Any]:
    yield "nonsense"
    kind = attribute.type
    if kind is bool:
        yield from ("true", "false")
    elif kind is ElementType:
        yield from (label for label in _TYPES)
    elif attribute.choices:
        yield from attribute.choices
    elif get_origin(kind) is tuple:
        items = value if isinstance(value, tuple | list) else ()
        numbers = _REALS if float in get_args(kind) else _NUMBERS
        yield ()
        yield from ((*items, n) for n in numbers)
        yield from ((n, *items[1:]) for n in numbers)
        yield items[:-1]
    elif kind is int:
        yield from _NUMBERS
    elif kind is float or float in get_args(kind):
        yield from _REALS
        yield 100.0
    elif kind is str:
        yield from ("", "a", "ab->cc", "ij,jk->iz", "i1->i", "...ii,jj->ij")
