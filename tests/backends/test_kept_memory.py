"""Memory of large freed arrays is reused for later ones, and is never used twice at a time."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import ir_runtime as ov
from ir_runtime import opset1
from ir_runtime._util import forks
from ir_runtime.backends.common.kept_memory import MAX_KEPT, KeptMemory, allocator, empty, kept_memory
from ir_runtime.backends.common.kept_memory import _lock as lock
from ir_runtime.ir.tensor import Array

SIZE = MAX_KEPT + 64


@pytest.fixture(autouse=True)
def memory() -> Iterator[KeptMemory]:
    yield (memory := kept_memory())
    memory.release()


def address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


def test_a_large_array_is_where_a_freed_one_was() -> None:
    first = empty(SIZE, np.uint8)
    place = address(first)
    del first
    assert address(empty((4, SIZE // 16), np.float32)) == place


@pytest.mark.parametrize("held", [lambda x: x, lambda x: x[5:].view(np.uint8)[::2], lambda x: memoryview(x)])
def test_memory_that_anything_refers_to_is_not_used_again(held: Callable[[Array], object]) -> None:
    kept = held(empty(SIZE, np.uint8))
    other = empty(SIZE, np.uint8)
    assert not np.shares_memory(np.asarray(kept), other)


def test_use_does_not_depend_on_counts_of_references(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reference counts do not tell whether a block is in use: free-threaded Python stores some of them elsewhere."""
    monkeypatch.delattr("sys.getrefcount")
    memory = KeptMemory()
    first = memory.lend(SIZE)
    place, others = address(first), [memory._blocks[0], memory._blocks[0].array]
    assert address(memory.lend(SIZE)) != place
    view = first.view(np.float16)[4:].reshape(2, -1)
    del first
    assert address(memory.lend(SIZE)) != place
    del view
    assert address(memory.lend(SIZE)) == place
    assert others[1] is memory._blocks[0].array


def test_small_arrays_are_those_of_numpy() -> None:
    assert empty((3, 5), np.float64).base is None
    assert allocator([(3, np.uint8), ((2, 2), np.float32)]) is np.empty
    assert allocator([(3, np.uint8), ((2, SIZE), np.float32)]) is empty


def test_no_more_is_kept_than_was_in_use_at_once() -> None:
    memory = KeptMemory()
    arrays = [memory.lend(size) for size in (100, 200, 300)]
    places = [address(array) for array in arrays]
    arrays.clear()
    first, second = memory.lend(250), memory.lend(350)
    assert (first.nbytes, second.nbytes) == (250, 350)
    assert address(first) == places[2], "the smallest block that fits"
    assert sum(block.nbytes for block in memory._blocks) == 650
    assert [block.nbytes for block in memory._find_unused()] == []


def test_released_memory_is_not_used_again() -> None:
    memory = KeptMemory()
    used, other = memory.lend(10), memory.lend(20)
    del other
    memory.release()
    assert memory._blocks == []
    assert not np.shares_memory(memory.lend(10), used)


def test_memory_goes_with_what_keeps_it(memory: KeptMemory) -> None:
    alone = weakref.ref(KeptMemory())
    assert alone() is None
    assert kept_memory() is memory


def test_a_child_does_not_wait_for_a_thread_of_its_parent(memory: KeptMemory) -> None:
    lock[0].acquire()
    for function in forks._in_child:
        function()
    assert memory.lend(10).nbytes == 10


def test_results_do_not_change_with_later_runs() -> None:
    length = MAX_KEPT // 4 + 1
    x = opset1.parameter([1, length], np.float32, name="x")
    model = ov.Model([opset1.relu(opset1.add(x, np.float32([[1]])), name="y")], [x])
    compiled = ov.compile_model(model, backend="native")
    inputs = [np.full((1, length), value, np.float32) for value in range(6)]
    results = [compiled([each], share_outputs=True)[0] for each in inputs]
    for value, result in enumerate(results):
        np.testing.assert_array_equal(result, np.float32(value + 1))
    places = {address(result) for result in results}
    assert len(places) == len(results)
    del results, result
    assert address(compiled([inputs[0]], share_outputs=True)[0]) in places
    compiled.release_memory()
