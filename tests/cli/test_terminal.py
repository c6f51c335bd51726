"""Output on terminals: nothing exceeds the width, and nothing is lost."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from harness.nets import Net, total, write, write_chain

from ir_runtime._util.text import display_width, shorten
from ir_runtime.bench import profiling, report
from ir_runtime.bench.peaks import Peaks
from ir_runtime.bench.start import Start
from ir_runtime.cli import progress as progress_module
from ir_runtime.cli import terminal as terminal_module
from ir_runtime.cli._index import COMMANDS
from ir_runtime.cli.progress import Bar, bar, status
from ir_runtime.cli.render import SHOWN, fit_table, table
from ir_runtime.cli.terminal import render

pty = pytest.importorskip("pty", reason="pseudo-terminals need POSIX")
from harness.terminals import on_terminal, plain  # noqa: E402  needs POSIX, too

Invoke = Callable[[str], Result]

LONG = "encoder/layers/0/attention/self/query/matmul/with/a/very/long/name"
LINES = {
    "run": "run deep.xml --random --layers '*'",
    "random lengths": "run sentences.xml --random",
    "validate": "validate broken.xml",
    "shapes": "shapes deep.xml",
    "cost": "cost deep.xml",
    "cost of lengths": "cost counted.xml",
    "inspect": "inspect deep.xml",
    "fusion": "inspect deep.xml --fusion",
    "oracle": "oracle deep.xml --random --layers '*'",
    "compare": "compare deep.xml --against numpy --random",
    "trace-nan": "trace-nan deep.xml --random",
    "budget": "budget deep.xml --random",
    "diff": "diff chain.xml deep.xml",
    "bench": "bench chain.xml -niter 1",
    "ops": "ops",
    "operation": "ops Convolution",
    "codes": "explain",
    "explain": "explain IR301",
    "guides": "guide",
    "guide": "guide architecture",
    "refusal": "run chain.xml",
    "usage": "run chain.xml --random --example x",
}


@pytest.fixture(autouse=True)
def models(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start = Start(imported=0, read=0, compile=0, first=0, base=0, peak=0)
    monkeypatch.setattr(report, "measure", lambda *_: start)
    write_chain(folder)
    (folder / "deep.xml").write_bytes(deep().xml())
    (folder / "counted.xml").write_bytes(counted().xml())
    (folder / "sentences.xml").write_bytes(sentences().xml())
    text = total().replace("<dim>4</dim></port></input>", "<dim>5</dim></port></input>")
    write(folder, text.replace('name="plus"', f'name="{LONG}"'), "broken")


def deep(depth: int = 40) -> Net:
    """A chain of layers with long names."""
    net = Net()
    x = net.parameter("x", "?,3", out="FP32 -1 3")
    for number in range(depth):
        x = net.op("Tanh", x, out="FP32 -1 3", name=f"{LONG}/{number}")
    net.result(x)
    return net


def sentences() -> Net:
    """A model with dynamic inputs, whose summary exceeds a narrow line."""
    net = Net()
    for name in ("input_ids", "attention_mask", "token_type_ids"):
        net.result(net.op("Tanh", net.parameter(name, "?,?", out="FP32 -1 -1")), f"{name}_result")
    return net


def counted() -> Net:
    """Two layers whose names differ only in the middle, with data-dependent counts."""
    net = Net()
    x = net.parameter("x", "?,?,?")
    for number in (1, 2):
        places = net.op("NonZero", x, version="opset3", output_type="i64")
        exp = net.op("Convert", places, destination_type="f32")
        net.result(net.op("Exp", exp, name=f"a_long_scope_of_layers_{number}.and_another_below/exp"))
    return net


def test_costs_of_narrow_terminals_are_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Quantities, formulas and options are not truncated, and different names look different."""
    lines = plain(on_terminal(monkeypatch, "cost counted.xml", 40)).splitlines()
    words = " ".join(" ".join(lines).split())
    assert "FLOPs 2·batch·seq·size + 3·n1 + 3·n2 MACs" in words
    assert "'x[BATCH,SEQ,SIZE]'" in words
    named = [line.split()[0] for line in lines if line.strip().startswith("…") and "exp" in line]
    assert len(named) == len(set(named)) == 2


def test_quantities_of_a_profile_are_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiling, "measure_peaks", lambda *_: Peaks(1e9, 1e9))
    said = plain(on_terminal(monkeypatch, "profile chain.xml --random --runs 1 --backend numpy", 40))
    assert too_wide(said, 40) == []
    assert "peak of a product of" in said
    assert "…" not in said.split("Operations")[0]


