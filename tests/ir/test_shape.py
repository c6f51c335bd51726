"""Shapes with dynamic dims or unknown rank."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ir_runtime as ir
from ir_runtime.ir.dimension import Dimension, Symbol
from ir_runtime.ir.shape import PartialShape

dims = st.builds(
    lambda low, extra: Dimension.between(low, None if extra is None else low + extra),
    st.integers(0, 3),
    st.none() | st.integers(0, 2),
)
shapes = st.none() | st.lists(dims, max_size=3)
tensors = st.lists(st.integers(0, 5), max_size=3)


@given(a=shapes, b=shapes, tensor=tensors)
def test_merge_and_join(a: list[Dimension] | None, b: list[Dimension] | None, tensor: list[int]) -> None:
    one, other = PartialShape(a), PartialShape(b)
    merged, joined = one.merge(other), one.join(other)
    both = one.contains(tensor) and other.contains(tensor)
    either = one.contains(tensor) or other.contains(tensor)
    assert both is (merged is not None and merged.contains(tensor))
    assert not either or joined.contains(tensor)
    assert one.compatible(other) is (merged is not None)
    assert not (one.refines(other) and one.contains(tensor)) or other.contains(tensor)
    assert one.relaxes(other) is other.refines(one)


@given(a=shapes)
def test_text_and_back(a: list[Dimension] | None) -> None:
    shape = PartialShape(a)
    assert PartialShape(str(shape)) == shape
    assert hash(PartialShape(str(shape))) == hash(shape)
    assert repr(shape) == f"<PartialShape: {shape}>"


@pytest.mark.parametrize(
    ("given", "text"),
    [("?,3,1..4,..8", "[?,3,1..4,..8]"), ("[?,3]", "[?,3]"), ("...", "[...]"), ("[...]", "[...]"), ("", "[]"),
     ("[]", "[]"), ([], "[]"), ([1, -1], "[1,?]"), ((1, 2), "[1,2]"), (None, "[...]"), (ir.Shape([1, 2]), "[1,2]"), (ir.PartialShape("1,?"), "[1,?]"),
     ([1, (2, 5), "3..4", "?", Dimension(7)], "[1,2..5,3..4,?,7]"), (PartialShape([1]), "[1]"),
     (np.array([1, 2]), "[1,2]")],
)  # fmt: skip
def test_spellings(given: object, text: str) -> None:
    assert str(PartialShape(given)) == text  # type: ignore[arg-type]


def test_static_shapes() -> None:
    shape = PartialShape([2, 3])
    assert shape.is_static
    assert shape.static == (2, 3)
    assert shape == (2, 3)
    assert shape == [2, 3]
    assert shape != [2, 4]
    assert shape != "[2,3]"
    assert shape.rank == 2


def test_unknown_rank() -> None:
    shape = PartialShape.dynamic()
    assert shape.rank is None
    assert shape.contains((1, 2, 3))
    for look in (len, list, lambda s: s[0]):
        with pytest.raises(TypeError, match="unknown rank"):
            look(shape)
    assert PartialShape.dynamic(2) == PartialShape("?,?")
    assert PartialShape.dynamic(Dimension(2)) == PartialShape("?,?")


def test_scheme() -> None:
    assert PartialShape("1,?").same_scheme(PartialShape("1,2..3"))
    assert not PartialShape("1,?").same_scheme(PartialShape("1,3"))
    assert not PartialShape("1,?").same_scheme(PartialShape("1"))
    assert PartialShape("...").same_scheme(PartialShape("..."))
    assert not PartialShape("...").same_scheme(PartialShape("?"))


def test_what_is_equal() -> None:
    """Symbols do not count, as in OpenVINO: they relate dims, but have no length."""
    named = PartialShape([Dimension.between(0, None, Symbol("batch")), 3])
    assert named == PartialShape("?,3") == [-1, 3]
    assert hash(named) == hash(PartialShape("?,3"))
    assert named != PartialShape("?,4")
    assert named != PartialShape("...")
    assert named != ["batch", 3]
    assert PartialShape("...") == PartialShape.dynamic()


def test_copies() -> None:
    for text in ("?,3", "...", ""):
        assert str(PartialShape(PartialShape(text))) == str(PartialShape(text))


def test_messages_show_the_ends_of_long_shapes() -> None:
    long = PartialShape([2**62] * 30)
    assert len(str(long)) > 500
    assert f"{long}" == f"{str(long)[:90]} … {str(long)[-30:]}"
    assert f"{PartialShape([1, -1]):>8}" == "   [1,?]"
