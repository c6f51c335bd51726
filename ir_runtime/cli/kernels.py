"""``ir-runtime kernels``: compile the kernels of the backend numba ahead of time."""

from __future__ import annotations

import click

from ..errors import InputError
from .helping import GroupedCommand
from .models import as_json
from .progress import bar
from .render import result

__all__ = ["kernels"]


@click.command(cls=GroupedCommand, group="Keep")
@as_json
def kernels(as_json: bool) -> None:
    """Compile the kernels of the backend numba for this machine, as far as they are missing.

    Otherwise that happens in the background when a model first wants them, and numpy runs it until
    they are there. In an image that is built once and started often, do it when the image is built.
    """
    from ..backends import load

    load("numba")
    from ..backends.numba.codegen.language import ROUTINES
    from ..backends.numba.machine_code.build_all import build_all, pending
    from ..backends.numba.machine_code.cache import HINT, folder

    if (place := folder()) is None:
        raise InputError("no folder found in which compiled kernels can be kept", hint=HINT)
    missing = len(pending())
    count = 0
    with bar("compiling kernels", missing) as shown:
        for count, _ in enumerate(build_all(), 1):  # noqa: B007 - it is the number of them
            shown.advance()
    found = {"folder": str(place), "kernels": len(ROUTINES), "made": count}
    result(as_json, lambda: found, lambda: f"{len(ROUTINES)} kernels, {count} of them new, in {place}")
