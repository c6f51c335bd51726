"""Reduce a model to the smallest part that reproduces a difference, with random data in place of confidential data.

The result is a report (`Reduced`), and a folder to hand to others.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np

from .._util.cores import processor_name
from .._util.escaping import shown
from .._util.files import create, folder_target, replace_in_folder, save_text, write_npy
from .._util.markup import record_html
from .._util.records import Record
from .._version import __version__
from ..diagnostics import Diagnostics
from ..errors import InputError, IRError, LimitError
from ..ir.blocks import blocks, filled
from ..ir.graph import IO_TYPES, Graph, Layer, Port
from ..ir.shape import PartialShape
from ..ir.tensor import Array
from ..openvino.model import Model
from ..openvino.saving import save_model
from .bisect import search
from .caching import Entry, entry_for, load_or_compute
from .command_side import Command
from .compare import judge
from .extract import cut, inputs_of, step_of
from .matching import attributes_of
from .observation import Observation, Repeated, SideLike
from .openvino_side import OpenVINO
from .oracle import oracle
from .progress import STOPS, attach_partial, report_progress, stage
from .reference import Reference
from .results import Comparison, restore_report
from .sides import OtherParts, parts_side, side_of, variants_of
from .spilling import within_budget
from .tensors import computed_layers, is_float, ports_by_name

__all__ = ["Reduced", "reduce"]

FIRST = 0.3
"""The estimated share of the time for comparing the whole model; each further comparison takes a tenth of the rest."""
MOST = 12
"""The most times that a part is extended towards the inputs until it shows the difference."""


def reduce(
    model: Model,
    inputs: object,
    side: SideLike,
    out: str | Path | None = None,
    keep_values: bool = False,
    states: Mapping[str, object] | None = None,
) -> Reduced:
    """Find the smallest part of a model on which a side still differs from the f64 reference by more than rounding.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import debug, opset1
    >>> class Device:
    ...     def observe(self, model, reference, feeds, ports):
    ...         found = ov.compile_model(model)(list(feeds))
    ...         return debug.Observation("device", [found[0] * np.float32(1.5)])
    >>> x = opset1.parameter([2], np.float32, name="x")
    >>> model = ov.Model([opset1.exp(opset1.abs(x, name="positive"), name="y")], [x])
    >>> inputs = [np.array([0, 1], np.float32)]
    >>> debug.reduce(model, inputs, Device()).layers
    ('positive',)

    Args:
        model: the model; it is not changed.
        inputs: as for a compiled model.
        side: the judged execution: ``"openvino"``, ``"openvino:bf16"``, a backend, the path of another IR, or a `Side`, such as a `Command`.
        out: a new or empty folder for the part, its inputs, a program that shows the difference, and a text for an issue.
        keep_values: keep weights and inputs instead of randomizing them.
        states: values of variables before the run, by id; by default their initial values.

    Returns:
        the part. If rounding explains all differences, it is false, and nothing is written.

    Raises:
        InputError: if the side cannot run parts of the model, or the folder is not empty or cannot be written.
        Interrupted: on Ctrl-C, with the smallest part so far.
        TimedOut: when the time is up, likewise.
    """
    with within_budget(model.limits):
        model, feeds = step_of(model, Reference(model).feeds(inputs), states)
        return _reduce(model, feeds, side, out, keep_values)


def _reduce(
    model: Model, feeds: list[Array], side: SideLike, out: str | Path | None, keep_values: bool
) -> Reduced:
    whole = Reference(model)
    original_side, side = side, parts_side(side, whole)
    if out is not None:
        _check_folder(Path(out))
    work = _Reduction(side, entry_for(f"reduce {keep_values}", model, feeds, original_side))
    with stage(0, FIRST):
        whole_report = load_or_compute(
            work.entry, "whole", lambda: (asdict(judge(model, feeds, side, names_mistakes=False)[0]), [])
        )
    report = restore_report(whole_report[0])
    original = len(computed_layers(whole.graph))
    work.found = _make_reduced(side, model, feeds, report, original)
    if report.verdict != "unexplained":
        report_progress(1)
        return replace(work.found, layers=())
    try:
        work.found = work.shrink(whole)
        if not keep_values:
            work.found = work.anonymize()
        work.found.notes += work.variants()
        work.found.report = work.find_mistake()
    except STOPS as reason:
        work.found.partial, work.found.tests = True, work.tests
        raise attach_partial(reason, lambda: work.found) from None
    work.found.tests = work.tests
    report_progress(1)
    if out is not None:
        other = side.part(work.found.model) if isinstance(side, OtherParts) else None
        work.found.folder = _write(work.found, side, Path(out), other)
    return work.found


def _make_reduced(
    side: SideLike, part: Model, arrays: Sequence[Array], report: Comparison, original: int
) -> Reduced:
    layers = tuple(layer.name for layer in computed_layers(part._graph))
    constants = _real_constants(part._graph)
    name = side if isinstance(side, str) else report.side
    return Reduced(part, list(arrays), name, report, layers, original, constants)


@dataclass
class _Reduction:
    side: SideLike
    entry: Entry | None
    found: Reduced = field(init=False)
    """The smallest part so far."""
    tests: int = 0

    def fails(self, part: Model, arrays: Sequence[Array], side: SideLike | None = None) -> Comparison | None:
        """Return the report of a part if its difference is unexplained; ``None`` if it is explained or the part cannot run."""
        start, self.tests = self._done, self.tests + 1

        def unexplained() -> Record | None:
            try:
                judging = self.side if side is None else side
                report, _ = judge(part, list(arrays), judging, names_mistakes=False)
            except LimitError:  # with more memory or time the verdict may differ
                raise
            except IRError:
                return None
            return asdict(report) if report.verdict == "unexplained" else None

        with stage(start, self._done):
            record, _ = load_or_compute(self.entry, f"test-{self.tests}", lambda: (unexplained(), []))
        return None if record is None else restore_report(record)

    @property
    def _done(self) -> float:
        """The estimated fraction of the work that is done."""
        return float(1 - (1 - FIRST) * 0.9**self.tests)

    def shrink(self, whole: Reference) -> Reduced:
        """Extract the first wrong unit, with as many predecessors as the difference needs."""
        model, feeds, report = self.found.model, self.found.inputs, self.found.report
        graph, layers = whole.graph, computed_layers(whole.graph)
        ports = ports_by_name(graph, layers)
        computed = {layer.id for layer in layers}
        first = report.first or report.first_decision
        if first is None and report.boundaries == len(
            report.unobserved
        ):  # no intermediate tensor was observed
            with stage(self._done, self._done):
                found_layers = search(
                    model, feeds, self.side, self.entry and self.entry.part("bisect")
                ).layers
            names = set(found_layers)
            members = {layer.id for layer in layers if layer.name in names}
            ends = [layer.output_ports[0] for layer in layers if layer.name == found_layers[-1]]
        elif first is None:
            wrong = next(output for output in report.outputs if output.verdict == "unexplained")
            ends = [whole.outputs[wrong.index]._port]
            members = {ends[0].layer}
        else:
            ends = [ports[first.name]]
            names = set(first.layers)
            members = {layer.id for layer in layers if layer.name in names}
        for _ in range(MOST):
            starts = _starts(graph, members, computed)
            part = cut(model, starts, _ends(graph, members, ends))
            arrays = self._inputs(part, starts, whole, feeds)
            if (found := self.fails(part, arrays)) is not None:
                return _make_reduced(self.side, part, arrays, found, self.found.original)
            before = {port.layer for port in starts if port.layer in computed}
            if not before:
                break
            members |= before
        return self.found

    def _inputs(
        self, part: Model, starts: Sequence[Port], whole: Reference, feeds: Sequence[Array]
    ) -> list[Array]:
        with stage(self._done, self._done):
            name = f"inputs-{self.tests}"
            return [
                *load_or_compute(self.entry, name, lambda: (None, inputs_of(part, starts, whole, feeds)))[1]
            ]

    def anonymize(self) -> Reduced:
        """Randomize inputs and constants as long as the difference persists: all constants at once, or else one by one."""
        random = np.random.default_rng(0)
        reduced = self.found
        drawn = [_draw_like(array, random) for array in reduced.inputs]
        if (report := self.fails(reduced.model, drawn)) is not None:
            self.found = reduced = replace(reduced, inputs=drawn, report=report, kept_inputs=False)
        if isinstance(self.side, OtherParts):  # its own weights may cause the difference
            return reduced
        part, names = reduced.model, reduced.kept_weights
        everything = _randomize(part, set(names))
        if (report := self.fails(everything, reduced.inputs)) is not None:
            return replace(reduced, model=everything, report=report, kept_weights=())
        replaced: set[str] = set()
        for name in names:
            candidate = _randomize(part, replaced | {name})
            if (report := self.fails(candidate, reduced.inputs)) is not None:
                replaced.add(name)
                kept = tuple(name for name in names if name not in replaced)
                self.found = replace(self.found, model=candidate, report=report, kept_weights=kept)
        return self.found

    def find_mistake(self) -> Comparison:
        """Compare the part once more, to find the likely mistake; return the report."""
        with stage(self._done, self._done):
            report, _ = judge(self.found.model, self.found.inputs, self.side)
        return report if report.verdict == "unexplained" else self.found.report

    def variants(self) -> list[str]:
        """Compare with static shapes and with the variants of the side; return notes on whether the difference persists."""
        part, arrays, notes = self.found.model, self.found.inputs, list[str]()
        if any(port.partial_shape.is_dynamic for port in part.inputs):
            static = part.clone()
            static.reshape({i: PartialShape(array.shape) for i, array in enumerate(arrays)})
            notes.append(_note("with static shapes", self.fails(static, arrays)))
        for what, side in variants_of(self.side).items():
            notes.append(_note(what, self.fails(part, arrays, side)))
        return notes


def _note(what: str, found: Comparison | None) -> str:
    return f"{what} the difference {'is gone' if found is None else 'stays'}"


def _starts(graph: Graph, members: set[int], computed: set[int]) -> list[Port]:
    """Return the non-constant tensors that the given layers read from other layers."""
    starts: dict[Port, None] = {}
    for layer in graph:
        if layer.id in members:
            starts |= dict.fromkeys(
                s for s in graph.reads(layer) if s.layer not in members and s.layer in computed
            )
    return list(starts)


def _ends(graph: Graph, members: set[int], ends: Sequence[Port]) -> list[Port]:
    """Return all outputs of the layers of the judged ports."""
    return list(dict.fromkeys(port for end in ends for port in graph[end.layer].output_ports))


def _draw_like(array: Array, random: np.random.Generator) -> Array:
    """Return a normal random array with the mean and deviation of an array; return integers and scalars unchanged."""
    if array.dtype.kind != "f" or array.size < 2:
        return array
    mean, count = float(array.mean()), array.size
    squares = sum(float(np.square(block - np.float64(mean)).sum()) for (block,) in blocks(array))
    return filled(array.shape, array.dtype, lambda size: random.normal(mean, (squares / count) ** 0.5, size))


def _randomize(part: Model, names: set[str]) -> Model:
    """Return a model with the constants of these names randomized."""
    random = np.random.default_rng(1)

    def changed(layer: Layer) -> Layer:
        if layer.type != "Constant" or layer.name not in names or layer.op is None:
            return layer
        return replace(layer, op=layer.op.replace(value=_draw_like(np.asarray(layer.op.evaluate()), random)))

    return _rebuild(part, changed)


def _rebuild(part: Model, change: Callable[[Layer], Layer]) -> Model:
    graph = part._graph
    document = replace(part._document, graph=Graph(map(change, graph.layers.values()), graph.edges))
    return Model._read(document, Diagnostics())


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


def _real_constants(graph: Graph) -> tuple[str, ...]:
    """Return the names of floating-point constants."""
    return tuple(
        layer.name
        for layer in graph.of_type("Constant")
        if layer.op is not None and np.asarray(layer.op.evaluate()).dtype.kind == "f"
    )


@dataclass
class Reduced:
    """The result of `reduce`: the smallest part of a model that reproduces a difference.

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
        layers: the names of the layers in the part, without constants. If rounding explains all differences it is empty, the
            result is false, and ``model`` is the whole model.
        original: the number of layers of the whole model, without constants.
        kept_weights: the names of constants that keep their original values, as the difference vanishes otherwise.
        kept_inputs: whether the inputs keep their original values.
        notes: whether the difference persists under other settings.
        tests: the number of compared models.
        folder: the folder that the part was saved to, if any.
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
        """Describe which weights and inputs are randomized, and which are original."""
        constants = {name for name in _real_constants(self.model._graph) if name not in self.kept_weights}
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


