"""``ir-runtime completion``: shell completion of commands, options, files, layers, inputs, operations and codes.

The command line is split, and completions are quoted, by the rules of each shell.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from html import unescape
from typing import TypeAlias

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
    get_completion_class,
)

from .._util.escaping import one_line
from .helping import GroupedCommand, program_args

__all__ = ["attach", "completion", "quote_for_bash", "register", "split"]

_EPILOG = """\b
bash:  ir-runtime completion bash > ~/.local/share/bash-completion/completions/ir-runtime
zsh:   ir-runtime completion zsh > ~/.zfunc/_ir-runtime   (with fpath+=~/.zfunc before compinit)
fish:  ir-runtime completion fish > ~/.config/fish/completions/ir-runtime.fish

For the current shell only: source <(ir-runtime completion bash)
"""


@click.command(epilog=_EPILOG, cls=GroupedCommand, group="Keep")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script for SHELL: commands, options, files, layers, inputs and codes."""
    register()
    completion_class = get_completion_class(shell)
    assert completion_class is not None
    completer = completion_class(ctx.find_root().command, {}, "ir-runtime", "_IR_RUNTIME_COMPLETE")
    click.echo(completer.source_template % completer.source_vars(), nl=False)


_Item: TypeAlias = "CompletionItem[str]"

# Bash would break words at the colons of layer names and at the equals sign of NAME=FILE. Completions are read line by line
# without expansion, which would take a * in them for a file pattern.
_BASH = r"""COMP_WORDBREAKS=${COMP_WORDBREAKS//[:=]/}
%(complete_func)s() {
    local response line
    response=$(env COMP_LINE="${COMP_LINE:0:COMP_POINT}" %(complete_var)s=bash_complete "$1")
    COMPREPLY=()
    while IFS= read -r line; do
        case ${line%%%%,*} in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain) COMPREPLY+=("${line#*,}") ;;
        esac
    done <<< "$response"
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""

_ZSH = r"""#compdef %(prog_name)s

