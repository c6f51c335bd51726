"""Models with hostile strings, and checks that no string escapes its place in an output.

For a model with hostile names, a command must print the same lines, rows, tags and fields as for its twin with ordinary
names. Each output is parsed by an independent parser, reduced to its skeleton, and compared with that of the twin.
"""

from __future__ import annotations

import ast
import csv
import io
import json
import os
import re
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import click
import lxml.html
from click.testing import CliRunner
from lxml import etree

from harness.nets import looping
from ir_runtime.cli import main
from ir_runtime.cli._index import COMMANDS

__all__ = [
    "WORDS",
    "BrokenOutError",
    "Outcome",
    "commands",
    "compare",
    "invocations",
    "ordinary",
    "outcome",
    "prepare",
    "renamed",
    "sample",
    "word_of",
]

WORDS = [
    "::stop-commands::x", " ::error file=x::y", "##[add-path]/x", "a ##vso[task.setvariable variable=x]y", "##teamcity[x]",
    "a\n::error::b", "a\r\nb", "a\tb", "a\u2028b", "a\x85b", "\x9b31m\x9b2J", "\u202egnp.x\u202c", "\u2066\u200e\ufeff\u00ad",
    '"];x[URL="javascript:alert(1)"];"', "\\", "\\N\\G", '"', "&lt;b&gt;&#10;", "<script>alert(1)</script>", "]]>", "-->",
    "'><img src=x onerror=alert(1)>", "javascript:alert(1)", "=cmd|' /C calc'!A0", "+1", "-1", "@SUM(1)", "a;=1+1", "a,=1+1",
    '"=1', "../../x", "/etc/passwd", "..\\..\\x", "C:\\x", "C:/x", "..", ".", "a/../../b", "CON", "~root", "-rf", "$(touch PWNED)",
    "`touch PWNED`", "${IFS}", "*", "[x](javascript:alert(1))", "%2e%2e%2fx", "%0A::error::x", "{{DATA}}", "{0}", "%s",
    "[bold red]x[/]", "\ud7ff", "名前", "🤖", "é\u0301" * 20, "\uff1d1", "arr_0", "0", "None", "null", "true", "a" * 300,
]  # fmt: skip
"""Names that mean something to what reads them."""

# What no line of a log may begin with, or have in it, as runners of CI read their logs.
_COMMAND = re.compile(r"\s*::|.*##(?:vso|teamcity|\w[\w-]*)?\[")
_ANNOTATION = re.compile(r"::(error|warning|notice) (\w+=[^,:\r\n]*(?:,\w+=[^,:\r\n]*)*)::([^\r\n]*)")
_DOT_TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[A-Za-z_]\w*|->|[{}\[\]=,;])')
_FORMULA = "=+-@\t\r"
_NUMBER = re.compile(r"-?[\d.]+(?:e[+-]?\d+)?")


class BrokenOutError(AssertionError):
    """A name escaped its place."""


def word_of(words: Sequence[str]) -> Callable[[int], str]:
    """Return a function from numbers to names: the words in turn, with a number appended from the second round on."""
    return lambda number: words[number % len(words)] + (str(number) if number >= len(words) else "")


def ordinary(number: int) -> str:
    """Return the twin's name for a number."""
    return f"n{number}"


def sample() -> tuple[bytes, bytes]:
    """Return a model with a loop, a variable, weights, and a layer with several outputs."""
    net = looping("2", count=3)
    x = net.parameter("y", "2,3", out="FP32 2 3")
    weights = net.constant([[0.5, 1, 2], [3, 4, 5], [6, 7, 8]], "f32", name="weights")
    product = net.op(
        "MatMul", x, weights, name="product", out="FP32 2 3", transpose_a=False, transpose_b=False
    )
    relu = net.op("ReLU", product, name="relu", out="FP32 2 3")
    parts = net.layer(
        "Split", [relu, net.constant(1, name="axis")], ["FP32 2 1"] * 3, name="parts", num_splits=3
    )
    about = {"variable_id": "state", "variable_type": "f32", "variable_shape": "2,1", "version": "opset6"}
    before = net.op("ReadValue", parts[0], name="before", out="FP32 2 1", **about)
    added = net.op("Add", before, parts[1], name="added", out="FP32 2 1")
    net.op("Assign", added, name="after", out="FP32 2 1", variable_id="state", version="opset6")
    net.result(added, name="first")
    net.result(parts[2], name="second")
    return net.xml(), net.weights


