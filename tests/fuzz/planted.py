"""Commands in folders with planted modules, a few at a time and in several forms; none may be executed.

`test_child_process` plants all names at once, where the first one executed hides the others.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Literal

from harness.planted import COMMANDS, FORMS, Form, Planted, plantable

__all__ = ["Trial", "executed", "findings", "trial"]

Start = Literal["script", "module"]

# As pip writes it.
SCRIPT = """\
import sys
from ir_runtime.__main__ import main
if __name__ == "__main__":
    sys.exit(main())
"""


@dataclass(frozen=True, slots=True)
class Trial:
    """A command, how it is started, and the contents of the working directory."""

    command: str
    start: Start
    form: Form
    names: tuple[str, ...]


def trial(seed: int, number: int) -> Trial:
    """Return a numbered trial."""
    rng = Random(f"planted {seed} {number}")
    start: Start = rng.choice(("script", "script", "module"))
    names = plantable()
    if start == "module":  # ``python -m`` itself executes what it imports before the package
        own = {*sys.stdlib_module_names, "sitecustomize", "usercustomize", "ir_runtime"}
        names = tuple(name for name in names if name not in own)
    some = rng.sample(names, rng.randint(1, len(names)))
    return Trial(rng.choice(list(COMMANDS)), start, rng.choice(FORMS), tuple(sorted(some)))


def executed(trial: Trial, folder: Path) -> list[str]:
    """Run a trial in an empty folder; return the planted modules that were executed."""
    planted = Planted(folder / "models", folder / "log", folder / "home", trial.names, trial.form)
    script = folder / "ir-runtime"
    script.write_text(SCRIPT)
    program = [str(script)] if trial.start == "script" else ["-m", "ir_runtime"]
    planted.run(*program, trial.command, *COMMANDS[trial.command].split())
    return planted.executed()


def findings(seed: int, count: int, end: float, now: Callable[[], float]) -> Iterator[str]:
    """Run trials until a time; yield the executed modules of each, with a description."""
    for number in range(count):
        if now() > end:
            return
        made = trial(seed, number)
        with TemporaryDirectory(prefix="planted-") as folder:
            if names := executed(made, Path(folder)):
                yield f"{', '.join(filter(None, names))}\n{made}\n"