def too_wide(text: str, columns: int) -> list[str]:
    """Return the lines that are too wide, except for unbreakable paths, names and numbers."""
    wide = [line for line in text.splitlines() if display_width(line) > columns]
    return [line for line in wide if len(line.split()) > 1]


@pytest.mark.parametrize("columns", [80, 40])
@pytest.mark.parametrize("name", LINES)
def test_results_fit_the_terminal(monkeypatch: pytest.MonkeyPatch, name: str, columns: int) -> None:
    said = plain(on_terminal(monkeypatch, LINES[name], columns))
    assert said.strip()
    assert too_wide(said, columns) == []


@pytest.mark.parametrize("columns", [80, 40])
@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_fits_the_terminal(monkeypatch: pytest.MonkeyPatch, command: str, columns: int) -> None:
    assert too_wide(plain(on_terminal(monkeypatch, f"{command} --help", columns)), columns) == []


def test_the_help_of_run_fits_two_screens(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(plain(on_terminal(monkeypatch, "run --help", 80)).splitlines()) <= 2 * 24


def test_help_says_all_about_each_command(invoke: Invoke) -> None:
    found = invoke("--help")
    said = " ".join(found.stdout.split())
    assert (
        "Measure the time of each layer of MODEL, and whether compute or memory bandwidth limits it" in said
    )
    assert "..." not in said.replace("[ARGS]...", "")


def test_numbers_stay_whole_and_names_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = plain(on_terminal(monkeypatch, LINES["run"], 80)).splitlines()
    layers = lines[
        lines.index("Layers") + 2 : next(i for i, line in enumerate(lines) if line.startswith("Outputs, "))
    ]
    rows = [line.split() for line in layers if line.startswith("  enc")]
    assert len(rows) == SHOWN - 1
    assert len({row[0] for row in rows}) == len(rows), "the ends of the names are there"
    assert {len(row) for row in rows} == {6}
    assert all(re.fullmatch(r"-?[\d.e-]+", cell) for row in rows for cell in row[3:])


@pytest.mark.parametrize(
    ("line", "kept", "dropped"),
    [
        ("run deep.xml --random --layers '*'", "name min max", "type, mean, shape"),
        ("cost counted.xml", "operation FLOPs", "MACs, layers, parameters"),
        ("shapes deep.xml", "layer port shape", "line, operation, type"),
    ],
)
def test_columns_are_dropped_before_rows_are_broken(
    monkeypatch: pytest.MonkeyPatch, invoke: Invoke, line: str, kept: str, dropped: str
) -> None:
    """The least important columns are dropped first, and named below the table."""
    said = " ".join(plain(on_terminal(monkeypatch, line, 40)).split())
    assert kept in said
    assert f"no room for {dropped}; a pipe gets all" in said
    in_pipe = invoke(line).stdout
    assert "no room" not in in_pipe
    assert all(column in in_pipe for column in dropped.split(", "))


def test_a_profile_keeps_the_share_of_each_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiling, "measure_peaks", lambda *_: Peaks(1e9, 1e9))
    said = plain(on_terminal(monkeypatch, "profile deep.xml --random --runs 1 --backend numpy", 80))
    header = next(line.split() for line in said.splitlines() if line.split()[:1] == ["layer"])
    assert header[:3] == ["layer", "computes", "ms"]
    assert "share" in header
    said = plain(on_terminal(monkeypatch, "profile deep.xml --random --runs 1 --backend numpy", 40))
    assert re.search(r"\n  layer +ms +share\n", said)


def test_rows_that_have_no_room_at_all_become_blocks_with_every_cell() -> None:
    rows = [["a" * 30, "12345678", "87654321"], ["b", "1", "2"]]
    found = fit_table(["layer", "first", "second"], rows, ["first", "second"], (), 24)
    assert found == ("", ["  aaaaaaaaaaa…aaaaaaaaaa", "    first 12345678", "    second 87654321", "  b", "    first 1  second 2"], ())  # fmt: skip


def test_columns_without_a_cell_take_no_room() -> None:
    rows = [["one", "", "1"], ["two", "", "2"]]
    assert fit_table(["name", "pattern", "n"], rows, ["n"], (), 24) == (
        "  name  n",
        ["  one   1", "  two   2"],
        [],
    )


