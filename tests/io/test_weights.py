"""Constants: the source of their bytes, and checks before their use."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from harness.nets import Net

import ir_runtime as ir
from ir_runtime.codes import Code
from ir_runtime.ir.tensor import Array


def files(folder: Path, net: Net, weights: bytes | None = None) -> Path:
    xml = folder / "m.xml"
    xml.write_bytes(net.xml())
    xml.with_suffix(".bin").write_bytes(net.weights if weights is None else weights)
    return xml


def constants(net: Net) -> list[Array]:
    """Return the constants of a model, all of which are outputs."""
    for layer in range(len(net.layers)):
        from harness.nets import End

        net.result(End(layer, net.first_port), f"r{layer}")
    model = ir.read_model(net.xml(), net.weights)
    return list(ir.compile_model(model)([]).to_tuple())


@pytest.mark.parametrize(
    "dtype",
    ["f32", "f16", "f64", "bf16", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f8e4m3", "f8e5m2",
     "boolean"],
)  # fmt: skip
def test_element_types(dtype: str) -> None:
    net = Net()
    net.constant([0, 1, 1, 0], dtype, name="c")
    found = constants(net)[0]
    assert ir.Type.from_dtype(found.dtype).label == dtype
    np.testing.assert_array_equal(found.astype(float), [0, 1, 1, 0])


def test_any_byte_but_zero_is_true() -> None:
    net = Net()
    net.constant([0, 1, 0], "boolean", name="c")
    net.weights = bytes([0, 1, 255])
    np.testing.assert_array_equal(constants(net)[0], [False, True, True])


def test_offsets_need_no_alignment() -> None:
    net = Net()
    net.constant([1, 2], "f32", name="a", gap=1)
    net.constant([3], "f64", name="b", gap=2)
    assert [a.tolist() for a in constants(net)] == [[1, 2], [3]]


def test_ranges_may_be_shared_by_different_types() -> None:
    net = Net()
    net.constant([1, 2], "f32", name="a")
    layer = net.constant([0], "i64", name="b")
    net.layers[layer.layer] = net.layers[layer.layer].replace('offset="8"', 'offset="0"')
    floats, integer = constants(net)
    np.testing.assert_array_equal(floats.view(np.int64), integer)


def test_constants_may_be_empty_or_scalars() -> None:
    net = Net()
    net.constant(np.zeros((0, 3)), "f32", name="none")
    net.constant(7, "i32", name="one")
    net.constant(np.zeros((2, 0)), "i64", name="last")
    assert [(a.shape, a.tolist()) for a in constants(net)] == [((0, 3), []), ((), 7), ((2, 0), [[], []])]


def test_empty_constants_need_no_weights() -> None:
    net = Net()
    net.result(net.constant(np.zeros((0,)), "f32", name="none"))
    assert ir.compile_model(ir.read_model(net.xml()))([])[0].shape == (0,)


def test_an_empty_bin_is_a_bin(tmp_path: Path) -> None:
    net = Net()
    net.result(net.constant(np.zeros((0,)), "f32", name="none"))
    assert ir.read_model(files(tmp_path, net)).report.ok


def test_constants_are_views_of_the_file(tmp_path: Path) -> None:
    net = Net()
    net.result(net.constant(np.arange(100), "i64", name="c"))
    array = ir.read_model(files(tmp_path, net)).constant("c")
    assert not array.flags.owndata
    assert not array.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1


@pytest.mark.parametrize("given", [bytearray, lambda raw: np.frombuffer(bytearray(raw), np.uint8)])
def test_what_the_caller_gives_is_never_written(given: object) -> None:
    net = Net()
    net.result(net.constant([1, 2], "f32", name="c"))
    buffer = given(net.weights)  # type: ignore[operator]
    model = ir.read_model(net.xml(), buffer)
    assert not model.constant("c").flags.writeable
    ir.compile_model(model)([])[0][:] = 9
    assert bytes(buffer) == net.weights


def huge(folder: Path, size: int = 8 << 30) -> Path:
    """A model with a constant at the end of a sparse 8 GiB file."""
    net = Net()
    net.result(net.constant([0, 0], "f32", name="c"))
    net.layers[0] = net.layers[0].replace('offset="0"', f'offset="{size - 8}"')
    xml = files(folder, net)
    with xml.with_suffix(".bin").open("r+b") as file:
        file.truncate(size)
        file.seek(size - 8)
        file.write(np.float32([1, 2]).tobytes())
    return xml


@pytest.mark.skipif(sys.platform == "win32", reason="the file would not be sparse")
def test_opening_a_large_model_takes_no_memory(tmp_path: Path) -> None:
    xml = huge(tmp_path)
    ir.read_model(xml)  # so that modules are loaded
    tracemalloc.start()
    try:
        model = ir.read_model(xml)
        traced = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert traced < 4 << 20
    assert model.constant("c").tolist() == [1, 2]


@pytest.mark.skipif(sys.platform != "linux", reason="measures resident memory as Linux reports it")
def test_opening_a_large_model_leaves_it_on_disk(tmp_path: Path) -> None:
    program = (
        "import sys, ir_runtime as ir\n"
        "model = ir.read_model(sys.argv[1])\n"
        "print(ir.compile_model(model)([])[0].tolist())\n"
        # Not ru_maxrss, which begins with what the process that started this one has.
        "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    )
    run = [sys.executable, "-c", program, str(huge(tmp_path))]
    numbers, kibibytes = subprocess.run(run, check=True, capture_output=True, text=True).stdout.splitlines()
    assert numbers == "[1.0, 2.0]"
    assert int(kibibytes) < 1 << 20, "an interpreter with its libraries takes about 0.1 GiB"


def report(net: Net, weights: bytes | None = None) -> list[tuple[str, int | None, str | None]]:
    return [(d.code, d.line, d.layer) for d in ir.validate(net.xml(), weights)]


@pytest.mark.parametrize(
    ("old", "new"),
    [('size="8"', 'size="9"'), ('size="8"', 'size="0"'), ('shape="2"', 'shape="3"'),
     ('shape="2"', 'shape="2,1000000"'), ('element_type="f32"', 'element_type="f64"'),
     ('offset="0"', 'offset="1"'), ('offset="0"', 'offset="999999999999999999"')],
)  # fmt: skip
def test_ranges_are_checked(old: str, new: str) -> None:
    net = Net()
    net.result(net.constant([1, 2], "f32", name="c"))
    net.layers[0] = net.layers[0].replace(old, new)
    assert (Code.WEIGHTS_RANGE, 4, "c") in report(net, net.weights)


@pytest.mark.parametrize(
    ("old", "new"),
    [('size="8"', 'size="-8"'), ('offset="0"', 'offset="-1"'), ('offset="0"', 'offset="x"'),
     ('offset="0"', f'offset="{"9" * 40}"'), ('shape="2"', 'shape="?"'), ('shape="2"', 'shape="-2"'),
     ('shape="2"', 'shape="two"'), ('element_type="f32"', 'element_type="f31"')],
)  # fmt: skip
def test_layouts_are_checked(old: str, new: str) -> None:
    net = Net()
    net.result(net.constant([1, 2], "f32", name="c"))
    net.layers[0] = net.layers[0].replace(old, new)
    assert (Code.BAD_ATTRIBUTE, 4, "c") in report(net, net.weights)


def test_missing_weights_say_where_they_were_looked_for(tmp_path: Path) -> None:
    net = Net()
    net.result(net.constant([1, 2], "f32", name="c"))
    xml = files(tmp_path, net)
    xml.with_suffix(".bin").unlink()
    found = list(ir.validate(xml))
    assert [d.code for d in found] == [Code.WEIGHTS_MISSING]
    assert str(xml.with_suffix(".bin")) in found[0].hint
    assert report(net) == [(Code.WEIGHTS_MISSING, 4, "c")]


@pytest.mark.parametrize("weights", ["nowhere.bin", ".", "with\0null"])
def test_weights_that_cannot_be_read(weights: str, tmp_path: Path) -> None:
    net = Net()
    net.result(net.parameter("x", "2"))
    with pytest.raises(ir.ParseError, match="the weights cannot be read") as caught:
        ir.read_model(net.xml(), tmp_path / weights)
    assert caught.value.code == Code.UNREADABLE