def renamed(xml: bytes, word: Callable[[int], str], broken: bool = False) -> bytes:
    """Return the model with its strings replaced; equal strings stay equal, different ones different.

    Args:
        xml: the model.
        word: gives each string by its number.
        broken: whether to replace types, versions and attributes, too, which makes the model invalid.
    """
    root = etree.fromstring(xml)
    known: dict[str, str] = {}

    def new(text: str) -> str:
        return known.setdefault(text, word(len(known)))

    root.set("name", new(root.get("name", "")))
    for number, layer in enumerate(root.iter("layer")):
        layer.set("name", new(layer.get("name", "")))
        for port in layer.iterfind("output/port"):
            name = new(f"tensor {number} {port.get('id')}").replace(",", "\\,")
            port.set("names", f"{name}." if name.endswith("\\") else name)
        for data in layer.iterfind("data[@variable_id]"):
            data.set("variable_id", new(f"variable {data.get('variable_id')}"))
        info = etree.SubElement(layer, "rt_info")
        for key in ("fused_names", new(f"key {number}")):
            etree.SubElement(info, "attribute", name=key, version="0", value=new(f"info {number}"))
        if broken:
            _break(layer, number, new)
    return bytes(etree.tostring(root, encoding="utf-8"))


def _break(layer: Any, number: int, new: Callable[[str], str]) -> None:
    """Give some layers an unknown attribute, value or operation."""
    data = layer.find("data")
    if data is not None and number % 3 == 1:
        data.set("colour", new(f"colour {number}"))
    if data is not None and number % 5 == 2:
        data.set(data.keys()[0], new(f"value {number}") + "x")
    if number % 4 == 3:
        layer.set("type", new(f"unknown {number}"))
        layer.set("version", new(f"version {number}"))


def prepare(folder: Path, xml: bytes, weights: bytes, words: Sequence[str]) -> None:
    """Write a model, a second model, and labels to a folder, under the names that `invocations` uses."""
    folder.mkdir(exist_ok=True)
    for name, text in (("model", xml), ("other", xml.replace(b'transpose_b="false"', b'transpose_b="true"'))):
        (folder / f"{name}.xml").write_bytes(text)
        (folder / f"{name}.bin").write_bytes(weights)
    labels = [" ".join(word.split()) for word in words[:8]]
    (folder / "labels.txt").write_text("\n".join(labels), encoding="utf-8")


def commands() -> list[str]:
    """Return the commands that print something about a model."""
    known = {"model", "models", "old"}
    return [name for name in COMMANDS if known & {str(param.name) for param in _command(name).params}]


def invocations(command: str, own: str) -> Iterator[list[str]]:
    """Yield command lines: the required arguments plus one option each, with and without JSON.

    All choices and flags are covered, numeric options are not. Options of type text get the name of a layer, unless known to
    need something else. Options shared by most commands are tried with the first one only.

    Args:
        command: its name.
        own: the name of a layer, used as text.
    """
    needed: list[str] = []
    options: list[list[str]] = [[]]
    has_json = False
    for param in _command(command).params:
        is_needed = param.required or param.name in ("model", "random", "niter")
        ways = _ways(param, own)
        has_json |= param.name == "as_json"
        if is_needed and param.param_type_name == "argument" and len(ways) > 1:
            options += ways[1:]
        elif is_needed:
            needed += ways[0]
        elif param.name != "as_json" and not _is_number(param) and _is_tried(param.opts[-1], command):
            options += ways
    for option in options:
        line = [command, *needed, *option]
        yield line
        if has_json:
            yield [*line, "--json"]


