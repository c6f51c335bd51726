"""Run one client on one package: ``python -m clients.run PROGRAM PACKAGE MODELS OUT.npz``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any


def compute_in_f32() -> None:
    """Let OpenVINO compute in f32 by default; otherwise it uses bf16 on processors that have it."""
    import openvino

    init = openvino.Core.__init__

    def start(core: openvino.Core, *args: Any) -> None:
        init(core, *args)
        core.set_property("CPU", {"INFERENCE_PRECISION_HINT": "f32"})

    openvino.Core.__init__ = start  # type: ignore[method-assign]


def main(program: str, package: str, models: str, out: str) -> None:
    """Run the client, and save its results."""
    if package == "ir_runtime":
        from clients.in_place import install

        install()
    else:
        compute_in_f32()
    import numpy as np

    from clients.programs import PROGRAMS

    np.savez(out, **PROGRAMS[program](Path(models)))
    import openvino

    where = openvino.__name__
    if where != package:
        raise SystemExit(f"openvino is {where}, not {package}")


if __name__ == "__main__":
    main(*sys.argv[1:])
