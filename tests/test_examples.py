"""The examples run, and say what they should."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(*command: str | Path, path: Path | None = None) -> str:
    """What a command prints; it must succeed and leave stderr empty."""
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8", "PYTHONWARNINGS": "error"}
    if path is not None:
        environment["PYTHONPATH"] = str(path)
    found = subprocess.run(
        [sys.executable, *map(str, command)],
        capture_output=True,
        encoding="utf-8",
        env=environment,
        check=False,
    )
    assert (found.returncode, found.stderr) == (0, "")
    return found.stdout


def test_digits() -> None:
    assert "99 of 100 images recognised (99.0 %)" in run(EXAMPLES / "digits" / "demo.py")


def test_embed() -> None:
    assert "answers: [7, " in run(EXAMPLES / "embed.py")


def test_a_server_answers_and_refuses() -> None:
    """In this process, without a network; what the model refuses is said to the client."""
    program = (
        "import json, sys, warnings\n"
        "warnings.simplefilter('ignore')\n"  # of the client, about what it uses itself
        "from fastapi.testclient import TestClient\n"
        "import numpy as np\n"
        "from serve import app\n"
        "picture = np.load(sys.argv[1])[0, 0].tolist()\n"
        "client = TestClient(app)\n"
        "for pixels in (picture, picture[:7], [[1.0], []], 'x'):\n"
        "    answer = client.post('/classify', json={'pixels': pixels})\n"
        "    said = answer.json()\n"
        "    print(answer.status_code, said.get('digit', json.dumps(said.get('detail'))[:40]))\n"
    )
    lines = run("-c", program, EXAMPLES / "digits" / "images.npy", path=EXAMPLES).splitlines()
    assert lines[0] == "200 7"
    assert lines[1].startswith("422 \"error[IR401]: input 'image' has shape")
    assert [line.split()[0] for line in lines[2:]] == ["422", "422"]


def test_trace_layers() -> None:
    lines = run(EXAMPLES / "trace_layers.py").splitlines()
    assert lines[-1] == "answer: 7"
    assert [line.split()[0] for line in lines].count("Convolution") == 3


def test_an_operation_of_our_own() -> None:
    assert run(EXAMPLES / "custom_op" / "run.py").split() == ["[-3.", "0.", "0.", "0.", "0.", "0.", "3.]"]


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The example as pip would install it: the module, and the entry point that announces it."""
    shutil.copy(EXAMPLES / "custom_op" / "hard_shrink.py", tmp_path)
    info = tmp_path / "hard_shrink-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: hard_shrink\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[ir_runtime.ops]\nhard_shrink = hard_shrink\n")
    return tmp_path


def test_an_installed_operation_is_found_by_itself(installed: Path) -> None:
    model = EXAMPLES / "custom_op" / "model.xml"
    np.save(installed / "x.npy", np.ones(4, np.float32))
    shown = run("-m", "ir_runtime", "run", model, "-i", installed / "x.npy", path=installed)
    assert "y" in shown
    assert "f32" in shown


def test_without_it_the_command_line_says_what_is_missing() -> None:
    found = subprocess.run(
        [sys.executable, "-m", "ir_runtime", "run", str(EXAMPLES / "custom_op" / "model.xml"), "--random"],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert found.returncode == 4
    assert "'HardShrink' is an operation of 'extension'" in found.stderr
