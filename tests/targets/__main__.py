"""Run networks on the kernels of all targets, and compare: ``python -m targets FOLDER [IR ...]`` (make emulated).

All targets that this processor can run are compared, with ``--emulated`` also those of AArch64, on a processor emulated by
QEMU, for which the folder gets its own Python; kernel tests run there, too. Integers must be equal, and floating-point
results may differ by at most `BOUND` of the largest element.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ir_runtime.backends.native.codegen.targets import TARGETS
from ir_runtime.backends.native.machine_code import library
from ir_runtime.ir.tensor import Array

from .machine import prepare

__all__ = ["BOUND", "compare", "difference", "run", "targets_here"]

BOUND = 2e-5
_TESTS = Path(__file__).parents[1]
_EMULATED = tuple(target.name for target in TARGETS.values() if target.is_arm)


def targets_here() -> list[str]:
    """Return the names of the targets that this processor can run, the best first."""
    features = library().processor.features
    return [target.name for target in TARGETS.values() if target.features <= features]


def run(networks: Path, out: Path, target: str, python: Path = Path(sys.executable)) -> None:
    """Run networks on the kernels of a target, built if necessary, and write their results.

    Raises:
        CalledProcessError: if that fails.
    """
    build = [sys.executable, "-m", "ir_runtime.backends.native.build", target]
    subprocess.run(build, check=True, capture_output=True)
    command = [python, "-m", "targets.outputs", networks, out]
    subprocess.run(command, check=True, env=_environment(target))


def _environment(target: str) -> dict[str, str]:
    path = os.pathsep.join((str(_TESTS), str(_TESTS.parent)))
    return os.environ | {"IR_RUNTIME_TARGET": target, "PYTHONPATH": path}


def compare(ours: Path, others: Path) -> dict[str, float]:
    """Return the differences of each network's results between two folders."""
    return {
        path.stem: difference(_results(path), _results(others / path.name))
        for path in sorted(ours.glob("*.npz"))
    }


def _results(path: Path) -> list[Array]:
    with np.load(path) as arrays:
        return list(arrays.values())


def difference(ours: Sequence[Array], others: Sequence[Array]) -> float:
    """Return the largest difference relative to the largest element of each result; infinite if integers differ."""
    return max(map(_apart, ours, others), default=0.0)


def _apart(one: Array, other: Array) -> float:
    if (one.shape, one.dtype) != (other.shape, other.dtype):
        return np.inf
    is_number = np.isfinite(one) if one.dtype.kind == "f" else np.zeros(one.shape, bool)
    if not np.array_equal(one[~is_number], other[~is_number], equal_nan=one.dtype.kind == "f"):
        return np.inf
    a, b = (array[is_number].astype(np.float64) for array in (one, other))
    apart, largest = np.abs(a - b).max(initial=0), np.abs(a).max(initial=0)
    return float(apart and apart / largest if largest else apart and np.inf)


def _table(differences: Mapping[str, Mapping[str, float]], first: str) -> list[str]:
    """Return a line for each network: the difference of each target from the first one."""
    width = max(map(len, differences))
    lines = [f"differences from {first}, as fractions of the largest number of a result"]
    for name, row in differences.items():
        cells = (f"{target} {value:.0e}{'' if value <= BOUND else ' !'}" for target, value in row.items())
        lines.append(f"{name:{width}}  {'  '.join(cells)}")
    return lines


def main(arguments: Sequence[str]) -> int:
    """Run and compare; return 1 if results differ by more than rounding, or a test fails."""
    parser = argparse.ArgumentParser(prog="python -m targets", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where everything is written")
    parser.add_argument(
        "networks", type=Path, nargs="*", help="IR files that run beside the small networks of the tests"
    )
    parser.add_argument("--emulated", action="store_true", help="also AArch64, emulated")
    parser.add_argument(
        "--tests", nargs="*", help="files of tests that run emulated; by default those of kernels"
    )
    chosen = parser.parse_args(arguments)
    from .networks import write

    folder = chosen.folder.absolute()
    networks = folder / "networks"
    write(networks, chosen.networks)
    pythons = dict.fromkeys(targets_here(), Path(sys.executable))
    if chosen.emulated:
        pythons |= dict.fromkeys(_EMULATED, prepare(folder))
    for target, python in pythons.items():
        run(networks, folder / "results" / target, target, python)
    first, *others = pythons
    apart = {target: compare(folder / "results" / first, folder / "results" / target) for target in others}
    differences = {
        name: {target: apart[target][name] for target in others} for name in next(iter(apart.values()))
    }
    print(*_table(differences, first), sep="\n")
    failed = any(value > BOUND for row in differences.values() for value in row.values())
    if chosen.emulated:
        failed |= _test(pythons[_EMULATED[0]], chosen.tests)
    return int(failed)


def _test(python: Path, files: Sequence[str] | None) -> bool:
    """Run tests on an emulated processor; return whether one fails."""
    files = (
        files
        if files is not None
        else [str(path) for path in sorted((_TESTS / "backends").glob("test_native_*.py"))]
    )
    if not files:
        return False
    options = [
        "-q",
        "-p",
        "no:cacheprovider",
        "-o",
        "addopts=--import-mode=importlib -ra",
        "-m",
        "not oracle and not long",
    ]
    command = [python, "-m", "pytest", *options, *files]
    return bool(
        subprocess.run(command, cwd=_TESTS.parent, env=_environment(_EMULATED[0]), check=False).returncode
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
