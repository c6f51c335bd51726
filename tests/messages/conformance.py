"""Messages for damaged conformance cases, and for runtimes that do not run them."""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

from harness.conformance_cases import relu, write_folder, write_zip
from harness.refusals import Call

import ir_runtime as ir
from ir_runtime.conformance.adapters import adapter
from ir_runtime.conformance.case import Case
from ir_runtime.conformance.corpus import Corpus
from ir_runtime.conformance.generate import Generated
from ir_runtime.conformance.recipe import Unfit
from ir_runtime.conformance.results import read_run
from ir_runtime.conformance.runner import _Crew, run

FOLDER = "messages"


def parse(**meta: Any) -> Case:
    """Read a case with some fields of its description replaced."""
    case = relu()
    return Case.parse(dict(case.files()) | {"case.json": json.dumps({**case.record(), **meta}).encode()})


def parse_with(**files: bytes | None) -> Case:
    """Read a case with some files replaced; ``None`` removes one."""
    changed = {name.replace("_npy", ".npy"): contents for name, contents in files.items()}
    contents = dict(relu().files()) | changed
    return Case.parse({name: raw for name, raw in contents.items() if raw is not None})


def lost_in_a_fork() -> None:
    """Wait in a child process for the cases of the parent."""
    crew = _Crew("numpy", 1, 1)
    crew.after_fork()
    crew.next_result()


def run_command(body: str) -> Any:
    return adapter(f'{sys.executable} -c "{body}"')(relu())


def output(**fields: Any) -> list[dict[str, Any]]:
    return [{"type": "f32", "ulp": 0, "absolute": 0, "predicate": "", **fields}]


def in_folder(write: Callable[[Path], object]) -> None:
    """Call a function in a folder that is masked in messages."""
    with TemporaryDirectory() as name:
        try:
            write(Path(name))
        except ir.IRError as reason:
            message = reason.message.replace(f"{name}/", "").replace(name, "corpus")
            raise type(reason)(message, code=reason.code, hint=reason.hint) from None


def archive(folder: Path, **files: bytes) -> Corpus:
    """A corpus with other files; slashes are written as two underscores."""
    path = write_zip(folder / "corpus.zip", [relu()])
    with zipfile.ZipFile(path, "a") as file:
        for name, contents in files.items():
            file.writestr(name.replace("__", "/").replace("_json", ".json"), contents)
    return Corpus(path)


def damaged_archive(folder: Path) -> None:
    path = write_zip(folder / "corpus.zip", [replace(relu(), xml=b"-" * 1000)])
    path.write_bytes(path.read_bytes().replace(b"-" * 1000, b"+" * 1000))
    Corpus(path).files("Relu-1/0001")


def text_as(read: Callable[[Path], object], contents: str) -> Callable[[Path], None]:
    """Read a text as a kind of file."""

    def call(folder: Path) -> None:
        (folder / "file").write_text(contents)
        read(folder / "file")

    return call


def other_log(contents: str) -> Callable[[Path], None]:
    """Resume from the log of another run."""

    def call(folder: Path) -> None:
        (folder / "run.log").write_text(contents)
        corpus = Corpus(write_folder(folder / "corpus", [relu()]))
        run(corpus, "numpy", corpus.cases, log=folder / "run.log")

    return call


def long_run(folder: Path) -> None:
    with mock.patch("ir_runtime.conformance.results._MOST_FILE", 3):
        text_as(read_run, "long text")(folder)


def long_description(folder: Path) -> None:
    with mock.patch("ir_runtime.conformance.corpus._MOST_DESCRIPTION", 3):
        archive(folder)


def never_valid() -> None:
    with mock.patch("ir_runtime.conformance.generate._layer", side_effect=Unfit):
        Generated(1, 0)


LIE = b"0" * 64 + b"  Relu-1/0001/model.xml"
STATUS = '{"against": "", "version": "", "corpus": "", "cases": [{"id": "", "operation": "", "kind": "", "message": "", "expected": "", "status": "good"}]}'

REFUSALS = [
    Call("layers that are never valid", never_valid),
    Call("corpus with a file outside of it", lambda: in_folder(lambda at: archive(at, **{"..__x": b""}))),
    Call(
        "corpus with two cases of one id",
        lambda: in_folder(lambda at: archive(at, copy__case_json=dict(relu().files())["case.json"])),
    ),
    Call("corpus with a damaged case", lambda: in_folder(lambda at: archive(at, copy__case_json=b"{"))),
    Call("corpus without cases", lambda: in_folder(Corpus)),
    Call("corpus with a long description", lambda: in_folder(long_description)),
    Call(
        "corpus with another manifest",
        lambda: in_folder(lambda at: archive(at, MANIFEST=LIE).files("Relu-1/0001")),
    ),
    Call("corpus that is damaged", lambda: in_folder(damaged_archive)),
    Call("corpus that is text", lambda: in_folder(text_as(Corpus, "text"))),
    Call("run that is text", lambda: in_folder(text_as(read_run, "text"))),
    Call("run with an unknown status", lambda: in_folder(text_as(read_run, STATUS))),
    Call("run that is too long", lambda: in_folder(long_run)),
    Call("log of another run", lambda: in_folder(other_log('{"against": "openvino"}\n'))),
    Call("log that is text", lambda: in_folder(other_log("text\n"))),
    Call("run that went on in a fork", lost_in_a_fork),
    Call("case without a model", lambda: Case.parse({})),
    Call("case of another schema", lambda: parse(schema=7)),
    Call("case that leaves the corpus", lambda: parse(id="../x")),
    Call("case of something else", lambda: parse(operation="!")),
    Call("case of an unknown kind", lambda: parse(kind="valu")),
    Call("case of too many arrays", lambda: parse(inputs=["f32"] * 9999)),
    Call("case of half a step", lambda: parse(steps=2)),
    Call("case of an unknown type", lambda: parse(inputs=["dynamic"])),
    Call("case of a negative tolerance", lambda: parse(outputs=output(ulp=-1))),
    Call("case without an input", lambda: parse_with(input_0_npy=None)),
    Call("case whose input is text", lambda: parse_with(input_0_npy=b"text")),
    Call("case whose input should hold strings", lambda: parse(inputs=["string"])),
    Call("case whose input should hold bits", lambda: parse(inputs=["bf16"])),
    Call("runtime that is unknown", lambda: adapter("openvin")),
    Call("command with an open quote", lambda: adapter("python 'device.py")),
    Call("command that fails", lambda: run_command("import sys; sys.exit(3)"), (RuntimeError,)),
    Call("command for several steps", lambda: adapter("./run x")(replace(relu(), steps=2)), (Exception,)),
]
