"""Interaction with a report: view, fold, search, colour, keyboard navigation, print."""

from __future__ import annotations

import json
import re
import socket
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect

import ir_runtime as ov
from browser.models import hostile, long, loop, named, residual
from ir_runtime import opset13 as ops
from ir_runtime.debug import measure, old_model

pytestmark = pytest.mark.browser

TABS = ("graph", "layers", "charts", "findings")


@pytest.fixture(scope="module")
def plain() -> str:
    return residual().report().html


@pytest.fixture(scope="module")
def measured() -> str:
    model = residual(4)
    image = np.random.default_rng(0).random((1, 4, 8, 8), np.float32)
    measures = measure(
        model,
        [image],
        profile=True,
        runs=1,
        against="numpy",
        precision="f16",
        histograms=True,
        pictures=True,
    )
    return model.report(measures=measures, values=1 << 20).html


def key(found: Any, *keys: str) -> None:
    for each in keys:
        found.page.keyboard.press(each)


def test_it_opens_folded_and_says_what_the_model_takes(opened: Any, plain: str) -> None:
    found = opened(plain)
    assert 10 <= found.boxes() <= 46
    assert "batch×4×8×8" in found.details()
    assert found.page.title() == "residual"
    expect(found.page.locator("svg.graph .box").nth(5)).to_be_attached()


def test_a_click_opens_a_scope_and_shows_a_layer(opened: Any, plain: str) -> None:
    found = opened(plain)
    page = found.page
    page.click("#fold")
    before = found.boxes()
    page.locator(".scope", has_text="body").click()
    assert found.boxes() == before + 12 + 4, "the twelve copies, and the layers of the first"
    expect(page.locator(".scope[aria-expanded=true]", has_text="block0")).to_have_count(1)
    page.locator(".box", has_text="Convolution").first.click()
    said = found.details()
    for each in ("body/block0/conv", "Convolution-1", "batch×4×8×8", "pads_begin", "4×4×3×3", "kernel0"):
        assert each in said
    expect(page.locator("path.edge.on").nth(1)).to_be_attached()
    page.get_by_role("button", name="← the model").click()
    assert "What the model takes" in found.details()


def test_the_first_screen_tells_the_story_and_leads_to_layers(opened: Any, measured: str) -> None:
    for width in (1280, 400):
        found = opened(measured, width)
        story = found.page.locator("#story")
        box = story.bounding_box()
        assert box["y"] < 400, "on the first screen"
        assert "One run" in story.inner_text()
        story.locator("[data-node]").first.click()
        assert found.page.evaluate("report.chosen !== null")
        expect(story).to_be_hidden()


def chain(count: int = 40) -> ov.Model:
    """A chain of layers without scopes, much taller than wide."""
    x = ops.parameter([1, 4], np.float32, "x")
    y: ov.Node = x
    for number in range(count):
        y = named((ops.relu, ops.exp, ops.tanh)[number % 3](y), f"layer {number}")
    return ov.Model([y], [x], "chain")


def test_a_long_chain_continues_in_columns(opened: Any) -> None:
    found = opened(chain().report().html)
    width, height, places = found.page.evaluate(
        "[report.views[0].model.root.box.w, report.views[0].model.root.box.h, [...report.views[0].placed.values()].map(p => [p.x, p.y, p.w, p.h])]"
    )
    assert len({round(x + w / 2) for x, _, w, _ in places}) > 1
    assert height < 4 * width
    boxes = [(x, y, x + w, y + h) for x, y, w, h in places]
    assert all(x0 >= 0 and y0 >= 0 and x1 <= width and y1 <= height for x0, y0, x1, y1 in boxes)
    overlapping = [
        (a, b)
        for n, a in enumerate(boxes)
        for b in boxes[:n]
        if a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
    ]
    assert overlapping == []
    found.page.select_option("#direction", "LR")
    assert found.page.evaluate("report.views[0].model.root.box.h") < 200


