r"""Escaping of names and other text from models and files, with one function for each destination.

The author of a model chooses its strings: names of layers, types, tensors, attributes, variables, files. Each may contain
line breaks, terminal escape sequences, bidirectional control characters, markup, formulas, ``../``, or 200,000 letters. So
all text of a model is written through this module:

================================  ==========================================================
destination                       function
================================  ==========================================================
a line, a cell of a table         `visible`, `shown`; `quoted` for a name in a sentence
a field of JSON                   `field`; `json_text` writes the whole
SARIF                             `sarif_text` for messages, `field` for names
an annotation of GitHub           `github_data`, `github_property`
DOT                               `dot_text`
HTML, SVG                         `markup_text`
CSV                               `csv_lines`
a file, a member of an ``.npz``   `file_names`, `member_name`; `name_of_member` reads it
================================  ==========================================================

Ordinary names are unchanged. Text for people has at most `LONGEST` characters of a name, with ``…`` in place of the middle.
Data have whole names, unless the names longer than `LONGEST` have more than `MOST` characters together in a document: then
each becomes its two ends around its digest, so that different names stay different. The size of output is thus bounded by
`MOST`, plus `LONGEST` for each name that the file makes it mention.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

__all__ = [
    "LONGEST",
    "MOST",
    "csv_lines",
    "cut",
    "dot_text",
    "field",
    "file_names",
    "github_data",
    "github_property",
    "json_text",
    "markup_text",
    "member_name",
    "name_of_member",
    "one_line",
    "quoted",
    "sarif_text",
    "shown",
    "unique",
    "visible",
]

LONGEST = 1000
"""Maximum number of characters of a name, or of a message, that are written unchanged."""
MOST = 1 << 20
"""Maximum total number of characters of the longer texts in a JSON document that are written unchanged."""
# Number of characters of a digest, and maximum number of characters of a file name without its suffix.
_DIGITS = 16
_LONGEST_FILE = 150

# Patterns are compiled on first use, as most programs use none.
# The start of a command in a log: of GitHub (:: at the start of a line, ##[ anywhere), Azure (##vso[) or TeamCity.
_COMMAND = r"^(\s*):(?=:)|#(?=#\w*\[)"
# The start of a formula in spreadsheets, also if they split lines at commas.
_FORMULA = r"(^|[;,] *)(?=[=+\-@\uff1d\uff0b\uff0d\uff20])"
# The start of an HTML entity, which DOT decodes.
_ENTITY = r"&(?=#|\w+;)"
_NO_FILE_NAME = r"[^A-Za-z0-9_.+=-]"
# Device names of Windows, with any suffix.
_DEVICE = r"(?i:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)"
# Characters by which a member of an archive would leave its folder or name a drive, and escapes of characters.
_OUTSIDE = r"^/|(?<=^[A-Za-z]):(?=[/\\.])|(?:^|(?<=/))[. ]*\.\.[. ]*(?=/|$)|\\|%(?=[0-9A-Fa-f]{2})"


def one_line(text: str, most: int = LONGEST) -> str:
    r"""Replace line breaks by spaces, and the middle of text longer than ``most`` by ``…``.

    >>> one_line("a\nb"), one_line("123456789", 8)
    ('a b', '123456 … 89')
    """
    if len(text) > most:
        text = f"{text[: most * 3 // 4]} … {text[-(most // 4) :]}"
    lines = text.splitlines()
    return " ".join(lines) if len(lines) > 1 else text


def visible(text: str) -> str:
    r"""Return text as one line with control characters escaped.

    Escaped are characters that are not printable, end lines or change the direction of text, and the first character of a
    command in logs of CI systems.

    >>> visible("a\u202eb"), visible("Übung"), visible("a::b"), visible("::stop-commands::x")
    ('a\\u202eb', 'Übung', 'a::b', '\\x3a:stop-commands::x')
    """
    if not text.isprintable():
        text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    if "##" in text or text.lstrip().startswith("::"):
        text = re.sub(_COMMAND, lambda found: f"{found[1]}\\x3a" if found[0] != "#" else "\\x23", text)
    return text


def shown(text: str, most: int = LONGEST) -> str:
    """Return `visible` text, after its middle was cut out to leave at most ``most`` characters; escapes may make it longer.

    >>> shown("encoder/layers/0"), shown("encoder/layers/0", 9)
    ('encoder/layers/0', 'enco…rs/0')
    """
    return visible(cut(text, most))


def cut(text: str, most: int = LONGEST) -> str:
    """Cut out the middle of text longer than ``most`` characters, to leave that many, including ``…``.

    >>> cut("123456789", 5)
    '12…89'
    """
    half = (most - 1) // 2
    return f"{text[: most - 1 - half]}…{text[-half:]}" if len(text) > most else text


def quoted(name: str, most: int = LONGEST) -> str:
    r"""Return a name in quotes, for a sentence, of at most about ``most`` characters.

    >>> quoted("conv1"), quoted("it's"), quoted("123456789", 8)
    ("'conv1'", '"it\'s"', "'12345 … 9'")
    """
    return visible(one_line(repr(name), most))


def field(name: str) -> str:
    """Return a name as data: unchanged up to `LONGEST` characters, else its two ends around its digest.

    Different names stay different.

    >>> field("conv1"), field("a" * 5000) == field("a" * 5000), field("a" * 5000) == field("a" * 5001)
    ('conv1', True, False)
    >>> len(field("a" * 5000))
    1000
    """
    if len(name) <= LONGEST:
        return name
    from hashlib import sha256

    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
    half = (LONGEST - _DIGITS - 2) // 2
    return f"{name[:half]}…{digest}…{name[-half:]}"


def json_text(data: Any, *, whole: bool = False, **options: Any) -> str:
    r"""Return ASCII JSON without log commands, from which parsers restore all text unchanged, unless it is shortened.

    Texts with more than `LONGEST` characters stay whole if they have at most `MOST` characters together; otherwise, each
    becomes a `field`.

    >>> json_text(["##[group]", "\u202e"])
    '["#\\u0023[group]", "\\u202e"]'

    Args:
        data: the data to write.
        whole: whether to keep all texts whole, for data that mention each name once.
        options: options of `json.dumps`.
    """
    import json

    if not whole and sum(_long_texts(data)) > MOST:
        data = _cut_names(data)
    return json.dumps(data, allow_nan=False, **options).replace("##", "#\\u0023")


def _long_texts(data: Any) -> Iterator[int]:
    """Yield the lengths of texts longer than `LONGEST`, including keys."""
    waiting: list[Any] = [[data]]
    while waiting:
        parts = waiting.pop()
        for part in (*parts, *parts.values()) if isinstance(parts, Mapping) else parts:
            if isinstance(part, str):
                if len(part) > LONGEST:
                    yield len(part)
            elif isinstance(part, list | tuple | dict):
                waiting.append(part)


def _cut_names(data: Any) -> Any:
    if isinstance(data, str):
        return field(data)
    if isinstance(data, Mapping):
        return {_cut_names(key): _cut_names(value) for key, value in data.items()}
    return [_cut_names(value) for value in data] if isinstance(data, list | tuple) else data


def sarif_text(*lines: str) -> str:
    r"""Return a message for SARIF, without text that readers would turn into links.

    >>> sarif_text("expected [1,3]", "see [here](https://example.org)")
    'expected [1,3]\nsee [here] (https://example.org)'
    """
    return "\n".join(map(shown, lines)).replace("](", "] (")


def github_data(*lines: str) -> str:
    r"""Return the message of a GitHub annotation, in several lines.

    >>> github_data("a%b", "c\u0085")
    'a%25b%0Ac\\x85'
    """
    return "\n".join(map(shown, lines)).replace("%", "%25").replace("\n", "%0A")


def github_property(text: str) -> str:
    """Return the value of a property of a GitHub annotation, such as its title.

    >>> github_property("IR201: aten::add, 100%")
    'IR201%3A aten%3A%3Aadd%2C 100%25'
    """
    return shown(text).replace("%", "%25").replace(":", "%3A").replace(",", "%2C")


def dot_text(*lines: str) -> str:
    r"""Return a quoted DOT string, with lines separated by ``\n``.

    >>> print(dot_text("Abs-1", 'a"];\\N &lt;'))
    "Abs-1\na\"];\\N &amp;lt;"
    """
    escaped = (shown(line).replace("\\", "\\\\").replace('"', '\\"') for line in lines)
    return '"' + re.sub(_ENTITY, "&amp;", "\\n".join(escaped)) + '"'


def markup_text(text: str) -> str:
    r"""Return text escaped for HTML and XML, in elements and in quoted attributes.

    >>> markup_text("<b>&\x00")
    '&lt;b&gt;&amp;\\x00'
    """
    import html

    return html.escape(visible(text))


def csv_lines(rows: Iterable[Sequence[object]], delimiter: str = ";") -> str:
    """Return rows as CSV, in which no text becomes a formula or ends its cell, even if lines are split at commas.

    >>> print(csv_lines([["conv1", 1.5], ["=1+1", "a;b"]]), end="")
    conv1;1.5
    '=1+1;"a;b"
    """
    return "".join(f"{delimiter.join(_cell(value, delimiter) for value in row)}\n" for row in rows)


def _cell(value: object, delimiter: str) -> str:
    if not isinstance(value, str):
        return "" if value is None else str(value)
    text = re.sub(_FORMULA, r"\1'", visible(field(value)))
    return '"' + text.replace('"', '""') + '"' if '"' in text or delimiter in text else text


def unique(names: Iterable[str]) -> list[str]:
    """Return names made unique by numbers; names that differ only in case count as equal.

    >>> unique(["a", "b", "A", "a"])
    ['a', 'b', 'A_2', 'a_3']
    """
    used: set[str] = set()
    next_number: dict[str, int] = {}
    results = []
    for name in names:
        key, candidate = name.casefold(), name
        number = next_number.get(key, 1)
        while candidate.casefold() in used:
            number += 1
            candidate = f"{name}_{number}"
        next_number[key] = number
        used.add(candidate.casefold())
        results.append(candidate)
    return results


def file_names(names: Iterable[str]) -> list[str]:
    """Return a unique file name for each name, valid on all file systems and without folders.

    >>> file_names(["block1/conv", "../x", "-rf", "", "CON", "con"])
    ['block1_conv', '_x', '_rf', '_', '_CON', '_con_2']
    """
    return unique(map(_file_name, names))


def _file_name(name: str) -> str:
    text = re.sub(_NO_FILE_NAME, "_", name[: 2 * _LONGEST_FILE]).strip(".")[:_LONGEST_FILE] or "_"
    if text.startswith("-"):  # programs would take it for an option
        text = f"_{text[1:]}"
    return f"_{text}" if re.match(_DEVICE, text) else text


def member_name(name: str) -> str:
    r"""Escape a name for an archive member, so that extraction cannot write outside the target folder.

    Path parts such as ``..``, a leading slash, a drive, backslashes and unprintable characters are percent-encoded;
    `name_of_member` decodes them.

    >>> member_name("block1/conv:0"), member_name("../x"), member_name("/etc/x"), member_name("C:\\x")
    ('block1/conv:0', '%2E%2E/x', '%2Fetc/x', 'C%3A%5Cx')
    """
    escaped = re.sub(_OUTSIDE, lambda found: _percent(found[0]), field(name))
    return (
        escaped if escaped.isprintable() else "".join(c if c.isprintable() else _percent(c) for c in escaped)
    )


def _percent(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode("utf-8", "surrogatepass"))


def name_of_member(member: str) -> str:
    """Return the name that `member_name` has escaped to ``member``; ``member`` itself if it is not the result of that function.

    >>> name_of_member("%2E%2E/x"), name_of_member("100%25"), name_of_member("a%20b")
    ('../x', '100%25', 'a%20b')
    """
    if "%" not in member:
        return member
    from urllib.parse import unquote_to_bytes

    try:
        name = unquote_to_bytes(member).decode("utf-8", "surrogatepass")
    except UnicodeError:
        return member
    return name if member_name(name) == member else member