%(complete_func)s() {
    local -a response completions described
    local type key descr
    (( ! $+commands[%(prog_name)s] )) && return 1

    response=("${(@f)$(env COMP_LINE="${(j: :)words[1,CURRENT]}" %(complete_var)s=zsh_complete %(prog_name)s)}")

    for type key descr in "${(@)response}"; do
        if [[ $type == dir ]]; then
            _path_files -/
        elif [[ $type == file ]]; then
            _path_files -f
        elif [[ $type == plain && $descr == _ ]]; then
            completions+=("$key")
        elif [[ $type == plain ]]; then
            described+=("$key:$descr")
        fi
    done

    if (( $#described )); then
        _describe -V unsorted described -U
    fi
    if (( $#completions )); then
        compadd -U -V unsorted -a completions
    fi
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    %(complete_func)s "$@"
else
    compdef %(complete_func)s %(prog_name)s
fi
"""

_FISH = r"""function %(complete_func)s
    set -l response (env COMP_LINE=(commandline -cp | string collect) %(complete_var)s=fish_complete %(prog_name)s)
    for completion in $response
        set -l answer (string split -m 1 , -- $completion)
        switch $answer[1]
            case dir
                __fish_complete_directories $answer[2]
            case file
                __fish_complete_path $answer[2]
            case plain
                printf '%%s\n' $answer[2]
        end
    end
end

complete --no-files --command %(prog_name)s --arguments "(%(complete_func)s)"
"""

# Characters to escape for bash. The ASCII characters excluded here are literal except at the start of a word; non-ASCII ones always are.
_SPECIAL = re.compile(r"[^\w@%+=:,./\x80-\U0010ffff-]", re.ASCII)
_SPECIAL_IN_QUOTES = re.compile(r"[$`\"\\]")
# The start of an option that has its value in the same word.
_OPTION = re.compile(r"--?[\w-]+=", re.ASCII)
_PLAIN = re.compile(r"[\w./:=+-]+", re.ASCII)


def split(line: str, in_single_quotes: str = "") -> tuple[list[str], str, int]:
    r"""Split a command line; also return the quote left open at its end, and the length of the last word before it.

    >>> split("run 'a b' c\\$\\(d"), split('run x"y z')
    ((['run', 'a b', 'c$(d'], '', 0), (['run', 'xy z'], '"', 1))

    Args:
        line: a command line up to the cursor; the last word is empty after a space.
        in_single_quotes: the characters that a backslash escapes in single quotes.
    """
    escaped = {"": None, '"': '$`"\\', "'": in_single_quotes}
    words: list[str] = []
    word, quote, before = None, "", 0
    letters = iter(range(len(line)))
    for place in letters:
        letter, following = line[place], line[place + 1 : place + 2]
        if letter == "\\" and ((wanted := escaped[quote]) is None or (following and following in wanted)):
            word = (word or "") + following
            next(letters, None)
        elif quote and letter == quote:
            quote = ""
        elif not quote and letter in "'\"":
            word = word or ""
            quote, before = letter, len(word)
        elif not quote and letter in " \t\n":
            words, word = words if word is None else [*words, word], None
        else:
            word = (word or "") + letter
    return [*words, word or ""], quote, before if quote else 0


def quote_for_bash(word: str, quote: str = "") -> str:
    r"""Quote a word for bash, continuing an open quote if there is one.

    >>> print(quote_for_bash("a$(b)"), quote_for_bash("it's", "'"), quote_for_bash('"$x"!', '"'))
    a\$\(b\) it'\''s \"\$x\""\!"
    """
    if quote == "'":
        return word.replace("'", "'\\''")
    if quote:  # double quotes, in which bash expands history at "!"
        return _SPECIAL_IN_QUOTES.sub(r"\\\g<0>", word).replace("!", '"\\!"')
    return _SPECIAL.sub(r"\\\g<0>", word)


class _Quoting(ShellComplete):
    """Completes the command line in ``COMP_LINE``, offering only printable completions."""

    _in_single_quotes = ""

    def get_completion_args(self) -> tuple[list[str], str]:
        words, self._quote, self._before = split(os.environ["COMP_LINE"], self._in_single_quotes)
        return words[1:-1], words[-1] if len(words) > 1 else ""

    def complete(self) -> str:
        """Return the completions; none for click's own scripts, which do not handle quotes."""
        if "COMP_LINE" not in os.environ:
            return ""
        args, incomplete = self.get_completion_args()
        option = _OPTION.match(incomplete)
        answers = []
        for item in self.get_completions(args, incomplete):
            if item.type == "plain":
                item.value = self._word(f"{option[0] if option else ''}{item.value}", incomplete)
            elif not item.value.isprintable():
                item.value = ""
            if item.type != "plain" or (item.value and item.value.isprintable()):
                answers.append(self.format_completion(item))
        return "\n".join(answers)

    def _word(self, word: str, incomplete: str) -> str:
        return word


class _Bash(_Quoting, BashComplete):
    source_template = _BASH

    def _word(self, word: str, incomplete: str) -> str:
        """Return a completion, quoted, to replace the text after the open quote, or the whole word if no quote is open.

        It is empty if the completion does not start with the text before the open quote.
        """
        same = word.startswith(incomplete[: self._before])
        return quote_for_bash(word[self._before :], self._quote) if same else ""


class _Zsh(_Quoting, ZshComplete):
    source_template = _ZSH

    def format_completion(self, item: _Item) -> str:
        if not item.help:
            return f"{item.type}\n{item.value}\n_"
        value = item.value.replace("\\", "\\\\").replace(":", "\\:")
        return f"{item.type}\n{value}\n{one_line(item.help)}"


class _Fish(_Quoting, FishComplete):
    source_template = _FISH
    _in_single_quotes = "'\\"

    def format_completion(self, item: _Item) -> str:
        help = f"\t{one_line(item.help)}" if item.help else ""
        return f"{item.type},{item.value}{help}"


def register() -> None:
    """Register these classes with click; for PowerShell, offer only completions that need no quotes."""
    for cls in (_Bash, _Zsh, _Fish):
        add_completion_class(cls)
    if (other := get_completion_class("powershell")) is not None:
        add_completion_class(type("_PowerShell", (other,), {"get_completions": _plain_completions(other)}))


def _plain_completions(cls: type[ShellComplete]) -> object:
    """Return a ``get_completions`` that drops the completions of a class that need quotes."""

    def get_completions(self: ShellComplete, args: list[str], incomplete: str) -> list[_Item]:
        items = cls.get_completions(self, args, incomplete)
        return [item for item in items if _PLAIN.fullmatch(item.value)]

    return get_completions


_Completer: TypeAlias = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]

# Start tags of layers, and their attributes; for speed, the .xml is searched as text.
_LAYER = re.compile(rb"<layer\s((?:[^<>\"']++|\"[^<\"]*\"|'[^<']*')*+)>")
_ATTRIBUTE = re.compile(rb"(?<!\S)(name|type)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_MOST_BYTES = 1 << 26
_HIDDEN = ("Const", "Result")
_ARRAYS = (".npy", ".npz")


def attach(name: str, command: click.Command) -> None:
    """Attach completers to the parameters of a command, by parameter name."""
    completers = _COMPLETERS | _OF_COMMANDS.get(name, {})
    for param in command.params:
        if (completer := completers.get(param.name or "")) is not None:
            param._custom_shell_complete = completer


def _complete_words(words: Iterable[str], start: str) -> list[CompletionItem]:
    return [CompletionItem(word) for word in words if word.startswith(start)]


def _files(*endings: str) -> _Completer:
    """Return a completer of files with these suffixes; it defers to the shell if there are folders."""

    def complete(_: click.Context, __: click.Parameter, start: str) -> list[CompletionItem]:
        entries = list(_entries(start, endings))
        if not entries or any(word.endswith("/") for word in entries):
            return [CompletionItem(start, type="file")]
        return [CompletionItem(word) for word in entries]

    return complete


def _entries(start: str, endings: tuple[str, ...]) -> Iterator[str]:
    """Yield the folders, with a slash, and the files with these suffixes whose paths start with a prefix."""
    folder, part = os.path.split(start)
    try:
        with os.scandir(folder or ".") as entries:
            for entry in sorted(entries, key=lambda each: each.name):
                if not entry.name.startswith(part) or (entry.name.startswith(".") and not part):
                    continue
                if entry.name.startswith("-") and not folder:  # which would be an option
                    continue
                if entry.is_dir():
                    yield os.path.join(folder, entry.name) + "/"
                elif entry.name.lower().endswith(endings):
                    yield os.path.join(folder, entry.name)
    except OSError:
        return


def _layers(ctx: click.Context, _: click.Parameter, start: str) -> list[CompletionItem]:
    return _complete_words((name for name, type in _layers_of_model(ctx) if type not in _HIDDEN), start)


def _inputs(ctx: click.Context, _: click.Parameter, start: str) -> list[CompletionItem]:
    """Complete ``NAME=FILE`` and ``FILE``."""
    name, equals, path = start.partition("=")
    arrays = [word for word in _entries(path if equals else start, _ARRAYS) if not word.endswith("/")]
    if equals:
        return [CompletionItem(f"{name}={word}") for word in arrays]
    inputs = [
        each
        for each, type in _layers_of_model(ctx)
        if type == "Parameter" and each.startswith(start) and "=" not in each
    ]
    files = list(_entries("", _ARRAYS)) or [""]
    pairs = [f"{each}={file}" for each in inputs for file in files if not file.endswith("/")]
    return [CompletionItem(word) for word in (*arrays, *pairs)] or [CompletionItem(start, type="file")]


def _layers_of_model(ctx: click.Context) -> Iterator[tuple[str, str]]:
    """Yield the name and type of each layer of the model on the command line."""
    # click cannot parse a line with an option that lacks its value, so the arguments are searched directly.
    path = next((arg for arg in program_args(ctx) if arg.endswith(".xml")), "")
    try:
        with open(path, "rb") as file:
            text = file.read(_MOST_BYTES) if os.path.isfile(path) else b""
    except OSError:
        return
    for tag in _LAYER.finditer(text):
        attributes = {key: _text(one or other) for key, one, other in _ATTRIBUTE.findall(tag[1])}
        name = attributes.get(b"name")
        if name and not name.startswith("-"):
            yield name, attributes.get(b"type") or ""


def _text(value: bytes) -> str | None:
    """Decode an XML attribute and unescape its entities; ``None`` if it is not UTF-8."""
    try:
        return unescape(re.sub(r"[\t\r\n]", " ", value.decode()))
    except UnicodeDecodeError:
        return None


def _codes(_: click.Context, __: click.Parameter, start: str) -> list[CompletionItem]:
    from ..codes import Code

    items = [CompletionItem(code.value, help=code.summary) for code in Code]
    return [item for item in items if item.value.startswith(start.upper())]


def _operations(_: click.Context, __: click.Parameter, start: str) -> list[CompletionItem]:
    from ..ops import registry

    names = {name: None for cls in registry for name in (cls.name, cls.versioned_name())}
    return _complete_words(names if "-" in start else dict.fromkeys(cls.name for cls in registry), start)


def _guides(_: click.Context, __: click.Parameter, start: str) -> list[CompletionItem]:
    from ..guides import guides

    return [CompletionItem(page.name, help=page.title) for page in guides() if page.name.startswith(start)]


def _releases(_: click.Context, __: click.Parameter, start: str) -> list[CompletionItem]:
    from ..releases.release import releases

    return _complete_words(map(str, releases()), start)


def _backends(_: click.Context, __: click.Parameter, start: str) -> list[CompletionItem]:
    return _complete_words(("native", "numpy", "reference"), start)


_MODEL = _files(".xml")
_COMPLETERS: dict[str, _Completer] = {
    **dict.fromkeys(("model", "models", "path", "old", "new"), _MODEL),
    "weights": _files(".bin"),
    "files": _inputs,
    "layers": _layers,
    "code": _codes,
    "backend": _backends,
    "for_release": _releases,
    "results": _files(*_ARRAYS),
    **dict.fromkeys(("output", "labels", "report_folder"), _files("")),
}
_OF_COMMANDS: dict[str, dict[str, _Completer]] = {"ops": {"name": _operations}, "guide": {"name": _guides}}
