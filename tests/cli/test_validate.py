"""``ir-runtime validate``: findings on stdout, the summary on stderr, exit code 1 on errors."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from harness.nets import chain, chain_weights, passing, total, write, write_chain

Invoke = Callable[[str], Result]
Check = Callable[..., Result]

LOOP = total().replace(
    '<edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>',
    '<edge from-layer="2" from-port="2" to-layer="2" to-port="0"/>',
)
DANGLING = total().replace('to-layer="3" to-port="0"', 'to-layer="3" to-port="9"')
UNKNOWN = total().replace('type="Add"', 'type="Adds"')
MISMATCH = chain().replace(
    "<dim>2</dim><dim>3</dim></port></output>\n</layer>",
    "<dim>2</dim><dim>4</dim></port></output>\n</layer>",
    1,
)
PAGE = """A page, with two examples.

<layer id="1" type="ReduceSum" ...>
<data keep_dims="maybe" />
<input><port id="0"><dim>6</dim><dim>12</dim></port><port id="1"><dim>1</dim></port></input>
<output><port id="2"><dim>6</dim></port></output>
</layer>

And another one:

<layer id="1" type="ReduceSum" version="opset1">
<data keep_dims="false" />
<input>
<port id="0"><dim>6</dim><dim>12</dim></port>
<port id="1"><dim>1</dim> <!-- value is [5] --></port>
</input>
<output><port id="2"><dim>6</dim></port></output>
</layer>
"""


def without_libxml2(text: str) -> str:
    """Mask the messages of libxml2, which differ between versions."""
    return re.sub(r"(not well-formed: ).*", r"\1WHY", text)


BROKEN = {
    "cycle": LOOP,
    "dangling": DANGLING,
    "unknown": UNKNOWN,
    "cut_off": chain()[:700],
    "declared": MISMATCH,
    "unconnected": total().replace('<edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>\n', ""),
    "no_net": "<html><body/></html>",
    "doctype": '<!DOCTYPE net [<!ENTITY x "y">]>\n<net version="11"/>',
    "version": '<net name="old" version="1"><layers/><edges/></net>',
    "element": passing("f32", "2").replace("<dim>2</dim>", "<dim>two</dim>", 1),
    "empty": "",
}


@pytest.mark.parametrize("name", BROKEN)
def test_findings_have_their_text(folder: Path, check: Check, name: str) -> None:
    write(folder, BROKEN[name])
    (folder / "net.bin").write_bytes(chain_weights())
    assert check(f"validate_{name}", "validate net.xml", hide=without_libxml2).exit_code == 1


@pytest.mark.parametrize("name", BROKEN)
def test_running_what_is_broken_fails(folder: Path, invoke: Invoke, name: str) -> None:
    write(folder, BROKEN[name])
    (folder / "net.bin").write_bytes(chain_weights())
    found = invoke(f"run net.xml --random {'--strict' if name == 'declared' else ''}")
    assert found.exit_code == (4 if name == "unknown" else 3)
    assert found.stdout == ""
    assert "error[IR" in found.stderr
    assert "Traceback" not in found.stderr


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("missing", "validate none.xml"),
        ("folder", "validate ."),
        ("onnx", "validate model.onnx"),
        ("cut_off_bin", "validate short.xml"),
        ("without_bin", "validate alone.xml"),
        ("other_bin", "validate chain.xml --weights none.bin"),
        ("page", "validate page.txt"),
        ("several", "validate chain.xml net.xml none.xml"),
        ("usage", "validate"),
        ("weights_of_several", "validate chain.xml net.xml --weights chain.bin"),
    ],
)
def test_files_of_every_kind(folder: Path, check: Check, name: str, line: str) -> None:
    write_chain(folder)
    write_chain(folder, name="short")
    (folder / "short.bin").write_bytes(chain_weights()[:-2])
    write(folder, chain(), "alone")
    write(folder, UNKNOWN)
    (folder / "model.onnx").write_bytes(b"\x08\x07\x12\x07pytorch")
    (folder / "page.txt").write_text(PAGE, encoding="utf-8")
    found = check(f"validate_{name}", line)
    assert found.exit_code == (2 if name in ("usage", "weights_of_several") else 1)


def test_a_sound_model_is_told_in_one_line(folder: Path, invoke: Invoke) -> None:
    write_chain(folder)
    found = invoke("validate chain.xml chain.xml")
    assert (found.exit_code, found.stdout) == (0, "")
    assert found.stderr == "2 files, 0 errors, 0 warnings\n"


def test_warnings_are_findings_but_no_failure(folder: Path, invoke: Invoke) -> None:
    write(folder, passing("f32", "2").replace('element_type="f32"/>', 'element_type="f32" colour="red"/>'))
    found = invoke("validate net.xml")
    assert found.exit_code == 0
    assert found.stdout.startswith("net.xml:4: layer 'x' (Parameter-1): warning[IR203]: ")
    assert found.stderr == "1 file, 0 errors, 1 warning\n"


def test_json_is_a_list_of_files(folder: Path, invoke: Invoke) -> None:
    write_chain(folder)
    write(folder, UNKNOWN)
    found = invoke("validate chain.xml net.xml --json")
    assert found.exit_code == 1
    sound, broken = json.loads(found.stdout)["files"]
    assert sound == {"file": "chain.xml", "ok": True, "findings": [], "more": []}
    assert (broken["file"], broken["ok"]) == ("net.xml", False)
    finding = broken["findings"][0]
    assert finding["hint"].startswith("did you mean 'Add'?")
    assert {k: v for k, v in finding.items() if k != "hint"} == {
        "code": "IR201",
        "severity": "error",
        "message": "unknown operation 'Adds' (opset1)",
        "file": "net.xml",
        "line": 12,
        "layer": "plus",
        "operation": "Adds",
        "clause": None,
        "column": None,
        "excerpt": '<layer id="2" name="plus" type="Adds" version="opset1">',
        "causes": [],
    }
    assert found.stderr == "2 files, 1 error, 0 warnings\n"


def test_layer_names_cannot_steer_the_terminal(folder: Path, invoke: Invoke) -> None:
    write(
        folder,
        UNKNOWN.replace('name="plus"', 'name="a&#x9b;2Jb&#x2028;c"').replace('"Adds"', '"Adds&#x9b;2J"'),
    )
    found = invoke("validate net.xml")
    assert "\x9b" not in found.stdout
    assert "\u2028" not in found.stdout
    assert len(found.stdout.splitlines()) == 3, "the finding, its line, the hint"
