"""Connectionist temporal classification: decoding, and the loss."""

from __future__ import annotations

import numpy as np

from ..._util.arrays import Array
from .matmul import accumulator_dtype
from .special import log_softmax

__all__ = ["best_path", "collapse", "loss"]


def best_path(scores: Array) -> Array:
    """Return the argmax along the last axis; NaN is skipped unless it comes first."""
    is_nan = np.isnan(scores)
    if not is_nan.any():
        return np.asarray(scores.argmax(-1))
    numbers = np.where(is_nan, scores.dtype.type(-np.inf), scores)
    return np.asarray(np.where(is_nan[..., 0], 0, numbers.argmax(-1)))


def collapse(path: Array, runs: Array, blank: int, merge_repeated: bool) -> tuple[Array, Array]:
    """Return the classes of ``path[batch, time]`` while it ``runs``, without blanks, and their number.

    The remaining steps are -1.
    """
    keep = runs & (path != blank)
    if merge_repeated:
        keep[:, 1:] &= path[:, 1:] != path[:, :-1]
    lengths = np.count_nonzero(keep, axis=1)
    classes = np.full(path.shape, -1)
    classes[np.arange(path.shape[1]) < lengths[:, None]] = path[keep]
    return classes, lengths


def loss(logits: Array, lengths: Array, targets: list[Array], blank: int, merge_repeated: bool) -> Array:
    """Return the negative log-likelihood of the targets, given ``logits[batch, time, classes]``.

    A path through time visits the labels of its target in order, with blanks before, between and after them. It may
    skip a blank; at each step, it stays or advances. With ``merge_repeated``,
    equal labels need the blank between them. Without it, no path stays at a label.
    """
    batch, time, _ = logits.shape
    sizes = np.array([len(target) for target in targets], np.int64)
    places = np.full((batch, 2 * sizes.max(initial=0) + 1), blank)
    for entry, target in enumerate(targets):
        places[entry, 1 : 2 * len(target) : 2] = target
    labels = np.arange(places.shape[1]) % 2 == 1
    leaps = np.broadcast_to(labels, places.shape)[:, 2:]
    if merge_repeated:
        leaps = leaps & (places[:, 2:] != places[:, :-2])
    chances = log_softmax(logits.astype(accumulator_dtype(logits.dtype), copy=False), -1)
    paths = np.full(places.shape, -np.inf, chances.dtype)
    paths[:, 0] = 0  # start at the first blank
    for now in range(time):
        scores = paths.copy() if merge_repeated else np.where(labels, -np.inf, paths)
        scores[:, 1:] = np.logaddexp(scores[:, 1:], paths[:, :-1])
        scores[:, 2:] = np.logaddexp(scores[:, 2:], np.where(leaps, paths[:, :-2], -np.inf))
        scores += np.take_along_axis(chances[:, now], places, axis=1)
        paths = np.where(lengths[:, None] > now, scores, paths)
    ends = np.stack([2 * sizes, np.maximum(2 * sizes - 1, 0)], axis=1)
    last = np.take_along_axis(paths, ends, axis=1)
    scores = np.where(sizes > 0, np.logaddexp(last[:, 0], last[:, 1]), last[:, 0])
    return np.asarray(0 - scores).astype(logits.dtype)
