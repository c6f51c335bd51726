"""The report file: its contents, no external references, and model names only as text."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import struct
import zlib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser.models import loop
from click.testing import CliRunner
from harness.vendor import FOLDER, libraries
from lxml import etree

import ir_runtime as ov
from ir_runtime import opset13 as ops
from ir_runtime._util.markup import table
from ir_runtime.bench.profiling import add_profile, profile
from ir_runtime.cli import main
from ir_runtime.debug import compare, diff, measure, old_model, trace_nan
from ir_runtime.report.constants import histogram, statistics
from ir_runtime.report.feature_maps import feature_maps
from ir_runtime.report.figures import Bar, Block, as_picture, bars, flame, histogram_svg, png, staircase

ROOT = Path(__file__).parents[2]
DIGITS = ROOT / "examples" / "digits" / "digits.xml"
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&{{DATA}}\u202e"


def data_of(html: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/gzip" id="data">([^<]*)</script>', html)
    assert found is not None
    data: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(found[1])))
    return data


class Tags(HTMLParser):
    """Collects the elements with their attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


@pytest.fixture(scope="module")
def digits() -> str:
    return ov.read_model(DIGITS).report().html


@pytest.fixture(scope="module")
def hostile() -> str:
    x = ops.parameter([1, 2], np.float32, HOSTILE)
    node = ops.add(ops.relu(x), ops.constant(np.float32([1, 2]), name=HOSTILE))
    node.friendly_name = f"{HOSTILE}/a/{HOSTILE}"
    node.output(0).set_names({HOSTILE})
    node.get_rt_info()[HOSTILE] = HOSTILE
    return ov.Model([node], [x], HOSTILE).report().html


def test_the_policy_allows_the_scripts_and_styles_of_the_page_and_nothing_else(digits: str) -> None:
    policy = next(
        a["content"] for t, a in Tags(digits).found if a.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    scripts = re.findall(r"<script>(.*?)</script>", digits, re.DOTALL)
    styles = re.findall(r"<style>(.*?)</style>", digits, re.DOTALL)
    for key, texts in (("script-src", scripts), ("style-src", styles)):
        hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts]
        assert rules.pop(key) == " ".join(f"'sha256-{digest}'" for digest in hashes)
    assert rules == {
        "default-src": "'none'",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }


def test_nothing_in_the_page_is_loaded_from_elsewhere(digits: str) -> None:
    found = Tags(digits).found
    assert len(found) > 100
    for tag, attributes in found:
        assert tag not in ("link", "iframe", "object", "embed")
        assert not {"style", "onclick", "onload", "onerror"} & attributes.keys(), "the policy would refuse it"
        assert (attributes.get("src") or "data:").startswith("data:")


def test_names_of_a_model_are_only_text(hostile: str) -> None:
    tags = Tags(hostile).found
    assert sum(tag == "script" for tag, _ in tags) == 3
    assert not any(tag == "img" for tag, _ in tags)
    assert "\u202e" not in hostile
    assert hostile.count('id="data"') == 1, "a name that looks like a part of the template stays text"
    data = data_of(hostile)
    assert "\u202e" not in json.dumps(data, ensure_ascii=False)
    assert any("<script>alert(1)</script>" in node["n"] for node in data["nodes"])


def test_the_scripts_of_the_page_only_write_text() -> None:
    scripts = sorted((ROOT / "ir_runtime" / "report" / "static").glob("*.js"))
    assert scripts
    for script in scripts:
        text = script.read_text(encoding="utf-8")
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", text
        )


def test_what_the_model_takes_and_gives_is_said_without_scripts(digits: str) -> None:
    for said in ("batch×1×8×8", "batch×10", "Convolution-1", "every length is accepted"):
        assert said in digits
    assert "<td>a_<wbr>b×<wbr>c×3</td>" in table("", ["shape"], [["a_b×c×3"]]), "where narrow columns break"


def test_every_layer_is_in_the_page_with_all_that_is_known_about_it(digits: str) -> None:
    data = data_of(digits)
    conv = next(node for node in data["nodes"] if node["t"] == "Convolution")
    assert conv["v"] == "Convolution-1"
    assert conv["line"] == ov.read_model(DIGITS)._graph.layers[conv["id"]].where.line
    assert conv["a"]["pads_begin"] == "1, 1"
    assert conv["i"][0][3] == "f32 ?×1×8×8"
    assert conv["o"][0][:2] == ["f32", "batch×24×8×8"]
    weights = data["constants"][conv["c"][0]]
    assert weights["s"] == "24×1×3×3"
    assert weights["x"]["min"] < weights["x"]["mean"] < weights["x"]["max"]
    assert weights["bytes"] == 4 * 24 * 9


