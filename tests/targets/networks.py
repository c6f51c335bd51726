"""The networks that run on each target, and their inputs."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import openvino as ov
from models.kinds import KINDS, inputs_of
from models.networks import NETWORKS, save
from world.inputs import candidates

from ir_runtime.ir.tensor import Array

__all__ = ["write"]

_DIGITS = Path(__file__).parents[2] / "examples" / "digits"


def write(folder: Path, others: Sequence[Path] = ()) -> None:
    """Write the digits, small networks of all kinds, and IR files of others, each with its inputs, into an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    _copy(_DIGITS / "digits.xml", folder)
    _keep(folder / "digits", [np.load(_DIGITS / "images.npy")])
    for name, (_, draw) in NETWORKS.items():
        save(name, folder)
        _keep(folder / name, draw())
    for name, build in KINDS.items():
        model = build()
        ov.save_model(model, folder / f"{name}.xml", compress_to_fp16=False)
        _keep(folder / name, inputs_of(model).values())
    for path in others:
        _copy(path, folder)
        _keep(folder / path.stem, next(candidates(path, ov.Core().read_model(path))))


def _copy(path: Path, folder: Path) -> None:
    """Copy a model; weights may be large, and are linked."""
    shutil.copy(path, folder)
    (folder / path.with_suffix(".bin").name).symlink_to(path.with_suffix(".bin").absolute())


def _keep(path: Path, arrays: Iterable[Array]) -> None:
    np.savez(path.with_suffix(".npz"), *arrays)
