"""Conversion of strings to bytes and back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ir_runtime.ops.kernels.strings import decode, header_size, pack_strings, unpack_strings


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]))))
def test_packing_is_the_inverse(texts: list[str]) -> None:
    raw = pack_strings(np.array(texts, object))
    assert raw.size == header_size(len(texts)) + sum(len(t.encode()) for t in texts)
    assert unpack_strings(raw, len(texts)).tolist() == texts


@given(st.binary())
def test_bytes_that_are_no_text_survive(raw: bytes) -> None:
    assert decode(raw).encode("utf-8", "surrogateescape") == raw
    assert decode(decode(raw)) == decode(raw)


@given(st.binary(min_size=header_size(3), max_size=60))
def test_any_bytes_are_texts_or_refused(raw: bytes) -> None:
    try:
        found = unpack_strings(np.frombuffer(raw, np.uint8), 3)
    except ValueError:
        return
    assert found.shape == (3,)


def test_bounds_are_checked() -> None:
    raw = np.array([2, 0, 5, 9], "<i4").view(np.uint8)
    with pytest.raises(ValueError, match="do not increase from 0 to at most 0"):
        unpack_strings(raw, 2)