def test_findings_are_at_their_layers() -> None:
    text = (
        '<net name="broken" version="11"><layers><layer id="0" name="x" type="Parameter" version="opset1">'
        '<data shape="2,3" element_type="f32"/><output><port id="0" precision="FP32"><dim>2</dim><dim>3</dim></port>'
        '</output></layer><layer id="1" name="bad" type="ReLU" version="opset1"><input><port id="0"><dim>2</dim>'
        '<dim>3</dim></port></input><output><port id="1" precision="FP32"><dim>2</dim><dim>4</dim></port></output>'
        '</layer><layer id="2" name="y" type="Result" version="opset1"><input><port id="0"><dim>2</dim><dim>4</dim>'
        '</port></input></layer></layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>'
        '<edge from-layer="1" from-port="1" to-layer="2" to-port="0"/></edges></net>'
    )
    html = ov.read_model(text, b"", strict=False).report().html
    data = data_of(html)
    bad = next(node for node in data["nodes"] if node["n"] == "bad")
    assert data["findings"][bad["f"][0]]["severity"] == "warning"
    assert bad["o"][0] == ["f32", "2×3", ["f32", "2×4"], [], 1]
    assert (
        next(o for o in data["overlays"] if o["key"] == "findings")["values"][data["nodes"].index(bad)] == 1
    )
    assert "Findings (1)" in html
    assert ">1 warning: see Findings.<" in html


def test_measures_become_overlays_and_charts() -> None:
    model = ov.read_model(DIGITS)
    inputs = np.load(DIGITS.parent / "images.npy")[:2].astype(np.float32)
    measures = measure(
        model, [inputs], profile=True, runs=1, against="numpy", precision="f16", histograms=True
    )
    html = model.report(measures=measures, constraints=False).html
    data = data_of(html)
    overlays = {overlay["key"]: overlay for overlay in data["overlays"]}
    assert overlays.keys() >= {"time", "error", "nan", "weights", "memory"}
    assert "rounding explains" in overlays["error"]["legend"]
    assert "1 is where Inf or NaN begins" in overlays["nan"]["legend"]
    assert [overlays[key]["unit"] for key in ("error", "nan")] == ["R", "of the limit"]
    conv = next(k for k, node in enumerate(data["nodes"]) if node["t"] == "Convolution")
    assert overlays["memory"]["values"][conv] == 2 * 24 * 8 * 8 * 4
    assert overlays["weights"]["values"][conv] == 4 * 24 * 9
    assert sum(v or 0 for v in overlays["time"]["values"]) == pytest.approx(
        sum(measures.times.values()), rel=1e-3
    )
    for said in (
        "Time by scope",
        "Memory of activations over the steps",
        f'id="histogram-n{conv}"',
        "data:image/png",
    ):
        assert said in html


def test_the_peak_of_memory_counts_what_is_still_read() -> None:
    x = ops.parameter([256], np.float32, "x")
    first = ops.relu(x)
    second = ops.exp(first)
    model = ov.Model([ops.add(ops.sqrt(second), first)], [x])
    html = model.report().html
    assert "3 KiB" in re.search(r"peak at [^:]*: ([^<]*)<", html)[1]  # type: ignore[index]


def test_two_models_are_shown_beside_each_other_with_what_changed() -> None:
    def net(slope: float, more: bool) -> ov.Model:
        x = ops.parameter([2], np.float32, "x")
        y = ops.multiply(x, ops.constant(np.float32([slope, 1])))
        return ov.Model([ops.relu(y) if more else y], [x])

    old, new = net(1, False), net(2, True)
    data = data_of(new.report(old=old_model(old, new)).html)
    changed = {node["t"]: node["x"] for node in data["nodes"] if "x" in node}
    assert changed["ReLU"] == ["added"]
    assert changed["Multiply"][0].startswith("weights: 1 of 2 elements differ")
    there = next(node for node in data["nodes"] if node["t"] == "Multiply")
    assert data["old"]["nodes"][there["m"]]["t"] == "Multiply"


def test_the_page_of_a_network_is_small() -> None:
    x = ops.parameter([1, 8, 8, 8], np.float32, "x")
    y = x
    for number in range(300):
        kernel = ops.constant(np.full((8, 8, 1, 1), number, np.float32))
        y = ops.convolution(y, kernel, [1, 1], [0, 0], [0, 0], [1, 1])
        y.friendly_name = f"block{number // 10}/conv{number}"
    assert len(ov.Model([y], [x]).report().html) < 500_000


