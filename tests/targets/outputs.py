"""Run models on the kernels of one target, in a process that has loaded them: ``python -m targets.outputs FOLDER OUT``."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import ir_runtime as ir
from ir_runtime.backends.native.machine_code import library

__all__ = ["run"]


def run(folder: Path, out: Path) -> None:
    """Run each NAME.xml of a folder on NAME.npz, twice, and write the results to NAME.npz of another folder.

    Raises:
        AssertionError: if the second run gives other bits.
    """
    out.mkdir(parents=True, exist_ok=True)
    for path in sorted(folder.glob("*.xml")):
        compiled = ir.compile_model(path, backend="native")
        with np.load(path.with_suffix(".npz")) as arrays:
            inputs = list(arrays.values())
        first, second = (compiled.create_infer_request().infer(inputs).to_tuple() for _ in range(2))
        assert [array.tobytes() for array in first] == [array.tobytes() for array in second], path.stem
        np.savez(out / f"{path.stem}.npz", *first)
        print(f"{library().target.name}: {path.stem}", flush=True)


if __name__ == "__main__":
    run(Path(sys.argv[1]), Path(sys.argv[2]))