def _command(name: str) -> click.Command:
    found = main.get_command(click.Context(main), name)
    assert found is not None
    return found


@cache
def _is_tried(option: str, command: str) -> bool:
    """Return whether to try an option with a command; options shared by many are tried with the first."""
    takers = [name for name in COMMANDS if any(option in param.opts for param in _command(name).params)]
    return len(takers) < _MANY or takers[0] == command


def _is_number(param: click.Parameter) -> bool:
    return isinstance(param.type, click.IntRange | click.FloatRange)


def _ways(param: click.Parameter, own: str) -> list[list[str]]:
    """Return the argument lists that set a parameter."""
    values = [[value] for value in _values(param, own)]
    if param.param_type_name == "argument":
        return values
    if getattr(param, "is_flag", False):
        return [[name] for name in (*param.opts[-1:], *param.secondary_opts)]
    return [[param.opts[-1], *value] for value in values]


# Options that so many commands take say the same with each.
_MANY = 7
_FILES = {
    "model": ["model.xml"], "models": ["model.xml"], "old": ["model.xml"], "new": ["other.xml"], "files": ["inputs.npz"],
    "results": ["results.npz"], "labels": ["labels.txt"], "output": ["out.txt", "out.npz", "out", "out/", "-"], "chrome": ["trace.json"],
    "report_folder": ["."], "target": ["moved"],
}  # fmt: skip
_NAMES = {"against": ["numpy"], "backend": ["numpy"], "after": ["fuse"], "layers": ["?*"], "layout": ["NC"]}


def _values(param: click.Parameter, own: str) -> list[str]:
    kind = param.type
    if isinstance(kind, click.Choice):
        return [str(choice) for choice in kind.choices]
    if _is_number(param):
        return ["1"]
    name = str(param.name)
    return [*_FILES.get(name, ()), *_NAMES.get(name, ()), *([] if name in _FILES else [own])]


@dataclass
class Outcome:
    """The skeleton of a command's output, and the number of its lines."""

    skeleton: Any
    size: int


