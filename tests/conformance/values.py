"""Cases from the samples of operations: values, shapes only, and values with dynamic dims.

Samples are converted to the element types that no sample has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
from harness.files import model_of
from harness.sample import Sample, all_samples, case, ints, numbers
from samples.variations import OUT

import ir_runtime as ov
from conformance.fulfilled import with_fulfilled
from ir_runtime.conformance.bounds import bound_of, tolerances
from ir_runtime.conformance.case import Case, Source, Tolerance
from ir_runtime.conformance.truth import Truth, Unstable, truth_of
from ir_runtime.errors import IRError
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.tensor import Array
from ir_runtime.ops import Op, registry
from ir_runtime.ops._define.describe import group
from ir_runtime.ops._define.operation import clauses

__all__ = ["Unfit", "cases_of", "converted", "dynamic_cases", "judged_cases", "samples", "value_cases"]

RANDOM = {"RandomUniform", "Multinomial"}
"""Operations whose outputs are not determined by their inputs: only types and shapes are."""
_DYNAMIC = 4
"""Samples of an operation that become dynamic."""


LONG_SUMS = tuple(
    sample
    for element in ("f16", "bf16", "f32")
    for sample in (
        case("MatMul-1", numbers(2, 300, dtype=element), numbers(300, 2, dtype=element, seed=1)),
        case("ReduceSum-1", numbers(2, 2000, dtype=element, low=0, high=1), ints(1)),
        case("ReduceMean-1", numbers(2, 2000, dtype=element, low=0, high=1), ints(1)),
        case("ReduceL2-4", numbers(2, 2000, dtype=element), ints(1)),
    )
)
"""Sums of so many terms that an accumulator of 16 bits is not enough."""


class Unfit(Exception):  # noqa: N818 - an answer
    """Raised for a sample that is not a case, with the reason."""


@cache
def samples() -> Mapping[str, Sequence[Sample]]:
    """Return the samples of the tests by operation, and those converted to missing types."""
    found: dict[str, list[Sample]] = {}
    for sample in (*all_samples(), *LONG_SUMS):
        found.setdefault(sample.op, []).append(sample)
    for cls in registry:
        if group(cls):
            of_op = found.get(cls.versioned_name(), [])
            of_op.extend(converted(cls, _plain(of_op)))
    return found


def _plain(of_op: Sequence[Sample]) -> list[Sample]:
    """Return the samples that do not exercise decisions."""
    return [sample for sample in of_op if not sample.shows]


def _identified(operation: str, of_op: Sequence[Sample]) -> Iterator[tuple[str, Sample]]:
    """Yield samples with the ids of their cases: the decision that they exercise, or a number."""
    plain = _plain(of_op)
    yield from ((f"{operation}/{number:04}", sample) for number, sample in enumerate(plain, 1))
    seen: Counter[str] = Counter()
    for sample in (sample for sample in of_op if sample.shows):
        name = sample.decisions()[0][0]
        seen[name] += 1
        yield f"{operation}/{name}" + (f"-{seen[name]}" if seen[name] > 1 else ""), sample


def value_cases(left_out: Counter[str], every: Mapping[str, Sequence[Sample]]) -> Iterator[Case]:
    """Yield the cases of samples; count samples that are not cases."""
    for operation, of_op in sorted(every.items()):
        lacking = {f"C{number}" for number in range(1, len(clauses(operation)) + 1)}
        for name, sample in _identified(operation, of_op):
            try:
                for case in map(with_fulfilled, cases_of(name, sample)):
                    lacking.difference_update(case.fulfils)
                    yield case
            except Unfit as reason:
                left_out[str(reason)] += 1
        yield from _constant_cases(operation, _plain(of_op), lacking)


def _constant_cases(operation: str, of_op: Sequence[Sample], lacking: set[str]) -> Iterator[Case]:
    """Yield cases with constant integer inputs as long as they fulfil further clauses: inference checks constants only."""
    number = 0
    for sample in of_op:
        if not lacking:
            return
        listed = [i for i, x in enumerate(sample.inputs) if x.dtype.kind in "iu" and i not in sample.types]
        if sample.cls.name in RANDOM or {*listed} <= {*sample.constant}:
            continue
        try:
            (case,) = cases_of(f"{operation}/constant-{number + 1}", replace(sample, constant=tuple(listed)))
        except Unfit:
            continue
        case = with_fulfilled(case)
        if not lacking.isdisjoint(case.fulfils):
            lacking.difference_update(case.fulfils)
            number += 1
            yield case


def dynamic_cases(left_out: Counter[str], every: Mapping[str, Sequence[Sample]]) -> Iterator[Case]:
    """Yield cases with fully dynamic models."""
    for operation, of_op in sorted(every.items()):
        chosen = [
            s for s in _plain(of_op) if any(x.ndim and i not in s.constant for i, x in enumerate(s.inputs))
        ]
        step = max(1, len(chosen) // _DYNAMIC)
        for number, sample in enumerate(chosen[::step][:_DYNAMIC], 1):
            try:
                yield from map(
                    with_fulfilled, cases_of(f"{operation}/dynamic-{number}", sample, dynamic=True)
                )
            except Unfit as reason:
                left_out[str(reason)] += 1


def judged_cases() -> Iterator[tuple[Case, Truth]]:
    """Yield cases with their expected outputs."""
    for operation, of_op in sorted(samples().items()):
        for name, sample in _identified(operation, of_op):
            if sample.cls.name not in RANDOM:
                try:
                    yield _judged(name, sample)
                except (Unfit, Unstable):
                    continue


def cases_of(name: str, sample: Sample, dynamic: bool = False) -> Iterator[Case]:
    """Yield the cases of a sample.

    Raises:
        Unfit: if it has none.
    """
    if sample.cls.name in RANDOM:
        yield from _random(name, sample, dynamic)
        return
    try:
        case, truth = _judged(name, sample, dynamic)
    except Unstable as undecided:
        case = _case(name, sample, dynamic, str(undecided))
        yield replace(case, kind="shape", expected=undecided.outputs, output_types=undecided.types, tolerances=[Tolerance(predicate="shape")] * len(undecided.types))  # fmt: skip
        return
    allowed = tolerances(truth, bound_of(sample.op, truth.precision))
    if sample.attributes.get("sort") == "none":
        allowed = [replace(tolerance, predicate="any-order") for tolerance in allowed]
    alternatives = [] if truth.infinite is None else [truth.infinite]
    yield replace(case, tolerances=allowed, alternatives=alternatives)


def _judged(name: str, sample: Sample, dynamic: bool = False) -> tuple[Case, Truth]:
    case = _case(name, sample, dynamic, sample.differs)
    try:
        truth = truth_of(ov.read_model(case.xml, case.weights), case.inputs)
    except IRError as problem:
        raise Unfit(f"refused: {problem.code}") from problem
    source: Source = "page" if sample.expect is not None else truth.source
    tolerance = [Tolerance()] * len(truth.types)
    return replace(
        case, expected=truth.outputs, output_types=truth.types, source=source, tolerances=tolerance
    ), truth


def _random(name: str, sample: Sample, dynamic: bool) -> Iterator[Case]:
    case = _case(name, sample, dynamic, "numbers are random; types and shapes are not")
    model = ov.read_model(case.xml, case.weights)
    results = ov.compile_model(model, backend="reference")(list(case.inputs)).to_tuple()
    types = [ElementType.from_dtype(array.dtype) for array in results]
    tolerance = [Tolerance(predicate="shape")] * len(types)
    yield replace(case, kind="shape", expected=results, output_types=types, tolerances=tolerance)


def _case(name: str, sample: Sample, dynamic: bool, notes: str) -> Case:
    """Return a case without outputs from a sample's model."""
    try:
        xml, weights = model_of(sample, sample.constant, dynamic)
    except IRError as problem:
        raise Unfit(f"refused: {problem.code}") from problem
    fed = [index for index in range(len(sample.inputs)) if index not in sample.constant]
    types = [sample.values()[index].element for index in fed]
    kind = "dynamic" if dynamic else "value"
    inputs = [sample.inputs[index] for index in fed]
    shown = [f"{sample.op} {number}: {text}" for number, text in sample.decisions()]
    return Case(name, sample.op, kind, xml, weights, inputs, [], types, [], [], notes=notes, clauses=shown)


