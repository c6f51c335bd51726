"""Objects that were found, best first: in the same order, but for those whose scores are equal to rounding."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ir_runtime.ir.tensor import Array

# Scores are f32 from 0 to 1, behind some dozens of layers: the last digits depend on the order of sums.
TIE = 1e-5


def assert_same_detections(
    ours: Sequence[Array], theirs: Sequence[Array], *, rtol: float, atol: float, tie: float = TIE
) -> None:
    """Fail unless the same objects were found; rows may only change places with rows of equal scores.

    Args:
        ours: boxes ``[n, 4]``, scores ``[n]`` and labels ``[n]``.
        theirs: likewise.
        rtol: how far numbers may be apart, relative to theirs.
        atol: how far at least, for boxes.
        tie: how far apart scores are equal.

    Raises:
        AssertionError: if they differ.
    """
    assert [array.shape for array in ours] == [array.shape for array in theirs]
    assert len(theirs[0]), "nothing was found that could be compared"
    place = _nearest(ours, theirs)
    assert sorted(place) == list(range(len(place))), "some row has no row of its own among theirs"
    _, scores, labels = theirs
    apart = np.abs(scores[place] - scores)
    assert (apart <= tie).all(), (
        f"rows {np.flatnonzero(apart > tie)} stand elsewhere, and their scores differ"
    )
    np.testing.assert_array_equal(ours[2], labels[place])
    np.testing.assert_allclose(ours[1], scores[place], rtol=rtol, atol=0)
    np.testing.assert_allclose(ours[0], theirs[0][place], rtol=rtol, atol=atol)
    assert (np.diff(ours[1]) <= 0).all(), "scores do not descend"


def _nearest(ours: Sequence[Array], theirs: Sequence[Array]) -> Array:
    """For each of our rows, that of theirs with the same label, and the nearest box and score."""
    a, b = (np.column_stack(arrays).astype(np.float64) for arrays in (ours, theirs))
    return np.abs(a[:, None] - b).max(-1).argmin(-1)
