"""Reading pauses garbage collection, and does not leave the next one all objects to go through."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from ir_runtime.garbage import no_collection


@pytest.fixture(autouse=True)
def enabled() -> Iterator[None]:
    gc.enable()
    yield
    gc.unfreeze()


def is_young(found: list[object]) -> bool:
    return any(each is found for each in gc.get_objects(generation=0))


def test_objects_made_meanwhile_are_old_afterwards() -> None:
    with no_collection():
        assert not gc.isenabled()
        made: list[object] = [[]]
        assert is_young(made)
    assert gc.isenabled()
    assert not is_young(made)


def test_objects_that_a_program_has_frozen_stay_so() -> None:
    gc.freeze()
    with no_collection():
        pass
    assert gc.get_freeze_count()


def test_collection_that_was_off_stays_off() -> None:
    gc.disable()
    with no_collection():
        made: list[object] = [[]]
    assert not gc.isenabled()
    assert is_young(made)
