"""Entry point of ``ir-runtime`` and ``python -m ir_runtime``, which reports interrupts and lack of memory in one line."""

from __future__ import annotations

import os
import sys
import time

__all__ = ["main"]

_STARTED = time.monotonic()


def main() -> None:
    """Run the command line."""
    try:
        _run()
    except KeyboardInterrupt:
        from ._util.interrupts import end

        end(130, b"interrupted\n")
    except MemoryError:  # including one raised while an error is reported
        from ._util.interrupts import end

        end(5, b"error: not enough memory\n")


def _run() -> None:
    from ._util.interrupts import catch

    catch()
    from .cli import main as command_line

    command_line(prog_name="ir-runtime", obj=_STARTED)


def _leave_working_directory() -> None:
    """Remove the working directory from the search path, where ``python -m`` puts it first."""
    try:
        here = os.getcwd()
    except OSError:  # it was removed
        return
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if not sys.flags.safe_path and sys.path[:1] == [here] != [package]:
        del sys.path[0]


if __name__ == "__main__":
    _leave_working_directory()
    main()
