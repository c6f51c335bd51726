"""README.md is accurate: its Python runs, its consoles match the shipped models, its links are valid."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from harness.nets import Net
from harness.terminals import assert_shown, blocks, commands

import ir_runtime as ir
from ir_runtime.guides import guide, guides

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """``model.xml`` in the working directory, with the names used in the README."""
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
    found = [block for language, block in blocks(README) if language == "python"]
    assert len(found) == 2
    for block in found:
        exec(block, names)
    assert np.shape(names["scores"]) == (1, 4, 6, 6)
    assert {"conv1", "scores"} <= {port.any_name for port in names["compiled"].outputs}  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("command", "shown"),
    [c for language, block in blocks(README) if language == "console" for c in commands(block)],
)
def test_a_console_shows_what_the_command_prints(
    command: str, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    if "edited.xml" in command:
        exec(next(code for language, code in blocks(guide("broken-edit").text) if language == "python"), {})
    assert_shown(command, shown, tmp_path)


def test_the_guides_that_it_lists_exist() -> None:
    listed = re.findall(r"^\| `ir-runtime guide (\S+)` \| (.*) \|$", README, flags=re.MULTILINE)
    assert len(listed) > 12
    assert set(listed) <= {(page.name, page.title) for page in guides()}


def test_links_are_absolute() -> None:
    """Package indexes show the page without the files next to it."""
    targets = re.findall(r"\]\(([^)]+)\)", README)
    assert targets
    assert [target for target in targets if not target.startswith("https://")] == []


def test_paths_exist() -> None:
    folders = re.findall(r"`((?:examples|tests)/[\w/]*)`", README)
    assert folders
    assert [path for path in folders if not (ROOT / path).exists()] == []