def test_the_small_map_shows_what_is_seen_and_leads_elsewhere(opened: Any) -> None:
    found = opened(chain(90).report().html)
    small = found.page.locator("svg.map")
    expect(small).to_be_visible()
    before = found.page.evaluate("d3.zoomTransform(report.views[0].svg).y")
    small.click(position={"x": 75, "y": 120})
    assert found.page.evaluate("d3.zoomTransform(report.views[0].svg).y") != before
    found.page.click("#fit")
    expect(small).to_be_hidden()


def test_the_address_leads_to_a_layer(opened: Any, plain: str) -> None:
    found = opened(plain)
    found.page.evaluate("location.hash = '#layer=' + encodeURIComponent('body/block7/relu')")
    expect(found.page.locator("#chosen")).to_contain_text("body/block7/relu")
    found.page.get_by_role("button", name="← the model").click()
    assert "#" not in found.page.evaluate("location.href")
    found.page.locator("#find").fill("block3 conv")
    found.page.keyboard.press("Enter")
    assert found.page.evaluate("decodeURIComponent(location.hash)") == "#layer=body/block3/conv"


def test_narrow_screens_show_the_measured_column(opened: Any, measured: str) -> None:
    found = opened(measured, 400)
    found.page.click("#tab-layers")
    found.page.select_option("#overlay", "time")
    expect(found.page.locator("#story")).to_be_hidden()
    assert found.page.locator("#table").bounding_box()["y"] < 400, "what the tab shows comes first"
    header = found.page.locator("#table th", has_text="time").bounding_box()
    assert header["x"] + header["width"] <= 400


def test_repeated_blocks_are_one_box_until_they_are_opened(opened: Any, plain: str) -> None:
    found = opened(plain)
    page = found.page
    page.click("#fold")
    box = page.locator(".scope", has_text="12 × body")
    expect(box).to_have_text(re.compile("48 layers"))
    page.select_option("#overlay", "weights")
    expect(box).to_have_text(re.compile("48 layers · 6.8 KiB"))
    box.click()
    expect(page.locator("#chosen")).to_contain_text("12, of 4 layers each")
    expect(page.locator(".scope[aria-expanded=true]", has_text="block0")).to_have_count(1)
    expect(page.locator(".scope[aria-expanded=false]", has_text="block1").first).to_be_attached()


CROSSED = """(() => {
  const points = report.views[0].drawn.filter(o => o.e.matches('path.edge')).flatMap(o => {
    const length = o.e.getTotalLength();
    return Array.from({length: 100}, (_, i) => o.e.getPointAtLength(length * i / 99));
  });
  return report.views[0].labels.filter(d => points.some(
    p => p.x > d.x && p.x < d.x + d.w && p.y > d.y + 1 && p.y < d.y + d.h - 1)).map(d => d.e.textContent);
})()"""


def crossing() -> ov.Model:
    """A graph with long edge labels and crossing edges."""
    x = ops.parameter([-1, -1, 768, 1024], np.float32, "x")
    y = ops.parameter([-1, -1, 768, 1024], np.float32, "a_long_name")
    tops = [ops.relu(x), ops.exp(y), ops.tanh(x), ops.sigmoid(y)]
    sums = [ops.add(tops[k], tops[(k + 2) % 4]) for k in range(4)]
    return ov.Model([ops.multiply(sums[k], sums[3 - k]) for k in range(2)], [x, y])


def test_no_edge_crosses_a_label_and_shapes_are_whole_where_there_is_room(opened: Any, plain: str) -> None:
    page = opened(crossing().report(constraints=False).html).page
    assert page.evaluate(CROSSED) == []
    texts = page.evaluate("report.views[0].labels.map(d => d.e.textContent)")
    assert len(texts) >= 14, "nearly all edges have one"
    assert len([text for text in texts if len(text) > 30]) >= 4, "longer than the layout keeps room for"
    page = opened(plain).page
    page.click("#unfold")
    assert page.evaluate(CROSSED) == []


