"""All test models by name, written as IR. Properties of all models are tested on these."""

from __future__ import annotations

import os
import shutil
import tempfile
from atexit import register
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path

import openvino as ov
from harness import nets

from models import compressed, controlled, networks, quantized, recurrent, stateful

__all__ = ["COLLECTION", "Write", "saved", "zoo"]

Write = Callable[[Path], Path]
"""Writes a model into a folder and returns the path of its .xml."""

EXAMPLES = Path(__file__).parents[2] / "examples"


def built(name: str, build: Callable[[], ov.Model], compress: bool = False) -> Write:
    """Return a writer of a model built with OpenVINO; ``compress`` stores weights as f16."""

    def write(folder: Path) -> Path:
        path = folder / f"{name}.xml"
        ov.save_model(build(), path, compress_to_fp16=compress)
        return path

    return write


def copied(source: Path) -> Write:
    """Return a writer that copies an existing file."""

    def write(folder: Path) -> Path:
        for suffix in (".xml", ".bin"):
            shutil.copy(source.with_suffix(suffix), folder)
        return folder / source.name

    return write


def _openvino() -> dict[str, Write]:
    """Return the models built with OpenVINO."""
    builders: dict[str, Callable[[], ov.Model]] = {
        **{name: build for name, (build, _) in networks.NETWORKS.items()},
        **{name: build for name, (build, _) in controlled.CASES.items()},
        **{build.__name__: build for build in stateful.VARIABLES},
        "decoder": partial(stateful.decoder, 2),
        "cells": recurrent.cells,
        "quantized": partial(quantized.quantized_cnn, False),
        "quantized_i8": partial(quantized.quantized_cnn, True),
    }
    for build in recurrent.NETWORKS:
        builders[build.__name__] = partial(build, recurrent.BATCH, recurrent.TIME)
        if build is not recurrent.reader:  # its mask has a length for each step
            builders[f"{build.__name__}_of_any_length"] = partial(build, -1, -1)
    for name, compress in compressed.COMPRESSIONS.items():
        builders[f"mlp_{name}"] = partial(compressed.mlp, compress)
        builders[f"transformer_{name}"] = partial(compressed.transformer, compress)
    return {name: built(name, build) for name, build in builders.items()}


def _tiny() -> dict[str, Write]:
    """Return the handwritten models."""
    texts = {
        "total": nets.total(),
        "passing_f32": nets.passing("f32", "2,3"),
        "passing_i64": nets.passing("i64", "?", results=2),
        "passing_scalar": nets.passing("f16", ""),
    }
    found: dict[str, Write] = {
        f"tiny_{name}": partial(nets.write, text=text, name=f"tiny_{name}") for name, text in texts.items()
    }
    found["tiny_chain"] = partial(nets.write_chain, name="tiny_chain")
    found["tiny_chain_of_any_length"] = partial(nets.write_chain, rows="?", name="tiny_chain_of_any_length")
    return found


COLLECTION: Mapping[str, Write] = {
    **_openvino(),
    **_tiny(),
    "transformer_stored_as_f16": built(
        "transformer_stored_as_f16", partial(compressed.transformer, compressed.f32), compress=True
    ),
    "digits": copied(EXAMPLES / "digits" / "digits.xml"),
}


@cache
def saved(name: str) -> Path:
    """Return the path of a model's .xml, written once per session; treat it as read-only."""
    folder = _folder() / name
    folder.mkdir()
    return COLLECTION[name](folder)


@cache
def _folder() -> Path:
    folder = tempfile.mkdtemp(prefix="ir_runtime-models-")
    register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def zoo() -> list[Path]:
    """Yield the .xml files of the converted networks in the folder IR_RUNTIME_ZOO, for tests marked ``oracle``."""
    folder = os.environ.get("IR_RUNTIME_ZOO")
    return sorted(Path(folder).glob("*.xml")) if folder else []
