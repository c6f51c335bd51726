"""Vectors in LLVM's language, for the innermost loops: what numba makes of loops is not always vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from llvmlite import ir

from .target import TARGET

__all__ = ["LANES", "Emit", "Load", "Store"]

LANES = TARGET.lanes
F32, I32, I64 = ir.FloatType(), ir.IntType(32), ir.IntType(64)
VECTOR, INTS = ir.VectorType(F32, LANES), ir.VectorType(I32, LANES)

Value = Any  # llvmlite is not typed
Load = Callable[[Value], Value]
Store = Callable[[Value, Value], None]


@dataclass(frozen=True)
class Emit:
    """Writes instructions. Addresses and counts are i64; offsets are in bytes."""

    builder: Any

    def i64(self, n: int) -> Value:
        """An i64."""
        return ir.Constant(I64, int(n))

    def constant(self, x: float) -> Value:
        """The same f32 in every lane."""
        return ir.Constant(VECTOR, [_rounded(x)] * LANES)

    def splat(self, x: Value) -> Value:
        """An f32 in every lane."""
        lane = self.builder.insert_element(ir.Constant(VECTOR, ir.Undefined), x, ir.Constant(I32, 0))
        mask = ir.Constant(ir.VectorType(I32, LANES), [0] * LANES)
        return self.builder.shuffle_vector(lane, ir.Constant(VECTOR, ir.Undefined), mask)

    def at(self, address: Value, offset: Value | int = 0) -> Value:
        """An address that many bytes on."""
        if isinstance(offset, int):
            return address if offset == 0 else self.builder.add(address, self.i64(offset))
        return self.builder.add(address, offset)

    def load(self, address: Value, kind: Any = VECTOR) -> Value:
        """What lies at an address, aligned to nothing more than one number."""
        found = self.builder.load(self.builder.inttoptr(address, ir.PointerType(kind)), typ=kind)
        found.align = 8 if kind == I64 else 4
        return found

    def store(self, value: Value, address: Value) -> None:
        """Put a value at an address."""
        done = self.builder.store(value, self.builder.inttoptr(address, ir.PointerType(value.type)))
        done.align = 4

    def vector_loop(self, count: Value, body: Callable[[Value, Load, Store], None]) -> None:
        """Go over ``count`` numbers, a vector at a time, the rest under a mask.

        ``body`` is given an offset in bytes, and what loads from, and stores at, an address there.
        """
        lanes = self.i64(LANES)
        whole = self.builder.sdiv(count, lanes)
        with self.loop(whole) as (i, _, _following):
            body(self.builder.mul(i, self.i64(4 * LANES)), self.load, self.store)
        done = self.builder.mul(whole, lanes)
        rest = self.builder.sub(count, done)
        with self.builder.if_then(self.builder.icmp_signed(">", rest, self.i64(0))):
            body(self.builder.mul(done, self.i64(4)), *self.masked_access(rest))

    def lane_mask(self, count: Value) -> Value:
        """A mask of that many lanes."""
        narrow = self.builder.trunc(count, I32)
        start = self.builder.insert_element(ir.Constant(INTS, ir.Undefined), narrow, ir.Constant(I32, 0))
        same = self.builder.shuffle_vector(
            start, ir.Constant(INTS, ir.Undefined), ir.Constant(INTS, [0] * LANES)
        )
        return self.builder.icmp_signed("<", ir.Constant(INTS, list(range(LANES))), same)

    def masked_access(self, count: Value) -> tuple[Load, Store]:
        """What loads, and what stores, that many lanes."""
        mask = self.lane_mask(count)
        return (
            lambda address: self.masked_load(address, mask),
            lambda value, address: self.masked_store(value, address, mask),
        )

    def masked_load(self, address: Value, mask: Value) -> Value:
        """What lies at an address, 0 in lanes outside the mask, which are not read."""
        pointer = self.builder.inttoptr(address, ir.PointerType(VECTOR))
        kinds = pointer.type, I32, mask.type, VECTOR
        function = self.function(f"llvm.masked.load.v{LANES}f32.p0", VECTOR, *kinds)
        return self.builder.call(function, [pointer, ir.Constant(I32, 4), mask, self.constant(0)])

    def masked_store(self, value: Value, address: Value, mask: Value) -> None:
        """Put the lanes of the mask at an address."""
        pointer = self.builder.inttoptr(address, ir.PointerType(VECTOR))
        kinds = VECTOR, pointer.type, I32, mask.type
        function = self.function(f"llvm.masked.store.v{LANES}f32.p0", None, *kinds)
        self.builder.call(function, [value, pointer, ir.Constant(I32, 4), mask])

    def fetch_add(self, address: Value, more: int) -> Value:
        """Add to the i64 at an address, in one step for all threads; gives what it was."""
        pointer = self.builder.inttoptr(address, ir.PointerType(I64))
        return self.builder.atomic_rmw("add", pointer, self.i64(more), "seq_cst")

    def load_atomic(self, address: Value) -> Value:
        """The i64 at an address, as all threads agree on it."""
        pointer = self.builder.inttoptr(address, ir.PointerType(I64))
        return self.builder.load_atomic(pointer, "seq_cst", 8, typ=I64)

    def store_atomic(self, value: Value, address: Value) -> None:
        """Put an i64 at an address, before all that follows."""
        pointer = self.builder.inttoptr(address, ir.PointerType(I64))
        self.builder.store_atomic(value, pointer, "seq_cst", 8)

    def call_address(self, address: Value, *arguments: Value) -> None:
        """Call the function at an address, of i64."""
        kind = ir.FunctionType(ir.VoidType(), [I64] * len(arguments))
        self.builder.call(self.builder.inttoptr(address, ir.PointerType(kind)), arguments)

    def stack_words(self, words: int) -> Value:
        """The address of so many i64, all 0, that are there until the function ends."""
        kind = ir.ArrayType(I64, words)
        with self.builder.goto_entry_block():
            place = self.builder.alloca(kind)
        place.align = 64
        self.builder.store(ir.Constant(kind, None), place)
        return self.builder.ptrtoint(place, I64)

    def function(self, name: str, gives: Any, *kinds: Any) -> Value:
        """A function by its name; ``None`` stands for no result."""
        kind = ir.FunctionType(ir.VoidType() if gives is None else gives, kinds)
        return self.builder.module.globals.get(name) or ir.Function(self.builder.module, kind, name)

    def intrinsic(self, name: str, *vectors: Value) -> Value:
        """What LLVM's function of that name makes of vectors."""
        function = self.function(f"{name}.v{LANES}f32", VECTOR, *[VECTOR] * len(vectors))
        return self.builder.call(function, vectors)

    def add(self, a: Value, b: Value) -> Value:
        return self.builder.fadd(a, b)

    def subtract(self, a: Value, b: Value) -> Value:
        return self.builder.fsub(a, b)

    def multiply(self, a: Value, b: Value) -> Value:
        return self.builder.fmul(a, b)

    def divide(self, a: Value, b: Value) -> Value:
        return self.builder.fdiv(a, b)

    def fma(self, a: Value, b: Value, c: Value) -> Value:
        """``a * b + c``, rounded once where the machine can."""
        if not TARGET.has_fma:
            return self.builder.fadd(self.builder.fmul(a, b), c)
        return self.intrinsic("llvm.fma", a, b, c)

    def maximum(self, value: Value, low: Value) -> Value:
        """``max(value, low)``, where NaN stays NaN."""
        return self.builder.select(self.builder.fcmp_unordered(">", value, low), value, low)

    def minimum(self, value: Value, high: Value) -> Value:
        """``min(value, high)``, where NaN stays NaN."""
        return self.builder.select(self.builder.fcmp_unordered("<", value, high), value, high)

    def absolute(self, value: Value) -> Value:
        """The absolute value."""
        return self.intrinsic("llvm.fabs", value)

    def round(self, value: Value) -> Value:
        """The nearest whole number."""
        return self.intrinsic("llvm.rint", value)

    def sqrt(self, value: Value) -> Value:
        """The square root."""
        return self.intrinsic("llvm.sqrt", value)

    def reduce_add(self, value: Value) -> Value:
        """The sum of the lanes, by halves."""
        return self.reduce(value, self.builder.fadd)

    def reduce(self, value: Value, how: Callable[[Value, Value], Value]) -> Value:
        """One number of all lanes, joined by halves in registers."""
        count = LANES
        while count > 1:
            count //= 2
            none = ir.Constant(value.type, ir.Undefined)
            halves = (
                ir.Constant(ir.VectorType(I32, count), list(range(start, start + count)))
                for start in (0, count)
            )
            value = how(*(self.builder.shuffle_vector(value, none, half) for half in halves))
        return self.builder.extract_element(value, ir.Constant(I32, 0))

    @contextmanager
    def loop(
        self, count: Value, carried: Sequence[Value] = ()
    ) -> Iterator[tuple[Value, list[Value], list[Value]]]:
        """Repeat what is inside ``count`` times, not once if that is 0.

        Gives the counter, the values that are carried from one pass to the next, and a list in which to
        put their next values, in order; after the loop, the list has their last ones.
        """
        builder = self.builder
        before = builder.block
        head, body, after = (builder.append_basic_block(name) for name in ("head", "body", "after"))
        builder.branch(head)
        builder.position_at_end(head)
        counter = builder.phi(I64)
        counter.add_incoming(self.i64(0), before)
        now = []
        for value in carried:
            phi = builder.phi(value.type)
            phi.add_incoming(value, before)
            now.append(phi)
        builder.cbranch(builder.icmp_signed("<", counter, count), body, after)
        builder.position_at_end(body)
        following: list[Value] = []
        yield counter, now, following
        end = builder.block
        counter.add_incoming(builder.add(counter, self.i64(1)), end)
        for phi, value in zip(now, following, strict=True):
            phi.add_incoming(value, end)
        builder.branch(head)
        builder.position_at_end(after)
        following[:] = now

    def if_else(
        self, condition: Value, then: Callable[[], Sequence[Value]], otherwise: Callable[[], Sequence[Value]]
    ) -> list[Value]:
        """What ``then`` gives if a condition holds, else what ``otherwise`` gives; the other is not computed."""
        builder, given = self.builder, []
        with builder.if_else(condition) as branches:
            for branch, values in zip(branches, (then, otherwise), strict=True):
                with branch:
                    given.append((values(), builder.block))
        (first, yes), (second, no) = given
        found = []
        for one, other in zip(first, second, strict=True):
            phi = builder.phi(one.type)
            phi.add_incoming(one, yes)
            phi.add_incoming(other, no)
            found.append(phi)
        return found

    def switch(self, number: Value, ways: Mapping[int, Callable[[], None]]) -> None:
        """Go the way of a number; none if it has none."""
        builder = self.builder
        after = builder.append_basic_block("chosen")
        switch = builder.switch(number, after)
        for key, way in ways.items():
            block = builder.append_basic_block("way")
            switch.add_case(self.i64(key), block)
            builder.position_at_end(block)
            way()
            builder.branch(after)
        builder.position_at_end(after)


def _rounded(x: float) -> float:
    return float(np.float32(x))