def test_it_is_written_to_a_file_and_shown_in_notebooks(tmp_path: Path) -> None:
    model = ov.read_model(DIGITS)
    page = model.report(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == page.html
    assert page._repr_html_().startswith('<iframe srcdoc="&lt;!doctype html&gt;')


def test_models_are_shown_in_notebooks_as_their_graph_in_a_frame_that_reaches_nothing() -> None:
    model = ov.read_model(DIGITS)
    model.report.warning("IR000", "something")
    for html in (model._repr_html_(), model.report._repr_html_()):
        ((tag, frame), *_) = Tags(html).found
        assert tag == "iframe"
        assert frame["sandbox"] == "allow-scripts allow-downloads", "not of the same origin"
        assert data_of(frame["srcdoc"] or "")["nodes"]
        assert "<script" not in html
        assert "<details><summary>as " in html, "for places that show no frames"


def test_notebooks_do_not_look_at_all_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    x = ops.parameter([1, 512], np.float32, "x")
    model = ov.Model([ops.matmul(x, np.ones((512, 64), np.float32), False, False)], [x])
    sizes: list[int] = []

    def count(array: Any, element: Any) -> Any:
        sizes.append(array.size)
        return statistics(array, element)

    monkeypatch.setattr("ir_runtime.report.constants.statistics", count)
    model._repr_html_()
    assert sizes == []
    model.report()
    assert sizes == [512 * 64]


def test_findings_are_shown_in_notebooks() -> None:
    model = ov.read_model(DIGITS)
    model.report.warning("IR000", HOSTILE)
    assert "&lt;script&gt;" in model.report._repr_html_()
    assert "<script" not in model.report._repr_html_()


def test_reports_are_shown_in_notebooks() -> None:
    x = ops.parameter([2], np.float32, "<b>")
    y = ops.relu(x)
    y.friendly_name = HOSTILE
    model = ov.Model([y], [x])
    feeds = [np.float32([1, 2])]
    reports = [
        compare(model, feeds, "numpy"),
        trace_nan(model, feeds),
        diff(model, model.clone()),
        model.constraints(),
    ]
    for report in reports:
        shown = report._repr_html_()
        assert shown.startswith("<div>")
        assert "<script" not in shown
    assert "<caption>outputs</caption>" in reports[0]._repr_html_()


def arrays_of(html: str) -> bytes:
    found = re.search(r'<script type="application/gzip" id="arrays">([^<]*)</script>', html)
    assert found is not None
    return gzip.decompress(base64.b64decode(found[1]))


def test_values_of_constants_are_in_the_page_up_to_a_size() -> None:
    model = ov.read_model(DIGITS)
    stored = {layer.name: np.asarray(layer.op.value) for layer in model._graph if layer.type == "Constant"}
    for values in (None, 100, 10_000, 1 << 30):
        html = model.report(values=values).html
        arrays, kept = arrays_of(html), [c for c in data_of(html)["constants"] if "w" in c]
        for constant in kept:
            kind, shape, place = constant["w"]
            count = int(np.prod(shape))
            read = np.frombuffer(arrays, kind, count, place).reshape(shape)
            np.testing.assert_array_equal(read, stored[constant["n"]])
        sizes = [array.nbytes for array in stored.values()]
        if values is None:
            assert 0 < len(arrays) <= 4096
        else:
            assert len(kept) == sum(size <= values for size in sizes)
    assert len(kept) == len(stored)


def test_values_of_types_that_numpy_has_not_are_in_the_page_as_f32() -> None:
    x = ops.parameter([3], np.float32, "x")
    weights = ops.constant([1.5, -2, 3e38], ov.Type.bf16)
    html = ov.Model([ops.add(x, ops.convert(weights, "f32"))], [x]).report().html
    ((kind, shape, place),) = [c["w"] for c in data_of(html)["constants"] if "w" in c]
    assert (kind, shape) == ("<f4", [3])
    read = np.frombuffer(arrays_of(html), kind, 3, place)
    np.testing.assert_allclose(read, [1.5, -2, 3e38], rtol=1 / 256)


def test_feature_maps_keep_the_largest_difference_and_what_is_not_finite() -> None:
    ours = np.zeros((2, 40, 64, 64), np.float32)
    theirs = ours.copy()
    theirs[0, 33, 5, 5], theirs[0, 7, 63, 63] = 4, np.nan
    theirs[1] = 100  # the second of the batch is not shown
    maps = feature_maps(ours, theirs.reshape(-1))
    assert maps is not None
    assert {33, 7} <= set(maps.channels)
    assert len(maps.channels) == 4
    assert (maps.size, maps.maps[0].shape, maps.error_scale) == ((64, 64), (4, 32, 32), 4.0)
    assert maps.error is not None
    assert maps.error[list(maps.channels).index(33)][2, 2] == 127, "one wrong pixel is not lost"
    assert maps.error[list(maps.channels).index(7)][31, 31] == -128
    assert feature_maps(np.zeros((1, 3), np.float32)) is None
    matrix = feature_maps(np.eye(80, dtype=np.float32)[None])
    assert matrix is not None
    assert matrix.maps[0].shape == (1, 64, 64)


def test_outputs_are_pictures_beside_those_of_the_other_side() -> None:
    model = ov.read_model(DIGITS)
    image = np.linspace(0, 1, 64, dtype=np.float32).reshape(1, 1, 8, 8)
    assert not measure(model, [image], against="numpy").pictures
    alone = measure(model, [image], pictures=True)
    assert all(maps.error is None for maps in alone.pictures.values())
    measures = measure(model, [image], pictures=True, against="numpy")
    relu = next(layer.name for layer in model._graph if layer.type == "ReLU")
    maps = measures.pictures[relu]
    assert (len(maps.maps), maps.size, maps.of) == (2, (8, 8), 24)
    assert maps.error_scale < 1e-4 < maps.scale
    html = model.report(measures=measures).html
    data = data_of(html)
    record = data["pictures"][str(next(k for k, node in enumerate(data["nodes"]) if node["n"] == relu))]
    assert data["sides"] == ["this run", "numpy"]
    count = len(maps.channels) * 64
    kept = np.frombuffer(arrays_of(html), np.int8, count, record["maps"][0])
    np.testing.assert_array_equal(kept, maps.maps[0].reshape(-1))


def test_a_report_without_options_has_no_pictures_and_few_values(digits: str) -> None:
    assert "pictures" not in data_of(digits)
    assert len(arrays_of(digits)) <= 4096


def test_the_command_puts_values_and_pictures_into_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = ["report", str(DIGITS), "--pictures", "--random", "--values"]
    assert CliRunner().invoke(main, [*arguments, "all"]).exit_code == 0
    html = Path("report.html").read_text(encoding="utf-8")
    assert data_of(html)["pictures"]
    assert all("w" in constant for constant in data_of(html)["constants"])
    assert CliRunner().invoke(main, [*arguments, "lots"]).exit_code == 2


def test_arithmetic_is_counted_as_a_number_or_a_formula() -> None:
    x = ops.parameter([-1, 4], np.float32, "x")
    y = ops.matmul(x, ops.constant(np.ones((4, 8), np.float32)), False, False)
    model = ov.Model([y], [x])
    data = data_of(model.report().html)
    product = next(k for k, node in enumerate(data["nodes"]) if node["t"] == "MatMul")
    assert data["notes"][str(product)] == ["FLOPs: 2·batch·8·4"]
    model.reshape([3, 4])
    data = data_of(model.report().html)
    assert next(o for o in data["overlays"] if o["key"] == "flops")["values"][product] == 3 * 64


def overlay_of(html: str, key: str) -> dict[str, Any]:
    found: dict[str, Any] = next(o for o in data_of(html)["overlays"] if o["key"] == key)
    return found


def test_formulas_colour_the_graph_at_lengths_that_are_said() -> None:
    x = ops.parameter([-1, 4], np.float32, "x")
    model = ov.Model([ops.matmul(x, ops.constant(np.ones((4, 8), np.float32)), False, False)], [x])
    smallest = overlay_of(model.report().html, "flops")
    assert smallest["at"] == "batch=1 (the smallest)"
    assert max(v or 0 for v in smallest["values"]) == 64
    ran = model.report(measures=measure(model, [np.ones((5, 4), np.float32)])).html
    assert overlay_of(ran, "flops")["at"] == "batch=5 (as in the run)"
    assert max(v or 0 for v in overlay_of(ran, "flops")["values"]) == 5 * 64
    assert "FLOPs at batch=5 (as in the run) by operation" in ran


def test_layers_in_bodies_have_figures_of_their_own() -> None:
    model = loop()
    rows = np.ones((3, 2), np.float32)
    measures = add_profile(measure(model, [rows]), profile(model, [rows], runs=1, backend="numpy"))
    html = model.report(measures=measures).html
    types = [node["t"] for node in data_of(html)["nodes"]]
    inner, owner = types.index("Add"), types.index("TensorIterator")
    flops, times = overlay_of(html, "flops")["values"], overlay_of(html, "time")["values"]
    assert flops[inner] == flops[owner] == 3 * 2, "one row each in three passes"
    assert 0 < times[inner] < times[owner]
    notes = data_of(html)["notes"]
    assert any(
        re.fullmatch(r"\S+ GFLOP/s and \S+ GB/s: \d+ % of the roofline, bound by \w+", n)
        for n in notes[str(owner)]
    )
    (said,) = re.findall(r"<title>TensorIterator: \d+ \w+, ([\d.]+) %</title>", html)[:1]
    assert float(said) <= 100, "what is in the body is not counted again"


def test_calling_the_findings_keeps_them() -> None:
    model = ov.read_model(DIGITS)
    model.report.warning("IR000", "one")
    assert len(model.report) == 1


@pytest.mark.parametrize(
    "svg",
    [
        bars("b", [Bar("<one>", 1, "1 ms", ("node", 3)), Bar("two", 0, "0")]),
        flame("f", Block("all", 2, "2", ("scope", 0), [Block("<a>", 1, "1", ("node", 1)), Block("b", 1, "1", ("node", 2))]), 2),
        staircase("s", [1, 5, 2], str, "peak at <x>"),
        histogram_svg([1, 2, 0], -1, 2, "<w>", "histogram-c0"),
    ],
)  # fmt: skip
def test_charts_are_well_formed_and_need_no_styles(svg: str) -> None:
    for each in etree.fromstring(svg).iter():
        assert "style" not in each.attrib


def test_a_histogram_counts_every_finite_number() -> None:
    found = histogram(np.float32([0, 1, 1, 4, np.nan, np.inf]), bins=4)
    assert found == ([1, 2, 0, 1], 0.0, 4.0)
    assert histogram(np.float32([2, 2])) is None


def test_statistics_say_what_is_not_finite() -> None:
    found = statistics(np.float32([0, 2, np.inf, np.nan]), ov.Type.f32).record
    assert found == {
        "min": 0,
        "max": 2,
        "mean": 1,
        "std": 1,
        "zeros": 0.25,
        "not finite": 2,
        "values": "0, 2, inf, nan",
    }


@pytest.mark.parametrize(
    ("shape", "size"),
    [((1, 3, 32, 16), (32, 16, 3)), ((2, 1, 8, 8), (8, 8, 1)), ((1, 320, 320, 3), (160, 160, 3))],
)
def test_what_looks_like_an_image_is_shown(shape: tuple[int, ...], size: tuple[int, ...]) -> None:
    picture = as_picture(np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape))
    assert picture is not None
    assert picture.shape == size
    assert picture.max() > 200


