"""Interrupts at every place where Python looks for them: when a function begins, after a call, and in loops.

Signals are looked for there and nowhere else, so that what is done between two such places is never torn apart.
"""

from __future__ import annotations

import contextlib
import dis
import sys
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import ir_runtime as ir

PACKAGE = str(Path(ir.__file__).parent)


@cache
def _begins(code: CodeType) -> frozenset[int]:
    """Where a function begins, or a generator goes on; an exception that is thrown into one comes elsewhere."""
    return frozenset(each.offset for each in dis.get_instructions(code) if each.opname == "RESUME")


@cache
def _places(code: CodeType) -> frozenset[int]:
    """Where the instructions begin before which Python has looked, unless a function in Python was called."""
    found, after_call = set(), False
    for instruction in dis.get_instructions(code):
        if after_call or instruction.opname == "JUMP_BACKWARD":
            found.add(instruction.offset)
        after_call = instruction.opname.startswith("CALL")
    return frozenset(found)


def _is_ours(code: CodeType) -> bool:
    """Whether it is the package's, or the library's on its behalf. Conditions of the library cannot stand interrupts."""
    if code.co_filename == threading.__file__:
        return code.co_name == "start"
    return code.co_filename.startswith(PACKAGE) or code.co_filename == contextlib.__file__


class Interrupter:
    """Counts the places that a call passes, and raises `KeyboardInterrupt` at one of them."""

    def __init__(self, place: int = -1) -> None:
        self.place, self.passed = place, 0
        self.where = ""
        self._in_python: FrameType | None = None

    def during(self, call: Callable[[], Any]) -> None:
        """Make a call, which is interrupted if it passes so many places."""
        sys.settrace(self._called)
        try:
            call()
        finally:
            sys.settrace(None)
            self._in_python = None  # which keeps what is left of the call alive

    def _called(self, frame: FrameType, event: str, arg: object) -> Any:
        self._in_python = frame.f_back
        if not _is_ours(frame.f_code):
            return None
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        if frame.f_lasti in _begins(frame.f_code):
            self._pass(frame)
        return self._goes_on

    def _goes_on(self, frame: FrameType, event: str, arg: object) -> Any:
        if event == "opcode" and frame.f_lasti in _places(frame.f_code):
            if self._in_python is not frame:
                self._pass(frame)
            self._in_python = None
        return self._goes_on

    def _pass(self, frame: FrameType) -> None:
        self.passed += 1
        if self.passed == self.place:
            self.where = f"{frame.f_code.co_filename}:{frame.f_lineno} {frame.f_code.co_qualname}"
            raise KeyboardInterrupt
