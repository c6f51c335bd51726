"""Samples: one operation, its attributes and its inputs; and which samples the short test run tries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from _pytest.mark import ParameterSet

from ir_runtime.ir.element import ElementType
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Array, Value
from ir_runtime.ops import Op, registry


@dataclass(frozen=True)
class Sample:
    """One layer with its inputs. ``differs`` explains why OpenVINO may disagree, and who is right."""

    op: str
    inputs: tuple[Array, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    constant: tuple[int, ...] = ()
    """Inputs that OpenVINO wants as constants, also in the dynamic variant."""
    oracle: Literal["reference", "plugin", "none"] = "reference"
    """Where to ask. The reference falls back on the CPU plugin where it does not implement an operation."""
    expect: tuple[Array, ...] | None = None
    """The right outputs, where OpenVINO is not asked."""
    differs: str = ""
    in_f32: str = ""
    """Why f16 gives other numbers where it is computed in f32, as the fast backends do: the CPU plugin is asked for these."""
    wider: str = ""
    """Why our inferred shapes may be wider than OpenVINO's."""
    rtol: float | None = None
    atol: float | None = None
    types: Mapping[int, ElementType] = field(default_factory=dict)
    """Element types of inputs whose dtype does not tell, as they are carried as codes."""
    shows: tuple[str, ...] = ()
    """How the decisions of the operation begin that its outputs show."""
    always: bool = False
    """Whether the short test run tries it: no other sample shows what it does, such as numbers exactly at a bound."""

    @property
    def cls(self) -> type[Op]:
        name, _, since = self.op.rpartition("-")
        for version in registry.versions(name):
            if version.since == int(since):
                return version
        raise LookupError(f"there is no operation {self.op}: run `make index` after adding one")

    def layer(self) -> Op:
        """The operation, with attributes parsed from text as from a file."""
        return self.cls.parse({k: text(v) for k, v in self.attributes.items()})

    def decisions(self) -> list[tuple[str, str]]:
        """The decisions that it exercises: number and text."""
        numbered = [(f"D{number}", text) for number, text in enumerate(self.cls.decided(), 1)]
        shown = [[pair for pair in numbered if pair[1].startswith(start)] for start in self.shows]
        assert all(len(pairs) == 1 for pairs in shown), (
            f"{self.op} has no single decision for each of {self.shows}"
        )
        return [pair for pairs in shown for pair in pairs]

    def values(self) -> list[Value]:
        return [Value.constant(x, self.types.get(i)) for i, x in enumerate(self.inputs)]

    def evaluate(self) -> tuple[Array, ...]:
        """Return the outputs of the reference kernel."""
        with np.errstate(all="ignore"):
            found = self.layer().evaluator([v.element for v in self.values()])(*self.inputs)
        return found if isinstance(found, tuple) else (found,)

    def __str__(self) -> str:
        shapes = "-".join(_brief(x, v.element) for x, v in zip(self.inputs, self.values(), strict=True))
        attributes = ",".join(f"{k}={text(v)}" for k, v in self.attributes.items())
        return f"{self.op}({shapes};{attributes})".replace(" ", "").replace("::", ":")


def _brief(x: Array, element: ElementType) -> str:
    short = x.dtype.kind in "iu" and x.size <= 6
    return f"{element.label}{list(x.shape)}{x.tolist() if short else ''}"


def case(op: str, *inputs: Any, **attributes: Any) -> Sample:
    """Return a sample from an operation, inputs and attributes.

    A dash in an attribute's name is written ``__``; a leading ``_`` marks a field of `Sample`.
    """
    fields = {k[1:]: v for k, v in attributes.items() if k.startswith("_")}
    named = {k.replace("__", "-"): v for k, v in attributes.items() if not k.startswith("_")}
    return Sample(op, tuple(np.asarray(x) for x in inputs), named, **fields)


def text(value: Any) -> str:
    """Format an attribute as in files."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        return ", ".join(map(text, value))
    return value.label if isinstance(value, ElementType) else str(value)


def numbers(*shape: int, dtype: str = "f32", low: float = -3, high: float = 3, seed: int = 0) -> Array:
    """Return reproducible random values of an element type, within [low, high] as far as it can represent them."""
    element = ElementType.parse(dtype)
    rng = np.random.default_rng([seed, *shape])
    if element is ElementType.boolean:
        return rng.integers(0, 2, shape).astype(bool)
    if element.integral:
        low = max(low, 0) if element.label.startswith("u") else low
        return rng.integers(int(low), int(high) + 1, shape).astype(element.dtype)
    return np.asarray(rng.uniform(low, high, shape)).astype(element.dtype)


def ints(*numbers: int, dtype: str = "i64") -> Array:
    """Return a 1-D integer tensor, such as axes."""
    return np.array(numbers, ElementType.parse(dtype).dtype)


def scalar(number: float, dtype: str = "i64") -> Array:
    """Return a 0-D tensor."""
    return np.array(number, ElementType.parse(dtype).dtype)


def value(x: Any) -> Value:
    """Return a known value from an array, or an unknown one from ``"f32 2,?"``."""
    if isinstance(x, Value):
        return x
    if isinstance(x, str):
        element, _, shape = x.partition(" ")
        return Value.unknown(ElementType.parse(element), PartialShape(shape))
    return Value.constant(np.asarray(x))


def is_sampled(cls: type[Op]) -> bool:
    """Return whether an operation can be tested as a single layer on arrays.

    Parameters, Results, and operations with bodies or variables cannot: tests/models covers them. Operations declared by other
    tests are excluded.
    """
    ends = ("Parameter", "Constant", "Result")
    return (
        registry.is_own(cls)
        and cls.name not in ends
        and not cls.needs("visit")
        and not cls.needs("variables")
    )


def all_samples() -> Iterator[Sample]:
    """Yield the samples of every group."""
    for file in sorted((Path(__file__).parents[1] / "samples").glob("[a-z]*.py")):
        yield from import_module(f"samples.{file.stem}").SAMPLES


@cache
def named_samples() -> Mapping[str, Sample]:
    """Return the samples by test id; equal ids are numbered."""
    found: dict[str, Sample] = {}
    seen: Counter[str] = Counter()
    for sample in all_samples():
        name = str(sample)
        seen[name] += 1
        found[name if seen[name] == 1 else f"{name}#{seen[name]}"] = sample
    return found


FIRST, EVERY = 3, 8
"""Always tried, of each operation: so many, one in so many of the rest, the first of each choice of an attribute, and those that say so."""


def choices(sample: Sample) -> set[tuple[str, str, object]]:
    """Return the enumerated attributes of a sample with their values."""
    layer = sample.layer()
    enumerated = (a.name for a in sample.cls.schema().values() if a.choices and not a.external)
    values = ((name, getattr(layer, name)) for name in enumerated)
    return {
        (sample.op, name, item)
        for name, value in values
        for item in (value if isinstance(value, tuple) else (value,))
    }


def _marked() -> Iterator[ParameterSet]:
    seen: Counter[str] = Counter()
    tried: set[tuple[str, str, object]] = set()
    for name, sample in named_samples().items():
        number = seen[sample.op]
        seen[sample.op] += 1
        chosen = number < FIRST or number % EVERY == 0 or sample.always
        waits = not chosen and choices(sample) <= tried
        if not waits:
            tried |= choices(sample)
        yield pytest.param(sample, marks=pytest.mark.oracle if waits else (), id=name)


every_sample = pytest.mark.parametrize("sample", list(_marked()))
