"""Write a folder that reproduces a difference elsewhere."""

from __future__ import annotations

import os
from pathlib import Path

from .._util.files import create, folder_target, replacing_in, save_text, write_npy
from ..errors import InputError
from ..openvino.model import Model
from ..openvino.saving import save_model
from .oracle import oracle
from .reduced import Reduced
from .tensors import computed_layers

__all__ = ["check_folder", "write"]

OTHER = "other.xml"
"""The other IR."""

_PROGRAM = '''"""Shows how OpenVINO differs from f64 on a model of {count}; needs openvino and numpy."""

from pathlib import Path

import numpy as np
import openvino as ov

HERE = Path(__file__).parent
compiled = ov.Core().compile_model(HERE / "model.xml", "CPU", {{"INFERENCE_PRECISION_HINT": "{hint}"}})
inputs = [np.load(HERE / f"input_{{index}}.npy") for index in range({inputs})]
results = compiled(inputs)
for index in range({outputs}):
    truth = np.load(HERE / f"expected_{{index}}.npy")
    off = np.sqrt(np.mean((results[index].astype(np.float64) - truth) ** 2))
    print(f"output {{index}}: relative error {{off / np.sqrt(np.mean(truth**2)):.1e}}")
'''

_OURS = '''"""Shows how {side} differs from f64 on a model of {count}."""

from pathlib import Path

import numpy as np

import ir_runtime
from ir_runtime import debug

HERE = Path(__file__).parent
inputs = [np.load(HERE / f"input_{{index}}.npy") for index in range({inputs})]
print(debug.compare(ir_runtime.read_model(HERE / "model.xml"), inputs, {given}))
'''


def check_folder(folder: Path) -> None:
    """Check that a folder can be created, before any long work.

    Raises:
        InputError: if the path exists, or is not writable.
    """
    if folder.is_symlink():
        folder_target(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{str(folder)!r} is there already", hint="give the name of a new folder")
    place = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        raise InputError(
            f"{str(folder)!r} cannot be written", hint=f"{str(place)!r} must be a folder that may be written"
        )


def write(reduced: Reduced, folder: Path, other: Model | None = None) -> Path:
    """Write a model, its inputs and f64 outputs, a program that compares, and a text; return the folder.

    Args:
        reduced: the reduced model.
        folder: the folder.
        other: the other IR to compare with, if any.

    Raises:
        InputError: if the path exists.
    """
    check_folder(folder)
    truth = oracle(reduced.model, reduced.inputs).outputs
    folder.absolute().parent.mkdir(parents=True, exist_ok=True)
    with replacing_in(folder) as stage:
        save_model(reduced.model, stage / "model.xml")
        if other is not None:
            save_model(other, stage / OTHER)
        for kind, arrays in (("input", reduced.inputs), ("expected", truth)):
            for index, array in enumerate(arrays):
                with create(stage / f"{kind}_{index}.npy") as file:
                    write_npy(file, array.astype(str) if array.dtype == object else array)
        save_text(stage / "show.py", _program(reduced, len(truth), other is not None))
        save_text(stage / "issue.md", _text(reduced))
    return folder


def _program(found: Reduced, outputs: int, is_model: bool) -> str:
    count = f"{len(found.layers)} layer" + ("s" if len(found.layers) != 1 else "")
    name, _, hint = found.side.partition(":")
    if name == "openvino":
        return _PROGRAM.format(count=count, hint=hint or "f32", inputs=len(found.inputs), outputs=outputs)
    side, given = (
        (OTHER, f'HERE / "{OTHER}"') if is_model else (f"the backend {found.side}", repr(found.side))
    )
    return _OURS.format(count=count, inputs=len(found.inputs), side=side, given=given)


def _text(reduced: Reduced) -> str:
    layers = computed_layers(reduced.model._graph)
    names = "\n".join(f"- {layer.operation}" for layer in layers)
    inputs = "\n".join(f"- {array.dtype.name}{list(array.shape)}" for array in reduced.inputs)
    notes = "".join(f"\n{note[0].upper()}{note[1:]}.\n" for note in reduced.notes)
    return (
        f"# {reduced.side} differs from f64 by more than rounding\n\n"
        f"The model has the layers\n\n{names}\n\nand the inputs\n\n{inputs}\n{notes}\n"
        f"`python show.py` compares with the outputs as computed in f64:\n\n```\n{reduced.report}\n```\n"
    )
