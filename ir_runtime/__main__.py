"""``python -m ir_runtime``: the same as ``ir-runtime``."""

from __future__ import annotations

from .cli import main

if __name__ == "__main__":
    main(prog_name="ir-runtime")
