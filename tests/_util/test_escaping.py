"""Escaped texts are parsed as a single item in their format, and round-trip where promised."""

from __future__ import annotations

import csv
import html
import io
import json
import re
import zipfile

import pytest
from harness.hostile import PARSERS, WORDS
from hypothesis import example, given
from hypothesis import strategies as st
from lxml import etree

from ir_runtime._util.escaping import (
    LONGEST,
    MOST,
    csv_lines,
    dot_text,
    field,
    file_names,
    github_data,
    github_property,
    json_text,
    markup_text,
    member_name,
    name_of_member,
    quoted,
    sarif_text,
    shown,
    visible,
)

ANY = (
    st.text() | st.sampled_from(WORDS) | st.lists(st.sampled_from(WORDS), min_size=2, max_size=4).map("".join)
)
LONG = st.text(min_size=LONGEST + 1, max_size=2 * LONGEST)


@given(ANY)
def test_a_line_is_one_and_no_command(text: str) -> None:
    for line in (visible(text), shown(text), quoted(text), f"  {visible(text)}  x"):
        assert PARSERS["text"](line.encode(), []) == 1
    assert visible(visible(text)) == visible(text)


@pytest.mark.parametrize(
    "name", ["conv1", "aten::add", "a/b.c:0", "#1", "##", "a [b]", "名前", "R&D", "50 %", "it's"]
)
def test_ordinary_names_stay_as_they_are(name: str) -> None:
    assert visible(name) == shown(name) == field(name) == member_name(name) == name
    assert quoted(name) == repr(name)
    assert csv_lines([[name]]) == f"{name}\n"


@given(st.lists(ANY))
def test_json_is_read_back(texts: list[str]) -> None:
    written = json_text(dict.fromkeys(texts, texts))
    assert json.loads(written) == dict.fromkeys(texts, texts)
    assert PARSERS["text"](written.encode(), []) == 1


def test_long_names_are_cut_where_they_come_to_much() -> None:
    names = ["a" * 50_000 + "x", "a" * 50_000 + "y"]
    assert json.loads(json_text(names)) == names
    first, second, *rest = json.loads(json_text(names * 100))
    assert first != second
    assert rest == [first, second] * 99
    assert len(first) <= LONGEST
    assert len(json_text(names * 100)) < MOST
    assert json.loads(json_text(names * 100, whole=True)) == names * 100


@given(LONG, LONG)
def test_long_fields_differ_if_names_do(one: str, other: str) -> None:
    assert (field(one) == field(other)) is (one == other)
    assert len(field(one)) <= LONGEST


@given(ANY, ANY)
def test_annotations_are_read_back(title: str, text: str) -> None:
    line = f"::error title={github_property(title)},line=1::{github_data(text, text)}"
    assert PARSERS["github"](line.encode(), []) == [("error", ["title", "line"], 1)]
    (said,) = re.findall(r"title=([^,]*)", line)
    assert said.replace("%3A", ":").replace("%2C", ",").replace("%25", "%") == shown(title)


@given(ANY)
def test_no_link_is_made_of_a_message(text: str) -> None:
    assert "](" not in sarif_text(text, text)


@given(ANY)
def test_a_string_of_dot_is_one(text: str) -> None:
    assert PARSERS["dot"](dot_text(text, text).encode(), []) == ['"']
    inside = dot_text(text)[1:-1].replace("\\\\", "\\").replace('\\"', '"')
    assert html.unescape(inside) == html.unescape(re.sub(r"&(?=#|\w+;)", "&amp;", shown(text)))


@given(ANY)
def test_markup_is_read_back(text: str) -> None:
    root = etree.fromstring(f'<a b="{markup_text(text)}">{markup_text(text)}</a>')
    assert (root.text or "", root.get("b"), len(root)) == (visible(text), visible(text), 0)


@given(st.lists(ANY, min_size=2))
@example(["=1+1", "a;b", 'c"d', "e,=1"])
def test_rows_of_csv_are_read_back(cells: list[str]) -> None:
    written = csv_lines([cells, cells])
    assert PARSERS["csv"](written.encode(), []) == [len(cells)] * 2
    row, _ = csv.reader(io.StringIO(written, newline=""), delimiter=";")
    for cell, text in zip(row, cells, strict=True):
        assert cell.replace("'", "") == visible(field(text)).replace("'", "")


@given(st.lists(ANY))
def test_names_of_files_differ_and_stay_inside(names: list[str]) -> None:
    found = file_names(names)
    assert len({name.casefold() for name in found}) == len(names)
    for name in found:
        assert re.fullmatch(r"[A-Za-z0-9_+=.][\w.+=-]{0,160}", name, re.ASCII)
        assert not name.startswith(".")


@given(ANY)
def test_members_of_archives_stay_inside_and_are_read_back(name: str) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(f"{member_name(name)}.npy", b"")
    assert PARSERS["npz"](file.getvalue(), []) == 1
    with zipfile.ZipFile(file) as archive:
        assert name_of_member(archive.namelist()[0].removesuffix(".npy")) == name
