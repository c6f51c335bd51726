"""For any attributes and inputs, a layer gives a result or a clear error."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

import numpy as np
import pytest
from harness.sample import Sample, all_samples, text
from harness.session import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from ir_runtime.errors import InferenceError, LimitError, ValidationError
from ir_runtime.ir.dimension import LONGEST, Dimension
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Array, Value
from ir_runtime.ops import Op, registry
from ir_runtime.ops._define.attributes import Attribute

SAMPLES: dict[str, list[Sample]] = {}
for _sample in all_samples():
    SAMPLES.setdefault(_sample.op, []).append(_sample)

ops = pytest.mark.parametrize("cls", list(registry), ids=lambda cls: cls.versioned_name())
often = settings(max_examples=examples(4, thorough=36))

# Wrong for nearly every attribute, and some of them right for a few.
ODD = (
    ",| |-1|0|1|2|1,2|-1,-1|1,,2|1;2|0,0,0,0,0,0,0|1.5|-0.0|1e400|nan|inf|-inf|1e-320|0x10|1_0|\u0663|\U0001d7d9"
    "|9223372036854775807|-9223372036854775808|18446744073709551615|4294967296,4294967296|"
    + "9"
    * 30
    + "|true"
    "|TRUE|yes|None|same_upper|i32|f64|string|dynamic|undefined|Ünïcode ∞|\u202e|a->a|ij,jk->ik|...|?|[1,2]|"
).split("|")
LENGTHS = (0, 1, 2, 3, 4, 5, 2**31, 2**40)
NUMBERS = (0, 1, -1, 2, 3, -3, 7, 2**31, -(2**31), 2**62, -(2**62))

shapes = st.one_of(
    st.just(PartialShape(None)),
    st.lists(
        st.one_of(
            st.sampled_from(LENGTHS[:6]).map(Dimension),
            st.sampled_from(LENGTHS).map(Dimension),
            st.just(Dimension()),
            st.tuples(st.sampled_from(LENGTHS), st.sampled_from(LENGTHS)).map(
                lambda p: Dimension.between(min(p), max(p))
            ),
        ),
        max_size=6,
    ).map(PartialShape),
)


@pytest.fixture(autouse=True)
def little_memory() -> Iterator[None]:
    """Limit memory, so that excessive allocations fail at once."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def an_attribute(attribute: Attribute) -> st.SearchStrategy[str]:
    """Draw a text for an attribute: arbitrary, or of its type."""
    kinds = [st.sampled_from(ODD), st.text(max_size=8)]
    kind = attribute.type
    if get_origin(kind) is Literal:
        return st.one_of(st.sampled_from(list(map(str, get_args(kind)))), *kinds)
    if get_origin(kind) is tuple:
        return st.one_of(st.lists(st.integers(-3, 5), max_size=4).map(text), *kinds)
    if kind is bool:
        return st.one_of(st.sampled_from(["true", "false"]), *kinds)
    if kind is ElementType:
        return st.one_of(st.sampled_from([e.label for e in ElementType]), *kinds)
    return st.one_of(st.integers(-3, 9).map(str), st.floats().map(str), *kinds)


@st.composite
def attributes(draw: Any, cls: type[Op]) -> dict[str, str]:
    """Draw a sample's attributes or none, some of them replaced or missing."""
    samples = SAMPLES.get(cls.versioned_name(), [])
    given = draw(st.sampled_from(samples)).attributes if samples and draw(st.integers(0, 3)) else {}
    data = {name: text(value) for name, value in given.items()}
    for attribute in cls.schema().values():
        if attribute.external or draw(st.integers(0, 2)):
            continue
        if draw(st.integers(0, 4)):
            data[attribute.xml] = draw(an_attribute(attribute))
        else:
            data.pop(attribute.xml, None)
    return data


def layer(cls: type[Op], data: dict[str, str]) -> Op | None:
    """Return the operation, or ``None`` if it refuses an attribute with a clear error."""
    try:
        return cls.parse(data)
    except ValidationError as problem:
        said = [finding.message for finding in problem.diagnostics]
    assert said
    assert all(message and message.isprintable() for message in said)
    return None


