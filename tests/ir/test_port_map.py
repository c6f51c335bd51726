"""Parts of an axis that iterations receive: they are adjacent, and only a partial one is left out."""

from __future__ import annotations

from itertools import product

import pytest

from ir_runtime.ir.port_map import Cut


@pytest.mark.parametrize(("length", "part_size"), list(product(range(1, 8), range(1, 4))))
def test_parts_of_a_whole_axis(length: int, part_size: int) -> None:
    cut = Cut(0, stride=part_size, part_size=part_size)
    count, rest = cut.divide(length)
    assert count == cut.count(length)
    covered = [index for part in range(count) for index in range(length)[cut.part(length, part)]]
    assert covered == list(range(length - rest))
    assert rest < part_size


@pytest.mark.parametrize(("length", "part_size"), list(product(range(1, 8), range(1, 4))))
def test_parts_from_the_end(length: int, part_size: int) -> None:
    cut = Cut(0, -1, 0, -part_size, part_size)
    count, rest = cut.divide(length)
    assert count == cut.count(length)
    covered = [index for part in range(count) for index in reversed(range(length)[cut.part(length, part)])]
    assert covered == list(range(rest, length))[::-1]
    assert rest < part_size


@pytest.mark.parametrize(("start", "end"), [(1, -1), (0, -2), (2, 4), (-3, -2)])
def test_parts_between_two_places(start: int, end: int) -> None:
    assert Cut(0, start, end).divide(6) == (len(range(6)[start:][: (end % 6) - (start % 6) + 1]), 0)
