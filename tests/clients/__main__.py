"""Run real clients of OpenVINO on both packages: ``python -m clients FOLDER`` (make clients).

Models are small, with random weights, converted by OpenVINO. Each client runs in a subprocess, once with OpenVINO and once
with ir_runtime in its place. Tokens, classes and boxes must be equal.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from clients.programs import PROGRAMS

TESTS = Path(__file__).parents[1]
PACKAGES = ("openvino", "ir_runtime")
# No client looks for updates, sends statistics, or installs what it believes to be missing.
ALONE = {
    "HF_HUB_OFFLINE": "1",
    "YOLO_AUTOINSTALL": "false",
    "YOLO_OFFLINE": "true",
    "NO_ALBUMENTATIONS_UPDATE": "1",
    "CI": "true",  # nncf
}


def run(folder: Path, module: str, *arguments: str) -> str:
    """Run a module in a folder, where clients may leave caches; return its output if it fails."""
    line = [sys.executable, "-m", module, *arguments]
    found = subprocess.run(
        line,
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, **ALONE, "PYTHONPATH": str(TESTS)},
    )
    return "" if found.returncode == 0 else f"{found.stdout}\n{found.stderr}"


def difference(ours: Any, theirs: Any) -> str:
    """Describe the difference between arrays; integers must be equal, floating-point values up to rounding."""
    if ours.shape != theirs.shape:
        return f"shape {ours.shape}, expected {theirs.shape}"
    if theirs.dtype.kind in "iub":
        return "" if (ours == theirs).all() else f"{(ours != theirs).sum()} of {theirs.size} numbers differ"
    scale = np.abs(theirs).max(initial=0.0)
    largest = np.abs(ours - theirs).max(initial=0.0)
    return "" if largest <= 1e-4 * scale else f"differs by {largest:.2g} of {scale:.2g}"


def main(folder: Path) -> int:
    """Run every client; return the number of those that fail or differ."""
    folder.mkdir(parents=True, exist_ok=True)
    if said := run(folder, "clients.make", str(folder)):
        print(said)
        return 1
    failed = 0
    for name in PROGRAMS:
        files = {package: folder / f"{name}.{package}.npz" for package in PACKAGES}
        said = "".join(
            run(folder, "clients.run", name, package, str(folder), str(files[package]))
            for package in PACKAGES
        )
        found = [said] if said else list(_differences(*(np.load(files[p]) for p in reversed(PACKAGES))))
        failed += bool(found)
        print(f"{name:24} {'differs' if found else 'equal'}", *found, sep="\n  " if found else "", flush=True)
    return failed


def _differences(ours: Any, theirs: Any) -> Any:
    for key in theirs:
        if said := difference(ours[key], theirs[key]):
            yield f"{key}: {said}"


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