def a_value(draw: Any, element: ElementType) -> Value:
    """Draw partial knowledge of a tensor."""
    shape = draw(shapes)
    known = element is not ElementType.dynamic and shape.is_static and max(shape.static, default=0) < 9
    if not known or np.prod(shape.static) > 8 or draw(st.booleans()):
        return Value.unknown(element, shape)
    count = int(np.prod(shape.static))
    numbers = draw(st.lists(st.sampled_from(NUMBERS), min_size=count, max_size=count))
    return Value(Value.unknown(element, shape).type, filled(numbers, element).reshape(shape.static))


def filled(numbers: list[int], element: ElementType) -> Array:
    if element is ElementType.string:
        return np.array([*map(str, numbers), None], object)[:-1]
    with np.errstate(all="ignore"):
        wide = np.float64 if element.real else np.int64
        return np.array(numbers, wide).astype(element.dtype)


def an_element(draw: Any, cls: type[Op], index: int) -> ElementType:
    """Draw an element type, mostly one that the port allows."""
    port = cls.port_of(index)
    if port is None or not draw(st.integers(0, 9)):
        return draw(st.sampled_from(list(ElementType)))  # type: ignore[no-any-return]
    return draw(st.sampled_from(port.element.allowed[:5]))  # type: ignore[no-any-return]


@ops
@often
@given(data=st.data())
def test_inference_refuses_in_words(cls: type[Op], data: st.DataObject) -> None:
    if (op := layer(cls, data.draw(attributes(cls)))) is None:
        return
    samples = SAMPLES.get(cls.versioned_name(), [])
    if samples and data.draw(st.booleans()):
        values = data.draw(st.sampled_from(samples)).values()
        for index in range(len(values)):
            if not data.draw(st.integers(0, 2)):
                values[index] = a_value(data.draw, values[index].element)
    else:
        count = data.draw(st.integers(0, len(cls.inputs) + 1))
        values = [a_value(data.draw, an_element(data.draw, cls, i)) for i in range(count)]
    try:
        op.infer_values(*values)
    except InferenceError as problem:
        said = problem.message
    else:
        return
    assert said
    assert "\n" not in said


def resized(value: Value, length: int) -> Iterator[Value]:
    """Yield the value with each dim replaced in turn, then all of them; its contents become unknown."""
    rank = len(value.shape)
    for axes in (*((axis,) for axis in range(rank)), *([range(rank)] if rank > 1 else [])):
        yield Value.unknown(value.element, value.shape.replace(dict.fromkeys(axes, length)))


@pytest.mark.parametrize(
    "cls", [c for c in registry if SAMPLES.get(c.versioned_name())], ids=lambda cls: cls.versioned_name()
)
@pytest.mark.parametrize("length", [0, 1 << 62, LONGEST])
def test_lengths_at_the_limits(cls: type[Op], length: int) -> None:
    """Inference with extreme dims gives a clear error, or results that fit 64 bits."""
    for sample in SAMPLES[cls.versioned_name()][:12]:
        values, layer = sample.values(), sample.layer()
        for index, value in enumerate(values):
            for other in resized(value, length) if value.shape.rank is not None else ():
                with contextlib.suppress(InferenceError, LimitError):
                    for found in layer.infer_values(*values[:index], other, *values[index + 1 :]):
                        dims = () if found.shape.rank is None else found.shape
                        bounds = [bound for dim in dims for bound in (dim.min, dim.max or 0)]
                        assert max(bounds, default=0) <= LONGEST


@pytest.mark.parametrize(
    "cls", [c for c in registry if SAMPLES.get(c.versioned_name())], ids=lambda cls: cls.versioned_name()
)
@often
@given(data=st.data())
def test_running_on_odd_attributes(cls: type[Op], data: st.DataObject) -> None:
    """Samples with other attributes that inference accepts are computed by `evaluate`, or refused with a clear error.

    Attributes may ask for excessive memory, such as pads of a billion; a kernel must refuse before it allocates.
    """
    sample = data.draw(st.sampled_from(SAMPLES[cls.versioned_name()]))
    if (op := layer(cls, data.draw(attributes(cls)))) is None:
        return
    with contextlib.suppress(InferenceError, LimitError), np.errstate(all="ignore"):
        types = op.infer_types(*sample.values())
        if any(t.shape.rank is not None and Value(t).count.min > 10**6 for t in types):
            return
        run = op.evaluate(*sample.inputs)
        for array in run if isinstance(run, tuple) else (run,):
            assert isinstance(array, np.ndarray)
