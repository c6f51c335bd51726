"""``ir-runtime completion``: completions in bash, zsh and fish, tested in the installed shells."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from xml.sax.saxutils import quoteattr

import pytest
from click.testing import CliRunner, Result
from harness.nets import write_chain
from hypothesis import given, settings
from hypothesis import strategies as st

from ir_runtime.cli import main
from ir_runtime.cli.completion import quote_for_bash, split

Invoke = Callable[[str], Result]

CASES = [
    ("vali", ["validate"]),
    ("run --nan", ["--nan-check"]),
    ("run ch", ["chain.xml"]),
    ("run chain.xml -w ", ["chain.bin"]),
    ("run chain.xml --layers s", ["shift", "stretch"]),
    ("run chain.xml --layers aten::s", ["aten::sum"]),
    ("run chain.xml -i ", ["x.npy", "x=x.npy"]),
    ("run chain.xml -i x=", ["x=x.npy"]),
    ("run chain.xml --backend n", ["native", "numpy"]),
    ("bench -m ch", ["chain.xml"]),
    ("explain ir301", ["IR301"]),
    ("ops SpaceTo", ["SpaceToBatch", "SpaceToDepth"]),
    ("ops ReduceL2-", ["ReduceL2-4"]),
    ("guide gloss", ["glossary"]),
    ("completion f", ["fish"]),
    ("validate chain.xml --for 2024.", [f"2024.{number}" for number in range(7)]),
    ("upgrade chain.xml new.xml --for 2021", ["2021.4"]),
]


@pytest.fixture(autouse=True)
def model(folder: Path) -> None:
    path = write_chain(folder)
    path.write_text(path.read_text().replace('name="bias" type="Const"', 'name="aten::sum" type="Add"'))
    (folder / "x.npy").touch()
    (folder / "notes.txt").touch()


def answers(shell: str, line: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the completions that a shell's script gets for a line."""
    monkeypatch.setenv("_IR_RUNTIME_COMPLETE", f"{shell}_complete")
    monkeypatch.setenv("COMP_LINE", f"ir-runtime {line}")
    return CliRunner().invoke(main, [], prog_name="ir-runtime").stdout


