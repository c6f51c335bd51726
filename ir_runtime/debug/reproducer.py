"""The smallest part of a model that reproduces a difference: a report, and a folder for someone else."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from .._util.cores import processor_name
from .._util.escaping import shown
from .._util.files import create, folder_target, replacing_in, save_text, write_npy
from .._util.markup import record_html
from .._util.records import Record
from .._version import __version__
from ..errors import InputError
from ..ir.graph import IO_TYPES, Graph, Layer
from ..ir.tensor import Array
from ..openvino.model import Model
from ..openvino.saving import save_model
from .command_side import Command
from .matching import attributes_of
from .observation import Observation, Repeated, SideLike
from .openvino_side import OpenVINO
from .oracle import oracle
from .other_model import OtherParts
from .reference import Reference
from .report import Comparison
from .sides import side_of
from .tensors import computed_layers, is_float

__all__ = ["Reduced", "check_folder", "real_constants", "write"]

OTHER = "other.xml"
"""The file name of the other IR."""

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


def real_constants(graph: Graph) -> tuple[str, ...]:
    """Return the names of the constants that hold real numbers."""
    return tuple(
        layer.name
        for layer in graph.of_type("Constant")
        if layer.op is not None and np.asarray(layer.op.evaluate()).dtype.kind == "f"
    )


@dataclass
class Reduced:
    """The smallest part of a model that reproduces a difference, as a report.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import debug, opset1
    >>> class Device:
    ...     def observe(self, model, reference, feeds, ports):
    ...         found = ov.compile_model(model)(list(feeds))
    ...         return debug.Observation("device", [found[0] * np.float32(1.5)])
    >>> x = opset1.parameter([2], np.float32, name="x")
    >>> model = ov.Model([opset1.exp(opset1.abs(x, name="positive"), name="y")], [x])
    >>> found = debug.reduce(model, [np.array([0, 1], np.float32)], Device())
    >>> found.layers, found.original
    (('positive',), 2)
    >>> found.record()["layers"]
    ['positive']

    Args:
        model: the part.
        inputs: an array for each of its inputs.
        side: the name of the side.
        report: the comparison of the part.
        layers: the names of its layers, without constants; empty, so that the result is false, if rounding explains all
            differences: then the model is the whole one.
        original: the number of layers of the whole model, without constants.
        kept_weights: the names of constants with their original values, as the difference vanishes without them.
        kept_inputs: whether the inputs have their original values.
        notes: the results under other settings.
        tests: the number of compared models.
        folder: the folder it was saved to, if any.
        partial: whether the search was interrupted, so that a smaller part may exist.
    """

    model: Model
    inputs: list[Array]
    side: str
    report: Comparison
    layers: tuple[str, ...]
    original: int
    kept_weights: tuple[str, ...] = ()
    kept_inputs: bool = True
    notes: list[str] = field(default_factory=list)
    tests: int = 0
    folder: Path | None = None
    partial: bool = False

    def __bool__(self) -> bool:
        return bool(self.layers)

    def record(self) -> Record:
        """Return a dict for JSON."""
        return {
            "schema": 1, "verdict": self.report.verdict, "partial": self.partial, "side": self.side, "layers": list(self.layers), "original": self.original,
            "kept_weights": list(self.kept_weights), "kept_inputs": self.kept_inputs, "notes": self.notes, "tests": self.tests,
            "folder": None if self.folder is None else str(self.folder), "report": self.report.record(),
        }  # fmt: skip

    def _repr_html_(self) -> str:
        return record_html(str(self), self.report.record())

    @property
    def _contents(self) -> str:
        """Describe which weights and inputs are random, and which are original."""
        constants = {name for name in real_constants(self.model._graph) if name not in self.kept_weights}
        drawn = [*(["weights"] if constants else []), *([] if self.kept_inputs else ["inputs"])]
        kept_parts = [*self.kept_weights, *(["the inputs"] if self.kept_inputs else [])]
        drawn_text = (
            f"{' and '.join(drawn)} are random numbers of the same mean and deviation" if drawn else ""
        )
        return "; ".join(
            filter(
                None,
                [drawn_text, f"kept as they are: {', '.join(map(shown, kept_parts))}" if kept_parts else ""],
            )
        )

    def __str__(self) -> str:
        if not self:
            return f"{self.report.summary}: nothing to reduce\n{self.report.details}"
        operations = [layer.operation for layer in computed_layers(self.model._graph)]
        lines = [
            self.report.summary,
            f"{self.original} layers reduced to {len(self.layers)}: {', '.join(operations)}",
            f"{self.tests} comparisons; {self._contents}",
            *self.notes,
            self.report.details,
        ]
        if self.partial:
            lines.insert(
                1, "PARTIAL: it was interrupted; fewer layers, and fewer weights as they are, may be possible"
            )
        return "\n".join(lines if self.folder is None else [*lines, f"saved to {self.folder}"])


def check_folder(folder: Path) -> None:
    """Check that a folder can be created and written, before a long computation.

    Raises:
        InputError: if it exists, or its parent is not writable.
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
    """Write a model, its inputs, its outputs in f64, a program that compares them, and a text; return the folder.

    Args:
        reduced: the part to write.
        side: the judged execution.
        folder: the new folder.
        other: the counterpart of the part, if the side is another IR.

    Raises:
        InputError: if the folder exists.
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
        name, argument = OTHER, f'HERE / "{OTHER}"'
    elif isinstance(alone, Command):
        name, argument = alone.name, f"debug.Command({list(alone.words)!r})"
    else:
        name, argument = reduced.side, repr(reduced.side)
    if isinstance(side, Repeated):
        argument = f"debug.Repeated({argument}, {side.times})"
    return _OURS.format(
        count=count, inputs=inputs, side=name.replace("\\", "/").replace('"', "'"), given=argument
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
    input_types = ", ".join(
        f"{types[port].type.element.label}{types[port].type.shape}" for port in graph.reads(layer)
    )
    output_types = ", ".join(
        f"{types[port].type.element.label}{types[port].type.shape}" for port in layer.output_ports
    )
    attributes = " ".join(f"{name}={value}" for name, value in attributes_of(layer).items())
    return f"{layer.operation}({input_types}) -> {output_types}{f', {attributes}' if attributes else ''}"


def _values(reference: Reference, truth: Sequence[Array], seen: Observation) -> str:
    """Return a table of the outputs: the number of differing elements, and the first one."""
    lines = ["| output | differ | first at | expected | got |", "|---|--:|---|--:|--:|"]
    for index, (exact, port) in enumerate(zip(truth, reference.outputs, strict=True)):
        if index in seen.absent:
            continue
        observed = np.asarray(seen.outputs[index])
        if observed.shape != exact.shape:
            lines.append(f"| {index} | shape | | {list(exact.shape)} | {list(observed.shape)} |")
            continue
        wrong = _wrong(exact, observed, is_float(reference.types, port._port))
        count = int(np.count_nonzero(wrong))
        if count:
            place = tuple(int(i) for i in np.argwhere(wrong)[0])
            lines.append(
                f"| {index} | {count:,} of {exact.size:,} | {list(place)} | {exact[place]:.9g} | {observed[place]:.9g} |"
            )
        else:
            lines.append(f"| {index} | 0 of {exact.size:,} | | | |")
    return "\n".join(lines)


def _wrong(exact: Array, theirs: Array, is_real: bool) -> Array:
    """Return a mask of the elements with an error above a hundredth of the largest."""
    if not is_real or exact.dtype.kind != "f":
        return np.asarray(exact != theirs)
    with np.errstate(all="ignore"):
        off = np.abs(theirs.astype(np.float64) - exact)
        lost = ~np.isfinite(theirs.astype(np.float64)) | ~np.isfinite(exact)
        differ = lost & ~((theirs == exact) | (np.isnan(theirs) & np.isnan(exact)))
        finite = np.where(lost, 0, off)
        return np.asarray(differ | (finite > 0.01 * finite.max(initial=0)))