@pytest.mark.parametrize(
    ("line", "conclusion", "detail"),
    [
        ("run deep.xml --random --layers '*'", "Outputs, ", "Layers"),
        ("cost deep.xml", "activation peak", "Operations"),
        ("shapes deep.xml", "Open lengths", "Shapes"),
        ("inspect deep.xml", "Inputs", "Operations"),
    ],
)
def test_conclusions_come_last_where_they_would_scroll_away(
    monkeypatch: pytest.MonkeyPatch, invoke: Invoke, line: str, conclusion: str, detail: str
) -> None:
    """If everything fits the terminal, and in a pipe, they come first."""
    small = plain(on_terminal(monkeypatch, line, 80, rows=15))
    assert small.index(f"{detail}\n") < small.index(conclusion)
    assert small.rindex(conclusion) > len(small) - 600
    for whole in (plain(on_terminal(monkeypatch, line, 80, rows=200)), invoke(line).stdout):
        assert whole.index(conclusion) < whole.index(f"{detail}\n")


def test_sentences_that_head_rows_are_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """A constraint is useless without its middle."""
    net = Net()
    inputs = [net.parameter(f"input_{name}", "?,2") for name in ("queries", "positions")]
    net.result(net.op("Concat", *inputs, axis=1, name=LONG))
    Path("joined.xml").write_bytes(net.xml())
    said = plain(on_terminal(monkeypatch, "shapes joined.xml", 40))
    words = said.replace("confirmed", " ").split("Constraints")[1].split()
    assert "input_queries[0] = input_positions[0] = batch" in " ".join(words)
    assert LONG not in said.split("Open lengths")[0]


@pytest.mark.parametrize("name", ["run", "shapes"])
def test_what_is_long_is_cut_and_said_to_be(
    monkeypatch: pytest.MonkeyPatch, invoke: Invoke, name: str
) -> None:
    said = plain(on_terminal(monkeypatch, LINES[name], 80))
    assert re.search(r"… and \d+ more; --layers GLOB selects, a pipe gets all", said)
    assert "/39" not in said.split("… and")[0]
    assert f"{LONG}/39" in invoke(LINES[name]).stdout, "whole in a pipe"


@pytest.mark.parametrize(
    ("name", "row"), [("trace-nan", r" +[\d.e+-]+ +[\d.e+-]+ +enc"), ("diff", r"  enc.* added *")]
)
def test_layers_that_were_found_have_a_line_each(
    monkeypatch: pytest.MonkeyPatch, invoke: Invoke, name: str, row: str
) -> None:
    lines = plain(on_terminal(monkeypatch, LINES[name], 80)).splitlines()
    rows = [index for index, line in enumerate(lines) if re.match(row, line)]
    assert len(rows) >= 5
    assert rows == list(range(rows[0], rows[0] + len(rows)))
    assert all("…" in lines[index] for index in rows if LONG[:4] in lines[index])
    assert f"{LONG}/4" in invoke(LINES[name]).stdout, "whole in a pipe"


def test_a_pipe_gets_names_whole_and_no_escapes(invoke: Invoke) -> None:
    said = invoke(LINES["run"]).stdout
    assert "\x1b" not in said
    assert "…" not in said


