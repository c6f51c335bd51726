"""Build the wheels: ``python -m ir_runtime.backends.native.build.wheels FOLDER [SYSTEM ...]``.

Builds one wheel for each named system, by default for all `SYSTEMS`, and the wheel without kernels. Builds
are reproducible: the same sources and tools yield the same bytes on every machine.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from unittest.mock import patch

from hatchling.builders.wheel import WheelBuilder

from ..machine_code import FOLDER
from .library import build, is_current
from .source import CompileError
from .systems import SYSTEMS, LinkError, System

_ROOT = FOLDER.parents[3]
_BUILT = _ROOT / "out" / "kernels"


def _libraries(system: System) -> Path:
    """Build the libraries of a system that are not current; return their folder."""
    folder = _BUILT / system.name / "libraries"
    for target in system.targets:
        file = folder / f"{target}{system.suffix}"
        if not is_current(file):
            print(f"building the kernels for {target} on {system.name}", file=sys.stderr)
            build(target, system, file, _BUILT / system.name / target)
    return folder


def _wheel(out: Path, **variables: str) -> Path:
    """Build a wheel with environment variables for the hook; return its path."""
    with patch.dict(os.environ, variables):
        (path,) = WheelBuilder(str(_ROOT)).build(directory=str(out), versions=["standard"])
    return Path(path)


def main(folder: str, names: list[str]) -> int:
    """Build the wheels of the named systems, and the wheel without kernels, in place of older ones; return the exit code."""
    out = Path(folder).absolute()
    for old in out.glob("ir_runtime-*.whl"):
        old.unlink()
    try:
        for system in (SYSTEMS[name] for name in names or SYSTEMS):
            libraries = _libraries(system)
            wheel = _wheel(out, IR_RUNTIME_WHEEL_LIBRARIES=str(libraries), IR_RUNTIME_WHEEL_TAG=system.tag)
            print(wheel)
    except (CompileError, LinkError) as reason:
        print(reason, file=sys.stderr)
        return 1
    print(_wheel(out))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
