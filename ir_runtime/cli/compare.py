"""``ir-runtime compare``: tell rounding from errors in the results of another runtime, and locate errors."""

from __future__ import annotations

import click

from .exits import Exit
from .helping import GroupedCommand
from .long import Debugging, command_options, debugging_options, declared_types, side_of, states_of
from .models import as_json
from .render import result

__all__ = ["compare"]

_EPILOG = """\b
ir-runtime compare net.xml --against openvino --random
ir-runtime compare net.xml --against openvino:bf16 -i image=cat.npy
ir-runtime compare net.xml --against openvino:default -i image=cat.npy
ir-runtime compare net.xml --results theirs.npz --precision f16 -i image=cat.npy
ir-runtime compare new.xml --against old.xml --random

R is the error against f64, divided by the error that rounding causes in this model on these inputs. Outputs are
explained up to R 4 and doubtful up to 10; a layer, computed from the other runtime's own inputs, is explained up
to R 8. openvino runs f32 and quantizes neither activations nor caches; openvino:default, with OpenVINO's default
settings, may do so. The first line is the verdict: explained, doubtful, overflow (values exceed their type), or
unexplained. The exit code is 0 if it is 'explained', else 1.
"""


@click.command(epilog=_EPILOG, cls=GroupedCommand, group="Compare")
@click.option(
    "--against",
    metavar="SIDE",
    help="The runtime to judge: openvino, openvino:bf16, openvino:f16, openvino:default, onnxruntime:MODEL.onnx, a backend, "
    "or the path of another IR.",
)
@click.option(
    "--results",
    metavar="FILE",
    help="Recorded results of any device to judge: outputs and layers by name in an .npz or a folder of .npy; one output as .npy.",
)
@command_options[0]
@command_options[1]
@command_options[2]
@declared_types
@click.option(
    "--precision",
    type=click.Choice(["f32", "bf16", "f16"]),
    help="Precision that --results or --run computed in. Default: the type of their arrays, at most f32.",
)
@debugging_options()
@as_json
def compare(
    debugging: Debugging,
    against: str | None,
    results: str | None,
    run: str | None,
    repeat: int,
    state: str | None,
    precision: str | None,
    types: str,
) -> None:
    """Decide whether rounding explains the error of another runtime on MODEL; if not, show where it starts."""
    from ..debug import compare as judge
    from ..debug.recorded_side import recorded

    if sum(given is not None for given in (against, results, run)) != 1:
        raise click.UsageError(
            "give --against, --results or --run: --against openvino, openvino:bf16, onnxruntime:MODEL.onnx, a backend or "
            "another IR, --results theirs.npz, or --run 'python device.py'"
        )
    with debugging.working("comparing") as (model, feeds):
        side = side_of(against if results is None else recorded(results), run, repeat)
        report = judge(model, feeds, side, types, precision or "", states_of(state))
    result(debugging.as_json, report.record, lambda: str(report))
    if not report.explained:
        raise SystemExit(Exit.FINDINGS)
