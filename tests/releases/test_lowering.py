"""Operations that a release lacks are replaced by older ones with the same bits, or the layer is reported."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from harness.files import model_of
from harness.sample import Sample, all_samples

import ir_runtime as ir
from ir_runtime.io.writer import write
from ir_runtime.ir.tensor import Array
from ir_runtime.openvino.saving import lower_for_release
from ir_runtime.releases.lowering import rules
from ir_runtime.releases.release import WHEELS, releases
from releases.ask import FOLDER, ask, is_installed

OFTEN = 8
"""How many samples of each operation are tried."""
ROUNDED = ("AdaptiveAvgPool-8", "ScaledDotProductAttention-13")
"""Operations that add in another order."""


@cache
def samples() -> dict[str, list[Sample]]:
    found: dict[str, list[Sample]] = {name: [] for name in rules()}
    for sample in all_samples():
        if sample.op in found and not is_out_of_range(sample):
            found[sample.op].append(sample)
    return found


def is_out_of_range(sample: Sample) -> bool:
    """Return whether indices exceed the data, which the older version does not define."""
    if sample.op != "Gather-8":
        return False
    data, indices, axis = sample.inputs
    return bool((np.abs(indices.astype(np.int64) + 0.5) > data.shape[int(axis.item())]).any())


def release_before(operation: str) -> str:
    """Return the last release without an operation."""
    needs = (operation, f"opset:{operation.rpartition('-')[2]}")
    return str([release for release in releases() if not all(map(release.reads, needs))][-1])


def for_release(model: ir.Model, release: str) -> ir.Model:
    """Return the model as the release would read it, upgraded to the newest version of the IR."""
    content = replace(lower_for_release(model, model._content(), release), version=11)
    xml, weights = io.BytesIO(), io.BytesIO()
    write(content, xml, weights)
    return ir.read_model(xml.getvalue(), weights.getvalue())


def run(model: ir.Model, arrays: list[Array]) -> list[Array]:
    with np.errstate(all="ignore"):
        found = ir.compile_model(model, backend="reference")(arrays)
    return [found[index] for index in range(len(found))]


def first_output_only(model: ir.Model) -> ir.Model:
    for result in model.results[1:]:
        model.remove_result(result)
    return model


@pytest.mark.parametrize("name", list(rules()))
def test_what_takes_the_place_of_a_layer_gives_the_same_bits(name: str) -> None:
    found = samples()[name]
    chosen = found[:: max(len(found) // OFTEN, 1)]
    replaced = 0
    for sample in chosen:
        for fixed in {sample.constant, tuple(range(1, len(sample.inputs)))}:
            model = first_output_only(ir.read_model(*model_of(sample, fixed)))
            try:
                other = for_release(model, release_before(name))
            except ir.ValidationError:
                continue
            assert not any(layer.operation == name for layer in other._graph.everywhere())
            arrays = [x for i, x in enumerate(sample.inputs) if i not in fixed]
            for ours, theirs in zip(run(other, arrays), run(model, arrays), strict=True):
                assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
                if name in ROUNDED:
                    eps = float(ml_dtypes.finfo(theirs.dtype).eps)
                    close = (a.astype(np.float64) for a in (ours, theirs))
                    np.testing.assert_allclose(*close, rtol=4 * eps, atol=4 * eps)
                else:
                    np.testing.assert_array_equal(ours, theirs)
            replaced += 1
    assert replaced


@pytest.mark.oracle
@pytest.mark.parametrize("release", WHEELS)
def test_a_release_reads_what_is_written_for_it(release: str) -> None:
    if not is_installed(FOLDER / release):
        pytest.skip(f"make releases installs OpenVINO {release}")
    lines = [
        line
        for name, found in samples().items()
        if release in (str(releases()[0]), release_before(name))
        for sample in found[:: max(len(found) // OFTEN, 1)]
        for line in written(sample, release)
    ]
    said = ask(FOLDER / release, lines)
    refused = [answer["error"] for answer in said if "error" in answer]
    assert refused == []


def written(sample: Sample, release: str) -> Iterator[str]:
    """Return a sample saved for a release, as a probe."""
    model = first_output_only(ir.read_model(*model_of(sample, range(1, len(sample.inputs)))))
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(ir.ValidationError):
        path = Path(folder, "model.xml")
        ir.save_model(model, path, for_release=release)
        weights = base64.b64encode(path.with_suffix(".bin").read_bytes()).decode()
        yield json.dumps({"features": ["x", "y"], "xml": path.read_text(), "weights": weights, "type": "", "attributes": []})  # fmt: skip
