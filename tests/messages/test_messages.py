"""The messages of all refused layers, compared with one snapshot per group."""

from __future__ import annotations

import pytest
from harness.refusals import cases, folder, groups, told
from harness.snapshots import same_as_before


@pytest.mark.parametrize("group", groups())
def test_group(group: str) -> None:
    said = dict(map(told, cases(group)))
    assert len(said) == len(cases(group)), "two cases have the same name"
    silent = [name for name, words in said.items() if words == "nothing"]
    same_as_before(f"{folder(group)}/{group}", "\n\n".join(f"# {name}\n{said[name]}" for name in said))
    assert silent == []
