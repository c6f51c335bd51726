"""``ir-runtime guide``: pages on how the package is used, built and extended."""

from __future__ import annotations

from collections.abc import Callable

from click.testing import Result

Check = Callable[..., Result]


def test_lists_them(check: Check) -> None:
    check("guide_list", "guide")


def test_unknown_ones_are_refused(check: Check) -> None:
    check("guide_near", "guide glosary")
    check("guide_unknown", "guide 9")