def test_a_label_without_room_is_not_in_the_picture(opened: Any) -> None:
    """Each of many loop states has a back edge next to the forward edge between the same boxes."""
    rows, part = ops.parameter([3, 2], np.float32, "rows"), ops.parameter([1, 2], np.float32, "part")
    shape = [1, 2, 128, 768, 1024]
    sources = [ops.parameter(shape, np.float32, f"x{number}") for number in range(3)]
    kept = [ops.parameter(shape, np.float32, f"k{number}") for number in range(3)]
    body = ov.Model([ops.result(node) for node in (*kept, ops.exp(part))], [*kept, part], "body")
    iterator = ops.tensor_iterator()
    iterator.set_body(body)
    iterator.set_sliced_input(part, rows.output(0), 0, 1, 1, -1, 0)
    for source, inside, result in zip(sources, kept, body.results, strict=False):
        iterator.set_merged_input(inside, source.output(0), result.output(0))
    outputs = [iterator.get_iter_value(result.output(0), -1) for result in body.results]
    page = opened(ov.Model(outputs, [*sources, rows]).report(constraints=False).html, 1800, 1200).page
    placed, edges = page.evaluate(
        "[report.views[0].labels.length, report.views[0].drawn.filter(d => d.e.matches('path.edge')).length]"
    )
    assert placed < edges
    expect(page.locator("svg.graph text.label")).to_have_count(placed)


def test_every_edge_says_its_shape(opened: Any, plain: str) -> None:
    found = opened(plain)
    titles = found.page.evaluate(
        "report.views[0].drawn.filter(d => d.e.matches('path.edge')).map(d => d.e.textContent)"
    )
    assert titles
    assert all("inferred f32" in title and "declared" in title for title in titles)
    expect(found.page.locator("text.label", has_text="batch×4×8×8").nth(3)).to_be_attached()


def test_search_goes_from_hit_to_hit(opened: Any, plain: str) -> None:
    found = opened(plain)
    key(found, "/")
    found.page.keyboard.type("block7 relu")
    assert "1 found" in found.page.inner_text("#hits")
    key(found, "Enter")
    assert "body/block7/relu" in found.details()
    assert found.page.evaluate("document.activeElement.id") == "find"
    assert found.page.evaluate("report.views[0].placed.has(report.chosen[0].key)")
    key(found, "Escape")
    assert found.page.input_value("#find") == ""


def test_the_keyboard_reaches_everything(opened: Any, plain: str) -> None:
    found = opened(plain)
    page = found.page
    page.locator("svg.graph").focus()
    key(found, "ArrowDown")
    assert "Parameter" in found.details()
    key(found, "ArrowDown")
    label = "document.activeElement.querySelector('title').textContent"
    assert page.evaluate(label).startswith("12 × body, scope of")
    before = found.boxes()
    key(found, "Enter")
    assert found.boxes() < before, "folded"
    key(found, "Enter")
    assert found.boxes() == before
    assert page.evaluate("document.activeElement.getAttribute('aria-expanded')") == "true"
    scale = page.evaluate("d3.zoomTransform(report.views[0].svg).k")
    key(found, "+")
    assert page.evaluate("d3.zoomTransform(report.views[0].svg).k") > scale
    key(found, "Escape")
    assert page.evaluate("report.chosen") is None
    page.locator("#tab-graph").focus()
    key(found, "ArrowRight")
    expect(page.locator("#view-layers")).to_be_visible()
    expect(page.locator("#view-graph")).to_be_hidden()


def test_fold_all_and_open_all(opened: Any, plain: str) -> None:
    found = opened(plain)
    found.page.click("#unfold")
    assert found.boxes() == found.page.evaluate(
        "report.views[0].model.nodes.filter(n => !n.h).length + report.views[0].model.scopes.length - 1"
    )
    found.page.click("#fold")
    expect(found.page.locator(".scope[aria-expanded=true]")).to_have_count(0)


