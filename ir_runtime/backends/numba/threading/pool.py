"""Threads that help with the layers of a run: how they meet is written in the language of kernels, too.

Between layers they wait in machine code, without the interpreter's lock, and give way to whoever wants the
core; a layer that comes meanwhile finds them within a microsecond. After a run they stay for a moment, as
another one often follows, and then go to sleep until the next. What a team shares are words on lines of
the cache of their own.
"""

from __future__ import annotations

import ctypes
import platform
import threading
import weakref
from _thread import allocate_lock
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from ....forks import in_child, registered
from ....ir.tensor import Array
from ..codegen.language import device, instruction, routine, types
from ..codegen.vectors import I32, I64, Emit
from ..codegen.worker import CALL_WORDS, give, leave, look, put, take, word
from ..jit.loader import machine

__all__ = ["Team", "borrowed", "given_back", "sharing"]

Value = Any

# Which call it is; the address of the call that goes on, or 0, and of its worker; how many may still join;
# how many are in it; whether a run goes on; whether there are none any more. The rest says of each helper whether it
# waits in machine code.
_LINE = 8
_NUMBER, _CALL, _WORKER, _PLACES, _INSIDE, _ACTIVE, _OVER, _PRESENT = 0, 8, 9, 16, 24, 32, 33, 40

# So often a thread looks for a call before it gives way, and then before it goes to sleep if no run goes on.
_LOOKS = 2000
_TURNS = 2000

_PROCESSOR = platform.machine().lower()


@instruction()
def _pause(emit: Emit) -> None:
    """Tell the processor that this is a loop that waits."""
    if _PROCESSOR in ("x86_64", "amd64", "i686"):
        emit.builder.call(emit.function("llvm.x86.sse2.pause", None), [])


@instruction()
def _give_way(emit: Emit) -> None:
    """Let another thread have the core, if one wants it."""
    emit.builder.call(emit.function("ir_runtime_yield", I32), [])


@instruction(types.int64, types.int64)
def _set(emit: Emit, address: Value, value: Value) -> None:
    emit.store_atomically(value, address)


@instruction(types.int64, types.int64)
def _go(emit: Emit, worker: Value, call: Value) -> None:
    emit.call_at(worker, call)


@instruction(types.int64, gives=types.int64)
def _data(emit: Emit, array: Value) -> Value:
    """Where the numbers of an array begin, of which the object's address is given."""
    return emit.load(emit.at(array, _offset()), I64)


@instruction(gives=types.int64)
def _call_words(emit: Emit) -> Value:
    """The address of words for a call, all 0."""
    return emit.zeros(CALL_WORDS)


@device
def _tried(team: int) -> bool:
    """Help with the call that goes on, if there is one."""
    take(team + 8 * _INSIDE)
    call = look(team + 8 * _CALL)
    found: bool = call != 0
    if found and leave(team + 8 * _PLACES) > 0:
        _go(word(team, _WORKER), call)
    leave(team + 8 * _INSIDE)
    return found


@routine(types.int64, types.int64)
def attend(team: int, helper: int) -> None:
    """Help with every call, until no run goes on for a while."""
    present = team + 8 * (_PRESENT + _LINE * helper)
    _set(present, 1)
    last, waited = -1, 0
    while True:
        call = look(team + 8 * _NUMBER)
        if call != last and look(team + 8 * _CALL) != 0 and _tried(team):
            last, waited = call, 0
            continue
        waited += 1
        if waited < _LOOKS:
            _pause()
            continue
        if waited > _LOOKS + _TURNS and look(team + 8 * _ACTIVE) == 0:
            _set(present, 0)
            if look(team + 8 * _ACTIVE) == 0:
                return
            _set(present, 1)
        _give_way()


@routine(*[types.int64] * 8)
def share(team: int, worker: int, job: int, out: int, a: int, b: int, c: int, threads: int) -> None:
    """Let so many threads do a worker's units; of arrays, the addresses of the objects are given."""
    call = _call_words()
    give(call, _data(job), _data(out), _data(a), _data(b), _data(c))
    if threads <= 1:
        _go(worker, call)
        return
    put(team, _WORKER, worker)
    _set(team + 8 * _PLACES, threads - 1)
    _set(team + 8 * _CALL, call)
    take(team + 8 * _NUMBER)
    _go(worker, call)
    _set(team + 8 * _CALL, 0)
    waited = 0
    while look(team + 8 * _INSIDE) != 0:
        waited += 1
        if waited < _LOOKS:
            _pause()
        else:
            _give_way()


@cache
def _offset() -> int:
    """Bytes from the beginning of an array's object to the address of its numbers."""
    probe = np.empty(1, np.float32)
    words = np.frombuffer(ctypes.string_at(id(probe), 64), np.int64).tolist()
    return 8 * int(words.index(probe.ctypes.data))


@cache
def sharing() -> Any:
    """`share`, for Python: it takes arrays, and works without the interpreter's lock."""
    kinds: list[Any] = [ctypes.c_int64, ctypes.c_int64, *[ctypes.py_object] * 5, ctypes.c_int64]
    return ctypes.CFUNCTYPE(None, *kinds)(machine().address(share))


@cache
def _attending() -> Any:
    return ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64)(machine().address(attend))


class Team:
    """So many helpers, for one run at a time; they end when nobody has it any more."""

    def __init__(self, helpers: int) -> None:
        lines = np.zeros((_PRESENT // _LINE + helpers + 1) * _LINE, np.int64)
        skip = -lines.ctypes.data % 64 // 8
        self._words: Array = lines[skip:]
        self.address = int(self._words.ctypes.data)
        self._alarms = [allocate_lock() for _ in range(helpers)]
        self._forked = False
        for alarm in self._alarms:
            alarm.acquire()
        weakref.finalize(self, _dismiss, self._words, self._alarms).atexit = False
        registered(self)
        for helper, alarm in enumerate(self._alarms):
            name, args = f"ir_runtime kernels {helper}", (self._words, helper, alarm)
            threading.Thread(target=_serve, args=args, name=name, daemon=True).start()

    def __len__(self) -> int:
        """How many helpers there are."""
        return 0 if self._forked else len(self._alarms)

    def begin(self) -> None:
        """Wake those who sleep: a run begins."""
        words = self._words
        words[_ACTIVE] = 1
        for helper, alarm in enumerate(self._alarms):
            if not words[_PRESENT + _LINE * helper] and alarm.locked():
                alarm.release()

    def end(self) -> None:
        """The run is over."""
        self._words[_ACTIVE] = 0

    def after_fork(self) -> None:
        """Its helpers are not there, whatever they were at: a run that goes on, goes on alone."""
        self._words[:] = 0
        self._forked = True


def _serve(words: Array, helper: int, alarm: Any) -> None:
    """The life of a helper, which does not keep its team alive."""
    attending, address = _attending(), int(words.ctypes.data)
    while True:
        alarm.acquire()
        if words[_OVER]:
            return
        attending(address, helper)


def _dismiss(words: Array, alarms: Sequence[Any]) -> None:
    words[_OVER], words[_ACTIVE] = 1, 0
    for alarm in alarms:
        if alarm.locked():
            alarm.release()


_IDLE: list[Team] = []


def borrowed(helpers: int) -> Team:
    """A team of at least so many helpers, which no other run has."""
    try:
        team = _IDLE.pop()
    except IndexError:
        return Team(helpers)
    return team if len(team) >= helpers else Team(helpers)


def given_back(team: Team) -> None:
    """Let other runs have it."""
    _IDLE.append(team)


in_child(_IDLE.clear)
