"""Emission of LLVM IR for SIMD vectors, by which kernels vectorize their inner loops explicitly."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, reduce
from typing import TypeAlias

import numpy as np

from . import ir
from .target import TARGET

__all__ = [
    "LANES",
    "Emit",
    "Load",
    "Store",
    "Value",
    "splat_bits",
    "F64S",
    "I8S",
    "I64S",
    "constant_lanes",
    "load_lanes",
    "load_typed",
    "store_typed",
]

LANES = TARGET.vectors.lanes
F32, I32, I64 = ir.F32, ir.I32, ir.I64
VECTOR, INTS = ir.VectorType(F32, LANES), ir.VectorType(I32, LANES)

Value: TypeAlias = ir.Value
Load = Callable[[Value], Value]
Store = Callable[[Value, Value], None]
Access: TypeAlias = tuple[Load, Store]
Join = Callable[[Value, Value], Value]

_ZERO, _FIRST_LANE = ir.Constant(I32, 0), ir.Constant(INTS, [0] * LANES)
_EVERY_LANE = ir.Constant(ir.VectorType(ir.I1, LANES), [1] * LANES)


@dataclass(frozen=True)
class Emit:
    """An emitter of LLVM IR for vectors of `LANES` lanes. Addresses and counts are i64; offsets are in bytes."""

    builder: ir.Builder

    def i64(self, n: int) -> Value:
        """Return an i64 constant."""
        return _i64(int(n))

    def constant(self, x: float) -> Value:
        """Return a vector constant with the same f32 in every lane."""
        return _vector(float(np.float32(x)).hex())

    def splat(self, x: Value) -> Value:
        """Broadcast a scalar to every lane."""
        none = ir.Constant(ir.VectorType(x.type, LANES), ir.UNDEFINED)
        return self.builder.shuffle_vector(self.builder.insert_element(none, x, _ZERO), none, _FIRST_LANE)

    def at(self, address: Value, offset: Value | int = 0) -> Value:
        """Return an address plus a byte offset."""
        if isinstance(offset, int):
            return address if offset == 0 else self.builder.add(address, self.i64(offset))
        return self.builder.add(address, offset)

    def pointer(self, address: Value) -> Value:
        """Convert an address to an LLVM pointer."""
        return self.builder.inttoptr(address, ir.POINTER)

    def load(self, address: Value, kind: ir.Type = VECTOR, align: int = 0) -> Value:
        """Load a value of type ``kind`` that is aligned to ``align`` bytes, by default 8 for an i64, else 4."""
        return self.builder.load(self.pointer(address), kind, align or (8 if kind == I64 else 4))

    def store(self, value: Value, address: Value, align: int = 4) -> None:
        """Store a value at an address that is aligned to ``align`` bytes."""
        self.builder.store(value, self.pointer(address), align)

    def vectors(self, count: Value) -> Iterator[tuple[Value, Load, Store]]:
        """Loop over ``count`` elements, one vector at a time: ``for offset, load, store in emit.vectors(count)``.

        The body is emitted twice: for whole vectors, and with masked access for the remaining elements. Yields the byte
        offset of a vector, and functions that load a vector from an address and store one to it.
        """
        for offset, ((load, store),) in self.strips(count):
            yield offset, load, store

    def strips(
        self, count: Value, *abreast: int, sums: list[Value] | None = None, join: Join | None = None
    ) -> Iterator[tuple[Value, list[Access]]]:
        """Loop over ``count`` elements like `masked_strips`, for f32.

        Yields the byte offset of the first vector, and for each vector the functions that load and store it.
        """
        for index, vectors, mask in self.masked_strips(count, *abreast, sums=sums, join=join):
            access = (self.load, self.store) if mask is None else self.access_by(mask)
            yield self.builder.mul(index, self.i64(4)), [access] * vectors

    def masked_strips(
        self, count: Value, *abreast: int, sums: list[Value] | None = None, join: Join | None = None
    ) -> Iterator[tuple[Value, int, Value | None]]:
        """Loop over ``count`` elements: ``abreast`` vectors at a time, then one vector at a time, then a masked remainder.

        The body is emitted for each of these loops. Yields the index of the first element, the number of vectors, and the
        mask of valid lanes, or ``None`` if all are valid.

        Args:
            count: the number of elements.
            abreast: for each loop before that of single vectors, the number of vectors per iteration.
            sums: accumulators, whose next values the body stores in this list. In the remainder, masked lanes keep theirs.
            join: combines two accumulators. If given, all accumulators are joined to one after the first loop.
        """
        builder, carried = self.builder, [] if sums is None else sums
        index, left = self.i64(0), count
        for vectors in (*abreast, 1):
            times = builder.sdiv(left, self.i64(vectors * LANES))
            with self.loop(times, [index, *carried]) as (_, (first, *now), following):
                carried[:] = now
                yield first, vectors, None
                following += [self.at(first, vectors * LANES), *carried]
            index, *carried[:] = following
            if join is not None:
                carried[:] = [reduce(join, carried)]
            left = builder.sub(left, builder.mul(times, self.i64(vectors * LANES)))
        before, start = list(carried), builder.block
        with builder.if_then(builder.icmp_signed(">", left, self.i64(0))):
            mask = self.lane_mask(left)
            yield index, 1, mask
            masked = [builder.select(mask, new, old) for new, old in zip(carried, before, strict=True)]
            end = builder.block
        for place, (new, old) in enumerate(zip(masked, before, strict=True)):
            phi = builder.phi(old.type)
            phi.add_incoming(new, end)
            phi.add_incoming(old, start)
            carried[place] = phi

    def lane_mask(self, count: Value) -> Value:
        """Return a mask of the first ``count`` lanes."""
        same = self.splat(self.builder.trunc(count, I32))
        return self.builder.icmp_signed("<", ir.Constant(INTS, list(range(LANES))), same)

    def masked_access(self, count: Value) -> Access:
        """Return functions that load and store the first ``count`` lanes of a vector."""
        return self.access_by(self.lane_mask(count))

    def access_by(self, mask: Value) -> Access:
        """Return functions that load and store the lanes of a vector that are set in a mask."""
        return (
            lambda address: self.masked_load(address, mask),
            lambda value, address: self.masked_store(value, address, mask),
        )

    def masked_load(self, address: Value, mask: Value, kind: ir.VectorType = VECTOR, align: int = 4) -> Value:
        """Load the lanes that are set in a mask; other lanes are 0, and their memory is not read."""
        function = self.function(f"llvm.masked.load.{kind.suffix}.p0", kind, ir.POINTER, I32, mask.type, kind)
        arguments = self.pointer(address), ir.Constant(I32, align), mask, ir.Constant(kind, None)
        return self.builder.call(function, arguments)

    def masked_store(self, value: Value, address: Value, mask: Value, align: int = 4) -> None:
        """Store the lanes that are set in a mask; the memory of other lanes is not written."""
        kind = value.type
        function = self.function(
            f"llvm.masked.store.{kind.suffix}.p0", None, kind, ir.POINTER, I32, mask.type
        )
        self.builder.call(function, [value, self.pointer(address), ir.Constant(I32, align), mask])

    def gather(self, address: Value, indices: Value, mask: Value | None = None) -> Value:
        """Gather the f32 elements ``indices`` of an array; lanes not in the mask are 0, and their memory is not read."""
        mask = _EVERY_LANE if mask is None else mask
        places = self.builder.element_pointer(self.pointer(address), indices, F32)
        name = f"llvm.masked.gather.{VECTOR.suffix}.{places.type.suffix}"
        function = self.function(name, VECTOR, places.type, I32, mask.type, VECTOR)
        return self.builder.call(function, [places, ir.Constant(I32, 4), mask, self.constant(0)])

    def fetch_add(self, address: Value, summand: int) -> Value:
        """Add a constant to an i64 in memory, atomically and sequentially consistent; return its previous value."""
        return self.builder.atomic_add(self.pointer(address), self.i64(summand))

    def load_atomic(self, address: Value) -> Value:
        """Load an i64, atomically and sequentially consistent."""
        return self.builder.load_atomic(self.pointer(address), I64, 8)

    def store_atomic(self, value: Value, address: Value) -> None:
        """Store an i64, atomically and sequentially consistent."""
        self.builder.store_atomic(value, self.pointer(address), 8)

    def prefetch(self, address: Value) -> None:
        """Prefetch the cache line at an address, which need not be valid, to the L2 cache."""
        pointer = self.pointer(address)
        function = self.function("llvm.prefetch.p0", None, pointer.type, I32, I32, I32)
        self.builder.call(function, [pointer, *(ir.Constant(I32, n) for n in (0, 2, 1))])  # read, L2, data

    def call_address(self, address: Value, *arguments: Value) -> None:
        """Call the void function at an address with i64 arguments."""
        self.builder.call_pointer(self.pointer(address), arguments)

    def stack_words(self, words: int) -> Value:
        """Allocate ``words`` i64 on the stack, set them to 0, and return their address."""
        kind = ir.ArrayType(I64, words)
        place = self.builder.slot(kind, 64)
        self.builder.store(ir.Constant(kind, None), place)
        return self.builder.ptrtoint(place, I64)

    def function(self, name: str, returns: ir.Type | None, *kinds: ir.Type) -> ir.Function:
        """Return the function called ``name``, declared on first use; ``returns`` is ``None`` if it is void."""
        return self.builder.module.declare(name, ir.VOID if returns is None else returns, kinds)

    def intrinsic(self, name: str, *values: Value) -> Value:
        """Call an intrinsic whose operands and result all have the same type; ``name`` is without the type's suffix."""
        kind = values[0].type
        function = self.function(f"{name}.{kind.suffix}", kind, *[kind] * len(values))
        return self.builder.call(function, values)

    def add(self, a: Value, b: Value) -> Value:
        return self.builder.fadd(a, b)

    def subtract(self, a: Value, b: Value) -> Value:
        return self.builder.fsub(a, b)

    def multiply(self, a: Value, b: Value) -> Value:
        return self.builder.fmul(a, b)

    def divide(self, a: Value, b: Value) -> Value:
        return self.builder.fdiv(a, b)

    def fma(self, a: Value, b: Value, c: Value) -> Value:
        """Compute ``a * b + c``, with a single rounding if the target has FMA."""
        if not TARGET.vectors.has_fma:
            return self.builder.fadd(self.builder.fmul(a, b), c)
        return self.intrinsic("llvm.fma", a, b, c)

    def fence(self, value: Value) -> Value:
        """Return a value unchanged, but keep LLVM from fusing its computation with its use, as in FMA."""
        return self.intrinsic("llvm.arithmetic.fence", value)

    def maximum(self, value: Value, low: Value) -> Value:
        """Compute ``max(value, low)``; NaN stays NaN."""
        return self.builder.select(self.builder.fcmp_unordered(">", value, low), value, low)

    def minimum(self, value: Value, high: Value) -> Value:
        """Compute ``min(value, high)``; NaN stays NaN."""
        return self.builder.select(self.builder.fcmp_unordered("<", value, high), value, high)

    def absolute(self, value: Value) -> Value:
        """Compute the absolute value."""
        return self.intrinsic("llvm.fabs", value)

    def round(self, value: Value) -> Value:
        """Round to the nearest integer, ties to even."""
        return self.intrinsic("llvm.rint", value)

    def sqrt(self, value: Value) -> Value:
        """Compute the square root."""
        return self.intrinsic("llvm.sqrt", value)

    def reduce_add(self, value: Value) -> Value:
        """Return the sum of all lanes, by a tree reduction."""
        return self.reduce(value, self.builder.fadd)

    def reduce(self, value: Value, join: Callable[[Value, Value], Value]) -> Value:
        """Reduce all lanes to one by a tree of ``join`` operations, which take vectors of half the length each time."""
        count = LANES
        while count > 1:
            count //= 2
            none = ir.Constant(value.type, ir.UNDEFINED)
            halves = (
                ir.Constant(ir.VectorType(I32, count), list(range(start, start + count)))
                for start in (0, count)
            )
            value = join(*(self.builder.shuffle_vector(value, none, half) for half in halves))
        return self.builder.extract_element(value, ir.Constant(I32, 0))

    @contextmanager
    def loop(
        self, count: Value, carried: Sequence[Value] = ()
    ) -> Iterator[tuple[Value, list[Value], list[Value]]]:
        """Emit a loop that executes the ``with`` block ``count`` times.

        Yields the counter, the loop-carried values, and a list to which the body appends their next values in order; after
        the ``with`` block, this list holds the final values.
        """
        builder = self.builder
        before = builder.block
        head, body, after = (builder.append_basic_block(name) for name in ("head", "body", "after"))
        builder.branch(head)
        builder.position_at_end(head)
        counter = builder.phi(I64)
        counter.add_incoming(self.i64(0), before)
        now: list[Value] = []
        phis = []
        for value in carried:
            phi = builder.phi(value.type)
            phi.add_incoming(value, before)
            phis.append(phi)
            now.append(phi)
        builder.cbranch(builder.icmp_signed("<", counter, count), body, after)
        builder.position_at_end(body)
        following: list[Value] = []
        yield counter, now, following
        end = builder.block
        counter.add_incoming(builder.add(counter, self.i64(1)), end)
        for phi, value in zip(phis, following, strict=True):
            phi.add_incoming(value, end)
        builder.branch(head)
        builder.position_at_end(after)
        following[:] = now

    def if_else(
        self, condition: Value, then: Callable[[], Sequence[Value]], otherwise: Callable[[], Sequence[Value]]
    ) -> list[Value]:
        """Emit two branches, and return the values of the one that is executed: ``then`` if the condition holds.

        ``then`` and ``otherwise`` emit the branches, and return equally many values.
        """
        builder, results = self.builder, []
        with builder.if_else(condition) as branches:
            for branch, values in zip(branches, (then, otherwise), strict=True):
                with branch:
                    results.append((values(), builder.block))
        (first, yes), (second, no) = results
        phis: list[Value] = []
        for one, other in zip(first, second, strict=True):
            phi = builder.phi(one.type)
            phi.add_incoming(one, yes)
            phi.add_incoming(other, no)
            phis.append(phi)
        return phis

    def switch(self, number: Value, branches: Mapping[int, Callable[[], None]]) -> None:
        """Emit a switch that executes ``branches[number]``, or nothing if there is no such branch."""
        builder = self.builder
        after = builder.append_basic_block("chosen")
        switch = builder.switch(number, after)
        for key, branch in branches.items():
            block = builder.append_basic_block("branch")
            switch.add_case(self.i64(key), block)
            builder.position_at_end(block)
            branch()
            builder.branch(after)
        builder.position_at_end(after)


