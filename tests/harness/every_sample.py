"""Tests that take every sample: most operations have some that are much alike, which wait for the exhaustive run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from _pytest.mark import ParameterSet

from harness.sample import Sample, named_samples

FIRST, EVERY = 3, 8
"""Always tried, of each operation: so many, one in so many of the rest, and the first of each choice of an attribute."""


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
        waits = number >= FIRST and number % EVERY and choices(sample) <= tried
        if not waits:
            tried |= choices(sample)
        yield pytest.param(sample, marks=pytest.mark.oracle if waits else (), id=name)


every_sample = pytest.mark.parametrize("sample", list(_marked()))
