"""The wheel as users install it: what is in it, and what type checkers make of it."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import re
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import ir_runtime

ROOT = Path(__file__).parents[1]
SCRIPT = """\
import ir_runtime as ov

model = ov.read_model("model.xml")
reveal_type(model)
reveal_type(ov.opset8.softmax)
ov.raed_model("model.xml")
ov.opset7.softsign
"""


def run(*command: object, cwd: Path) -> str:
    found = subprocess.run(list(map(str, command)), cwd=cwd, capture_output=True, text=True)
    return found.stdout + found.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    said = run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", out, cwd=ROOT)
    found = list(out.glob("*.whl"))
    assert found, said
    return found[0]


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment that has the wheel and nothing else, with a script beside it."""
    home = tmp_path_factory.mktemp("user")
    venv.create(home / "env", with_pip=False, symlinks=True)
    python = home / "env" / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check")
    said = run(*pip, "install", "--quiet", "--no-deps", "--no-index", wheel, cwd=home)
    assert run(python, "-c", "import ir_runtime; print(ir_runtime.__file__)", cwd=home).startswith(
        str(home)
    ), said
    (home / "script.py").write_text(SCRIPT, encoding="utf-8")
    return python


def test_the_wheel_has_the_package_and_its_types_alone(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "ir_runtime/py.typed" in names
    pages = ("static/page.html", "static/graph.js", "vendor/dagrejs-dagre.js", "vendor/dagrejs-dagre.LICENSE")
    assert {f"ir_runtime/report/{page}" for page in pages} <= set(names)
    assert {f"ir_runtime/opset{number}.pyi" for number in range(1, 18)} <= set(names)
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"ir_runtime"}


def test_the_wheel_has_what_its_pages_are_made_of(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "ir_runtime/ops/_examples.json" in names
    assert "ir_runtime/ops/_clauses.json" in names
    assert "ir_runtime/guides/first-nan.md" in names
    assert "ir_runtime/explanations/IR301.md" in names
    assert wheel.stat().st_size < 2_500_000


def test_mypy_knows_which_names_there_are(installed: Path) -> None:
    where = installed.parents[2]
    mypy = (sys.executable, "-m", "mypy", "--cache-dir", where / "cache", "--python-executable", installed)
    said = run(*mypy, "script.py", cwd=where)
    assert 'Module has no attribute "raed_model"; maybe "read_model"' in said
    assert 'Revealed type is "ir_runtime.openvino.model.Model"' in said
    assert re.search(
        r"def \(data: .*, axis: (builtins\.)?int, .*\) -> ir_runtime\.openvino\.node\.Node", said
    )
    assert 'Module has no attribute "softsign"' in said
    assert "Found 2 errors in 1 file" in said


def test_pyright_knows_which_names_there_are(installed: Path) -> None:
    where = installed.parents[2]
    said = run(sys.executable, "-m", "pyright", "--pythonpath", installed, "script.py", cwd=where)
    assert '"raed_model" is not a known attribute of module "ir_runtime"' in said
    assert 'Type of "model" is "Model"' in said
    assert re.search(r'Type of "ov.opset8.softmax" is "\(data: .*, axis: int.*, name: .*\) -> Node"', said)
    assert '"softsign" is not a known attribute of module' in said
    assert "2 errors," in said


MODULES = (
    "", "exceptions", "helpers", "op", "opset1", "opset8", "opset13", "opset17", "passes", "preprocess", "properties",
    "properties.device", "properties.hint", "properties.streams", "utils", "utils.types", "_offline_transformations",
)  # fmt: skip


def every_name() -> Iterator[str]:
    """Expressions for the public names of the modules that programs import, and for the members of their classes."""
    for number, module in enumerate(MODULES):
        found = importlib.import_module(f"{ir_runtime.__name__}.{module}".rstrip("."))
        functions = [
            name for name, thing in vars(found).items() if inspect.isfunction(thing) and name[0] != "_"
        ]
        for name in getattr(found, "__all__", functions):
            thing = getattr(found, name)
            yield f"m{number}.{name}"
            if inspect.isclass(thing) and thing.__module__.startswith("ir_runtime"):
                own = [each for each in thing.__mro__ if each.__module__.startswith("ir_runtime")]
                members = dict.fromkeys(member for each in own for member in vars(each) if member[0] != "_")
                yield from (f"m{number}.{name}.{member}" for member in members)


@pytest.mark.oracle
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_type_checkers_see_every_name_with_its_type(installed: Path, checker: str) -> None:
    where = installed.parents[2]
    imports = [f"import {f'ir_runtime.{m}'.rstrip('.')} as m{number}" for number, m in enumerate(MODULES)]
    names = list(every_name())
    (where / "names.py").write_text("\n".join([*imports, *(f"reveal_type({name})" for name in names)]) + "\n")
    options = {
        "mypy": ("--cache-dir", where / "cache", "--python-executable", installed, "--no-error-summary"),
        "pyright": ("--pythonpath", installed),
    }
    said = run(sys.executable, "-m", checker, *options[checker], "names.py", cwd=where).splitlines()
    shown = re.compile(r"[Tt]ype (?:of \".*\" )?is \"(.*)\"$")
    types = [found[1] for line in said if (found := shown.search(line))]
    # Classes are not all made to be asked for the fields of their instances, which is another error.
    wrong = [line for line in said if re.search(r"attr-defined|AttributeAccess|import-not-found", line)]
    assert wrong == []
    assert len(types) == len(names) > 1500
    assert [name for name, type in zip(names, types, strict=True) if type in ("Any", "Unknown")] == []


@pytest.mark.oracle
def test_no_type_of_a_public_name_is_left_to_inference(tmp_path: Path) -> None:
    """As ``pyright --verifytypes`` sees it, for all that programs import but the classes of operations."""
    # It asks the interpreter that it finds, and NumPy must be there, too.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    command = (
        sys.executable,
        "-m",
        "pyright",
        "--verifytypes",
        "ir_runtime",
        "--ignoreexternal",
        "--outputjson",
    )
    said = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, env={**os.environ, "PATH": path}
    ).stdout
    modules = "|".join(
        ("openvino", r"op(set\d+)?", "frontend", "tools", "runtime", *filter(str.isidentifier, MODULES))
    )
    public = re.compile(rf"ir_runtime\.(\w+$|({modules})(\.|$))")
    symbols = json.loads(said)["typeCompleteness"]["symbols"]
    exported = [each for each in symbols if each["isExported"] and public.match(each["name"])]
    assert len(exported) > 4000
    assert [each["name"] for each in exported if not each["isTypeKnown"]] == []