@cache
def _i64(n: int) -> Value:
    return ir.Constant(I64, n)


@cache
def splat_bits(n: int) -> Value:
    """Return a vector constant with the same i32 in every lane."""
    return ir.Constant(INTS, [n] * LANES)


@cache
def _vector(digits: str) -> Value:
    """Return a vector constant with the same f32 in every lane; it is given in hexadecimal so that the cache tells 0 from -0."""
    return ir.Constant(VECTOR, [float.fromhex(digits)] * LANES)


I8S, I64S, F64S = (ir.VectorType(kind, LANES) for kind in (ir.I8, I64, ir.F64))


def constant_lanes(kind: ir.Type, x: float) -> Value:
    """Return a vector constant with the same number in every lane."""
    return ir.Constant(kind, [x] * LANES)


def load_typed(emit: Emit, kind: ir.VectorType, address: Value, index: Value, mask: Value | None) -> Value:
    """Load a vector of type ``kind`` from element ``index`` of an array on.

    With a mask, other lanes are 0, and their memory is not read.
    """
    place, size = _place(emit, kind, address, index)
    return emit.load(place, kind, size) if mask is None else emit.masked_load(place, mask, kind, size)


def load_lanes(
    emit: Emit, kind: ir.VectorType, address: Value, index: Value, mask: Value | None, single: bool
) -> Value:
    """Load a vector like `load_typed`, or, if ``single``, broadcast the scalar at the address."""
    if not single:
        return load_typed(emit, kind, address, index, mask)
    return emit.splat(emit.load(address, kind.element, kind.element.size))


def store_typed(emit: Emit, value: Value, address: Value, index: Value, mask: Value | None) -> None:
    """Store a vector to an array from element ``index`` on; with a mask, only the lanes that are set in it."""
    place, size = _place(emit, value.type, address, index)
    if mask is None:
        emit.store(value, place, size)
    else:
        emit.masked_store(value, place, mask, size)


def _place(emit: Emit, kind: ir.VectorType, address: Value, index: Value) -> tuple[Value, int]:
    """Return the address of element ``index`` of an array, and the size of an element in bytes."""
    size = kind.element.size
    return emit.at(address, emit.builder.mul(index, emit.i64(size))), size
