"""``ir-runtime upgrade``: convert a model to version 11, or for a release; on failure nothing is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from harness.legacy import LegacyNet
from harness.nets import Net

import ir_runtime as ir
from ir_runtime.cli import main


def invoke(*line: str) -> Result:
    return CliRunner().invoke(main, ["upgrade", *line], prog_name="ir-runtime")


@pytest.fixture
def save(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[LegacyNet | Net], None]:
    """Write ``old.xml`` and ``old.bin`` to the working directory."""
    monkeypatch.chdir(tmp_path)

    def write(net: LegacyNet | Net) -> None:
        Path("old.xml").write_bytes(net.xml())
        Path("old.bin").write_bytes(net.weights)

    return write


def dense(**how: object) -> LegacyNet:
    net = LegacyNet(version=4)
    x = net.input("x", 1, 2)
    net.layer("FullyConnected", [x], (1, 1), name="fc", out__size=1, blobs={"weights": [[1.0, 2.0]]}, **how)  # type: ignore[arg-type]
    return net


def test_an_old_file_is_written_as_version_11(save: Callable[[LegacyNet | Net], None]) -> None:
    save(dense())
    done = invoke("old.xml", "new.xml")
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr.splitlines()[0] == "old.xml:2: note[IR010]: IR version 4, upgraded"
    assert done.stderr.splitlines()[-1].startswith("saved 4 layers of IR version 11 to new.xml")
    assert 'version="11"' in Path("new.xml").read_text()
    found = ir.compile_model("new.xml")(np.float32([[3, 4]]))
    np.testing.assert_array_equal(found["fc"], [[11]])


def test_warnings_are_shown(save: Callable[[LegacyNet | Net], None]) -> None:
    save(dense(colour="red"))
    done = invoke("old.xml", "new.xml")
    assert done.exit_code == 0
    assert "has no attribute 'colour'; it is ignored" in done.stderr


def test_a_file_of_version_10_is_upgraded(save: Callable[[LegacyNet | Net], None]) -> None:
    net = Net(version="10")
    net.result(net.parameter("x", "2", "f16", out="FP16 2", names=""))
    save(net)
    assert invoke("old.xml", "new.xml").exit_code == 0
    assert ir.read_model("new.xml").input().element_type.label == "f32"


@pytest.mark.parametrize(
    ("change", "code", "says"),
    [
        (("FullyConnected", "Zyxwv"), 4, "unknown layer type 'Zyxwv'"),
        (('out-size="1"', 'out-size="0"'), 3, "attribute 'out-size' must be an integer greater than 0"),
        (('version="4"', 'version="1"'), 3, "supported are 2 to 7, 10 and 11"),
    ],
)
def test_nothing_is_written_of_a_file_that_cannot_be_upgraded(
    save: Callable[[LegacyNet | Net], None], change: tuple[str, str], code: int, says: str
) -> None:
    save(dense())
    Path("old.xml").write_text(Path("old.xml").read_text().replace(*change))
    done = invoke("old.xml", "new.xml")
    assert (done.exit_code, done.stdout) == (code, "")
    assert says in done.stderr
    assert not Path("new.xml").exists()
    assert not Path("new.bin").exists()


def test_the_new_file_needs_a_name_of_a_model(save: Callable[[LegacyNet | Net], None]) -> None:
    save(dense())
    done = invoke("old.xml", "new")
    assert done.exit_code == 2
    assert "must end in .xml" in done.stderr


def test_other_commands_take_old_files(save: Callable[[LegacyNet | Net], None]) -> None:
    save(dense())
    np.save("x.npy", np.float32([[3, 4]]))

    def said(*line: str) -> str:
        done = CliRunner().invoke(main, line, prog_name="ir-runtime")
        assert done.exit_code == 0, done.stderr
        return done.stdout + done.stderr

    assert "IR version 4, upgraded, 4 layers" in said("inspect", "old.xml")
    assert "1 file, 0 errors, 0 warnings" in said("validate", "old.xml", "--strict")
    assert "11" in said("run", "old.xml", "-i", "x=x.npy")
    assert "bytes" in said("report", "old.xml", "-o", "page.html")


def test_a_file_for_an_old_release(save: Callable[[LegacyNet | Net], None]) -> None:
    net = Net()
    x = net.parameter("x", "2", out="FP32 2")
    net.result(net.op("IsNaN", x, name="odd", out="BOOL 2", version="opset10"))
    save(net)
    done = invoke("old.xml", "new.xml", "--for", "2021.4")
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr == "saved 3 layers of IR version 10 to new.xml\n"
    assert 'type="NotEqual" version="opset1"' in Path("new.xml").read_text()
    found = ir.compile_model("new.xml")(np.float32([1, np.nan]))
    np.testing.assert_array_equal(found["odd"], [0, 1])


def test_nothing_is_written_where_a_layer_stands_in_the_way(save: Callable[[LegacyNet | Net], None]) -> None:
    net = Net()
    x = net.parameter("x", "2", out="FP32 2")
    net.result(net.op("ErfInv", x, name="odd", out="FP32 2", version="opset17"))
    save(net)
    done = invoke("old.xml", "new.xml", "--for", "2021.4")
    assert done.exit_code == 3
    assert "old.xml:5: layer 'odd' (ErfInv-17): error[IR602]" in done.stderr
    assert not Path("new.xml").exists()
