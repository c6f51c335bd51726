"""Models for work that takes long, and interrupts of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from models.networks import NETWORKS, save

import ir_runtime as ir
from ir_runtime.ir.tensor import Array


def network(name: str, folder: Path, **limits: int) -> tuple[ir.Model, list[Array]]:
    """Return a network within limits, and its inputs."""
    path = folder / f"{name}.xml"
    model = ir.read_model(path if path.exists() else save(name, folder), limits=ir.Limits(**limits))  # type: ignore[arg-type]
    return model, NETWORKS[name][1]()


def interrupting(at: float) -> Callable[[float, str], None]:
    """Return what interrupts work of which this part is done, from 0 to 1."""

    def show(part: float, _: str) -> None:
        if part >= at:
            raise KeyboardInterrupt

    return show


def noting(seen: list[list[str]], at: float) -> Callable[[float, str], None]:
    """Return what notes the layers that run as a new list, and interrupts there."""
    seen.append([])

    def show(part: float, layer: str) -> None:
        seen[-1].append(layer)
        if part >= at:
            raise KeyboardInterrupt

    return show