def test_arithmetic_on_shapes_is_shown_when_asked_for(opened: Any, plain: str) -> None:
    found = opened(plain)
    assert "(3)" in found.page.inner_text("#shapes-label")
    found.page.click("#unfold")
    before = found.boxes()
    found.page.check("#shapes")
    assert found.boxes() == before + 3
    found.page.uncheck("#shapes")
    found.page.fill("#find", "ShapeOf")
    key(found, "Enter")
    assert found.page.is_checked("#shapes")
    assert "head/shape" in found.details()


def test_overlays_colour_the_graph_and_sort_the_table(opened: Any, measured: str) -> None:
    found = opened(measured)
    page = found.page
    labels = page.locator("#overlay option").all_inner_texts()
    assert {"operation", "time", "weights", "memory of outputs", "element type", "first Inf or NaN"} <= set(
        labels
    )
    assert any(label.startswith("error against") for label in labels)
    page.select_option("#overlay", "weights")
    page.click("#unfold")
    fills = page.evaluate(
        "[...report.views[0].placed.values()].filter(p => p.item.t === 'Convolution').map(p => p.q.querySelector('rect').style.fill)"
    )
    assert len(set(fills)) == 1
    assert fills[0].startswith("rgb(")
    page.click("#tab-layers")
    assert page.locator("th[aria-sort=descending]").inner_text().startswith("weights")
    assert "Convolution-1" in page.locator("tbody tr").first.inner_text()
    page.locator("th", has_text="line").get_by_role("button").click()
    assert page.locator("th[aria-sort=ascending]").inner_text().startswith("line")


def test_charts_and_the_table_lead_to_the_graph(opened: Any, measured: str) -> None:
    found = opened(measured)
    page = found.page
    page.click("#tab-charts")
    assert "Time by scope" in page.inner_text("#view-charts")
    page.locator("figure", has_text="the layers with the most").locator("g[data-node]").first.click()
    expect(page.locator("#view-graph")).to_be_visible()
    assert "Measures" in found.details()
    page.click("#tab-layers")
    page.locator("#table .link", has_text="body/block2/conv").click()
    assert "body/block2/conv" in found.details()
    histograms = page.locator("#details svg[aria-label^=histogram]")
    expect(histograms, "of the weights, and of the values in the run").to_have_count(2)


def test_what_a_loop_carries_is_drawn(opened: Any) -> None:
    found = opened(loop().report().html)
    page = found.page
    expect(page.locator(".scope", has_text="TensorIterator")).to_have_count(1)
    expect(page.locator("path.back")).to_have_count(1)
    titles = page.evaluate(
        "report.views[0].drawn.filter(d => d.e.matches('path.edge')).map(d => d.e.textContent)"
    )
    assert all("inferred f32" in title for title in titles), "also behind the Results of a body"
    expect(page.locator(".pill").nth(1)).to_be_attached()
    page.locator(".pill", has_text="ReLU").click()
    assert "ReLU-1" in found.details()


def test_names_of_a_model_run_nothing(opened: Any) -> None:
    found = opened(hostile().report().html)
    page = found.page
    page.click("#unfold")
    page.locator(".box", has_text="Add").first.click()
    page.fill("#find", "onerror")
    key(found, "Enter")
    for tab in TABS:
        page.click(f"#tab-{tab}")
    assert "<script>alert(2)</script>" in page.title()
    expect(page.locator("img")).to_have_count(0)
    assert "onerror" in found.details()
    assert "\u202e" not in page.content()


