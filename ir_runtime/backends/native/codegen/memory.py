"""Memory instructions of kernels: loads, stores, atomic counters, waits, and scratch memory.

Kernels work on addresses only. Functions of the process, such as the allocator, are called through the host table: words that
are filled when the kernel library is loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..machine_code import TABLE, WORDS
from . import ir
from .ir import VOID
from .language import Scratch, device, instruction, types
from .target import TARGET
from .vectors import F32, I32, I64, Emit, Value

if TYPE_CHECKING:
    from .vectors import Emit, Value

__all__ = [
    "barrier",
    "call_host",
    "fetch_add",
    "fetch_sub",
    "host_word",
    "load_atomic",
    "load_f32",
    "load_i64",
    "scratch_memory",
    "spin",
    "SPIN_LIMIT",
    "store_atomic",
    "store_f32",
    "store_i64",
]


def host_word(emit: Emit, name: str) -> Value:
    """Load the word called ``name`` of the host table."""
    table = emit.builder.module.declare_table(TABLE, len(WORDS))
    place = emit.builder.element_pointer(table, emit.i64(WORDS.index(name)), ir.I64)
    return emit.builder.load(place, ir.I64, 8)


def call_host(emit: Emit, name: str, returns: ir.Type, *arguments: Value) -> Value:
    """Call the function whose address is the word ``name`` of the host table."""
    return emit.builder.call_pointer(emit.pointer(host_word(emit, name)), arguments, returns)


# The number of polls before a thread yields the core: about 50 µs, in which most waits end.
SPIN_LIMIT = 2000


def _place(emit: Emit, address: Value, index: Value, size: int) -> Value:
    """Return the address of element ``index``; the offset of a constant index, as of a descriptor field, is constant."""
    constant = getattr(index, "constant", None)
    return emit.at(
        address, size * constant if isinstance(constant, int) else emit.builder.mul(index, emit.i64(size))
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
    """Atomically add 1 to an i64; return its previous value."""
    return emit.fetch_add(address, 1)


@instruction(types.int64, returns=types.int64)
def fetch_sub(emit: Emit, address: Value) -> Value:
    """Atomically subtract 1 from an i64; return its previous value."""
    return emit.fetch_add(address, -1)


@instruction(types.int64, returns=types.int64)
def load_atomic(emit: Emit, address: Value) -> Value:
    """Load an i64 that other threads may change, atomically and sequentially consistent."""
    return emit.load_atomic(address)


@instruction(types.int64, types.int64)
def store_atomic(emit: Emit, address: Value, value: Value) -> None:
    """Store an i64 that other threads may read, atomically and sequentially consistent."""
    emit.store_atomic(value, address)


@instruction(types.int64, returns=types.int64)
def _allocate(emit: Emit, size: Value) -> Value:
    """Allocate ``size`` bytes aligned to a cache line; return the address, or 0 on failure."""
    raw = call_host(emit, "allocate", I64, emit.builder.add(size, emit.i64(128)))

    def align() -> list[Value]:
        start = emit.builder.and_(emit.at(raw, 127), emit.i64(-64))
        emit.store(raw, emit.at(start, -8))
        return [start]

    (start,) = emit.if_else(emit.builder.icmp_signed("!=", raw, emit.i64(0)), align, lambda: [emit.i64(0)])
    return start


@instruction(types.int64)
def _release(emit: Emit, address: Value) -> None:
    """Release memory allocated by `_allocate`."""
    call_host(emit, "release", VOID, emit.load(emit.at(address, -8), I64))


scratch_memory = Scratch(_allocate, _release)
"""Allocate ``size`` bytes aligned to a cache line; they are released when the calling kernel function returns."""


@instruction()
def _pause(emit: Emit) -> None:
    """Tell the processor that this is a spin loop; nothing on AArch64."""
    if TARGET.is_x86:
        emit.builder.call(emit.function("llvm.x86.sse2.pause", None), [])


@instruction()
def _yield(emit: Emit) -> None:
    """Yield the core to another thread."""
    call_host(emit, "yield", I32)


@device
def spin(polls: int) -> int:
    """Pause after ``polls`` unsuccessful polls of a waiting loop; return ``polls + 1``.

    After `SPIN_LIMIT` polls, the thread yields the core, which the awaited thread may need.
    """
    if polls < SPIN_LIMIT:
        _pause()
    else:
        _yield()
    return polls + 1


@device
def barrier(counter: int, units: int, stop: int) -> int:
    """Wait until the i64 at ``counter`` reaches ``units`` or that at ``stop`` is not 0; return the number of polls."""
    polls = 0
    while load_atomic(counter) < units and load_atomic(stop) == 0:
        polls = spin(polls)
    return polls
