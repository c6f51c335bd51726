"""Nothing in the working directory is executed or read as configuration."""

from __future__ import annotations

import ast
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.planted import COMMANDS, Planted
from harness.sources import PACKAGE, trees

import ir_runtime
from ir_runtime._util.child_process import process_pool, run_module, safe_environment, search_path
from ir_runtime.backends import silent_default
from ir_runtime.cli._index import COMMANDS as EXISTING

PROGRAM = """\
import json, shlex, sys
from ir_runtime.cli import main

if __name__ == "__main__":
    codes = {}
    for name, arguments in json.loads(sys.argv[1]).items():
        try:
            main([name, *shlex.split(arguments)], prog_name="ir-runtime")
        except SystemExit as ended:
            codes[name] = ended.code
    print(json.dumps(codes))
"""
SCRIPT = """\
import numpy as np
import ir_runtime as ov
from ir_runtime import opset13 as op

x = op.parameter([512, 512], np.float32)
compiled = ov.compile_model(ov.Model([op.relu(x)], [x]), "CPU")
print(compiled.backend, compiled(np.ones((512, 512), np.float32))[0].sum())
"""


@pytest.fixture
def planted(tmp_path: Path) -> Planted:
    return Planted(tmp_path / "models", tmp_path / "log", tmp_path / "home")


def test_no_command_executes_what_is_planted(planted: Planted, tmp_path: Path) -> None:
    """Processes started by bench, validate and Dask do not, either."""
    assert COMMANDS.keys() == EXISTING.keys()
    script = tmp_path / "ir-runtime"
    script.write_text(PROGRAM)
    done = planted.run(str(script), json.dumps(COMMANDS))
    codes = json.loads(done.stdout.splitlines()[-1])
    assert codes == dict.fromkeys(COMMANDS, 0), done.stderr
    assert planted.executed() == []


def test_no_script_executes_what_is_planted(planted: Planted, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = planted.run(str(script), IR_RUNTIME_BACKEND="")
    assert done.stdout == f"{silent_default()} {float(512 * 512)}\n", done.stderr
    assert planted.executed() == []


def test_python_m_executes_nothing_once_the_package_runs(tmp_path: Path) -> None:
    """Python itself imports some standard modules before that; ``python -P -m`` prevents it."""
    names = ["click", "lxml", "ml_dtypes", "networkx", "numpy", "rich"]
    planted = Planted(tmp_path / "models", tmp_path / "log", tmp_path / "home", names)
    done = planted.run("-m", "ir_runtime", "run", "model.xml", "--random")
    assert done.returncode == 0, done.stderr
    assert planted.executed() == []


def test_python_m_finds_a_package_in_the_working_directory(tmp_path: Path) -> None:
    """For example, a folder into which pip has installed this package and its dependencies."""
    (tmp_path / "ir_runtime").symlink_to(PACKAGE)
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-m", "ir_runtime", "ops", "ReduceL2"],
        cwd=tmp_path, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory of a process that searches it first, with modules that shadow others."""
    for name in ("platform", "multiprocessing", "sitecustomize", "numpy"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('planted')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", str(tmp_path), ".", "relative", *sys.path])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", str(tmp_path), ".", "relative"]))
    return tmp_path


def test_a_child_does_not_search_the_working_directory(modules: Path) -> None:
    assert [entry for entry in search_path() if not os.path.isabs(entry) or entry == str(modules)] == []
    done = run_module("platform", stdin="", environment=os.environ)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_child_searches_where_its_parent_has_found_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere, here = tmp_path / "elsewhere", tmp_path / "here"
    for folder in (elsewhere, here):
        folder.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setattr(sys, "path", [str(elsewhere), *sys.path])
    assert search_path()[0] == str(elsewhere)
    monkeypatch.setattr(ir_runtime, "__file__", str(here / "ir_runtime" / "__init__.py"))
    assert str(here) in search_path()[-3:], "the package itself lies in the working directory"


def test_processes_of_a_pool_do_not_search_the_working_directory(modules: Path) -> None:
    former = dict(os.environ)
    sys.path[:4] = []  # the search path of a parent is that of its processes, once they have started
    with process_pool(1) as pool:
        assert pool.submit(os.getenv, "PYTHONSAFEPATH").result() == "1"
    assert dict(os.environ) == former


@pytest.mark.parametrize("former", [None, "/somewhere"])
def test_the_environment_is_restored(former: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    if former is not None:
        monkeypatch.setenv("PYTHONPATH", former)
    with safe_environment():
        assert os.environ["PYTHONPATH"] == (former or "")
        assert os.environ["PYTHONSAFEPATH"] == "1"
    assert os.environ.get("PYTHONPATH") == former


# Names by which Python starts other programs, or copies of its own.
STARTERS = {"subprocess", "multiprocessing", "ProcessPoolExecutor", "pty", "create_subprocess_exec", "create_subprocess_shell"}  # fmt: skip
OF_OS = ("exec", "spawn", "posix_spawn", "system", "popen", "fork", "startfile")


def starters(tree: ast.Module) -> Iterator[str]:
    """Return the names by which a module starts processes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if STARTERS & set(alias.name.split(".")))
        elif isinstance(node, ast.ImportFrom):
            named = [(node.module or "").split(".")[0], *(alias.name for alias in node.names)]
            yield from STARTERS.intersection(named) if not node.level else ()
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os":
            yield from [f"os.{node.attr}"] if node.attr.startswith(OF_OS) else []


def test_children_are_started_in_one_place() -> None:
    found = {path.relative_to(PACKAGE).as_posix(): list(starters(tree)) for path, tree in trees().items()}
    assert found.pop("_util/child_process.py")
    assert {file: names for file, names in found.items() if names} == {}


@pytest.mark.parametrize(
    "source",
    ["import subprocess", "from multiprocessing.pool import Pool", "from concurrent.futures import ProcessPoolExecutor", "os.execv(a, b)", "os.system(a)", "import multiprocessing.pool as p"],
)  # fmt: skip
def test_what_starts_processes_is_seen(source: str) -> None:
    assert list(starters(ast.parse(source)))


WORKER = """
import sys
from ir_runtime._util.child_process import next_job, open_pipes, send

jobs, answers = open_pipes()
print("said by a library", flush=True)
read = sys.stdin.buffer.read()
while (job := next_job(jobs)) is not None:
    send(answers, (job, read))
"""


def test_libraries_read_nothing_and_print_no_answers() -> None:
    """A process forked by a library closes ``sys.stdin``, and would wait for the thread that reads jobs from it."""
    messages = b"".join(pickle.dumps(number) for number in (1, 2))
    done = subprocess.run([sys.executable, "-c", WORKER], input=messages, capture_output=True, check=True)
    assert done.stdout == b"".join(pickle.dumps((number, b""), pickle.HIGHEST_PROTOCOL) for number in (1, 2))
    assert done.stderr == b"said by a library\n"
