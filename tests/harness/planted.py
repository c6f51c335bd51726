"""Folders of planted modules, one for each importable name; each logs its name when it is executed."""

from __future__ import annotations

import os
import py_compile
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Literal

import numpy as np

from .conformance_cases import relu, write_folder
from .nets import chain, chain_weights

__all__ = ["COMMANDS", "FORMS", "Form", "Planted", "plantable"]

Form = Literal["file", "package", "bytecode"]
FORMS: tuple[Form, ...] = ("file", "package", "bytecode")

MODULE = """\
with open({log!r}, "a") as log:
    log.write({name!r} + " in {place}\\n")
"""
EXTENSION = "[ir_runtime.ops]\nplanted = planted_extension\n"

COMMANDS = {
    "bench": "model.xml -niter 1",
    "bisect": "model.xml --against reference --random",
    "budget": "model.xml --random",
    "cache": "",
    "compare": "model.xml --against reference --random",
    "completion": "bash",
    "conformance": "run corpus --against numpy",
    "cost": "model.xml",
    "diff": "model.xml model.xml",
    "explain": "IR301",
    "graph": "model.xml",
    "guide": "security",
    "inspect": "model.xml --fusion",
    "kernels": "",
    "open": "model.xml",
    "ops": "ReduceL2",
    "oracle": "model.xml --random",
    "profile": "model.xml --random",
    "reduce": "model.xml --against reference --random -o small.xml",
    "report": "model.xml -o report.html",
    "run": "model.xml -i x.npy -o y.zarr --batch 2 --scheduler local --workers 1",
    "shapes": "model.xml",
    "trace-nan": "model.xml --random",
    "upgrade": "model.xml upgraded.xml",
    "validate": "model.xml model.xml -j 2",
}
"""Arguments with which each command does its work."""


@cache
def plantable() -> tuple[str, ...]:
    """Return importable module names: of this package, its dependencies, and the standard library."""
    installed = [name for name in packages_distributions() if name.isidentifier()]
    hooks = ["ir_runtime", "planted_extension", "sitecustomize", "usercustomize"]
    return tuple(sorted({*installed, *sys.stdlib_module_names, *hooks}))


@dataclass
class Planted:
    """A folder with a model and planted modules.

    Args:
        folder: the folder.
        log: the file in which executed modules are logged.
        home: a home folder for the programs.
        names: the module names.
        form: a file, a package, or bytecode only.
    """

    folder: Path
    log: Path
    home: Path
    names: Sequence[str] = field(default_factory=plantable)
    form: Form = "file"

    def __post_init__(self) -> None:
        self.folder.mkdir()
        self.home.mkdir(mode=0o700)
        (self.folder / "model.xml").write_text(chain("-1"), encoding="utf-8")
        (self.folder / "model.bin").write_bytes(chain_weights())
        np.save(self.folder / "x.npy", np.ones((4, 3), np.float32))
        write_folder(self.folder / "corpus", [relu()])
        for name in self.names:
            text = MODULE.format(log=str(self.log), name=name, place=self.folder.name)
            self._plant(name, text)
        package = self.folder / "planted-1.0.dist-info"
        package.mkdir()
        (package / "METADATA").write_text("Metadata-Version: 2.1\nName: planted\nVersion: 1.0\n")
        (package / "entry_points.txt").write_text(EXTENSION)

    def _plant(self, name: str, text: str) -> None:
        package = self.folder / name
        if self.form == "package":
            package.mkdir()
        file = package / "__init__.py" if self.form == "package" else package.with_suffix(".py")
        file.write_text(text, encoding="utf-8")
        if self.form == "bytecode":
            py_compile.compile(str(file), str(file.with_suffix(".pyc")), doraise=True)
            file.unlink()

    def environment(self, **more: str) -> dict[str, str]:
        """Return the environment variables of a program, without Python's settings except for the path of the package."""
        import ir_runtime

        former = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
        package = str(Path(ir_runtime.__file__).parents[1])
        own = {"PYTHONPATH": package, "IR_RUNTIME_CACHE": str(self.home), "IR_RUNTIME_BACKEND": "numpy"}
        own["BROWSER"] = "true"  # a program that opens nothing
        return {**former, **own, **more}

    def run(self, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run Python in the folder."""
        return subprocess.run(
            [sys.executable, *command],
            cwd=self.folder,
            env=self.environment(**environment),
            capture_output=True,
            encoding="utf-8",
            check=False,
            timeout=600,
        )

    def executed(self) -> list[str]:
        """The planted modules that were executed."""
        return self.log.read_text(encoding="utf-8").split("\n") if self.log.exists() else []
