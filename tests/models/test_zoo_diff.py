"""`debug.diff` on well-known networks: renaming is no change, and one changed weight is found."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from harness.nets import anonymous
from lxml import etree

import ir_runtime as ir
from ir_runtime import debug
from models.zoo import ZOO, ir_path

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("name", ZOO)
def test_only_what_changed_is_named(name: str) -> None:
    path = ir_path(name)
    old, tree = ir.read_model(path), etree.parse(path)
    weights = path.with_suffix(".bin").read_bytes()
    constant = _constant(tree, name)
    renamed = constant.get("name")
    anonymous(tree)
    found = debug.diff(old, ir.read_model(etree.tostring(tree), _other(weights, constant)))
    assert found.same == len(old.get_ops())
    (change,) = found.changes
    assert (change.kind, change.layer) == ("weights", renamed)
    assert change.what.startswith("1 of ")


def _constant(tree: Any, name: str) -> Any:
    """Return an f32 constant whose bytes are not shared."""
    stored = [layer for layer in tree.iterfind("layers/layer") if layer.get("type") == "Const"]
    offsets = [layer.find("data").get("offset") for layer in stored]
    alone = [layer for layer in stored if offsets.count(layer.find("data").get("offset")) == 1]
    real = [layer for layer in alone if layer.find("data").get("element_type") == "f32"]
    return random.Random(name).choice(real)


def _other(weights: bytes, constant: Any) -> bytes:
    """Return the weights with the first element of a constant changed."""
    changed, offset = bytearray(weights), int(constant.find("data").get("offset"))
    first = np.frombuffer(changed, np.float32, 1, offset)
    first += np.float32(0.5)
    return bytes(changed)