def converted(cls: type[Op], of_op: Sequence[Sample]) -> Iterator[Sample]:
    """Yield a sample in each allowed element type that no sample has."""
    for place, port in enumerate(cls.inputs):
        having = [sample for sample in of_op if place < len(sample.inputs)]
        seen = {sample.values()[place].element for sample in having}
        for element in port.element.allowed:
            if element in seen or (cls.versioned_name(), element.label) in OUT:
                continue
            for sample in sorted(having, key=_is_plain)[:4]:
                converted = _in_type(sample, place, element)
                if _is_computed(converted):
                    yield converted
                    break


def _is_plain(sample: Sample) -> tuple[bool, bool, int]:
    """Sort key: ordinary samples that OpenVINO agrees with first, small ones before large ones."""
    numbers = [x for x in sample.inputs if x.dtype != object]
    return bool(sample.differs), any(not x.size for x in numbers), sum(x.size for x in sample.inputs)


def _in_type(sample: Sample, place: int, element: ElementType) -> Sample:
    """Return a sample with an input, and those sharing its type variable, in another type."""
    wanted = sample.cls.port_of(place)
    inputs, types = list(sample.inputs), dict(sample.types)
    for index, array in enumerate(sample.inputs):
        port = sample.cls.port_of(index)
        # Pages give all inputs of a type variable one type, though most runtimes let indices differ.
        if port is not None and wanted is not None and port.element == wanted.element:
            inputs[index] = _cast(array, element)
            types.pop(index, None)
            if element is ElementType.string or ElementType.from_dtype(inputs[index].dtype) is not element:
                types[index] = element
    return replace(sample, inputs=tuple(inputs), types=types, expect=None, differs="")


def _cast(array: Array, element: ElementType) -> Array:
    """Return values representable in the type, in that type."""
    if element is ElementType.string:
        return np.array([str(x) for x in array.flat], object).reshape(array.shape)
    if array.dtype == object:
        array = np.arange(array.size).reshape(array.shape) % 3
    if element is ElementType.boolean:
        return array.astype(np.float64) != 0
    numbers = np.nan_to_num(array.astype(np.float64), nan=0.0).clip(-100, 100)
    if not element.integral:
        return np.asarray(np.abs(numbers) + 1 if element.label == "f8e8m0" else numbers).astype(element.dtype)
    signed = element.label.startswith("i")
    low, high = (
        (-(1 << (element.bits - 1)), (1 << (element.bits - 1)) - 1)
        if signed
        else (0, (1 << element.bits) - 1)
    )
    return np.asarray(numbers.clip(low, high)).astype(element.dtype)


def _is_computed(sample: Sample) -> bool:
    try:
        sample.layer().infer_types(*sample.values())
        xml, weights = model_of(sample, sample.constant)
        feeds = [x for index, x in enumerate(sample.inputs) if index not in sample.constant]
        ov.compile_model(ov.read_model(xml, weights), backend="reference")(feeds)
    except (IRError, ValueError, TypeError):
        return False
    return True
