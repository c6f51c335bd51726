"""The contract of every operation: documentation, ports that match its methods, readable attributes."""

from __future__ import annotations

import inspect

import pytest
from harness.sample import choices, every_sample, named_samples

from ir_runtime.errors import InferenceError, ValidationError
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ops import Op, registry
from ir_runtime.ops._define.attributes import Attribute
from ir_runtime.ops._define.operation import Registry
from ir_runtime.ops._lengths import broadcast_shapes

ops = pytest.mark.parametrize("cls", list(registry), ids=lambda cls: cls.versioned_name())
with_attributes = pytest.mark.parametrize(
    "cls",
    [cls for cls in registry if any(not attribute.external for attribute in cls.schema().values())],
    ids=lambda cls: cls.versioned_name(),
)
with_least_values = pytest.mark.parametrize(
    "cls",
    [
        cls
        for cls in registry
        if any(a.ge is not None or a.gt is not None for a in cls.schema().values() if not a.external)
        # Numbers of a Constant are places in a file; OpenVINO refuses counts of 0 of GenerateProposals.
        and cls.name not in ("Constant", "GenerateProposals")
    ],
    ids=lambda cls: cls.versioned_name(),
)
with_refused_texts = pytest.mark.parametrize(
    "cls",
    [cls for cls in registry if any(not a.external and a.type is not str for a in cls.schema().values())],
    ids=lambda cls: cls.versioned_name(),
)


@ops
def test_is_documented(cls: type[Op]) -> None:
    assert inspect.getdoc(cls)
    assert cls.__doc__, "the docstring is the operation's own, not inherited"
    for port in (*cls.inputs, *cls.outputs):
        assert port.doc, f"{port.name} has no description"
    for attribute in cls.schema().values():
        assert attribute.doc, f"{attribute.name} has no description"


@ops
def test_methods_take_the_declared_ports(cls: type[Op]) -> None:
    ports = [p.name for p in cls.inputs]
    for method in (cls.infer, cls.evaluate):
        found = [
            p.name
            for p in inspect.signature(method).parameters.values()
            if p.name != "self" and p.kind is not p.KEYWORD_ONLY
        ]
        assert found == ports, f"{method.__qualname__} takes {found}; the ports are {ports}"


def outcome(cls: type[Op], attribute: Attribute, text: str) -> str | None:
    """Return the reason why a text is refused; ``None`` if it is accepted."""
    try:
        cls.parse({attribute.xml: text})
    except ValidationError as refusal:
        return str(refusal)
    return None


@with_attributes
@pytest.mark.parametrize("text", ["", "-1", "1,x", "NaN", "nonsense", "9" * 30])
def test_any_text_of_an_attribute_is_read_or_refused(cls: type[Op], text: str) -> None:
    """The outcome is an operation or a `ValidationError`; nothing else is raised."""
    for attribute in cls.schema().values():
        if not attribute.external:
            assert outcome(cls, attribute, text) != ""


@with_least_values
def test_the_least_value_of_an_attribute_has_a_sample(cls: type[Op]) -> None:
    """A bound that is too large by one then refuses a sample that OpenVINO accepts."""
    layers = [s.layer() for s in named_samples().values() if s.op == cls.versioned_name()]
    for attribute in cls.schema().values():
        values = [getattr(layer, attribute.name) for layer in layers]
        numbers = [n for value in values for n in (value if isinstance(value, tuple) else (value,))]
        least = min((n for n in numbers if isinstance(n, int | float)), default=0)
        if attribute.external:
            continue
        if attribute.ge is not None:
            assert least < attribute.ge + 1, attribute.name
        if attribute.gt is not None:
            assert least <= attribute.gt + 1, attribute.name


def test_no_choice_of_an_attribute_waits_for_the_exhaustive_run() -> None:
    params = every_sample.args[1]
    usual = [param.values[0] for param in params if not param.marks]
    tried = set().union(*map(choices, usual))
    assert set().union(*(choices(param.values[0]) for param in params)) == tried
    assert len(usual) < len(params) / 2


@with_refused_texts
def test_bad_attributes_are_refused(cls: type[Op]) -> None:
    """The message names the attribute and the text; only strings accept anything."""
    for attribute in cls.schema().values():
        if attribute.external or attribute.type is str:
            continue
        wrong = ["nonsense", "1,x"]
        if (attribute.ge is not None and attribute.ge >= 0) or (
            attribute.gt is not None and attribute.gt >= 0
        ):
            wrong.append("-1")
        for text in wrong:
            found = outcome(cls, attribute, text)
            assert found is not None, (attribute.name, text)
            assert repr(attribute.xml) in found
            assert repr(text) in found


@ops
def test_attributes_without_default_are_required(cls: type[Op]) -> None:
    required = [a.xml for a in cls.schema().values() if a.required]
    if not required and not any(a.external for a in cls.schema().values()):
        assert cls.parse({}) is not None
        return
    with pytest.raises(ValidationError) as caught:
        cls.parse({})
    for name in required:
        assert repr(name) in str(caught.value)


def test_index_ports_may_differ_in_type() -> None:
    """OpenVINO accepts a mix of i32 and i64 from converters; data ports of one type variable must be equal."""
    from ir_runtime.ir.element import ElementType
    from ir_runtime.ir.shape import PartialShape
    from ir_runtime.ir.tensor import Value

    split, add = registry.resolve("VariadicSplit"), registry.resolve("Add")
    assert split is not None
    assert add is not None
    f32, i64, i32 = (ElementType.parse(e) for e in ("f32", "i64", "i32"))
    data = Value.unknown(f32, PartialShape([6]))
    axis, lengths = Value.unknown(i64, PartialShape([])), Value.unknown(i32, PartialShape([2]))
    assert [t.element for t in split().infer_types(data, axis, lengths)] == [f32, f32]
    with pytest.raises(ValidationError, match="input 'b' is i32 where f32 is expected"):
        add().infer_types(data, lengths)


def test_versions_that_come_or_go_are_found_or_not() -> None:
    """Cached lookups of names are invalidated."""
    versions: Registry[type[Op]] = Registry("ir_runtime.ops")
    old = type("Old", (Op,), {"name": "Thing", "since": 1, "until": None})
    new = type("New", (Op,), {"name": "Thing", "since": 4, "until": None})
    versions.add(old)
    assert versions.resolve("thing", 5) is old
    versions.add(new)
    assert versions.resolve("thing", 5) is new
    versions.remove(new)
    assert versions.resolve("thing", 5) is old
    versions.remove(old)
    assert versions.resolve("thing", 5) is None


def test_a_static_shape_that_another_broadcasts_to_is_the_result() -> None:
    """The result is the same object, as nothing needs to be computed."""
    shape = PartialShape([2, 0, 4])
    for other in ([4], [1, 4], [1], [], [2, 0, 4], [1, 1, 1]):
        assert broadcast_shapes(shape, PartialShape(other)) is shape
        if len(other) < 3:
            assert broadcast_shapes(PartialShape(other), shape) is shape
    assert broadcast_shapes(PartialShape([2, 1]), PartialShape([1, 3])) == PartialShape([2, 3])
    with pytest.raises(InferenceError):
        broadcast_shapes(shape, PartialShape([3, 4]))
