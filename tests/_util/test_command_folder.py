"""The folder passed to a command has the same layout for both commands that write it."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

import ir_runtime as ir
from ir_runtime import debug, opset1
from ir_runtime._util.command_folder import Entry, list_entries
from ir_runtime.conformance.adapters import adapter
from ir_runtime.conformance.case import Case
from ir_runtime.errors import InputError
from ir_runtime.ir.element import ElementType


def test_entries_and_folders(tmp_path: Path) -> None:
    entries = {"inputs": [Entry.of("inputs", 0, "x", {"b", "a"}, "f32", (2,))], "outputs": []}
    list_entries(tmp_path, entries)
    x = {"file": "inputs/0.npy", "name": "x", "names": ["a", "b"], "type": "f32", "shape": [2]}
    assert json.loads((tmp_path / "names.json").read_text()) == {"schema": 1, "inputs": [x], "outputs": []}
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["inputs", "outputs"]


def layout(value: object) -> object:
    """Return the keys and value types of a JSON document."""
    if isinstance(value, dict):
        return {key: layout(item) for key, item in value.items()}
    return [layout(item) for item in value] if isinstance(value, list) else type(value).__name__


def test_commands_of_comparisons_and_of_cases_see_the_same_folder(tmp_path: Path) -> None:
    script = tmp_path / "device.py"
    copy = tmp_path / "seen.json"
    script.write_text(
        "import json, os, sys\n"  # a .bin is left out: a model without constants may have none
        "os.chdir(sys.argv[-1])\n"
        "names = json.load(open('names.json'))\n"
        f"json.dump([names, sorted(set(os.listdir()).difference(['model.bin']))], open({str(copy)!r}, 'w'))\n"
        "sys.exit(1)\n"
    )
    x = opset1.parameter([2], np.float32, name="x")
    model = ir.Model([opset1.relu(x, name="y")], [x])
    ir.save_model(model, tmp_path / "net.xml", compress_to_fp16=False)
    array = np.ones(2, np.float32)
    xml = (tmp_path / "net.xml").read_bytes()
    types = [ElementType.f32]
    case = Case("ReLU-1/0001", "ReLU-1", "value", xml, b"", [array], [array], types, types, [])
    with suppress(InputError):
        debug.compare(model, [array], debug.Command([sys.executable, str(script)]))
    seen: list[Any] = [json.loads(copy.read_text())]
    with suppress(RuntimeError):
        adapter(f"{sys.executable} {script}")(case)
    seen.append(json.loads(copy.read_text()))
    for names, _ in seen:
        names["tensors"] = []  # cases have none between layers
        for kind in ("inputs", "outputs"):
            names[kind][0]["names"] = []  # models have names that cases leave out
    assert layout(seen[0][0]) == layout(seen[1][0])
    assert seen[0][1] == seen[1][1]