def completed(line: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the words completed by bash."""
    return [item.partition(",")[2] for item in answers("bash", line, monkeypatch).splitlines()]


@pytest.mark.parametrize(("line", "expected"), CASES)
def test_words_are_completed(monkeypatch: pytest.MonkeyPatch, line: str, expected: list[str]) -> None:
    found = completed(line, monkeypatch)
    assert found == expected


def test_files_beside_folders_are_left_to_the_shell(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "chains").mkdir()
    assert completed("run ch", monkeypatch) == ["ch"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script(invoke: Invoke, shell: str) -> None:
    script = invoke(f"completion {shell}").stdout
    assert f"_IR_RUNTIME_COMPLETE={shell}_complete" in script
    assert "ir-runtime" in script


# What a name may hold, and how much of it is typed, by the quote that is open.
HOSTILE = [
    "a1conv$(touch${IFS}PWNED)",
    "b2it's `touch PWNED`",
    'c3a"b\\c!d',
    "d4*?[x]",
    "e5sp ace;touch PWNED",
    "x&y|z<w>#",
    "中文 $HOME",
    "~root",
    "#hash",
    "{f,g}",
    "=ls",
    "g,h:i",
]
# These would be answers of their own, or options, or more than they show.
LEFT_OUT = ["nl\nplain,forged", "tab\tb", "esc\x9b2J", "mark\u202eb", "-options", ""]


def hostile(folder: Path) -> None:
    """A model and files with hostile names."""
    layers = [
        f"<layer id='{number}' name={quoteattr(name, {chr(10): '&#10;', chr(9): '&#9;'})} type='ReLU'/>"
        for number, name in enumerate([*HOSTILE, *LEFT_OUT])
    ]
    layers.append('<layer name="p`touch PWNED`" type="Parameter"/><layer name="q=r" type="Parameter"/>')
    (folder / "hostile.xml").write_text(f"<net><layers>{''.join(layers)}</layers></net>", encoding="utf-8")
    (folder / "in$(touch PWNED).npy").touch()
    (folder / "-in.npy").touch()
    (folder / "in\nplain,forged.npy").touch()
    (folder / "x.npy").unlink()


def test_zsh_and_fish_get_each_name_in_a_line_and_quote_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hostile(folder)
    names = [*HOSTILE, "p`touch PWNED`", "q=r"]
    line = "run hostile.xml --layers "
    assert answers("fish", line, monkeypatch).splitlines() == [f"plain,{name}" for name in names]
    assert answers("zsh", line, monkeypatch).splitlines() == [
        part for name in names for part in ("plain", name, "_")
    ]
    assert answers("powershell", line, monkeypatch) in ("", "\n", "plain\nq=r\n_\n")


def test_inputs_that_the_command_line_cannot_name_are_left_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hostile(folder)
    found = completed("run hostile.xml -i ", monkeypatch)
    assert found == [r"in\$\(touch\ PWNED\).npy", r"p\`touch\ PWNED\`=in\$\(touch\ PWNED\).npy"]


def test_a_script_that_quotes_nothing_gets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """For example click's own script, which sets other variables."""
    monkeypatch.setenv("_IR_RUNTIME_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "ir-runtime vali")
    monkeypatch.setenv("COMP_CWORD", "1")
    assert not CliRunner().invoke(main, [], prog_name="ir-runtime").stdout.strip()


@given(
    word=st.text(st.characters(exclude_categories=["C", "Z"]) | st.just(" "), min_size=1),
    quote=st.sampled_from(["", "'", '"']),
)
def test_a_word_for_bash_is_read_as_it_was(word: str, quote: str) -> None:
    line = f"ir-runtime {quote}{quote_for_bash(word, quote)}{quote}"
    assert split(line)[0] == ["ir-runtime", word]


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed; its quotes are read above")
@settings(max_examples=20)
@given(
    st.lists(st.text(st.characters(exclude_categories=["C", "Z"]) | st.just(" "), min_size=1), min_size=20)
)
def test_bash_itself_reads_the_words_as_they_were(words: list[str]) -> None:
    quoted = [f"{quote}{quote_for_bash(word, quote)}{quote}" for word in words for quote in ("", "'", '"')]
    asked = f"printf '%s\\0' {' '.join(quoted)}".encode()
    bash = shutil.which("bash") or ""
    found = subprocess.run([bash], input=asked, capture_output=True, check=True).stdout
    assert found.decode().split("\0")[:-1] == [word for word in words for _ in range(3)]


def lines() -> list[tuple[str, str]]:
    """Yield typed lines, and the last argument that the program must receive."""
    layers = "ir-runtime run hostile.xml --layers"
    found = []
    for number, name in enumerate(HOSTILE):
        start = f"\\{name[:2]}" if name[0] in "~#{=" else name[:2].replace("&", "")
        typed = (start, f"'{name[:2]}", f'"{name[:2]}')[number % 3]
        found.append((f"{layers} {typed}", name))
    first = HOSTILE[0]
    return [
        *found,
        (f'{layers} "a1', first),
        (f"{layers} 'b2", HOSTILE[1]),
        (f'{layers} "c3', HOSTILE[2]),
        (f"{layers} a1conv\\$\\(t", first),
        (f"{layers} a1co'nv", first),
        (f'{layers} a1co"nv', first),
        (f"{layers} 'a1c'onv", first),
        (f"{layers}=a1", f"--layers={first}"),
        (f"{layers}='a1", f"--layers={first}"),
        (f"{layers} nl", "nl"),
        ("ir-runtime run hostile.xml -i in", "in$(touch PWNED).npy"),
        ("ir-runtime run hostile.xml -i p\\`touch\\ PWNED\\`=in", "p`touch PWNED`=in$(touch PWNED).npy"),
        ("ir-runtime explain ir301", "IR301"),
        ("ir-runtime vali", "validate"),
    ]


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
@pytest.mark.skipif(os.name != "posix", reason="needs POSIX")
def test_a_person_who_types_in_a_shell_gets_the_name(folder: Path, invoke: Invoke, name: str) -> None:
    """The completed name is not executed, although Enter follows at once."""
    from harness.terminals import Shell

    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed; what it gets, and what bash makes of its own, is tested above")
    hostile(folder)
    with Shell(name, folder, invoke(f"completion {name}").stdout) as shell:
        for line, expected in lines():
            assert shell.complete(line)[-1] == expected, shell.said[-1000:]
    assert not (folder / "PWNED").exists()
