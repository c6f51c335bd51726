"""Untrusted corpora: members with outside paths, wrong sizes, or too much data are refused."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from harness.conformance_cases import relu, small_corpus, write_folder, write_zip

from ir_runtime.conformance.corpus import Corpus, select
from ir_runtime.errors import InputError
from ir_runtime.limits import Limits

Write = Callable[[Path], Path]


def as_folder(path: Path) -> Path:
    return write_folder(path / "corpus", small_corpus())


def as_zip(path: Path) -> Path:
    return write_zip(path / "corpus.zip", small_corpus())


@pytest.mark.parametrize("write", [as_folder, as_zip])
def test_folders_and_archives_have_the_same_cases(write: Write, tmp_path: Path) -> None:
    corpus = Corpus(write(tmp_path))
    assert [case.id for case in corpus.cases] == ["Add-1/0001", "Relu-1/0001", "Relu-1/0002", "Relu-1/0003"]
    assert corpus.files("Relu-1/0001") == dict(relu().files())
    assert corpus.digest == Corpus(as_zip(tmp_path)).digest


def test_the_folder_of_one_case_is_a_corpus(tmp_path: Path) -> None:
    write_folder(tmp_path, [relu()])
    corpus = Corpus(tmp_path / "Relu-1" / "0001")
    assert [case.id for case in corpus.cases] == ["Relu-1/0001"]
    assert corpus.files("Relu-1/0001") == dict(relu().files())


def add(path: Path, name: str, contents: bytes = b"") -> Path:
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(name, contents)
    return path


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/../../x", "a\\..\\x", "C:x"])
def test_files_outside_of_the_corpus_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="which is outside of it"):
        Corpus(add(as_zip(tmp_path), name))


def test_two_cases_of_one_id_are_refused(tmp_path: Path) -> None:
    path = as_zip(tmp_path)
    for name, contents in relu().files():
        add(path, f"again/{name}", contents)
    with pytest.raises(InputError, match="two cases have the id 'Relu-1/0001'"):
        Corpus(path)


def test_hashes_of_the_manifest_hold(tmp_path: Path) -> None:
    path = as_zip(tmp_path)
    lines = [
        f"{hashlib.sha256(contents).hexdigest()}  Relu-1/0001/{name}\n" for name, contents in relu().files()
    ]
    add(path, "MANIFEST", "".join(lines).encode())
    assert Corpus(path).files("Relu-1/0001")
    lies = "".join(lines).replace(lines[0][:64], "0" * 64)
    path.unlink()
    add(as_zip(tmp_path), "MANIFEST", lies.encode())
    with pytest.raises(InputError, match=r"model\.xml has another hash than MANIFEST says"):
        Corpus(path).files("Relu-1/0001")


def test_damaged_descriptions_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"the case in 'Exp-1/0001': case\.json cannot be read"):
        Corpus(add(as_zip(tmp_path), "Exp-1/0001/case.json", b"{"))


def test_damaged_members_are_named(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "corpus.zip", [replace(relu(), xml=b"-" * 1000)])
    path.write_bytes(path.read_bytes().replace(b"-" * 1000, b"+" * 1000))
    with pytest.raises(InputError, match=r"model\.xml' cannot be read: Bad CRC-32"):
        Corpus(path).files("Relu-1/0001")


def test_cases_that_exceed_the_limits_are_refused_before_they_are_read(tmp_path: Path) -> None:
    bomb = replace(relu(), weights=bytes(1 << 22))
    path = tmp_path / "corpus.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, contents in bomb.files():
            archive.writestr(f"a/{name}", contents)
    assert path.stat().st_size < 1 << 16
    with pytest.raises(InputError, match="the files of the case Relu-1/0001 come to"):
        Corpus(path, Limits(memory=1 << 20)).files("Relu-1/0001")


def test_links_are_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    write_folder(tmp_path / "corpus", [relu()])
    (tmp_path / "corpus" / "Relu-1" / "0001" / "model.bin").symlink_to(secret)
    assert b"secret" not in Corpus(tmp_path / "corpus").files("Relu-1/0001").values()


@pytest.mark.parametrize(
    ("contents", "message"),
    [(b"text", "is not a corpus"), (None, "does not exist"), (b"", "is not a corpus")],
)
def test_what_is_no_corpus_is_refused(tmp_path: Path, contents: bytes | None, message: str) -> None:
    if contents is not None:
        (tmp_path / "x.zip").write_bytes(contents)
    with pytest.raises(InputError, match=message):
        Corpus(tmp_path / "x.zip")


@pytest.mark.parametrize(
    ("globs", "count"),
    [([], 4), (["Relu*"], 3), (["refusal"], 1), (["Relu-1/0001", "Add-1"], 2), (["Relu-1 C1"], 2)],
)
def test_cases_are_selected(tmp_path: Path, globs: list[str], count: int) -> None:
    assert len(select(Corpus(as_zip(tmp_path)).cases, globs)) == count


def test_cases_are_selected_by_the_clauses_that_they_fulfil(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "corpus.zip", [replace(relu(), fulfils=["C1", "C2"])])
    assert len(select(Corpus(path).cases, ["Relu-1 C2"])) == 1


def test_patterns_must_match(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no case matches 'Tan'"):
        select(Corpus(as_zip(tmp_path)).cases, ["Relu*", "Tan"])


def test_empty_folders_have_no_case(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no case"):
        Corpus(tmp_path)
