"""A folder from which someone else can reproduce a difference."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .._util.cores import processor_name
from .._util.files import create, folder_target, replacing_in, save_text, write_npy
from .._version import __version__
from ..errors import InputError
from ..ir.graph import IO_TYPES, Layer
from ..ir.tensor import Array
from ..openvino.model import Model
from ..openvino.saving import save_model
from .command_side import Command
from .matching import attributes_of
from .observation import Observation, Repeated, SideLike
from .openvino_side import OpenVINO
from .oracle import oracle
from .other_model import OtherParts
from .reduced import Reduced
from .reference import Reference
from .sides import side_of
from .tensors import is_float

__all__ = ["check_folder", "write"]

OTHER = "other.xml"
"""The other IR."""

_PROGRAM = '''"""Shows how OpenVINO differs from f64 on a model of {count}; needs openvino and numpy."""

from pathlib import Path

import numpy as np
import openvino as ov

HERE = Path(__file__).parent
compiled = ov.Core().compile_model(HERE / "model.xml", "CPU", {config})
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
    """Check that a folder can be made and written, before anything takes long.

    Raises:
        InputError: if something is in the way, or nothing may be written there.
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


def write(reduced: Reduced, side: SideLike, folder: Path, other: Model | None = None) -> Path:
    """Write a model with its inputs and its outputs in f64, a program that compares, and a text; return the folder.

    Args:
        reduced: what is written.
        side: what differs on it.
        folder: where.
        other: what the model is compared with, if that is another IR.

    Raises:
        InputError: if something is in the way.
    """
    check_folder(folder)
    reference = Reference(reduced.model)
    truth = oracle(reduced.model, reduced.inputs).outputs
    seen = side_of(side).observe(reduced.model, reference, reduced.inputs, ())
    folder.absolute().parent.mkdir(parents=True, exist_ok=True)
    with replacing_in(folder) as stage:
        save_model(reduced.model, stage / "model.xml")
        if other is not None:
            save_model(other, stage / OTHER)
        for kind, arrays in (("input", reduced.inputs), ("expected", truth)):
            for index, array in enumerate(arrays):
                with create(stage / f"{kind}_{index}.npy") as file:
                    write_npy(file, array.astype(str) if array.dtype == object else array)
        save_text(stage / "show.py", _program(reduced, side, len(truth)))
        save_text(stage / "issue.md", _text(reduced, reference, truth, seen))
    return folder


def _program(reduced: Reduced, side: SideLike, outputs: int) -> str:
    count = f"{len(reduced.layers)} layer" + ("s" if len(reduced.layers) != 1 else "")
    inputs = len(reduced.inputs)
    alone = side_of(side)
    if isinstance(alone, OpenVINO):
        return _PROGRAM.format(count=count, config=repr(alone.config), inputs=inputs, outputs=outputs)
    if isinstance(alone, OtherParts):
        name, given = OTHER, f'HERE / "{OTHER}"'
    elif isinstance(alone, Command):
        name, given = alone.name, f"debug.Command({list(alone.words)!r})"
    else:
        name, given = reduced.side, repr(reduced.side)
    if isinstance(side, Repeated):
        given = f"debug.Repeated({given}, {side.times})"
    return _OURS.format(
        count=count, inputs=inputs, side=name.replace("\\", "/").replace('"', "'"), given=given
    )


def _text(reduced: Reduced, reference: Reference, truth: Sequence[Array], seen: Observation) -> str:
    """Return a text for an issue: layers, values, notes, and the environment."""
    graph = reduced.model._graph
    layers = "\n".join(
        f"- {_described(reference, layer)}" for layer in graph if layer.type not in (*IO_TYPES, "Constant")
    )
    inputs = "\n".join(f"- {array.dtype.name}{list(array.shape)}" for array in reduced.inputs)
    notes = "".join(f"\n{note[0].upper()}{note[1:]}.\n" for note in reduced.notes)
    ran = " ".join(f"{name}={value}" for name, value in seen.settings.items())
    return (
        f"# {reduced.side} differs from f64 by more than rounding\n\n"
        f"The model has the layers\n\n{layers}\n\nand the inputs\n\n{inputs}\n\n"
        f"## Values\n\n{_values(reference, truth, seen)}\n{notes}\n"
        f"`python show.py` compares with the outputs as computed in f64:\n\n```\n{reduced.report}\n```\n\n"
        f"## Environment\n\n- {reduced.side}{f' with {ran}' if ran else ''}\n- ir_runtime {__version__}, NumPy {np.__version__}\n"
        f"- Python {platform.python_version()}, {platform.system()} {platform.machine()}, {processor_name()}\n"
    )


def _described(reference: Reference, layer: Layer) -> str:
    """Describe an operation with its input and output types, and non-default attributes."""
    types, graph = reference.types, reference.graph
    given = ", ".join(
        f"{types[port].type.element.label}{types[port].type.shape}" for port in graph.reads(layer)
    )
    made = ", ".join(
        f"{types[port].type.element.label}{types[port].type.shape}" for port in layer.output_ports
    )
    attributes = " ".join(f"{name}={value}" for name, value in attributes_of(layer).items())
    return f"{layer.operation}({given}) -> {made}{f', {attributes}' if attributes else ''}"


def _values(reference: Reference, truth: Sequence[Array], seen: Observation) -> str:
    """Return a table of the outputs: how many elements differ, and the first of them, expected and got."""
    lines = ["| output | differ | first at | expected | got |", "|---|--:|---|--:|--:|"]
    for index, (exact, port) in enumerate(zip(truth, reference.outputs, strict=True)):
        if index in seen.absent:
            continue
        theirs = np.asarray(seen.outputs[index])
        if theirs.shape != exact.shape:
            lines.append(f"| {index} | shape | | {list(exact.shape)} | {list(theirs.shape)} |")
            continue
        wrong = _wrong(exact, theirs, is_float(reference.types, port._port))
        count = int(np.count_nonzero(wrong))
        if count:
            place = tuple(int(i) for i in np.argwhere(wrong)[0])
            lines.append(
                f"| {index} | {count:,} of {exact.size:,} | {list(place)} | {exact[place]:.9g} | {theirs[place]:.9g} |"
            )
        else:
            lines.append(f"| {index} | 0 of {exact.size:,} | | | |")
    return "\n".join(lines)


def _wrong(exact: Array, theirs: Array, is_real: bool) -> Array:
    """Return which elements are off by more than a hundredth of the largest error."""
    if not is_real or exact.dtype.kind != "f":
        return np.asarray(exact != theirs)
    with np.errstate(all="ignore"):
        off = np.abs(theirs.astype(np.float64) - exact)
        lost = ~np.isfinite(theirs.astype(np.float64)) | ~np.isfinite(exact)
        differ = lost & ~((theirs == exact) | (np.isnan(theirs) & np.isnan(exact)))
        finite = np.where(lost, 0, off)
        return np.asarray(differ | (finite > 0.01 * finite.max(initial=0)))