def outcome(line: Sequence[str], folder: Path, words: Sequence[str]) -> Outcome:
    """Run a command in the current folder, check its output and files, and remove the files.

    Args:
        line: the command, with its arguments.
        folder: where the model is.
        words: the names of the model, which may be keys of JSON.

    Raises:
        BrokenOutError: if some output violates its format.
    """
    before = {*folder.rglob("*")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of which Python shows the first of each kind
        found = CliRunner().invoke(main, list(line))
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise BrokenOutError(f"{line}: {found.exception!r}") from found.exception
    if "this is a bug" in found.stderr:
        raise BrokenOutError(f"{line}: {found.stderr}")
    try:
        said = _stdout(line, found.stdout_bytes, words), _text(found.stderr_bytes, words)
        files = []
        size = len(found.stdout_bytes) + len(found.stderr_bytes)
        for path in sorted({*folder.rglob("*")} - before, reverse=True):
            if path.is_file():
                files.append((_safe(line, path.relative_to(folder)), _file(line, path, words)))
                size += path.stat().st_size
                path.unlink()
            else:
                path.rmdir()
    except (ValueError, SyntaxError, BrokenOutError) as reason:
        raise BrokenOutError(f"{' '.join(line)}: {reason}") from reason
    return Outcome((found.exit_code, *said, sorted(files, key=repr)), size)


def _form(line: Sequence[str]) -> str:
    """Return the output format that a command line selects."""
    command = _command(line[0])
    if "--json" in line:
        return "json"
    if any(param.name == "form" for param in command.params):
        form = next(
            param for param in command.params if param.name == "form" and isinstance(param.type, click.Choice)
        )
        places = [line.index(name) for name in form.opts if name in line]
        return line[places[0] + 1] if places else str(form.default)
    return "text"


def _stdout(line: Sequence[str], text: bytes, words: Sequence[str]) -> Any:
    if "-" in line[1:]:
        if line[0] == "report":
            return _html(text, words) if text else None
        return "arrays" if text.startswith((b"PK", b"\x93NUMPY")) else _text(text, words)
    return PARSERS[_form(line)](text, words) if text else None


def _file(line: Sequence[str], path: Path, words: Sequence[str]) -> Any:
    form = "html" if line[0] == "report" else _form(line)
    if form in ("text", "json"):
        form = path.suffix.removeprefix(".")
    return PARSERS[form](path.read_bytes(), words)


def _safe(line: Sequence[str], path: Path) -> str:
    name = str(path)
    if name not in line and (
        not re.fullmatch(r"[\w.+=/-]+", name, re.ASCII) or any(part.startswith("-") for part in path.parts)
    ):
        raise BrokenOutError(f"a file is called {name!r}")
    return path.suffix


def _text(text: bytes, words: Sequence[str]) -> Any:
    """Return the number of lines; check that all characters are printable and that no line is a workflow command."""
    lines = text.decode().split("\n")
    for line in lines:
        if not line.isprintable():
            raise BrokenOutError(f"a line has what is not printed: {line!r}")
        if _COMMAND.match(line):
            raise BrokenOutError(f"a line is a command: {line!r}")
    return len(lines)


def _json(text: bytes, words: Sequence[str]) -> Any:
    """Return the fields of JSON; strings that are names are treated as equal."""
    _text(text, words)
    return _fields(json.loads(text, parse_constant=_no_number), set(words))


def _no_number(text: str) -> float:
    raise BrokenOutError(f"{text} is no JSON")


def _fields(data: Any, words: set[str]) -> Any:
    if isinstance(data, Mapping):
        pairs = [("*" if _is_name(key, words) else key, _fields(value, words)) for key, value in data.items()]
        return sorted(pairs, key=repr)
    if isinstance(data, list):
        if any(isinstance(each, dict | list) for each in data):
            return sorted((_fields(each, words) for each in data), key=repr)
        return "list"
    return "value"


def _is_name(key: str, words: set[str]) -> bool:
    return re.sub(r"\[\d+\]$", "", key) in words


def _github(text: bytes, words: Sequence[str]) -> Any:
    """Return the severity and properties of each annotation: https://docs.github.com/actions, "Workflow commands"."""
    found = []
    for line in text.decode().removesuffix("\n").split("\n"):
        parts = _ANNOTATION.fullmatch(line)
        if parts is None or not line.isprintable():
            raise BrokenOutError(f"no annotation: {line!r}")
        if re.sub(r"%(?:25|0A|3A|2C)", "", parts[2] + parts[3]).count("%"):
            raise BrokenOutError(f"an escape that there is not: {line!r}")
        found.append(
            (parts[1], re.findall(r"(\w+)=", re.sub("=[^,]*", "=", parts[2])), parts[3].count("%0A"))
        )
    return sorted(found)


def _dot(text: bytes, words: Sequence[str]) -> Any:
    """Return the tokens of DOT, without quoted strings: https://graphviz.org/doc/info/lang.html."""
    _text(text, words)
    source, place, tokens = text.decode().rstrip(), 0, []
    while place < len(source):
        token = _DOT_TOKEN.match(source, place)
        if token is None:
            raise BrokenOutError(f"no token of DOT: {source[place : place + 80]!r}")
        tokens.append('"' if token[1].startswith('"') else token[1])
        place = token.end()
    return tokens


def _tags(root: Any) -> list[tuple[str, list[str]]]:
    return [(str(each.tag), sorted(each.attrib)) for each in root.iter() if isinstance(each.tag, str)]


def _svg(text: bytes, words: Sequence[str]) -> Any:
    _text(text, words)
    return _tags(etree.fromstring(text))


def _html(text: bytes, words: Sequence[str]) -> Any:
    """Return the set of tags. Their number, and the links to layers and scopes, depend on the scopes in names."""
    for line in text.decode().split("\n"):
        if _COMMAND.match(line):
            raise BrokenOutError(f"a line is a command: {line!r}")
    root = lxml.html.document_fromstring(text.decode())
    for each in root.iter():
        for name, value in each.attrib.items():
            if name.startswith("on") or re.match(r"\s*javascript:", value, re.IGNORECASE):
                raise BrokenOutError(f"a script: {name}={value!r}")
    return sorted(
        {
            (tag, tuple("data-node" if name == "data-scope" else name for name in names))
            for tag, names in _tags(root)
            if tag not in ("title", "g", "rect", "wbr", "button", "text")
        }
    )


def _csv(text: bytes, words: Sequence[str]) -> Any:
    """Return the lengths of the rows; check that no cell is a formula, whichever delimiter is assumed."""
    for delimiter in ";,\t":
        for row in csv.reader(io.StringIO(text.decode(), newline=""), delimiter=delimiter):
            for cell in row:
                if cell[:1] in _FORMULA and cell and not _NUMBER.fullmatch(cell):
                    raise BrokenOutError(f"a formula: {cell!r} in {row}")
    rows = list(csv.reader(io.StringIO(text.decode(), newline=""), delimiter=";"))
    if not all(cell.isprintable() for row in rows for cell in row):
        raise BrokenOutError("a cell has what is not printed")
    return [len(row) for row in rows]


def _npz(text: bytes, words: Sequence[str]) -> Any:
    """Return the number of members; check that none would be extracted outside the target folder."""
    with zipfile.ZipFile(io.BytesIO(text)) as archive:
        for member in archive.infolist():
            name = member.orig_filename
            parts = name.split("/")
            if (
                (name != os.path.normpath(name) and ".." in parts)
                or not name.isprintable()
                or name.startswith("/")
            ):
                raise BrokenOutError(f"a member is called {name!r}")
            if (
                "\\" in name
                or re.match(r"[A-Za-z]:[/\\.]", name)
                or any(set(part) == {"."} for part in parts)
            ):
                raise BrokenOutError(f"a member is called {name!r}")
        return len(archive.infolist())


def _python(text: bytes, words: Sequence[str]) -> Any:
    tree = ast.parse(text.decode())
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            node.value = None
    return ast.dump(tree)


def _nothing(text: bytes, words: Sequence[str]) -> Any:
    return None


def _xml(text: bytes, words: Sequence[str]) -> Any:
    return _tags(etree.fromstring(text))


PARSERS: Mapping[str, Callable[[bytes, Sequence[str]], Any]] = {
    "text": _text, "json": _json, "sarif": _json, "model-explorer": _json, "github": _github, "dot": _dot, "svg": _svg,
    "html": _html, "csv": _csv, "npz": _npz, "npy": _nothing, "bin": _nothing, "py": _python, "md": _text, "xml": _xml,
}  # fmt: skip
"""How each format is read; one that is not here has to be added."""


def compare(
    line: Sequence[str], other: Sequence[str], folders: Sequence[Path], words: Sequence[Sequence[str]]
) -> None:
    """Run a command on a model and on its twin, each in its folder, and compare the outcomes.

    Raises:
        BrokenOutError: if they differ in more than names.
    """
    found = []
    before = Path.cwd()
    try:
        for args, folder, names in zip((line, other), folders, words, strict=True):
            os.chdir(folder)
            found.append(outcome(args, folder, names).skeleton)
    finally:
        os.chdir(before)
    if found[0] != found[1]:
        raise BrokenOutError(f"{' '.join(line)}: {found[0]}, but with ordinary names {found[1]}"[:4000])
