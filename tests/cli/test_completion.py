"""``ir-runtime completion``: what shells complete, asked of real ones where they are installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from harness.tiny import write_chain

import ir_runtime
from ir_runtime.cli import main

Invoke = Callable[[str], Result]

CASES = [
    ("vali", ["validate"]),
    ("run --nan", ["--nan-check"]),
    ("run ch", ["chain.xml"]),
    ("run chain.xml -w ", ["chain.bin"]),
    ("run chain.xml --layers s", ["shift", "stretch"]),
    ("run chain.xml --layers aten::s", ["aten::sum"]),
    ("run chain.xml -i ", ["x.npy", "x=x.npy"]),
    ("run chain.xml -i x=", ["x=x.npy"]),
    ("run chain.xml --backend num", ["numba", "numpy"]),
    ("bench -m ch", ["chain.xml"]),
    ("explain ir301", ["IR301"]),
    ("ops SpaceTo", ["SpaceToBatch", "SpaceToDepth"]),
    ("ops ReduceL2-", ["ReduceL2-4"]),
    ("guide gloss", ["glossary"]),
    ("completion f", ["fish"]),
]


@pytest.fixture(autouse=True)
def model(folder: Path) -> None:
    path = write_chain(folder)
    path.write_text(path.read_text().replace('name="bias" type="Const"', 'name="aten::sum" type="Add"'))
    (folder / "x.npy").touch()
    (folder / "notes.txt").touch()


def completed(line: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What click gives the script of bash."""
    monkeypatch.setenv("_IR_RUNTIME_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", f"ir-runtime {line}")
    monkeypatch.setenv("COMP_CWORD", str(len(line.split(" "))))
    said = CliRunner().invoke(main, [], prog_name="ir-runtime").stdout
    return [item.partition(",")[2] for item in said.splitlines()]


@pytest.mark.parametrize(("line", "expected"), CASES)
def test_words_are_completed(monkeypatch: pytest.MonkeyPatch, line: str, expected: list[str]) -> None:
    found = completed(line, monkeypatch)
    assert found == expected


def test_files_beside_folders_are_left_to_the_shell(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "chains").mkdir()
    assert completed("run ch", monkeypatch) == ["ch"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script(invoke: Invoke, shell: str) -> None:
    script = invoke(f"completion {shell}").stdout
    assert f"_IR_RUNTIME_COMPLETE={shell}_complete" in script
    assert "ir-runtime" in script


ASK = {
    "bash": (
        'source ./script; COMP_WORDS=(ir-runtime run chain.xml --layers "{word}"); COMP_CWORD=4\n'
        '_ir_runtime_completion ir-runtime; printf "%s\\n" "${{COMPREPLY[@]}}"'
    ),
    "zsh": (
        "compdef() {{ :; }}; compadd() {{ print -rl -- $completions; }}\n"
        'words=(ir-runtime run chain.xml --layers "{word}"); CURRENT=5; source ./script; _ir_runtime_completion'
    ),
    "fish": 'source ./script; complete -C "ir-runtime run chain.xml --layers {word}"',
}


@pytest.mark.parametrize("shell", ASK)
@pytest.mark.skipif(os.name != "posix", reason="needs POSIX")
def test_a_real_shell_completes_layers(folder: Path, invoke: Invoke, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    (folder / "script").write_text(invoke(f"completion {shell}").stdout)
    program = folder / "bin" / "ir-runtime"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\nexec {sys.executable} -c "import sys; sys.argv[0] = \'ir-runtime\'; from ir_runtime.cli import main; main()" "$@"\n'
    )
    program.chmod(0o755)
    package = str(Path(ir_runtime.__file__).parents[1])
    env = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", "PYTHONPATH": package}
    for word, expected in (("str", "stretch"), ("aten::", "aten::sum")):
        asked = ASK[shell].format(word=word)
        found = subprocess.run([shell, "-c", asked], env=env, capture_output=True, text=True, check=False)
        assert expected in found.stdout.split(), found.stderr
