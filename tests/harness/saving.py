"""What OpenVINO sees in a model: so that two files can be compared that are to mean the same."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import openvino as ov

from harness.oracle import core
from ir_runtime.ir.tensor import Array

# Names that OpenVINO makes up while it reads, and its own version, which it notes when it saves.
_MADE_UP = re.compile(r' (?:name|names)="\w+_\d+"|\s*<info name="OpenVINO Runtime".*|\s*<optimization />')


def seen_by_openvino(path: Path) -> tuple[str, bytes]:
    """OpenVINO's own words for a model: every layer with its attributes, types and shapes, every number.

    Models that are the same in these are the same to OpenVINO, and give the same results.
    """
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "copy.xml")
        ov.serialize(core().read_model(path), copy)
        text = _MADE_UP.sub("", copy.read_text()).replace("<rt_info />", "<rt_info>\n\t</rt_info>")
        return text, copy.with_suffix(".bin").read_bytes()


def assert_identical(found: Array, wanted: Array) -> None:
    """The same to the bit, NaN and all."""
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    if found.dtype == object:
        assert found.tolist() == wanted.tolist()
    else:
        assert found.tobytes() == wanted.tobytes()
