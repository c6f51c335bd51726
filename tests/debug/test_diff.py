"""The changes between two models."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from harness.nets import anonymous
from lxml import etree
from models.networks import NETWORKS, save

import ir_runtime as ir
from ir_runtime import debug
from ir_runtime.cli import main


def changed(path: Path, change: Callable[[Any], None], name: str = "new") -> Path:
    """Write a copy of a model with its XML changed."""
    tree = etree.parse(path)
    change(tree)
    new = path.with_name(f"{name}.xml")
    tree.write(new)
    new.with_suffix(".bin").write_bytes(path.with_suffix(".bin").read_bytes())
    return new


@pytest.mark.parametrize("name", NETWORKS)
def test_names_and_numbers_are_no_change(name: str, tmp_path: Path) -> None:
    path = save(name, tmp_path)
    old, new = ir.read_model(path), ir.read_model(changed(path, anonymous))
    found = debug.diff(old, new)
    assert not found, str(found)
    assert found.renamed == found.same == len(old.get_ops())


@pytest.mark.parametrize("rename", [False, True])
@pytest.mark.parametrize("name", NETWORKS)
def test_one_changed_weight_is_named(name: str, rename: bool, tmp_path: Path) -> None:
    path = save(name, tmp_path)
    new = changed(path, anonymous if rename else lambda tree: None)
    old = ir.read_model(path)
    constants = [
        node for node in old.get_ops() if node.type == "Constant" and node.element_type == ir.Type.f32
    ]
    raw = bytearray(path.with_suffix(".bin").read_bytes())
    held = [node.data.tobytes() for node in constants]
    wanted = max(
        (node for node in constants if held.count(node.data.tobytes()) == 1), key=lambda node: node.data.size
    )
    offset = raw.index(wanted.data.tobytes())
    raw[offset : offset + 4] = np.float32(7).tobytes()
    new.with_suffix(".bin").write_bytes(raw)
    (change,) = debug.diff(old, ir.read_model(new)).changes
    assert (change.kind, change.layer) == ("weights", wanted.friendly_name)
    assert change.what.startswith(f"1 of {wanted.data.size} elements differ")
    assert change.amount is not None
    assert change.amount > 0


def _first(tree: Any, type: str) -> Any:
    return next(layer for layer in tree.iter("layer") if layer.get("type") == type)


def test_a_changed_attribute_is_named_with_both_values(tmp_path: Path) -> None:
    path = save("encoder", tmp_path)
    new = changed(path, lambda tree: _first(tree, "Gelu").find("data").set("approximation_mode", "TANH"))
    (change,) = debug.diff(ir.read_model(path), ir.read_model(new)).changes
    assert (change.kind, change.operation) == ("attribute", "Gelu-7")
    assert change.what == "approximation_mode was erf, is tanh"


def test_another_operation_is_a_layer_less_and_a_layer_more(tmp_path: Path) -> None:
    path = save("residual", tmp_path)
    new = changed(path, lambda tree: _first(tree, "Add").set("type", "Maximum"))
    found = debug.diff(ir.read_model(path), ir.read_model(new)).changes
    assert [(change.kind, change.operation) for change in found] == [
        ("removed", "Add-1"),
        ("added", "Maximum-1"),
    ]


def test_the_command_ends_with_whether_something_changed(tmp_path: Path) -> None:
    path = save("plain_cnn", tmp_path)
    same = CliRunner().invoke(main, ["diff", str(path), str(changed(path, anonymous))])
    assert (same.exit_code, same.stdout.splitlines()[0]) == (0, "no change")
    new = changed(path, lambda tree: _first(tree, "Convolution").find("data").set("strides", "1,1"), "other")
    done = CliRunner().invoke(main, ["diff", str(path), str(new), "--json"])
    assert done.exit_code == 1