@pytest.mark.parametrize("shape", [(10,), (1, 1000), (1, 64, 56, 56), (1, 3, 4, 4)])
def test_other_tensors_are_not(shape: tuple[int, ...]) -> None:
    assert as_picture(np.zeros(shape, np.float32)) is None


def test_pictures_are_png() -> None:
    pixels = np.arange(8 * 9 * 3, dtype=np.uint8).reshape(8, 9, 3)
    data = png(pixels)
    assert data[:16] == b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
    assert struct.unpack(">IIBBBBB", data[16:29]) == (9, 8, 8, 2, 0, 0, 0)
    start = data.index(b"IDAT") + 4
    rows = zlib.decompress(data[start : data.index(b"IEND") - 8])
    assert rows == b"".join(b"\0" + row.tobytes() for row in pixels)


def test_libraries_are_the_pinned_ones_with_their_licences() -> None:
    pinned = {library.file for library in libraries()}
    assert pinned == {path.name for path in FOLDER.glob("*.js")}
    assert all((FOLDER / f"{Path(name).stem}.LICENSE").read_text(encoding="utf-8").strip() for name in pinned)
    assert all(library.integrity.startswith("sha512-") for library in libraries())


def test_constraints_of_the_older_model_can_be_left_out() -> None:
    x = ops.parameter([-1, 2], np.float32, "x")
    model = ov.Model([ops.relu(x)], [x])
    assert old_model(model, model.clone()).source.constraints is not None
    assert old_model(model, model.clone(), constraints=False).source.constraints is None