def _check_folder(folder: Path) -> None:
    """Check before a long computation that a folder is empty or can be created, and is writable.

    Raises:
        InputError: if it is a file or not empty, or if it, or its parent if it does not exist, is not writable.
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


def _write(reduced: Reduced, side: SideLike, folder: Path, other: Model | None = None) -> Path:
    """Write a part, its inputs, its f64 outputs, a program that compares them, and a text for an issue; return the folder.

    Args:
        reduced: the part to write.
        side: the judged execution.
        folder: a new or empty folder.
        other: the counterpart of the part, if the side is another IR.

    Raises:
        InputError: if the folder is not empty, or cannot be written.
    """
    _check_folder(folder)
    reference = Reference(reduced.model)
    truth = oracle(reduced.model, reduced.inputs).outputs
    seen = side_of(side).observe(reduced.model, reference, reduced.inputs, ())
    folder.absolute().parent.mkdir(parents=True, exist_ok=True)
    with replace_in_folder(folder) as stage:
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
    """Return the text of an issue: layers, values, notes, and the environment."""
    graph = reduced.model._graph
    layers = "\n".join(
        f"- {_describe(reference, layer)}" for layer in graph if layer.type not in (*IO_TYPES, "Constant")
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


def _describe(reference: Reference, layer: Layer) -> str:
    """Describe a layer: its operation, input and output types, and non-default attributes."""
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
    """Return a table of the outputs, with the number of differing elements and the first of them."""
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
    """Return a mask of the elements whose error exceeds a hundredth of the largest error."""
    if not is_real or exact.dtype.kind != "f":
        return np.asarray(exact != theirs)
    with np.errstate(all="ignore"):
        off = np.abs(theirs.astype(np.float64) - exact)
        lost = ~np.isfinite(theirs.astype(np.float64)) | ~np.isfinite(exact)
        differ = lost & ~((theirs == exact) | (np.isnan(theirs) & np.isnan(exact)))
        finite = np.where(lost, 0, off)
        return np.asarray(differ | (finite > 0.01 * finite.max(initial=0)))