def test_nothing_can_be_sent(chromium: Any, tmp_path: Path, plain: str) -> None:
    (tmp_path / "page.html").write_text(plain, encoding="utf-8")
    page = chromium.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.5)
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        assert page.evaluate("url => fetch(url).then(() => false, () => true)", url)
        page.evaluate(
            "url => new Promise(done => { const i = new Image(); i.onerror = i.onload = done; i.src = url; })",
            url,
        )
        page.close()
        with pytest.raises(TimeoutError):
            server.accept()[0].close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(opened: Any, measured: str, axe: str, scheme: str) -> None:
    found = opened(measured, color_scheme=scheme, bypass_csp=True)
    page = found.page
    page.evaluate(axe)
    page.fill("#find", "block0 conv")
    page.keyboard.press("Enter")
    expect(page.locator("#chosen canvas").first).to_be_attached()
    expect(page.locator("#chosen .sides")).to_have_count(1)
    for tab in TABS:
        page.click(f"#tab-{tab}")
        violations = page.evaluate("axe.run().then(found => found.violations)")
        told = [(v["id"], [node["html"] for node in v["nodes"]][:3]) for v in violations]
        assert told == [], json.dumps(told, indent=1)


def test_two_models_are_looked_at_together(opened: Any) -> None:
    def net(slope: float) -> ov.Model:
        x = ops.parameter([2], np.float32, "x")
        y = named(ops.multiply(x, ops.constant(np.float32([slope, 1]))), "scale")
        return ov.Model([named(ops.relu(y), "end")], [x])

    old, new = net(1), net(2)
    found = opened(new.report(old=old_model(old, new)).html)
    page = found.page
    expect(page.locator("svg.graph")).to_have_count(2)
    expect(page.locator("#overlay")).to_have_value("change")
    page.locator("svg.graph").nth(1).locator(".box", has_text="Multiply").click()
    expect(page.locator(".box.on")).to_have_count(2)
    assert "weights: 1 of 2 elements differ" in found.details()


def test_two_models_are_drawn_at_one_scale(opened: Any) -> None:
    def net(branches: int) -> ov.Model:
        x = ops.parameter([2], np.float32, "x")
        return ov.Model([ops.concat([named(ops.relu(x), f"side{k}") for k in range(branches)], 0)], [x])

    old, new = net(2), net(6)
    page = opened(new.report(old=old_model(old, new)).html).page
    one, other = page.evaluate("report.views.map(view => d3.zoomTransform(view.svg).k)")
    assert one == other


def test_a_narrow_window_needs_no_scrolling_sideways(opened: Any, plain: str) -> None:
    found = opened(plain, width=400, height=800)
    assert found.page.evaluate("document.documentElement.scrollWidth") <= 400
    assert found.page.locator("svg.graph").bounding_box()["width"] > 380
    sides = [
        found.page.locator("header label", has_text=text).bounding_box()["x"] for text in ("Find", "Colour")
    ]
    assert sides[0] == sides[1]


def test_commands_break_between_words(opened: Any, plain: str) -> None:
    page = opened(plain, width=400).page
    for width in (220, 260, 300):
        page.set_viewport_size({"width": width, "height": 800})
        heights = page.locator("#story code span").evaluate_all(
            "spans => spans.map(span => span.getBoundingClientRect().height)"
        )
        assert max(heights) < 20, width


@pytest.mark.parametrize(("branches", "width", "least"), [(20, 1280, 0.7), (20, 400, 0.9), (13, 1280, 0.6)])
def test_text_can_be_read_at_first(opened: Any, branches: int, width: int, least: float) -> None:
    """A slightly too wide graph is shown whole; a much wider one keeps a readable scale."""
    x = ops.parameter([2], np.float32, "x")
    sides = [named(ops.relu(x), f"side{number}") for number in range(branches)]
    page = opened(ov.Model([ops.concat(sides, 0)], [x]).report().html, width=width).page
    assert page.evaluate("d3.zoomTransform(report.views[0].svg).k") >= least
    if least == 0.6:
        wide = page.evaluate("report.views[0].model.root.box.w * d3.zoomTransform(report.views[0].svg).k")
        assert wide <= page.locator("svg.graph").bounding_box()["width"]


