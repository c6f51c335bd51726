"""The Hatch hook that adds kernels to a wheel.

`wheels` sets environment variables that name the libraries and the system. Without them, as when pip builds the package from
source, the wheel contains no kernels and runs everywhere.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

__all__ = ["KernelsHook"]


class KernelsHook(BuildHookInterface[Any]):
    """Adds the libraries in the folder ``IR_RUNTIME_WHEEL_LIBRARIES`` to a wheel, and sets its tag to ``IR_RUNTIME_WHEEL_TAG``."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the libraries and set the tag, unless the variables are unset."""
        folder = os.environ.get("IR_RUNTIME_WHEEL_LIBRARIES")
        if not folder:
            return
        place = Path(__file__).parents[1].relative_to(self.root) / "libraries"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{os.environ['IR_RUNTIME_WHEEL_TAG']}"
        for file in sorted(Path(folder).iterdir()):
            build_data["force_include"][str(file)] = str(place / file.name)
