"""Who made the processor, as the system says."""

from __future__ import annotations

from pathlib import Path

import pytest

from ir_runtime.backends.core import processor
from ir_runtime.backends.core.processor import is_intel

LINES = "processor\t: 0\nvendor_id\t: {}\nmodel name\t: GenuineIntel's rival\n"


@pytest.mark.parametrize(("vendor", "expected"), [("GenuineIntel", True), ("AuthenticAMD", False)])
def test_linux_says_it_in_a_file(tmp_path: Path, vendor: str, expected: bool) -> None:
    file = tmp_path / "cpuinfo"
    file.write_text(LINES.format(vendor))
    assert is_intel(file) is expected


@pytest.mark.parametrize(
    ("said", "expected"),
    [("Intel64 Family 6 Model 143 Stepping 8, GenuineIntel", True), ("arm", False), ("", False)],
)
def test_other_systems_say_it_in_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, expected: bool
) -> None:
    monkeypatch.setattr(processor.platform, "processor", lambda: said)
    assert is_intel(tmp_path / f"missing {expected} {len(said)}") is expected
