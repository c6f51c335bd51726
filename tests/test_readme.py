"""What README.md says is true: its Python runs, its consoles show what the shipped models give, its links lead somewhere."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from harness.nets import Net

import ir_runtime as ir
from ir_runtime.ops import registry

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """``model.xml`` in the working directory, with the names that README uses."""
    net = Net()
    image = net.parameter("image", "1,3,8,8", out="FP32 1 3 8 8")
    conv = net.op(
        "Convolution", image, net.constant(np.ones((4, 3, 3, 3)), "f32"), out="FP32 1 4 6 6", name="conv1", names="conv1",
        strides="1,1", dilations="1,1", pads_begin="0,0", pads_end="0,0",
    )  # fmt: skip
    relu = net.op("ReLU", conv, out="FP32 1 4 6 6", name="block/relu", names="scores")
    net.result(relu)
    (tmp_path / "model.xml").write_bytes(net.xml())
    (tmp_path / "model.bin").write_bytes(net.weights)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "model.xml"


class MyObserver:
    def __init__(self) -> None:
        self.layers: list[str] = []

    def before(self, step: ir.Step, inputs: object) -> None:
        self.layers.append(step.layer.name)

    def after(self, step: ir.Step, outputs: object, seconds: float) -> None:
        pass


def test_embedding_runs_as_printed(model: Path) -> None:
    names: dict[str, object] = {"image": np.ones((1, 3, 8, 8), np.float32), "MyObserver": MyObserver}
    found = [block for block in blocks("python") if "class " not in block]
    assert len(found) == 2
    for block in found:
        exec(block, names)
    assert np.shape(names["scores"]) == (1, 4, 6, 6)
    assert {"conv1", "scores"} <= {port.any_name for port in names["compiled"].outputs}  # type: ignore[attr-defined]


def test_the_operation_of_the_example_runs() -> None:
    (block,) = (block for block in blocks("python") if "@op(" in block)
    exec(block, names := {})
    try:
        net = Net()
        x = net.parameter("x", "?", out="FP32 -1")
        net.result(net.op("Shrink", x, out="FP32 -1", step="2"))
        found = ir.compile_model(ir.read_model(net.xml()))(np.array([-5, -1, 0, 3], np.float32))
        np.testing.assert_array_equal(found[0], np.array([-3, 0, 0, 1], np.float32))
    finally:
        registry.remove(names["Shrink"])


def consoles() -> Iterator[tuple[str, str]]:
    """Commands on shipped models, each with the output that README shows for it."""
    for block in blocks("console"):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            if "examples/" in command and shown.strip():
                yield command, shown


@pytest.mark.parametrize(("command", "shown"), list(consoles()))
def test_a_console_shows_what_the_command_prints(command: str, shown: str, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    program, *arguments = shlex.split(command)
    assert program == "ir-runtime"
    run = [sys.executable, "-m", "ir_runtime", *arguments]
    found = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True)
    lines = (found.stdout + found.stderr).splitlines()
    place = 0
    for line in shown.rstrip().splitlines():
        if line.strip() == "...":
            continue
        assert line in lines[place:], f"{line!r} is not printed"
        place = lines.index(line, place) + 1


def test_links_are_absolute() -> None:
    """A package index shows the page without the files beside it."""
    targets = re.findall(r"\]\(([^)]+)\)", README)
    assert targets
    assert [target for target in targets if not target.startswith("https://")] == []


def test_paths_exist() -> None:
    folders = re.findall(r"`((?:examples|tests)/[\w/]*)`", README)
    assert len(folders) > 1
    assert [path for path in folders if not (ROOT / path).exists()] == []
