"""The table of networks lists each once, and its roofline counts the minimum work."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from models.architectures import ZOO
from models.kinds import KINDS, inputs_of

BENCH = Path(__file__).parent


@pytest.fixture(autouse=True)
def programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let benchmark programs import each other by name, as they do when run from their folder."""
    monkeypatch.syspath_prepend(str(BENCH))


def test_has_every_network_once() -> None:
    from sources import NETWORKS

    assert len(NETWORKS) >= 40
    assert sorted(NETWORKS) == sorted({*ZOO, *KINDS})


def test_work_is_that_of_products_and_of_weights_that_are_read(tmp_path: Path) -> None:
    from roofline import work

    found = work(*_saved("perceptron", tmp_path))
    assert found is not None
    assert found.macs == 784 * 512 + 512 * 512 + 512 * 10
    assert found.floats == 4 * (found.macs + 512 + 512 + 10)
    assert (found.precision("accuracy"), found.precision("performance")) == ("f32", "bf16")
    assert found.weights("performance") == found.weights("accuracy") // 2


def test_compressed_weights_are_read_as_integers_and_tables_are_not_read(tmp_path: Path) -> None:
    from roofline import work

    found = work(*_saved("bert_small_int8", tmp_path))
    assert found is not None
    products = 4 * (4 * 512 * 512 + 2 * 512 * 2048)
    assert found.integers == products
    assert (found.precision("accuracy"), found.precision("performance")) == ("f32", "int8")


def test_larger_peaks_replace_smaller_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    import roofline

    rates = iter([(1e9, 1e9), (4e9, 1e9), (2e9, 1e9)])
    monkeypatch.setattr(roofline, "fresh", lambda *given: next(rates))
    peaks, work = roofline.Roofline(2), roofline.Work(10**9, 0, 0, False)
    assert [peaks.least_ms(work, "accuracy") for _ in range(3)] == [2000.0, 500.0, 500.0]


@pytest.mark.parametrize("precision", ["f32", "bf16", "int8"])
def test_bursts_compute(precision: str) -> None:
    import bursts

    kernel, each = bursts.OPERATIONS[precision]
    out = np.full((bursts.CHAINS, bursts.LANES), 0x3F803F80, np.int32)  # ones in bf16, almost one in f32
    before = out.copy()
    bursts.compiled(kernel)(3, out.ctypes.data)
    assert each >= 2 * bursts.LANES
    assert (out != before).all()


def test_reading_reads_every_byte() -> None:
    import bursts

    words = np.random.default_rng(0).integers(0, 2**31, (5, bursts.CHAINS, bursts.LANES), np.int32)
    out = np.zeros(words.shape[1:], np.int32)
    bursts.compiled(bursts.read)(1, words.ctypes.data, len(words), out.ctypes.data)
    np.testing.assert_array_equal(out, np.bitwise_xor.reduce(words))


def _saved(name: str, folder: Path) -> tuple[Path, Path]:
    model = KINDS[name]()
    ov.save_model(model, folder / "model.xml", compress_to_fp16=False)
    np.savez(folder / "inputs.npz", **inputs_of(model))
    return folder / "model.xml", folder / "inputs.npz"
