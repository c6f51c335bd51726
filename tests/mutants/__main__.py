"""``make mutants``: draw mutants of the package, run the tests that are related to each, and list those that survive.

``MUTANTS="--count 40 --seed 7 --only analysis"`` says how many, which, and of what. Tools for this, such as mutmut and cosmic-ray,
run all tests for each mutant, or all of them once to see what they cover, which takes an hour here; and mutmut rewrites every function,
which operations, whose classes are read as declarations, do not stand.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path

import numpy as np  # noqa: F401 - what most tests import is imported once, before processes are forked
import openvino  # noqa: F401
import pytest
from lxml import etree  # noqa: F401

from .mutate import Mutant, mutants_of
from .related import ROOMS, other_tests, related_tests, samples_of

ROOT = Path(__file__).parents[2]
COPIED = (
    "ir_runtime",
    "tests",
    "examples",
    "pyproject.toml",
    "README.md",
    "CHANGELOG.md",
    "Makefile",
    "LICENSE",
)
SECONDS = 240
"""CPU time after which tests are ended: a mutant that makes a loop endless has been noticed."""
MEMORY = 12 << 30


class _First:
    """A plugin that tells which test fails first."""

    def __init__(self, end: int) -> None:
        self._end = end

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            os.write(self._end, report.nodeid.encode()[:4000])


def failure(folder: Path, arguments: list[str]) -> str:
    """Run tests in a process of their own; return the one that fails first, or how the process ended; empty if all pass."""
    reading, writing = os.pipe()
    if not (child := os.fork()):
        os.close(reading)
        code: int = pytest.ExitCode.INTERNAL_ERROR
        try:
            code = _run(folder, arguments, writing)
        except BaseException as reason:
            os.write(writing, repr(reason).encode())
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as end:
        first = end.read().decode(errors="replace")
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    passed = code in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
    return "" if passed else first or (f"signal {-code}" if code < 0 else "tests cannot be collected")


def _run(folder: Path, arguments: list[str], end: int) -> pytest.ExitCode:
    os.chdir(folder)
    with open(os.devnull, "w") as nowhere:
        for stream in (1, 2):
            os.dup2(nowhere.fileno(), stream)
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 5))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    os.environ |= {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(folder)}
    sys.dont_write_bytecode = True
    sys.path[:] = [str(folder), *(path for path in sys.path if not path.startswith(str(ROOT / "tests")))]
    options = [
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-m",
        "not oracle",
        "--rootdir",
        str(folder),
    ]
    return pytest.ExitCode(pytest.main([*options, *arguments], plugins=[_First(end)]))


def draw(count: int, seed: int, only: str | None) -> list[tuple[Path, Mutant]]:
    """Draw mutants, as many of each part of the package; modules in proportion to their places."""
    rng, folder = random.Random(seed), ROOT / "ir_runtime"
    drawn: list[tuple[Path, Mutant]] = []
    rooms = [only] if only else list(ROOMS)
    for number, room in enumerate(rooms):
        files = sorted((folder / room).rglob("*.py"))
        places = [
            (file.relative_to(folder), mutant) for file in files for mutant in mutants_of(file.read_text())
        ]
        drawn += rng.sample(places, count // len(rooms) + (number < count % len(rooms)))
    return drawn


class Outcome(Enum):
    """What became of a mutant."""

    DIES = "dies"
    SURVIVES = "SURVIVES"
    UNKNOWN = "UNKNOWN"
    """The test that fails does so without the mutant, too."""


Runner = Callable[[Path, list[str]], str]


class Examiner:
    """A copy of the project in which mutants are planted, one at a time.

    Args:
        copy: the folder of the copy.
        run: runs tests there, as :func:`failure` does.
    """

    def __init__(self, copy: Path, run: Runner = failure) -> None:
        self._copy = copy
        self._run = run
        self._unchanged: dict[tuple[str, ...], str] = {}

    def examine(self, module: Path, mutant: Mutant) -> tuple[Outcome, str]:
        """Return the outcome, and the test that decides it."""
        tests = self._copy / "tests"
        groups = [
            [str(path) for path in related_tests(tests, module, mutant.scope)],
            samples_of(tests, module, mutant.scope),
            [str(path) for path in other_tests(tests, module, mutant.scope)],
        ]
        for group in filter(None, groups):
            with self._planted(module, mutant):
                first = self._run(self._copy, group)
            if first:
                fails = self._fails_unchanged([first] if "::" in first else group)
                return (Outcome.UNKNOWN if fails else Outcome.DIES), first
        return Outcome.SURVIVES, "no test fails"

    def _fails_unchanged(self, arguments: list[str]) -> bool:
        key = tuple(arguments)
        if key not in self._unchanged:
            self._unchanged[key] = self._run(self._copy, arguments)
        return bool(self._unchanged[key])

    @contextmanager
    def _planted(self, module: Path, mutant: Mutant) -> Iterator[None]:
        file = self._copy / "ir_runtime" / module
        before, times = file.read_text(), file.stat()
        file.write_text(mutant.source)
        try:
            yield
        finally:
            file.write_text(before)
            os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))


def exit_code(outcomes: Counter[Outcome]) -> int:
    """Return 3 if tests fail on the unchanged tree, which is to be mended first; 1 if more than one mutant in 20 survives."""
    if outcomes[Outcome.UNKNOWN]:
        return 3
    return int(outcomes[Outcome.SURVIVES] > outcomes.total() // 20)


def main(count: int, seed: int, only: str | None) -> Counter[Outcome]:
    """Print what became of each mutant; return how many have each outcome."""
    outcomes = Counter[Outcome]()
    with tempfile.TemporaryDirectory(prefix="ir_runtime-mutants-") as name:
        copy = Path(name)
        for part in COPIED:
            source = ROOT / part
            shutil.copytree(source, copy / part) if source.is_dir() else shutil.copy2(source, copy)
        examiner = Examiner(copy)
        for module, mutant in draw(count, seed, only):
            start = os.times().children_user
            outcome, test = examiner.examine(module, mutant)
            outcomes[outcome] += 1
            without = ", without the mutant, too" * (outcome is Outcome.UNKNOWN)
            print(
                f"{outcome.value:8} {os.times().children_user - start:4.0f} s  ir_runtime/{module}:{mutant.line} {'.'.join(mutant.scope)}\n"
                f"         - {_short(mutant.before)}\n         + {_short(mutant.after)}\n         {test}{without}",
                flush=True,
            )
    print(summary(outcomes))
    return outcomes


def summary(outcomes: Counter[Outcome]) -> str:
    """Return how many mutants die, and of how many tests cannot tell."""
    unknown = outcomes[Outcome.UNKNOWN]
    judged = outcomes.total() - unknown
    text = f"{outcomes[Outcome.DIES]} of {judged} mutants die"
    return (
        f"{text}; {unknown} more met tests that fail on the unchanged tree: mend those first"
        if unknown
        else text
    )


def _short(text: str) -> str:
    return " ".join(text.split())[:150]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=list(ROOMS))
    options = parser.parse_args()
    sys.exit(exit_code(main(options.count, options.seed, options.only)))
