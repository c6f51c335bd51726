"""Every message that the package can give is shown in some snapshot, where a reviewer reads it."""

from __future__ import annotations

import pytest
from harness.shown import NO_MESSAGES, is_for_users, missing
from harness.spoken import lost, messages


@pytest.mark.xfail(reason="being filled")
def test_every_message_is_shown() -> None:
    assert list(map(str, missing())) == []


@pytest.mark.xfail(reason="being filled")
def test_every_error_and_finding_says_something() -> None:
    """Where this fails, `harness.spoken` does not understand how a text is put together."""
    assert list(map(str, lost())) == []


def test_what_is_no_message_is_there() -> None:
    found = [m for m in messages() if not is_for_users(m)]
    assert len(found) == len(NO_MESSAGES), found
