"""The guide lists the replacement of each legacy layer, as its declaration states it."""

from __future__ import annotations

import inspect
import re

from ir_runtime.guides import guide
from ir_runtime.io.reader.legacy.declaration import LegacyLayer, declared
from ir_runtime.io.reader.legacy.net import read_legacy

assert read_legacy  # whose module registers the declarations


def described(cls: type[LegacyLayer]) -> str:
    return (
        " ".join((inspect.getdoc(cls) or "").split())
        .removeprefix("Refused: ")
        .removeprefix("Upgraded to ")
        .rstrip(".")
    )


def test_the_guide_has_every_declaration() -> None:
    text = guide("legacy").text
    rows = dict(re.findall(r"^\| ([A-Z].*?) \| (.*) \|$", text, re.MULTILINE))
    one = re.search(r"^Types that are one operation: (.*?)\.\n\n", text, re.DOTALL | re.MULTILINE)
    assert one is not None
    single = " ".join(one[1].split())
    for cls in set(declared().values()):
        names, becomes = ", ".join(cls.types), described(cls)
        if names not in rows:
            same = cls.types[0].lower() == becomes.lower()
            assert (names if same else f"{names} ({becomes})") in single
        else:
            assert rows.pop(names) == becomes
    assert rows == {}


def test_every_declaration_is_described() -> None:
    assert all(described(cls) for cls in declared().values())