def test_a_wide_graph_begins_with_a_box(opened: Any) -> None:
    """An input that is read late is placed far down, next to the chain that it joins."""
    chain = early = ops.parameter([2], np.float32, "early")
    for _ in range(12):
        chain = ops.relu(chain)
    lates = [ops.parameter([2], np.float32, f"late{number}") for number in range(12)]
    model = ov.Model([ops.concat([chain, *(ops.relu(late) for late in lates)], 0)], [early, *lates])
    page = opened(model.report().html, width=400).page
    pane = page.locator("svg.graph").bounding_box()
    boxes = page.locator("svg.graph .box").evaluate_all(
        "boxes => boxes.map(box => box.getBoundingClientRect()).map(r => [r.left, r.right, r.top])"
    )
    tops = [top for left, right, top in boxes if right > pane["x"] and left < pane["x"] + pane["width"]]
    assert pane["y"] <= min(tops) < pane["y"] + 40


def test_print_has_the_whole_graph_and_every_part(opened: Any, plain: str) -> None:
    found = opened(plain)
    page = found.page
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    for tab in TABS:
        expect(page.locator(f"#view-{tab}")).to_be_visible()
    expect(page.locator(".tools")).to_be_hidden()
    expect(page.locator(".box")).to_have_count(found.boxes())
    assert page.pdf()[:5] == b"%PDF-"


def test_one_change_is_not_shown_as_several(opened: Any, plain: str) -> None:
    page = opened(plain).page
    assert [page.evaluate(f"number({count}, 'changes')") for count in (1, 2)] == ["1 change", "2 changes"]
    assert [page.evaluate(f"number(1, {unit})") for unit in ("''", "'FLOP'")] == ["1", "1 FLOP"]


def test_print_has_the_scale_of_the_colours(opened: Any, measured: str) -> None:
    page = opened(measured).page
    page.select_option("#overlay", "time")
    page.emulate_media(media="print")
    expect(page.locator("#legend .ramp")).to_be_visible()


def test_scales_without_a_unit_are_explained(opened: Any, measured: str) -> None:
    page = opened(measured).page
    page.select_option("#overlay", "nan")
    assert "1 is where Inf or NaN begins" in page.inner_text("#legend")
    page.click("#unfold")
    box = page.locator(".box", has_text="Convolution")
    expect(box.last).to_have_text(re.compile("of the limit$"))
    page.select_option("#overlay", "error")
    assert page.evaluate("[...document.querySelectorAll('.box')].some(box => / R$/.test(box.textContent))")


def test_what_is_out_of_sight_is_not_in_the_document(opened: Any) -> None:
    found = opened(long(5000).report(constraints=False).html)
    page = found.page
    assert found.boxes() <= 46
    page.evaluate(
        "for (const s of report.views[0].model.scopes) { s.open = s.depth < 3; s.box = null; } report.views[0].render(); report.views[0].fit()"
    )
    expect(page.locator("#unfold")).to_be_disabled()
    assert found.boxes() > 250
    expect(page.locator(".box").nth(125), "half of them").to_have_count(0)
    for _ in range(5):
        page.mouse.move(400, 500)
        page.mouse.wheel(0, -300)
    expect(page.locator(".box").first).to_be_attached()


def test_a_model_with_errors_is_shown_with_them(opened: Any) -> None:
    model = residual(2)
    model.report.error("IR000", "it is wrong", model._graph.of_type("Convolution")[0].where)
    found = opened(model.report().html)
    page = found.page
    expect(page.locator("circle.flag.error").first).to_be_attached()
    page.select_option("#overlay", "findings")
    assert "3 findings or more" in page.inner_text("#legend")
    expect(page.locator(".box.hot text").last).to_have_text(re.compile("1 finding$"))
    page.click("#tab-findings")
    page.locator("#view-findings button").click()
    assert "it is wrong" in found.details()
    assert "Convolution" in found.details()


