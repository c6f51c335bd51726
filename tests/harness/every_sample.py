"""Tests that take every sample: most operations have some that are much alike, which wait for the exhaustive run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from _pytest.mark import ParameterSet

from harness.sample import named_samples

FIRST, EVERY = 3, 8
"""Always tried, of each operation: so many, and one in so many of the rest."""


def _marked() -> Iterator[ParameterSet]:
    seen: Counter[str] = Counter()
    for name, sample in named_samples().items():
        number = seen[sample.op]
        seen[sample.op] += 1
        waits = number >= FIRST and number % EVERY
        yield pytest.param(sample, marks=pytest.mark.oracle if waits else (), id=name)


every_sample = pytest.mark.parametrize("sample", list(_marked()))
