"""Outputs of ``--json``, failures included, match the schema printed by ``ir-runtime explain json``."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from click.testing import Result
from harness.conformance_cases import relu, small_corpus, write_folder
from harness.debugging import FAULTS, WrongLayer
from harness.nets import Net, chain, chain_weights, passing, total, write, write_chain

from ir_runtime.bench import profiling, report
from ir_runtime.bench.peaks import Peaks
from ir_runtime.bench.start import Start
from ir_runtime.cli import main
from ir_runtime.cli._index import COMMANDS
from ir_runtime.conformance import results
from ir_runtime.conformance.case import Meta

Invoke = Callable[[str], Result]

LINES = {
    "run": ["run chain.xml -i x.npy --layers shift", "run scores.xml --random --nan-check -o out.npz"],
    "validate": ["validate chain.xml broken.xml declared.xml", "validate declared.xml --max-findings 0"],
    "shapes": ["shapes open.xml --inputs", "shapes chain.xml --no-constraints"],
    "inspect": ["inspect open.xml", "inspect broken.xml", "inspect chain.xml --fusion"],
    "conformance": [
        "conformance run corpus --against numpy",
        "conformance compare old.json new.json",
    ],
    "cost": ["cost chain.xml", "cost open.xml"],
    "profile": ["profile chain.xml --runs 1 --backend numpy --against openvino"],
    "bisect": ["bisect chain.xml --random --against numpy"],
    "reduce": ["reduce chain.xml --random --against numpy -o bug"],
    "compare": [
        "compare chain.xml --random --against numpy",
        "compare chain.xml --random --against other.xml",
    ],
    "oracle": ["oracle scores.xml --random"],
    "budget": [
        "budget chain.xml --random --metric rate.py:rate",
        "budget product.xml --random --to int4 --group-size 2,-1 --metric rate.py:rate",
    ],
    "trace-nan": ["trace-nan chain.xml -i x.npy"],
    "diff": ["diff chain.xml other.xml"],
    "bench": ["bench chain.xml -niter 1", "bench chain.xml -niter 1 -pc"],
    "ops": ["ops ReduceL2"],
    "explain": ["explain", "explain IR301"],
    "guide": ["guide", "guide glossary"],
    "kernels": ["kernels"],
    "cache": ["cache", "cache --clean"],
    "error": [
        "run none.xml",
        "run broken.xml --random",
        "run chain.xml --random --layers zz",
        "run chain.xml --zz",
        "validate",
        "bench chain.xml -nitr 1",
    ],
}


@pytest.fixture(autouse=True)
def models(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start = Start(imported=0, read=0, compile=0, first=0, base=0, peak=0)
    monkeypatch.setattr(report, "measure", lambda *_: start)
    monkeypatch.setattr(profiling, "measure_peaks", lambda *_: Peaks(1e9, 1e9))
    monkeypatch.setenv("IR_RUNTIME_CACHE", str(folder))
    (folder / "ir_runtime" / "debug").mkdir(parents=True)
    (folder / "ir_runtime").chmod(0o700)
    write_chain(folder)
    write_chain(folder, rows="?", name="open")
    write(folder, chain().replace('"Multiply"', '"Divide"'), "other")
    (folder / "other.bin").write_bytes(chain_weights())
    write(folder, total().replace('type="Add"', 'type="Adds"'), "broken")
    write(folder, total().replace("<dim>4</dim></port></input>", "<dim>5</dim></port></input>"), "declared")
    write(folder, passing("f32", "1,8"), "scores")
    net, weights = Net(), np.float32([[1, 2, 3.3], [4, 5, 6]])
    net.result(net.op("MatMul", net.parameter("x", "2,2"), net.constant(weights, "f32"), name="product"))
    write(folder, net.xml().decode(), "product")
    (folder / "product.bin").write_bytes(net.weights)
    write_folder(folder / "corpus", small_corpus())
    for name, cases in (("old", small_corpus()), ("new", [relu(1), relu(9)])):
        metas = [Meta.parse(dict(case.files())["case.json"]) for case in cases]
        run = results.Run("numpy", name, "corpus", [results.Result.of(meta, "passed") for meta in metas])
        (folder / f"{name}.json").write_text(json.dumps(run.record()))
    (folder / "rate.py").write_text("def rate(outputs):\n    return 0.5\n", encoding="utf-8")
    np.save("x.npy", np.float32([[1, 2, 3], [np.nan, np.inf, 1e9]]))


def closed(schema: Any) -> Any:
    """Return the schema without additional properties: each must be documented."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: closed(value) for key, value in schema.items()}
    return found | ({"additionalProperties": False} if "properties" in schema and "type" in schema else {})


def schema_of(invoke: Invoke, name: str) -> Any:
    found = json.loads(invoke(f"explain json {name}").stdout)
    jsonschema.Draft202012Validator.check_schema(found)
    return found


def with_json() -> list[str]:
    """Return the commands with a JSON output."""
    context = main.make_context("ir-runtime", ["run"], resilient_parsing=True)
    found = ((name, main.get_command(context, name)) for name in COMMANDS)
    return [name for name, each in found if each and any("--json" in param.opts for param in each.params)]


@pytest.fixture
def wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """A side with a faulty layer."""
    side = WrongLayer("stretch", FAULTS["scaled"])
    monkeypatch.setattr(import_module("ir_runtime.debug.compare"), "side_of", lambda _: side)


@pytest.mark.parametrize("name", [*with_json(), "error"])
def test_results_have_their_schema(invoke: Invoke, name: str, request: pytest.FixtureRequest) -> None:
    if name in ("bisect", "reduce"):
        request.getfixturevalue("wrong")
    validator = jsonschema.Draft202012Validator(closed(schema_of(invoke, name)))
    for line in LINES[name]:
        found = invoke(f"{line} --json")
        record = json.loads(found.stdout)
        validator.validate(record)
        assert record["schema"] == 1
        assert ("error" in record) == (name == "error")


def test_every_command_with_json_has_a_schema(invoke: Invoke) -> None:
    assert set(invoke("explain json").stdout.split()) == {*with_json(), "error", "conformance-case"}
    for name in with_json():
        assert schema_of(invoke, name)["title"] == f"ir-runtime {name} --json"


def test_failures_are_data_and_messages(invoke: Invoke) -> None:
    found = invoke("run broken.xml --random --json")
    error = json.loads(found.stdout)["error"]
    assert (found.exit_code, error["exit"]) == (4, 4)
    assert error["message"] == "unknown operation 'Adds' (opset1)"
    (finding,) = error["findings"]
    assert (finding["code"], finding["line"], finding["layer"]) == ("IR201", 12, "plus")
    assert "error[IR201]: unknown operation 'Adds'" in found.stderr
    error = json.loads(invoke("bench chain.xml -nitr 1 --json").stdout)["error"]
    assert error == {"exit": 2, "message": "no such option '-nitr'; did you mean '-niter'?", "findings": []}


def test_without_json_failures_are_messages_alone(invoke: Invoke) -> None:
    assert invoke("run broken.xml --random").stdout == ""


def test_schemas_are_found_by_name(invoke: Invoke) -> None:
    assert "did you mean 'run'?" in invoke("explain json runn").stderr
    assert invoke("explain IR301 run").exit_code == 2
