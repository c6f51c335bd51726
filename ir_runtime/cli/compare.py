"""``ir-runtime compare``: does rounding explain how another execution differs, and if not, where does it begin?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .exits import Exit
from .fed import Feeding, fed
from .limited import limited
from .long import cache_folder, cached, working
from .models import as_json, read, weights
from .render import result

if TYPE_CHECKING:
    from ..limits import Limits

__all__ = ["compare"]

_EPILOG = """\b
ir-runtime compare net.xml --against openvino --random
ir-runtime compare net.xml --against openvino:bf16 -i image=cat.npy
ir-runtime compare net.xml --results theirs.npz --precision f16 -i image=cat.npy
ir-runtime compare new.xml --against old.xml --random

The measure is R: by how much the error against f64 exceeds what rounding does to this model on these inputs.
Outputs are explained up to R 4 and doubtful up to 10; a layer, computed from the other side's own
inputs, is explained up to R 8. Ends with 0 if all is explained, else with 1.
"""


@click.command(epilog=_EPILOG)
@click.argument("model", metavar="MODEL")
@click.option(
    "--against",
    metavar="SIDE",
    help="What is judged: openvino, openvino:bf16, openvino:f16, onnxruntime:MODEL.onnx, a backend, or the path of an IR.",
)
@click.option(
    "--results",
    metavar="FILE",
    help="An .npz of what is judged, from any device: outputs and layers by name.",
)
@click.option(
    "--types",
    type=click.Choice(["real", "declared"]),
    default="real",
    show_default=True,
    help="declared: round what the model declares as f16 or bf16 to that, also in f64.",
)
@click.option(
    "--precision",
    type=click.Choice(["f32", "bf16", "f16"]),
    default="f32",
    help="What --results were computed in. Default: f32.",
)
@fed
@weights
@limited
@cached
@as_json
def compare(
    model: str,
    against: str | None,
    results: str | None,
    precision: str,
    feeding: Feeding,
    weights: str | None,
    as_json: bool,
    limits: Limits,
    cache: str | None,
    types: str,
) -> None:
    """Say whether rounding explains how an execution of MODEL differs from f64, and where the difference begins."""
    from ..debug import compare as judge

    if (against is None) == (results is None):
        raise click.UsageError("give either --against or --results")
    net = read(model, weights, limits=limits)
    feeds = feeding(net)
    with working("comparing", as_json, cache_folder(cache)):
        found = judge(net, feeds, against or str(results), types, precision if results else "")
    result(as_json, found.record, lambda: str(found))
    if not found.explained:
        raise SystemExit(Exit.FINDINGS)
