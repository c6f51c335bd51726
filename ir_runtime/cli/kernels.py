"""``ir-runtime kernels``: show which library of compiled kernels is in use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .._util.escaping import visible
from .helping import GroupedCommand
from .models import as_json
from .render import Record, result

if TYPE_CHECKING:
    from ..backends.native.machine_code import Library

__all__ = ["kernels"]

_EPILOG = """\b
ir-runtime kernels
IR_RUNTIME_TARGET=x86-64-v3 ir-runtime kernels

There is one library per instruction set. The best one that the processor supports is loaded, unless
IR_RUNTIME_TARGET names another; their results may differ by rounding.
"""


@click.command(epilog=_EPILOG, cls=GroupedCommand, group="Keep")
@as_json
def kernels(as_json: bool) -> None:
    """Show which compiled kernels the native backend uses on this processor, and why."""
    from ..backends import native_library

    library = native_library()
    result(as_json, lambda: _record(library), lambda: _text(library))


def _record(library: Library) -> Record:
    processor = library.processor
    return {
        "target": library.target.name,
        "library": str(library.path),
        "reason": library.reason,
        "processor": {
            "family": processor.family,
            "vendor": processor.vendor,
            "features": sorted(processor.features),
        },
        "others": [{"target": name, "reason": reason} for name, reason in library.others.items()],
    }


def _text(library: Library) -> str:
    processor = library.processor
    processor_text = f"{visible(processor.vendor)} {processor.family}".strip()
    lines = [
        f"target     {library.target.name}: {library.reason}",
        f"library    {visible(str(library.path))}",
        f"processor  {processor_text}: {' '.join(sorted(processor.features))}",
    ]
    lines += [f"not used   {name}: {reason}" for name, reason in library.others.items()]
    return "\n".join(lines)
