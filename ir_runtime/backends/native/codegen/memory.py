"""Memory instructions of kernels: loads, stores, atomic counters, waiting for these, and scratch memory.

Kernels work on addresses only.
"""

from __future__ import annotations

from .host import call_host
from .ir import VOID
from .language import Scratch, device, instruction, types
from .target import TARGET
from .vectors import F32, I32, I64, Emit, Value

__all__ = [
    "SPIN_LIMIT", "barrier", "fetch_add", "fetch_sub", "load_atomic", "load_f32", "load_i64", "scratch_memory", "spin",
    "store_atomic", "store_f32", "store_i64",
]  # fmt: skip

# How often a thread polls before it yields the core to others: some 50 µs, in which most waits end.
SPIN_LIMIT = 2000


def _place(emit: Emit, address: Value, index: Value, size: int) -> Value:
    """Return the address of an element; most indices are known, as they are fields of descriptors."""
    known = getattr(index, "constant", None)
    return emit.at(
        address, size * known if isinstance(known, int) else emit.builder.mul(index, emit.i64(size))
    )


@instruction(types.int64, types.int64, returns=types.int64)
def load_i64(emit: Emit, address: Value, index: Value) -> Value:
    """Load ``((int64_t *)address)[index]``."""
    return emit.load(_place(emit, address, index, 8), I64)


@instruction(types.int64, types.int64, returns=types.float32)
def load_f32(emit: Emit, address: Value, index: Value) -> Value:
    """Load ``((float *)address)[index]``."""
    return emit.load(_place(emit, address, index, 4), F32)


@instruction(types.int64, types.int64, types.int64)
def store_i64(emit: Emit, address: Value, index: Value, value: Value) -> None:
    """Store an i64 to ``((int64_t *)address)[index]``."""
    emit.store(value, _place(emit, address, index, 8))


@instruction(types.int64, types.int64, types.float32)
def store_f32(emit: Emit, address: Value, index: Value, value: Value) -> None:
    """Store an f32 to ``((float *)address)[index]``."""
    emit.store(value, _place(emit, address, index, 4))


@instruction(types.int64, returns=types.int64)
def fetch_add(emit: Emit, address: Value) -> Value:
    """Add 1 to an i64 atomically and return its previous value."""
    return emit.fetch_add(address, 1)


@instruction(types.int64, returns=types.int64)
def fetch_sub(emit: Emit, address: Value) -> Value:
    """Subtract 1 from an i64 atomically and return its previous value."""
    return emit.fetch_add(address, -1)


@instruction(types.int64, returns=types.int64)
def load_atomic(emit: Emit, address: Value) -> Value:
    """Load an i64 that other threads may change (sequentially consistent)."""
    return emit.load_atomic(address)


@instruction(types.int64, types.int64)
def store_atomic(emit: Emit, address: Value, value: Value) -> None:
    """Store an i64 that other threads read (sequentially consistent)."""
    emit.store_atomic(value, address)


@instruction(types.int64, returns=types.int64)
def _allocate(emit: Emit, size: Value) -> Value:
    """Return the address of ``size`` new bytes, aligned to a cache line; 0 if there is no memory."""
    raw = call_host(emit, "allocate", I64, emit.builder.add(size, emit.i64(128)))

    def aligned() -> list[Value]:
        start = emit.builder.and_(emit.at(raw, 127), emit.i64(-64))
        emit.store(raw, emit.at(start, -8))
        return [start]

    (found,) = emit.if_else(emit.builder.icmp_signed("!=", raw, emit.i64(0)), aligned, lambda: [emit.i64(0)])
    return found


@instruction(types.int64)
def _release(emit: Emit, address: Value) -> None:
    """Release memory of `_allocate`."""
    call_host(emit, "release", VOID, emit.load(emit.at(address, -8), I64))


scratch_memory = Scratch(_allocate, _release)
"""Return the address of new bytes, aligned to a cache line, which the function that asks has until it returns."""


@instruction()
def _pause(emit: Emit) -> None:
    """Tell the processor that this is a spin loop."""
    if TARGET.is_x86:
        emit.builder.call(emit.function("llvm.x86.sse2.pause", None), [])


@instruction()
def _yield(emit: Emit) -> None:
    """Let another thread have the core, if one wants it."""
    call_host(emit, "yield", I32)


@device
def spin(polls: int) -> int:
    """Pass the time between two polls, after ``polls`` of them without success; return how many there are then.

    What is waited for may need this core: of a thread that only spun, it would get no more than the system divides.
    """
    if polls < SPIN_LIMIT:
        _pause()
    else:
        _yield()
    return polls + 1


@device
def barrier(counter: int, units: int, stop: int) -> int:
    """Wait until ``units`` units are counted as done, or the i64 at ``stop`` is not 0; return how often it was polled in vain."""
    polls = 0
    while load_atomic(counter) < units and load_atomic(stop) == 0:
        polls = spin(polls)
    return polls