def test_no_color_leaves_no_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b[1m" in on_terminal(monkeypatch, "inspect chain.xml")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in on_terminal(monkeypatch, "inspect chain.xml")


def test_marks_stay_below_what_they_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also after wide characters, in truncated lines, and next to unprintable characters."""
    for name, columns in (("入力入力", 80), ("x" * 60, 40), ("a\u202eb\x85c", 80)):
        text = total().replace('names="a"><dim>4</dim>', f'names="{name}"><dim>two</dim>')
        write(Path.cwd(), text, "marked")
        lines = plain(on_terminal(monkeypatch, "validate marked.xml", columns)).splitlines()
        number = next(i for i, line in enumerate(lines) if "^" in line)
        start = lines[number].index("^")
        shown, at = lines[number - 1], 0
        while display_width(shown[:at]) < start:
            at += 1
        assert shown[at:].startswith("two"), (name, shown)


def test_a_long_text_is_paged_on_a_terminal_alone(monkeypatch: pytest.MonkeyPatch, invoke: Invoke) -> None:
    paged: list[str] = []
    monkeypatch.setattr(terminal_module.click, "echo_via_pager", lambda text, color: paged.append(text))
    on_terminal(monkeypatch, "explain IR301", rows=500)
    assert paged == []
    on_terminal(monkeypatch, "explain IR301", rows=5)
    assert len(paged) == 1
    assert "IR301" in invoke("explain IR301").stdout
    assert len(paged) == 1


@pytest.mark.parametrize("columns", [80, 40])
def test_a_bar_stays_on_its_line(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setattr(progress_module, "DELAY", 0)
    monkeypatch.setattr(progress_module, "PAUSE", 0)
    said, _ = on_terminal(monkeypatch, LINES["run"] + " -o out.npz", columns).split("saved")
    assert "running" in said
    assert "50%" in said
    drawn, _, end = said.partition("\n")
    assert end.endswith("\x1b[1A\x1b[2K"), "the cursor leaves the line at the end, and returns to erase it"
    frames = re.split(r"\r|\x1b\[2K", drawn)
    assert max(display_width(plain(frame)) for frame in frames) <= columns


def test_a_status_is_erased(monkeypatch: pytest.MonkeyPatch) -> None:
    said = on_terminal(monkeypatch, "shapes deep.xml", 30)
    assert said.startswith("finding the c")
    assert said.index("\r\x1b[K") < 30


def test_without_a_terminal_nothing_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_module, "DELAY", 0)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with bar("running", 2) as shown, status("looking"):
        shown.advance(1, "x")
        shown.reach(2)
    assert sys.stderr.getvalue() == ""
    assert isinstance(shown, Bar)


def test_rows_of_one_more_are_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ir_runtime.cli.render.columns", lambda: 80)
    rows = [[str(number)] for number in range(SHOWN + 1)]
    assert "more" not in table("Title", ["n"], rows, rest="see there")
    assert table("Title", ["n"], [*rows, ["x"]], rest="see there").endswith("… and 2 more; see there")


def test_names_that_would_look_the_same_lose_what_they_share() -> None:
    names = [f"encoder/layer.{number}/attention/query/MatMul" for number in range(3)]
    rows = [[name, "1"] for name in names]
    heading, lines, _ = fit_table(["layer", "n"], rows, ["n"], (), 24)
    assert heading.split() == ["layer", "n"]
    assert [line.split()[0][:3] for line in lines] == ["…0/", "…1/", "…2/"]
    alike = [[f"encoder/layer/attention_{number}_query_weights/MatMul", "1"] for number in range(3)]
    heading, lines, _ = fit_table(["layer", "n"], alike, ["n"], (), 24)
    assert [line.strip()[:3] for line in lines] == ["…0_", "…1_", "…2_"]
    twos = [
        [f"{scope}_query_weights/MatMul_{number}_of_two_more", "1"] for scope in "ab" for number in range(2)
    ]
    assert "".join(map(str.strip, fit_table(["layer", "n"], twos, ["n"], (), 24)[1][:2])) == twos[0][0], (
        "whole"
    )
    blocks = fit_table(
        ["layer", "computes"], [["a" * 30, "Convolution + Add + Clamp"], ["b" * 30, "ReLU"]], (), (), 20
    )
    assert blocks.heading == "", "each row is a block"
    assert [line.strip() for line in blocks.lines[1:3]] == ["computes", "Convolution +"]


def test_pages_are_rendered() -> None:
    """Markdown is rendered; code keeps its lines, and nothing moves the cursor or is a link."""
    page = (
        "# Title\n\none `two` three\nfour **five**\n* item one\n  two\n\n```sh\na  b\n  c\n```\n\n"
        "| x | y |\n|---|---|\n| 1 | 2 |\n\n<https://example.org/a>\n"
    )
    text = render(page, 16)
    assert set(re.findall(r"\x1b.", text)) == {"\x1b["}
    lines = [line.strip() for line in plain(text).splitlines()]
    assert lines[:4] == ["Title", "", "one two three", "four five"]
    assert "• item one two" in plain(text)
    assert lines[lines.index("a  b") + 1] == "c"
    assert lines[lines.index("x  y") + 2] == "1  2"
    assert all(display_width(line) <= 16 for line in plain(text).splitlines())


def test_a_guide_is_rendered_on_a_terminal_alone(monkeypatch: pytest.MonkeyPatch, invoke: Invoke) -> None:
    said = plain(on_terminal(monkeypatch, "guide first-nan", rows=500))
    assert "# Where" not in said
    assert "```" not in said
    assert invoke("guide first-nan").stdout.startswith("# Where the first NaN")


def test_names_are_shortened_in_the_middle() -> None:
    assert shorten("abcdefgh", 8) == "abcdefgh"
    assert shorten("abcdefghij", 5) == "ab…ij"
    assert shorten("入力入力", 5) == "入…力"
    assert all(display_width(shorten("入a力bcd入", width)) <= width for width in range(1, 10))
