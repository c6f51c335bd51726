"""The time limit ends every command, wherever it is then: with a clock that jumps at a chosen check."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from fuzz.series import SHAPES
from fuzz.usage import OTHER, Command, commands

from ir_runtime import deadline

Invoke = Callable[[str], Result]

STATIC = [command for command in commands() if not command.runs]
PLACES = 8
"""How many of the checks are tried, evenly spread."""


class Clock:
    """A clock that stands still, and jumps at one of the checks of deadlines."""

    def __init__(self, jump: int | None = None) -> None:
        self.jump = jump
        self.checks = 0

    def monotonic(self) -> float:
        if sys._getframe(1).f_code is deadline.check.__code__:
            self.checks += 1
        return 0 if self.jump is None or self.checks < self.jump else 1e9


def run(
    command: Command, invoke: Invoke, monkeypatch: pytest.MonkeyPatch, jump: int | None
) -> tuple[Result, Clock]:
    clock = Clock(jump)
    with monkeypatch.context() as patch:
        patch.setattr(deadline, "time", clock)
        return invoke(" ".join(command.line(Path("model.xml")))), clock


@pytest.mark.parametrize("shape", ["deep_chain", "loops_in_a_row"])
@pytest.mark.parametrize("command", STATIC, ids=[command.name for command in STATIC])
def test_the_time_limit_ends_commands(
    folder: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch, command: Command, shape: str
) -> None:
    for path, count in ("model.xml", 5), (OTHER, 4):
        made = SHAPES[shape](count)
        Path(path).write_bytes(made.xml)
        Path(path).with_suffix(".bin").write_bytes(made.weights)
    whole, clock = run(command, invoke, monkeypatch, None)
    assert whole.exit_code in (0, 1)
    assert clock.checks > PLACES
    for place in range(1, PLACES + 1):
        ended, _ = run(command, invoke, monkeypatch, clock.checks * place // PLACES)
        assert ended.exit_code in (1, 3, 5)
        assert "it takes longer than 3600 seconds, the limit" in ended.stdout + ended.stderr, place
