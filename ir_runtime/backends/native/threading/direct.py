"""Runs of plans that are one replay: from the inputs to the outputs, without slots in between."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import copy_context

import numpy as np

from ...._util.scoped import inside
from ....ir.tensor import Array
from ...common.kept_memory import allocator
from ...core.replay import Direct
from ...core.threads import set_most
from ..codegen.descriptor import keeping
from .parallel import pool_address, running, threads
from .part_replay import Made, Replay, got
from .replay import replay, tuple_word

__all__ = ["direct_run"]


def direct_run(whole: Replay, inputs: Sequence[int], outputs: Sequence[int]) -> Direct | None:
    """Return a function that performs a whole run by one replay; ``None`` if some steps run in Python.

    Args:
        whole: the replay of all steps of a plan.
        inputs: the slots of its inputs, whose shapes match the recording.
        outputs: the slots of its outputs.
    """
    stores = dict(whole.stores)
    reads = {slot for slot, *_ in (*whole.given, *whole.shapes)}
    in_python = bool(whole.host.constants or whole.after or whole.expected)
    if in_python or not reads.issubset(inputs) or not set(outputs).issubset(stores):
        return None
    given = [(inputs.index(slot), strides, dtype) for slot, _, strides, dtype in whole.given]
    made: list[Made] = [stores[slot] for slot in outputs]
    call, address, first = replay(), whole.tape.address, tuple_word()
    scopes, count = (running,), threads()
    scratch, results, shared, can_refuse = whole.scratch, whole.results, whole.shared, whole.tape.can_refuse
    empty = allocator([(scratch, np.uint8), *results])

    def direct(feeds: Sequence[Array]) -> list[Array] | None:
        arrays: list[Array] = []
        for index, strides, dtype in given:
            array = feeds[index]
            if array.strides != strides or array.dtype is not dtype:
                return None
            arrays.append(array)
        if (pool := pool_address() if shared else 0) == 0 and shared:
            return None
        try:
            memory = (empty(scratch, np.uint8), *[empty(*result) for result in results], *arrays)
        except MemoryError:
            return None
        if call(address, pool, memory, first) or (can_refuse and memory[0][:8].any()):
            return None
        return [memory[what[0]] if what[1] is None else got(memory, [], what) for what in made]

    def with_threads(feeds: Sequence[Array]) -> list[Array] | None:
        set_most(count)
        return inside(scopes, direct, feeds)

    def in_context(feeds: Sequence[Array]) -> list[Array] | None:
        return copy_context().run(with_threads, feeds)

    return keeping(in_context if shared else direct, whole.tape)
