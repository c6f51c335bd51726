"""The time limit ends every command at any point; the clock jumps at a chosen check."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from click.testing import Result
from fuzz.series import SHAPES
from fuzz.usage import OTHER, Command, commands

from ir_runtime._util import deadline

Invoke = Callable[[str], Result]

STATIC = [command for command in commands() if not command.runs]
PLACES = 8
"""How many of the checks are tried, evenly spread."""

FEW, MANY, LINES = 8, 20, 3000
"""Numbers of layers, and how many lines may run for each between two checks: some 0.1 ms."""


class Clock:
    """A clock that stands still, and jumps past the deadline at a chosen check."""

    def __init__(self, jump: int | None = None) -> None:
        self.jump = jump
        self.checks = 0
        self.lines = self.longest = 0
        """Lines that ran since the last check, and at most between two."""

    def monotonic(self) -> float:
        if sys._getframe(1).f_code is deadline.check.__code__:
            self.checks += 1
            self.lines = 0
        return 0 if self.jump is None or self.checks < self.jump else 1e9

    def trace(self, frame: FrameType, event: str, argument: object) -> Any:
        """Count a line; a callback of `sys.settrace`."""
        if event == "line":
            self.lines += 1
            self.longest = max(self.longest, self.lines)
        return self.trace


def run(
    command: Command, invoke: Invoke, monkeypatch: pytest.MonkeyPatch, jump: int | None, traced: bool = False
) -> tuple[Result, Clock]:
    clock = Clock(jump)
    with monkeypatch.context() as patch:
        patch.setattr(deadline, "time", clock)
        before = sys.gettrace()
        if traced:
            sys.settrace(clock.trace)
        try:
            return invoke(" ".join(command.line(Path("model.xml")))), clock
        finally:
            sys.settrace(before)


def write(shape: str, count: int) -> None:
    for path, size in ("model.xml", count), (OTHER, count - 1):
        made = SHAPES[shape](size)
        Path(path).write_bytes(made.xml)
        Path(path).with_suffix(".bin").write_bytes(made.weights)


@pytest.mark.parametrize("shape", ["deep_chain", "loops_in_a_row"])
@pytest.mark.parametrize("command", STATIC, ids=[command.name for command in STATIC])
def test_the_time_limit_ends_commands(
    folder: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch, command: Command, shape: str
) -> None:
    write(shape, 5)
    whole, clock = run(command, invoke, monkeypatch, None)
    assert whole.exit_code in (0, 1)
    assert clock.checks > PLACES
    for place in range(1, PLACES + 1):
        ended, _ = run(command, invoke, monkeypatch, clock.checks * place // PLACES)
        assert ended.exit_code in (1, 3, 5)
        assert "it takes longer than 3600 seconds, the limit" in ended.stdout + ended.stderr, place


@pytest.mark.parametrize("shape", ["many_inputs"])
@pytest.mark.parametrize("command", STATIC, ids=[command.name for command in STATIC])
def test_checks_follow_each_other_however_large_the_model_is(
    folder: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch, command: Command, shape: str
) -> None:
    longest = []
    for count in FEW, MANY:
        write(shape, count)
        run(command, invoke, monkeypatch, None)  # what is imported and cached is not counted
        _, clock = run(command, invoke, monkeypatch, None, traced=True)
        longest.append(clock.longest)
    few, many = longest

    assert many - few < LINES * (MANY - FEW)
