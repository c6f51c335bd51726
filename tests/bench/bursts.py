"""Kernels that only multiply or read, to measure the peaks of the processor.

Sums stay in registers, in enough chains to hide the latency, with the widest instructions that the native backend uses for a
type.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import Barrier

import numpy as np
from harness.routines import call_of

from ir_runtime.backends.native.codegen import ir
from ir_runtime.backends.native.codegen.bf16 import IS_FASTER, add_pairs
from ir_runtime.backends.native.codegen.language import Routine, instruction, routine, types
from ir_runtime.backends.native.codegen.levels import GROUP, dot
from ir_runtime.backends.native.codegen.vectors import INTS, LANES, VECTOR, Emit, Value

__all__ = ["OPERATIONS", "compiled", "products", "reading"]

CHAINS = 12
ROUND = 4e-3
"""Seconds of one burst: long beside the start of threads, short beside the time slices of a busy machine."""
ROUNDS = 60

i64 = types.int64


def _chains(
    emit: Emit, count: Value, out: Value, kind: ir.Type, step: Callable[[Value, Value], Value]
) -> None:
    """Emit ``count`` steps of each chain: multiply and add to its sum, which is also a factor."""
    factor = emit.load(out, kind)
    with emit.loop(count, [factor] * CHAINS) as (_, sums, following):
        following += [step(total, factor) for total in sums]
    for place, total in enumerate(following):
        emit.store(total, emit.at(out, 4 * LANES * place))


@instruction(i64, i64)
def _multiply_f32(emit: Emit, count: Value, out: Value) -> None:
    _chains(emit, count, out, VECTOR, lambda total, factor: emit.fma(total, factor, factor))


@instruction(i64, i64)
def _multiply_bf16(emit: Emit, count: Value, out: Value) -> None:
    def step(total: Value, factor: Value) -> Value:
        return add_pairs(emit, total, emit.builder.bitcast(total, INTS), emit.builder.bitcast(factor, INTS))

    _chains(emit, count, out, VECTOR, step)


@instruction(i64, i64)
def _multiply_int8(emit: Emit, count: Value, out: Value) -> None:
    _chains(emit, count, out, INTS, lambda total, factor: dot(emit, total, total, factor))


@instruction(i64, i64, i64)
def _read(emit: Emit, address: Value, lines: Value, out: Value) -> None:
    width = 4 * LANES
    with emit.loop(lines, [ir.Constant(INTS, None)] * CHAINS) as (line, sums, following):
        start = emit.at(address, emit.builder.mul(line, emit.i64(CHAINS * width)))
        following += [
            emit.builder.xor(total, emit.load(emit.at(start, width * place), INTS))
            for place, total in enumerate(sums)
        ]
    for place, total in enumerate(following):
        emit.store(total, emit.at(out, width * place))


@routine(i64, i64)
def multiply_f32(count: int, out: int) -> None:
    _multiply_f32(count, out)


@routine(i64, i64)
def multiply_bf16(count: int, out: int) -> None:
    _multiply_bf16(count, out)


@routine(i64, i64)
def multiply_int8(count: int, out: int) -> None:
    _multiply_int8(count, out)


@routine(i64, i64, i64, i64)
def read(count: int, address: int, lines: int, out: int) -> None:
    for _ in range(count):
        _read(address, lines, out)


OPERATIONS = {
    "f32": (multiply_f32, 2 * LANES),
    "bf16": (multiply_bf16, 4 * LANES) if IS_FASTER else (multiply_f32, 2 * LANES),
    "int8": (multiply_int8, 2 * GROUP * LANES),
}
"""For each type the kernel, and the multiplications and additions of one of its instructions."""


def products(precision: str, threads: int) -> float:
    """Return the operations per second of all threads; a product and a sum count as two."""
    kernel, each = OPERATIONS[precision]
    call = compiled(kernel)
    outs = np.zeros((threads, CHAINS * LANES), np.float32)

    def run(thread: int, count: int) -> None:
        call(count, outs[thread].ctypes.data)

    return _best(run, threads) * CHAINS * each


def reading(size: int, threads: int) -> float:
    """Return the bytes per second at which all threads repeatedly read a buffer."""
    line = CHAINS * 4 * LANES
    lines = max(size // threads // line, 1)
    data = np.zeros((threads, lines * line), np.uint8)
    data[:] = 1  # in memory, not only promised
    outs = np.zeros((threads, CHAINS * LANES), np.float32)
    call = compiled(read)

    def run(thread: int, count: int) -> None:
        call(count, data[thread].ctypes.data, lines, outs[thread].ctypes.data)

    return _best(run, threads) * lines * line


@cache
def compiled(kernel: Routine) -> Callable[..., None]:
    """Return the kernel, compiled for this process; it releases the GIL."""
    return call_of(kernel)


def _best(run: Callable[[int, int], None], threads: int) -> float:
    """Return the highest rate of many bursts, in which all threads run at once."""
    start = time.perf_counter()
    run(0, 1)
    count = 1
    while (taken := time.perf_counter() - start) < ROUND / 4:
        count *= 2
        start = time.perf_counter()
        run(0, count)
    count = max(1, int(count * ROUND / taken))
    barrier = Barrier(threads)

    def bursts(thread: int) -> list[tuple[float, float]]:
        found = []
        for _ in range(ROUNDS):
            barrier.wait()
            begin = time.perf_counter()
            run(thread, count)
            found.append((begin, time.perf_counter()))
        return found

    with ThreadPoolExecutor(threads) as pool:
        spans = list(pool.map(bursts, range(threads)))
    fastest = min(
        max(end for _, end in each) - min(begin for begin, _ in each) for each in zip(*spans, strict=True)
    )
    return threads * count / fastest
