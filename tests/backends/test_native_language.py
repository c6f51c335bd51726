"""The kernel language: translation of Python functions, and errors for those that cannot be translated."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from harness.routines import call_of, forgetting

from ir_runtime.backends.native.build.source import CompileError
from ir_runtime.backends.native.build.translate import translate
from ir_runtime.backends.native.codegen.descriptor import Descriptor, f32, i64
from ir_runtime.backends.native.codegen.language import Routine, device, routine, types
from ir_runtime.backends.native.codegen.memory import load_f32, load_i64, store_f32, store_i64
from ir_runtime.backends.native.threading.task import each_chunk

FACTOR, HALF, HUGE = 3, np.float32(0.5), 2**64


@pytest.fixture(autouse=True)
def own_routines() -> Iterator[None]:
    with forgetting():
        yield


def run(function: Callable[..., Any], *arguments: int) -> list[int]:
    """Return the values that a kernel stores, given integers and an address."""
    kernel = routine(*[types.int64] * (len(arguments) + 1))(function)
    out = np.zeros(8, np.int64)
    call_of(kernel)(*arguments, out.ctypes.data)
    return out.tolist()


@device
def _ordered(a: int, b: int) -> tuple[int, tuple[int, bool]]:
    if a <= b:
        return a, (b, False)
    return b, (a, True)


@device
def _scaled(x: float) -> float:
    return x * HALF


@device
def _remember(out: int, place: int, value: int) -> None:
    if value == 0:
        return
    store_i64(out, place, value)


def _tuples(a: int, b: int, out: int) -> None:
    low, (high, turned) = _ordered(a, b)
    _remember(out, 0, low)
    _remember(out, 1, high)
    _remember(out, 2, FACTOR * turned)
    _remember(out, 3, 0)
    first, second = (low, high) if turned else (high, low)
    _remember(out, 4, first - second)


def test_devices_return_nested_tuples() -> None:
    assert run(_tuples, 7, 4)[:5] == [4, 7, 3, 0, -3]
    assert run(_tuples, 4, 7)[:5] == [4, 7, 0, 0, 3]


def _branches(a: int, b: int, out: int) -> None:
    if (a > 0 and b // a > 1) or not b:
        store_i64(out, 0, 1)
    elif a == -1:
        store_i64(out, 0, 2)
    else:
        store_i64(out, 0, 3)
    count = 0
    while True:
        count += 1
        if count % 2:
            continue
        if count >= a:
            break
    store_i64(out, 1, count)
    store_i64(out, 2, -a)
    store_i64(out, 3, 0 < a <= b)


def test_branches_and_loops() -> None:
    for a in range(-2, 6):
        for b in range(5):
            wanted = 1 if (a > 0 and b // a > 1) or not b else 2 if a == -1 else 3
            assert run(_branches, a, b)[:4] == [wanted, max(2, a + a % 2), -a, 0 < a <= b]


def _known(out: int) -> None:
    if FACTOR > 2:
        store_i64(out, 0, FACTOR * 5 // 2)
    else:
        store_i64(out, 0, load_i64(out))  # which would be refused
    store_f32(out, 2, _scaled(np.float32(5)))


def test_conditions_that_are_known_choose_what_is_compiled() -> None:
    stored = np.array(run(_known))
    assert stored[0] == 7
    assert stored[1:2].view(np.float32)[0] == 2.5


class Part(Descriptor):
    first: i64
    last: i64


class Pair(Descriptor):
    """A record that a kernel reads."""

    count: i64
    factor: f32
    sizes: Annotated[int, (np.int64, (3,))]
    part: Part


@device
def _doubled(pair: Pair, more: int) -> int:
    return 2 * pair.count + more


def _fields(address: int, out: int) -> None:
    pair = Pair.at(address)
    store_i64(out, 0, _doubled(pair, 1))
    store_i64(out, 1, _doubled(address, 2))  # type: ignore[arg-type]  # the parameter says what it is
    store_i64(out, 2, load_i64(pair.sizes, 1))
    store_f32(out, 6, pair.factor)
    store_i64(out, 4, Pair.at(address, 1).count)
    pair = address + 8 * Pair.words
    store_i64(out, 5, 10 * pair.count + pair.part.last)


def test_records_have_fields() -> None:
    """A variable assigned a record is a record; so is a parameter annotated as one, whatever the argument."""
    pairs = np.concatenate([Pair.fill(count=n, factor=n / 4, sizes=(7, 8, 9), part=(3, n)) for n in (5, 6)])
    stored = run(_fields, pairs.ctypes.data)
    assert stored[:3] + stored[4:6] == [11, 12, 8, 6, 66]
    assert np.array(stored)[3:4].view(np.float32)[0] == 1.25


def _no_field(at: int) -> None:
    store_i64(at, 0, Pair.at(at).nothing)  # type: ignore[attr-defined]


@routine(types.int64, types.int64, returns=types.int64)
def _sum(a: int, b: int) -> int:
    return a + b


def _calls(a: int, out: int) -> None:
    store_i64(out, 0, _sum(a, 1))


def test_routines_call_each_other() -> None:
    assert run(_calls, 5)[0] == 6


# What kernels are refused for.


def _learned(at: int) -> None:
    store_f32(at, 0, math.lgamma(load_f32(at, 0)))


@device
def _deep(x: float) -> Any:
    return math.lgamma(x)


def _learned_elsewhere(at: int) -> None:
    store_f32(at, 0, _deep(load_f32(at, 0)))


def _list(at: int) -> None:
    store_f32(at, 0, [np.float32(1)][at])


def _too_many(at: int) -> None:
    store_f32(at, 0, at, at)


def _too_few(at: int) -> None:
    _remember(at)  # type: ignore[call-arg]


def _three(at: int) -> None:
    store_i64(at, 0, min(at, at, at))


def _floor(at: int) -> None:
    store_f32(at, 0, load_f32(at, 0) // load_f32(at, 1))


def _changed_type(at: int) -> None:
    x = 0
    x = load_f32(at, 0)
    store_i64(at, 0, x)


def _assigned_in_a_branch(at: int) -> None:
    if at > 0:
        found = at
    store_i64(at, 0, found)


def _assigned_in_a_loop(at: int) -> None:
    for last in range(at):
        store_i64(at, 0, last)
    store_i64(at, 1, last)


def _left_before_it_is_assigned(at: int) -> None:
    while True:
        if at > 1:
            break
        found = at
        if found > 0:
            break
    store_i64(at, 0, found)


def _assigned_on_every_path(at: int) -> None:
    if at > 0:
        found = at
    elif at < 0:
        return
    else:
        found = 1
    while True:
        last = found
        if last > 0:
            break
        found += 1
    store_i64(at, 0, last)


def _unassigned(at: int) -> None:
    store_i64(at, 0, y)  # noqa: F821
    y = 1  # noqa: F841


def _unknown(at: int) -> None:
    store_i64(at, 0, nowhere)  # type: ignore[name-defined]  # noqa: F821


def _unbalanced(at: int) -> None:
    low, high, turned = _ordered(at, 1)  # type: ignore[misc]
    store_i64(at, low, high + turned)


def _real_condition(at: int) -> None:
    if load_f32(at, 0):
        store_i64(at, 0, 1)


def _keyword(at: int) -> None:
    store_i64(at, 0, _sum(a=1, b=2))


def _over_a_tuple(at: int) -> None:
    for i in (1, 2):
        store_i64(at, 0, i)


def _sizeless(at: int) -> None:
    for start, end in each_chunk(at, 8):
        store_i64(at, start, end)


def _one_end(at: int) -> None:
    for start, end, size in each_chunk(at, 8, 2):
        store_i64(at, start, end + size)


def _too_large(at: int) -> None:
    store_i64(at, 0, at + HUGE)


def _power(at: int) -> None:
    store_i64(at, 0, FACTOR**2)


def _divided(at: int) -> None:
    store_i64(at, 0, FACTOR // 0)


@device
def _endless(x: int) -> Any:
    return _endless(x)


def _recursive(at: int) -> None:
    store_i64(at, 0, _endless(at))


@device  # noqa: RET503
def _sometimes(x: int) -> Any:
    if x > 0:
        return 1


def _valueless(at: int) -> None:
    store_i64(at, 0, _sometimes(at))


def _nothing(at: int) -> None:
    store_i64(at, 0, _remember(at, 0, 1))  # type: ignore[func-returns-value]


def _attribute(at: int) -> None:
    store_i64(at, 0, at.real)


def _default(at: int, more: int = 1) -> None:
    store_i64(at, 0, more)


REFUSED: list[tuple[Callable[..., None], str]] = [
    (_learned, "kernels cannot call lgamma: math.lgamma(load_f32(at, 0))"),
    (_learned_elsewhere, "kernels cannot call lgamma: math.lgamma(x)"),
    (_list, "Subscript is not supported in kernels: [np.float32(1)][at]"),
    (_too_many, "store_f32 expected 3 arguments, got 4: store_f32(at, 0, at, at)"),
    (_too_few, "_remember expected 3 arguments, got 1: _remember(at)"),
    (_three, "min expected two numbers: min(at, at, at)"),
    (_floor, "FloorDiv of float is not supported: load_f32(at, 0) // load_f32(at, 1)"),
    (_changed_type, "a number of type float is no i64: x"),
    (_unassigned, "the variable may be read before it is assigned: y"),
    (_assigned_in_a_branch, "the variable may be read before it is assigned: found"),
    (_assigned_in_a_loop, "the variable may be read before it is assigned: last"),
    (_left_before_it_is_assigned, "the variable may be read before it is assigned: found"),
    (_unknown, "there is no such name: nowhere"),
    (_unbalanced, "expected 3 values, got a tuple of 2: (low, high, turned)"),
    (_real_condition, "a number of type float is no condition: load_f32(at, 0)"),
    (_keyword, "calls have positional arguments only: _sum(a=1, b=2)"),
    (_over_a_tuple, "for is only supported over range, units and chunks, without else: (1, 2)"),
    (_sizeless, "expected a place, a number of units or elements and, for chunks, a size: each_chunk(at, 8)"),
    (_one_end, "expected 3 values, got a tuple of 2: (start, end, size)"),
    (_too_large, "18446744073709551616 does not fit i64: at + HUGE"),
    (_power, "Pow is not supported: FACTOR ** 2"),
    (_divided, "integer division or modulo by zero: FACTOR // 0"),
    (_recursive, "a kernel cannot call itself"),
    (_valueless, "it may end without returning a value"),
    (_nothing, "expected a number, got nothing: store_i64(at, 0, _remember(at, 0, 1))"),
    (_no_field, "Pair has no field 'nothing': Pair.at(at).nothing"),
    (_attribute, "numbers and tuples have no attributes in kernels: at.real"),
    (_default, "kernels have positional parameters without defaults only"),
]


@pytest.mark.parametrize(("function", "reason"), REFUSED, ids=[function.__name__ for function, _ in REFUSED])
def test_python_that_is_no_kernel_is_refused(function: Callable[..., None], reason: str) -> None:
    """The error has the file, the line and the source of the invalid function."""
    with pytest.raises(CompileError) as caught:
        translate(Routine(function, (types.int64,) * function.__code__.co_argcount))
    place, _, said = str(caught.value).partition(": in ")
    file, _, line = place.rpartition(":")
    assert file == __file__
    assert said.partition(": ")[2] == reason
    with open(file, encoding="utf-8") as text:
        shown = text.read().splitlines()[int(line) - 1]
    code = reason.rpartition(": ")[2].partition("(")[0]
    assert code.replace(" ", "") in shown.replace(" ", "") or "def " in shown


def test_variables_that_every_path_assigns_are_read() -> None:
    assert translate(Routine(_assigned_on_every_path, (types.int64,)))


def test_what_has_no_source_is_refused() -> None:
    made: Any = {}
    made["__name__"] = __name__
    exec("def nowhere(at):\n    pass", made)
    for function in (made["nowhere"], lambda at: None):
        with pytest.raises(CompileError, match="is not defined by def, or its file cannot be read"):
            translate(Routine(function, (types.int64,)))
