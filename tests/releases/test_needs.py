"""Features of models, and findings about those that a release does not support."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from harness.legacy import LegacyNet
from harness.nets import Net, body_of
from harness.refusals import said_by

import ir_runtime as ir
from ir_runtime.cli import main
from ir_runtime.releases.needs import features_of, needs_of_file, oldest_release
from ir_runtime.releases.release import Release, releases

Invoke = Callable[..., Result]


def identity(version: str = "opset16", **how: str) -> Net:
    """A model of one layer that old releases lack."""
    net = Net(**how)
    net.result(net.op("Identity", net.parameter("x", "2", out="FP32 2"), out="FP32 2", version=version))
    return net


def features(net: Net) -> dict[str, tuple[str, ...]]:
    """Return the features that belong to each layer."""
    model = ir.read_model(net.xml(), net.weights)
    return {layer.name: own for layer, _, own in features_of(model._graph, model._values)}


def oldest(net: Net | LegacyNet) -> str | None:
    model = ir.read_model(net.xml(), net.weights)
    release = oldest_release(needs_of_file(model._document, model._graph, model._values))
    return release and str(release)


@pytest.fixture
def invoke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Invoke:
    """Run a command on ``net.xml``."""
    monkeypatch.chdir(tmp_path)

    def call(net: Net | LegacyNet, command: str, *line: str) -> Result:
        Path("net.xml").write_bytes(net.xml())
        Path("net.bin").write_bytes(net.weights)
        return CliRunner().invoke(main, [command, "net.xml", *line], prog_name="ir-runtime")

    return call


def test_features_of_a_layer() -> None:
    net = Net()
    x = net.parameter("x", "?,3", out="FP32 -1 3")
    one = net.constant(1, "i64", name="k")
    values, _ = net.layer("TopK", [x, one], ["FP32 -1 1", "I64 -1 1"], version="opset13", name="top", axis=1, mode="max", sort="value", index_element_type="i64", stable=True)  # fmt: skip
    net.result(values)
    found = features(net)
    assert found["top"] == (
        "TopK-11",
        "opset:13",
        "TopK-11@13",
        "TopK-11/mode=max",
        "TopK-11/sort=value",
        "TopK-11/index_element_type=i64",
        "TopK-11/stable=true",
        "TopK-11:data=f32",
        "TopK-11:k=i64",
    )
    assert "shape:?" in found["x"]


def test_tensors_that_are_passed_on_have_the_features_of_where_they_come_from() -> None:
    net = Net()
    x = net.parameter("x", "?", out="FP32 -1")
    net.result(net.op("ReLU", x, name="y", out="FP32 -1"))
    net.result(net.op("NonZero", x, name="z", out="I64 1 -1", version="opset3"), name="other")
    found = features(net)
    assert "shape:?" in found["x"]
    assert "shape:?" not in found["y"]
    assert "type:i64" in found["z"]


def test_ports_may_declare_lengths_that_are_not_inferred() -> None:
    """Model Optimizer wrote upper bounds, which old releases read."""
    net = Net(version="10")
    x = net.parameter("x", "2", out="FP32 2")
    net.result(net.op("NonZero", x, name="z", out="I64 1 2", version="opset3"))
    assert oldest(net) == "2021.4"


def test_layers_in_bodies_count() -> None:
    net, inner = Net(), Net()
    inner.result(inner.op("Identity", inner.parameter("y", "3", out="FP32 3"), name="i", out="FP32 3", version="opset16"))  # fmt: skip
    condition = net.parameter("condition", "", "boolean", out="BOOL")
    x = net.parameter("x", "3", out="FP32 3")
    ports = '<input external_port_id="1" internal_layer_id="0"/><output external_port_id="2" internal_layer_id="2"/>'
    inside = "".join(
        f"<{side}_port_map>{ports}</{side}_port_map>{body_of(inner).replace('body>', f'{side}_body>')}"
        for side in ("then", "else")
    )
    net.result(net.layer("If", [condition, x], ["FP32 3"], version="opset8", inside=inside)[0])
    assert oldest(net) == str(next(r for r in releases() if r.reads("Identity-16")))


@pytest.mark.parametrize(
    ("net", "wanted"),
    [
        (identity("opset16"), "2025.0"),
        (identity("opset17"), None),
        (LegacyNet(), None),
    ],
)
def test_the_oldest_release(net: Net | LegacyNet, wanted: str | None) -> None:
    if isinstance(net, LegacyNet):
        net.layer("ReLU", [net.input("x", 1, 2)], (1, 2))
    assert oldest(net) == wanted


def test_inspect_says_why(invoke: Invoke) -> None:
    text = invoke(identity(), "inspect").stdout
    assert "Read by OpenVINO 2025.0 and later" in text
    record = json.loads(invoke(identity(), "inspect", "--json").stdout)["releases"]
    assert record["oldest"] == "2025.0"
    assert record["known"] == [str(releases()[0]), str(releases()[-1])]
    assert record["needs"][0] == {
        "need": "Identity-16",
        "since": "2025.0",
        "code": "IR602",
        "layer": "identity",
        "line": 5,
        "layers": 1,
    }
    assert record["needs"][-1]["need"] == "IR version 11"


def test_inspect_of_files_that_all_or_none_read(invoke: Invoke) -> None:
    net = Net(version="10")
    net.result(net.op("ReLU", net.parameter("x", "2", out="FP32 2"), out="FP32 2"))
    assert "Read by every OpenVINO since 2021.4\n" in invoke(net, "inspect").stdout
    old = LegacyNet()
    old.layer("ReLU", [old.input("x", 1, 2)], (1, 2))
    text = invoke(old, "inspect").stdout
    assert "Read by no OpenVINO since 2021.4; ir-runtime upgrade OLD.xml NEW.xml" in text
    unknown = identity()
    unknown.layers[1] = unknown.layers[1].replace("Identity", "Zyxwv")
    assert "but for the operations that are unknown" in invoke(unknown, "inspect").stdout


def test_validate_finds_what_a_release_does_not_read(invoke: Invoke) -> None:
    found = invoke(identity(), "validate", "--for", "2024.6")
    assert found.exit_code == 1
    assert (
        "net.xml:5: layer 'identity' (Identity-16): error[IR602]: OpenVINO 2024.6 does not read"
        in found.stdout
    )
    assert invoke(identity(), "validate", "--for", "2025.0").exit_code == 0
    assert invoke(identity(), "validate").exit_code == 0


def test_a_finding_marks_the_attribute(invoke: Invoke) -> None:
    net = Net()
    shape = net.parameter("shape", "1", "i64", out="I64 1")
    low, high = (net.parameter(name, "", out="FP32") for name in ("low", "high"))
    data = {"output_type": "f32", "global_seed": 1, "op_seed": 2, "alignment": "pytorch"}
    net.result(net.op("RandomUniform", shape, low, high, version="opset8", **data))
    (finding,) = json.loads(invoke(net, "validate", "--for", "2024.0", "--json").stdout)["files"][0][
        "findings"
    ]
    assert finding["code"] == "IR603"
    line = Path("net.xml").read_text().splitlines()[finding["line"] - 1]
    assert line[finding["column"] - 1 :].startswith('alignment="pytorch"')


def test_validate_of_a_model() -> None:
    model = ir.read_model(identity().xml())
    assert not ir.validate(model, for_release="2024.6").ok
    assert ir.validate(model, for_release="2026.4").ok


def test_unknown_releases_are_refused_before_anything_is_read(invoke: Invoke) -> None:
    for command in ("validate", "upgrade"):
        found = invoke(identity(), command, *["new.xml"][: command == "upgrade"], "--for", "2024.7")
        assert found.exit_code == 2
        assert "unknown release '2024.7' of OpenVINO" in found.stderr
        assert "did you mean '2024." in found.stderr
    assert "2021.4 to 2026.4" in said_by(lambda: Release.of("2019.1"), ir.IRError)


def test_patches_are_of_their_release() -> None:
    assert Release.of("2021.4.2") == Release.of("2021.4") == (2021, 4)
    with pytest.raises(ir.InputError):
        Release.of("2021.4.x")


def test_dims_of_0_count_where_no_other_is_dynamic() -> None:
    """Old releases check only static shapes."""
    for shape, wanted in (("0,2", "2023.2"), ("0,?", "2022.1")):
        net = Net()
        net.result(
            net.op(
                "ReLU", net.parameter("x", shape, out=f"FP32 {shape.replace('?', '-1').replace(',', ' ')}")
            )
        )
        assert oldest(net) == wanted
