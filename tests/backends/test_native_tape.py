"""Memory plans of recorded calls: regions with overlapping lifetimes are disjoint, and the plan is small."""

from __future__ import annotations

import numpy as np
import pytest

from ir_runtime.backends import available

pytestmark = pytest.mark.skipif("native" not in available(), reason="native is not installed")
if "native" in available():
    from ir_runtime.backends.native.threading.tape import Allocation, Region, allocate


def region(size: int, first: int, last: int) -> Region:
    return Region(64, 64, 64 + size, ((size,), (1,), np.dtype(np.uint8)), True, first, last, None)


def check(regions: list[Region], results: list[Region], found: Allocation) -> None:
    """Require that no live regions share bytes, and none overlaps a result that has been written."""
    assert set(found.places) == set(regions)
    for index, one in enumerate(regions):
        place, start = found.places[one]
        stop = start + one.stop - one.start
        if place is None:
            assert stop <= found.size
        else:
            assert place in results
            assert stop <= place.stop - place.start
            assert one.last < place.first
        for other in regions[:index]:
            where, begin = found.places[other]
            if where is place and one.first <= other.last and other.first <= one.last:
                assert stop <= begin or begin + other.stop - other.start <= start


def test_a_chain_needs_its_largest_neighbours() -> None:
    regions = [region(size, index, index + 1) for index, size in enumerate([64, 640, 128, 640, 64])]
    found = allocate(regions, [], 6)
    check(regions, [], found)
    assert found.size == 768


def test_a_result_holds_what_is_needed_before_it_is_written() -> None:
    early, late, result = region(1024, 0, 1), region(1024, 1, 2), region(1024, 2, 2)
    found = allocate([early, late], [result], 3)
    check([early, late], [result], found)
    assert found.places[early] == (result, 0)
    assert found.places[late] == (None, 0)
    assert found.size == 1024


@pytest.mark.parametrize("seed", range(20))
def test_plans_of_random_calls_are_right(seed: int) -> None:
    random = np.random.default_rng(seed)
    calls = 40

    def drawn(longest: int) -> Region:
        first = int(random.integers(calls))
        return region(
            int(random.integers(1, 5000)), first, min(calls - 1, first + int(random.integers(longest)))
        )

    regions = [drawn(12) for _ in range(60)]
    results = [drawn(1) for _ in range(6)]
    check(regions, results, allocate(regions, results, calls))
