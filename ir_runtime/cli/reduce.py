"""``ir-runtime reduce``: the smallest part of a model that still shows a difference."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .fed import Feeding, fed
from .limited import limited
from .long import cache_folder, cached, working
from .models import read, weights
from .terminal import show

if TYPE_CHECKING:
    from ..limits import Limits

__all__ = ["reduce"]

_EPILOG = """\b
ir-runtime reduce net.xml --against openvino -i x=x.npy -o bug/

The folder has the part as model.xml and model.bin, its inputs, its outputs in f64, show.py, which shows the
difference in a fresh process, and issue.md. Weights and inputs are random numbers of the same mean and
deviation, unless --keep-values is given or the difference would vanish.
"""


@click.command(epilog=_EPILOG)
@click.argument("model", metavar="MODEL")
@click.option(
    "--against",
    required=True,
    metavar="SIDE",
    help="What differs: openvino, openvino:bf16, a backend, or the path of another IR.",
)
@fed
@click.option("-o", "--output", required=True, metavar="FOLDER", help="A new folder for what is found.")
@click.option("--keep-values", is_flag=True, help="Leave weights and inputs as they are.")
@weights
@limited
@cached
def reduce(
    model: str,
    against: str,
    feeding: Feeding,
    output: str,
    keep_values: bool,
    weights: str | None,
    limits: Limits,
    cache: str | None,
) -> None:
    """Find the smallest part of MODEL on which another execution differs from f64 by more than rounding."""
    from ..debug import reduce as shrink

    net = read(model, weights, limits=limits)
    feeds = feeding(net)
    with working("reducing", False, cache_folder(cache)):
        found = shrink(net, feeds, against, output, keep_values)
    show(str(found))
