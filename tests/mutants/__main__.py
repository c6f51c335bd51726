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
import time
from collections import Counter
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
        code = pytest.ExitCode.INTERNAL_ERROR
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


def examine(copy: Path, module: Path, mutant: Mutant) -> str:
    """Return what notices a mutant; empty if it survives."""
    file = copy / "ir_runtime" / module
    before, times = file.read_text(), file.stat()
    tests = copy / "tests"
    groups = [
        [str(path) for path in related_tests(tests, module, mutant.scope)],
        samples_of(tests, module, mutant.scope),
        [str(path) for path in other_tests(tests, module)],
    ]
    file.write_text(mutant.source)
    try:
        for group in filter(None, groups):
            if first := failure(copy, group):
                return first
    finally:
        file.write_text(before)
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    return ""


def main(count: int, seed: int, only: str | None) -> int:
    """Print what became of each mutant; return how many survive."""
    survivors, seen, sound = 0, Counter[str](), dict[str, bool]()
    with tempfile.TemporaryDirectory(prefix="ir_runtime-mutants-") as name:
        copy = Path(name)
        for part in COPIED:
            source = ROOT / part
            shutil.copytree(source, copy / part) if source.is_dir() else shutil.copy2(source, copy)
        for module, mutant in draw(count, seed, only):
            start = time.process_time(), os.times().children_user
            first = examine(copy, module, mutant)
            if "::" in first and not sound.setdefault(first, not failure(copy, [first])):
                first = f"FAILS WITHOUT A MUTANT: {first}"
            room = module.parts[0]
            seen[room] += 1
            survivors += not first
            seconds = os.times().children_user - start[1]
            print(
                f"{'dies    ' if first else 'SURVIVES'} {seconds:4.0f} s  ir_runtime/{module}:{mutant.line} {'.'.join(mutant.scope)}\n"
                f"         - {_short(mutant.before)}\n         + {_short(mutant.after)}\n         {first or 'no test fails'}",
                flush=True,
            )
    print(f"{sum(seen.values()) - survivors} of {sum(seen.values())} mutants die")
    return survivors


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
    sys.exit(main(options.count, options.seed, options.only) > options.count // 20)