def test_weights_are_drawn_and_saved_exactly(opened: Any, tmp_path: Path) -> None:
    kernel = np.linspace(-2, 1, 48 * 4 * 9, dtype=np.float16).reshape(48, 4, 3, 3)
    x = ops.parameter([1, 4, 8, 8], np.float32, "image")
    filters = ops.convert(ops.constant(kernel, name="some/kernel 1"), "f32")
    ints = ops.constant(np.int64([[2**62, -1], [3, 4]]), name="ints")
    y = named(ops.convolution(x, filters, [1, 1], [0, 0], [0, 0], [1, 1]), "conv")
    total = named(ops.add(y, ops.convert(ops.reduce_sum(ints, np.int64([0, 1])), "f32")), "total")
    page = opened(ov.Model([total], [x]).report(values=1 << 20).html).page
    page.locator(".box", has_text="Convolution").click()
    canvas = page.locator("#chosen canvas")
    expect(canvas).to_have_attribute("aria-label", "values of some/kernel 1")
    corner = "[...document.querySelector('#chosen canvas').getContext('2d').getImageData(0, 0, 1, 1).data]"
    assert page.evaluate(corner) == [33, 102, 172, 255], "the smallest number is blue"
    canvas.hover(position={"x": 3, "y": 3})
    expect(page.locator("figure.values .code")).to_have_text("[0, 0, 0, 0] = -2")
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Save .npy").click()
    waiting.value.save_as(tmp_path / "kernel.npy")
    assert waiting.value.suggested_filename == "kernel_1.npy"
    saved = np.load(tmp_path / "kernel.npy")
    assert saved.dtype == np.float16
    np.testing.assert_array_equal(saved, kernel)
    page.locator(".box", has_text="Add").click()
    with page.expect_download() as waiting:
        page.locator("h3", has_text="Constant").locator("~ button", has_text="Save .npy").first.click()
    waiting.value.save_as(tmp_path / "ints.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "ints.npy"), [[2**62, -1], [3, 4]])


def test_where_values_are_not_in_the_page_it_says_how_they_come_into_it(opened: Any) -> None:
    x = ops.parameter([1, 512], np.float32, "x")
    product = ops.matmul(x, np.ones((512, 64), np.float32), False, False)
    page = opened(ov.Model([product], [x]).report().html).page
    page.locator(".box", has_text="MatMul").click()
    expect(page.locator("#chosen")).to_contain_text("report --values SIZE puts them into it")
    expect(page.locator("#chosen canvas")).to_have_count(0)


def test_outputs_of_both_sides_are_beside_each_other(opened: Any) -> None:
    model = residual(3)
    image = np.random.default_rng(0).random((1, 4, 8, 8), np.float32)
    measures = measure(model, [image], against="numpy", pictures=True)
    html = model.report(measures=measures).html
    seen = next(name for name, maps in measures.pictures.items() if maps.error is not None)
    for width in (1280, 400):
        page = opened(html, width).page
        page.fill("#find", seen)
        page.keyboard.press("Enter")
        titles = page.locator(".sides figcaption")
        expect(titles).to_have_text(["this run", "numpy", "difference"])
        one, other = (page.locator(".sides figure").nth(k).bounding_box() for k in (0, 1))
        assert one["y"] == other["y"]
        expect(page.locator(".sides .both")).to_have_count(3)
        page.locator("#chosen select").select_option("absolute")
        expect(page.locator(".sides .reds")).to_have_count(3)


def test_notebooks_show_the_graph_of_every_cell(opened: Any, chromium: Any) -> None:
    model = residual(3)
    cells = [model._repr_html_(), model.report._repr_html_(), model.report()._repr_html_()]
    script = "<script>window.report = {}; window.addEventListener('error', () => { throw 0; })</script>"
    page = opened("<!doctype html><title>a notebook</title>" + script + "<hr>".join(cells), 1000).page
    for number in range(len(cells)):
        frame = page.frame_locator("iframe").nth(number)
        expect(frame.locator("svg.graph .box", has_text="3 × body")).to_be_attached()
        frame.locator(".box", has_text="Parameter").click()
        expect(frame.locator("#chosen")).to_contain_text("Parameter")
    assert page.evaluate("Object.keys(window.report).length") == 0, "the notebook itself is not touched"
    expect(page.locator("details")).to_have_count(2)
