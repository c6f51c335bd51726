"""``ir-runtime run``: run a model on arrays, images or random data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import click

from .._util.escaping import shown, unique, visible
from .exits import Exit
from .helping import GroupedCommand
from .models import as_json, example_options, read, strictly, weights
from .options import PRECISION, data_options, limit_options
from .render import Record, join_conclusion, number, plural, result, table
from .shaping import reshape
from .streaming import Streaming, check_by_rows, is_store, streaming_options
from .terminal import show

if TYPE_CHECKING:
    from pathlib import Path

    from ..ir.tensor import Array
    from ..limits import Limits
    from ..openvino.compiled import CompiledModel
    from ..openvino.model import Model
    from ..openvino.node import Output
    from .feeding import Feed
    from .outputs import NanCheck, Summary

__all__ = ["run"]


_EPILOG = """\b
ir-runtime run net.xml -i image=cat.npy -o out.npz
ir-runtime run net.xml -i cat.png --scale 255 --labels names.txt
ir-runtime run net.xml --random --shape 1,3,224,224 --layers 'conv*'
ir-runtime run one.xml -i x.npy -o - | ir-runtime run two.xml -i -

-i, --shape, --layers and --value may be repeated.
"""


_REST = "--layers GLOB selects, a pipe gets all"


@click.command(epilog=_EPILOG, cls=GroupedCommand, group="Run")
@click.argument("model", metavar="MODEL")
@data_options
@click.option(
    "-o",
    "--output",
    metavar="PATH",
    help="Save outputs: .npz, .npy, folder/; - for stdout.",
)
@click.option("--labels", metavar="FILE", help="File of class names, one per line.")
@click.option(
    "--layers",
    multiple=True,
    metavar="GLOB",
    help="Also show and save the outputs of these layers.",
)
@example_options
@weights
@click.option("--backend", metavar="NAME", help="The backend: native, numpy, reference, …")
@click.option(
    "--precision",
    type=PRECISION,
    metavar="TYPE",
    help="f32, f16 or bf16; by default, the model's types.",
)
@click.option("--nan-check", is_flag=True, help="List layers that produce NaN or Inf; exit with 1.")
@streaming_options
@strictly
@limit_options
@as_json
def run(
    model: str,
    files: Sequence[str],
    random: bool,
    seed: int,
    shapes: Sequence[str],
    output: str | None,
    labels: str | None,
    layers: Sequence[str],
    example: int | None,
    values: tuple[str, ...],
    weights: str | None,
    backend: str | None,
    precision: str | None,
    nan_check: bool,
    streaming: Streaming,
    strict: bool,
    as_json: bool,
    limits: Limits,
) -> None:
    """Run MODEL, an .xml or a page of the specification, and show its outputs."""
    from ..openvino.core import compile_model
    from .feeding import collect
    from .outputs import labels_of

    by_rows = streaming.is_asked or is_store(output, files)
    if by_rows:
        check_by_rows({"--random": random, "--labels": labels, "--layers": layers, "--nan-check": nan_check})
    target = None if output is None or by_rows else _target(output, as_json)
    net = read(model, weights, example, values, limits=limits, strict=strict)
    reshape(net, shapes)
    names = labels_of(net, labels)
    config = {} if precision is None else {"INFERENCE_PRECISION_HINT": precision}
    if by_rows:
        from .by_rows import run_streaming

        config |= {} if backend is None else {"BACKEND": backend}
        changed = bool(shapes or weights or example or values)
        run_streaming(model, net, changed, files, output, streaming, config, as_json)
        return
    feeds = collect(net, files, seed if random else None)
    compiled = compile_model(net, config=config, backend=backend, outputs=layers or None)
    check = _nan_check() if nan_check else None
    tensors = [replace(each, labels=names) for each in _results(net, compiled, feeds, target, check)]
    if target is not None:
        tensors = _save_tensors(tensors, target)
    is_streamed = output == "-"
    text = partial(_text, compiled.backend, tensors, check)
    if is_streamed:
        show(text(), err=True)
    else:
        result(as_json, lambda: _record(model, compiled, feeds, tensors, check), text)
    if check is None and (note := _note_on_nan(tensors, feeds)):
        show(note, err=True)
    if check is not None and check.origins:
        raise SystemExit(Exit.FINDINGS)


def _note_on_nan(tensors: Sequence[_Tensor], feeds: Mapping[Output, Feed]) -> str:
    """Return a note on NaN in the outputs: the input that has it, or the commands that find its source; else empty."""
    lost = [tensor for tensor in tensors if tensor.is_output and tensor.summary.nan]
    if not lost:
        return ""
    name = f"{shown(lost[0].name)}{' and others have' if len(lost) > 1 else ' has'}"
    if source := next((port for port, feed in feeds.items() if _has_nan(feed)), None):
        return f"note: {name} NaN, as input {shown(source.label)} has"
    return f"note: {name} NaN: run it with --nan-check, or ir-runtime trace-nan, to see where it begins"


def _has_nan(feed: Feed) -> bool:
    """Return whether an input contains NaN."""
    import numpy as np

    return feed.array.dtype.kind == "f" and bool(np.isnan(feed.array).any())


def _target(output: str, as_json: bool) -> Path:
    from .outputs import STDOUT, check_target

    target = check_target(output)
    if as_json and target == STDOUT:
        raise click.UsageError("-o - and --json cannot be given together: both write to stdout")
    return target


def _nan_check() -> NanCheck:
    from .outputs import NanCheck

    return NanCheck()


@dataclass(frozen=True)
class _Tensor:
    name: str
    array: Array
    summary: Summary
    is_output: bool
    file: str | None = None
    labels: Sequence[str] = ()

    def record(self) -> Record:
        record = {"name": self.name, **self.summary.record(), "file": self.file}
        if self.labels and record["top"]:
            from .outputs import label

            record["top"] = [
                {**entry, "label": label(self.labels, entry["index"])} for entry in record["top"]
            ]
        return record


def _results(
    net: Model,
    compiled: CompiledModel,
    feeds: dict[Output, Feed],
    target: Path | None,
    check: NanCheck | None,
) -> list[_Tensor]:
    from .feeding import tracing_shapes
    from .outputs import check_count, summarize
    from .progress import progress

    own = len(net.outputs)
    ports = compiled.outputs
    names = unique([*(p.label for p in ports[:own]), *map(_layer_name, ports[own:])])
    if target is not None:
        check_count(target, names)
    arrays = {port: feed.array for port, feed in feeds.items()}
    with progress(len(compiled._plan.steps)) as observers, tracing_shapes(net, list(arrays.values())):
        results = compiled._run(arrays, (), [*observers, *([check] if check else [])])
    return [
        _Tensor(name, array, summarize(array, port.element_type), index < own)
        for index, (name, port, array) in enumerate(zip(names, ports, results.to_tuple(), strict=True))
    ]


def _layer_name(port: Output) -> str:
    node = port.node
    return node.friendly_name if node.get_output_size() == 1 else f"{node.friendly_name}:{port.index}"


def _save_tensors(tensors: Sequence[_Tensor], target: Path) -> list[_Tensor]:
    from .outputs import save

    files = save(target, {tensor.name: tensor.array for tensor in tensors})
    where = "stdout" if str(target) == "-" else visible(str(target))
    show(f"saved {plural(len(tensors), 'tensor')} to {where}", err=True)
    return [replace(tensor, file=str(files[tensor.name])) for tensor in tensors]


def _record(
    model: str,
    compiled: CompiledModel,
    feeds: dict[Output, Feed],
    tensors: Sequence[_Tensor],
    check: NanCheck | None,
) -> Record:
    return {
        "model": model,
        "backend": compiled.backend,
        "inputs": [
            {
                "name": port.label,
                "type": port.element_type.label,
                "shape": feed.array.shape,
                "source": feed.source,
            }
            for port, feed in feeds.items()
        ],
        "outputs": [tensor.record() for tensor in tensors if tensor.is_output],
        "layers": [tensor.record() for tensor in tensors if not tensor.is_output],
        "nan_check": None if check is None else check.origins,
    }


def _text(backend: str, tensors: Sequence[_Tensor], check: NanCheck | None) -> str:
    parts = [] if check is None else [check.text()]
    parts += [_table(f"Outputs, {backend} backend", [t for t in tensors if t.is_output])]
    outputs = [t for t in tensors if t.is_output]
    parts += [_top(t) for t in outputs if t.summary.top is not None]
    parts += [text for t in outputs for text in _best(t)]
    inner = [t for t in tensors if not t.is_output]
    return join_conclusion(parts, [_table("Layers", inner)] if inner else [])


def _table(title: str, tensors: Sequence[_Tensor]) -> str:
    header = ["name", "type", "shape", "min", "mean", "max"]
    odd = [key for key in ("nan", "inf") if any(getattr(t.summary, key) for t in tensors)]
    rows = [_row(t.name, t.summary, odd) for t in tensors]
    right = ("min", "mean", "max", *odd)
    return table(title, [*header, *odd], rows, right=right, least=("type", "mean", "shape"), rest=_REST)


def _row(name: str, summary: Summary, odd: Sequence[str]) -> list[str]:
    shape = f"[{','.join(map(str, summary.shape))}]"
    numbers = [number(summary.min), number(summary.mean), number(summary.max)]
    return [name, summary.type, shape, *numbers, *(str(getattr(summary, key)) for key in odd)]


def _top(tensor: _Tensor) -> str:
    from .outputs import label

    rows = [[str(index), number(value)] for index, value in tensor.summary.top or ()]
    header = ["index", "value"]
    if tensor.labels:
        header = [*header, "label"]
        rows = [[index, value, label(tensor.labels, int(index))] for index, value in rows]
    return table(f"Top {len(rows)} of {shown(tensor.name)}", header, rows, right=("index", "value"))


def _best(tensor: _Tensor) -> Iterator[str]:
    """Yield a table of the best class of each row in a batch, if classes have names."""
    from .outputs import best_rows, label

    if not tensor.labels or not (found := best_rows(tensor.array)):
        return
    rows = [[str(r), str(index), number(value), label(tensor.labels, index)] for r, index, value in found]
    title = f"Best of {shown(tensor.name)}"
    yield table(title, ["row", "index", "value", "label"], rows, right=("row", "index", "value"))
