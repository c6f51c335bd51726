"""Samples of connectionist temporal classification: repetitions, blanks, lengths, targets.

OpenVINO has no reference for it, so the oracle is its plugin, which computes all types in f32.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.sample import Sample, case, ints, numbers, scalar

NAN, INF = np.nan, np.inf
F64 = {"_rtol": 1e-6}  # the plugin computes f64 as f32


def path(*classes: int, count: int = 4, dtype: str = "f32") -> Any:
    """Scores [time, classes] with maxima at the given classes."""
    scores = numbers(len(classes), count, dtype=dtype, low=0, high=1)
    scores[np.arange(len(classes)), classes] = 2
    return scores


def mask(time: int, *lengths: int, dtype: str = "f32") -> Any:
    return (np.arange(time)[:, None] < np.array(lengths)).astype(numbers(dtype=dtype).dtype)


def masked(data: Any, *lengths: int, merge: bool = True, **more: Any) -> Sample:
    """Greedy decoding of ``data[batch, time, classes]`` with masks."""
    seen = np.ascontiguousarray(np.swapaxes(data, 0, 1))
    running = mask(seen.shape[0], *lengths).astype(data.dtype)
    return case("CTCGreedyDecoder-1", seen, running, ctc_merge_repeated=merge, **more)


def measured(data: Any, *lengths: int, blank: Any = None, merge: bool = True, **more: Any) -> Sample:
    """Greedy decoding of ``data[batch, time, classes]`` with lengths."""
    integers = more.pop("integers", "i32")
    inputs = [data, ints(*lengths, dtype=integers), *([] if blank is None else [blank])]
    return case("CTCGreedyDecoderSeqLen-6", *inputs, merge_repeated=merge, **more)


REPEATING = np.stack([path(1, 1, 3, 1, 0, 0), path(3, 2, 2, 3, 3, 2), path(0, 1, 2, 1, 1, 3)])
TIED = np.array([[[1, 1, 0], [0, 2, 2], [0, 0, 0], [-1, -1, 3]]], "f4")
ODD = np.array([[[NAN, 1, 0], [0, NAN, 1], [INF, 0, 1], [-INF, NAN, -INF]]], "f4")

DECODED = [
    sample
    for decode in (masked, measured)
    for sample in (
        decode(REPEATING, 6, 6, 6),
        decode(REPEATING, 6, 6, 6, merge=False),
        decode(REPEATING, 3, 1, 5),
        decode(REPEATING, 3, 1, 5, merge=False),
        decode(REPEATING, 0, 6, 2),
        decode(TIED, 4),
        decode(TIED, 3, merge=False),
        decode(numbers(3, 9, 5), 9, 4, 7),
        decode(numbers(2, 1, 3), 1, 1),
        decode(numbers(2, 5, 1), 5, 2),
        decode(numbers(1, 12, 2), 12),
        decode(path(3, 3, 3, 3)[None], 4),
        decode(REPEATING.astype("f8"), 6, 2, 6),
        decode(REPEATING.astype("f2"), 6, 2, 6),
        decode(REPEATING.astype(numbers(dtype="bf16").dtype), 6, 2, 6),
        decode(ODD, 4),
    )
]


def lost(
    logits: Any, lengths: Any, labels: Any, label_lengths: Any, blank: Any = None, **more: Any
) -> Sample:
    integers = more.pop("integers", "i32")
    inputs = [
        logits,
        ints(*lengths, dtype=integers),
        np.array(labels, ints(dtype=integers).dtype),
        ints(*label_lengths, dtype=integers),
        *([] if blank is None else [blank]),
    ]
    more = {"preprocess_collapse_repeated": False, "ctc_merge_repeated": True, "unique": False} | more
    return case("CTCLoss-4", *inputs, **more)


def silent(length: int, merge: bool) -> Sample:
    """Scores without labels: the blank, which is the last class, at all times."""
    logits = numbers(1, 3, 3)
    chances = np.exp(logits.astype("f8")) / np.exp(logits.astype("f8")).sum(axis=-1, keepdims=True)
    return lost(
        logits,
        (length,),
        [[1, 1, 0]],
        (0,),
        ctc_merge_repeated=merge,
        _oracle="none",
        _differs="the plugin crashes without labels; the reference says 0",
        _expect=(np.array([0 - np.log(chances[0, :length, -1]).sum()], "f4"),),
    )


LABELS = [[0, 1, 1, 0, 2, 2], [2, 0, 0, 0, 1, 2]]
LOSSES = [
    *(
        lost(
            numbers(2, 6, 4, seed=3),
            (6, 5),
            LABELS,
            lengths,
            preprocess_collapse_repeated=collapse,
            ctc_merge_repeated=merge,
            unique=unique,
        )
        for collapse in (False, True)
        for merge in (False, True)
        for unique in (False, True)
        for lengths in ((3, 2), (4, 5))
    ),
    lost(numbers(1, 5, 3), (5,), [[1, 0, 0, 0, 0]], (1,)),
    lost(numbers(1, 5, 3), (5,), [[1, 0, 1, 0, 1]], (5,)),
    lost(numbers(1, 5, 3), (4,), [[1, 1, 0, 0, 0]], (3,)),
    lost(numbers(1, 1, 2), (1,), [[0]], (1,)),
    lost(numbers(2, 4, 3), (4, 3), [[1, 2, 0, 0], [2, 1, 0, 0]], (2, 1), scalar(0, "i32")),
    lost(numbers(2, 4, 3), (4, 3), [[1, 2, 0, 0], [2, 1, 0, 0]], (2, 1), scalar(0), integers="i64"),
    lost(numbers(2, 4, 3), (4, 3), [[0, 2, 0, 0], [2, 0, 0, 0]], (2, 2), scalar(1, "i32"), _constant=(4,)),
    lost(numbers(1, 4, 3, low=-30, high=30), (4,), [[0, 1, 0, 0]], (2,)),
    lost(np.array([[[-INF, 0, 1], [2, -INF, 0], [0, 1, 2]]], "f4"), (3,), [[1, 0, 0]], (2,)),
    lost(numbers(2, 4, 3, dtype="f64"), (4, 3), [[1, 0, 0, 0], [0, 1, 0, 0]], (2, 2), **F64),
    lost(numbers(2, 4, 3, dtype="f16"), (4, 3), [[1, 0, 0, 0], [0, 1, 0, 0]], (2, 2)),
    lost(numbers(2, 4, 3, dtype="bf16"), (4, 3), [[1, 0, 0, 0], [0, 1, 0, 0]], (2, 2)),
    # Two equal labels need three steps.
    lost(numbers(1, 3, 3), (2,), [[1, 1, 0]], (2,)),
    *(silent(length, merge) for length in (0, 1, 3) for merge in (True, False)),
]

SAMPLES = [
    *DECODED,
    masked(REPEATING, 6, 3, 6, _constant=(1,)),
    # Behind the first 0, a mask says nothing more.
    case(
        "CTCGreedyDecoder-1",
        np.ascontiguousarray(np.swapaxes(REPEATING, 0, 1)),
        np.array([[1, 0, 1], [1, 1, 1], [0, 1, 2], [1, 1, 0], [1, 1, 1], [1, 1, 1]], "f4"),
        ctc_merge_repeated=True,
    ),
    *(measured(REPEATING, 6, 4, 5, blank=scalar(blank, "i32")) for blank in (0, 1, 2, 3)),
    measured(REPEATING, 6, 4, 5, blank=scalar(1, "i32"), merge=False),
    measured(REPEATING, 6, 4, 5, blank=ints(2), integers="i64", _constant=(2,)),
    measured(REPEATING, 6, 4, 5, integers="i64"),
    *(
        measured(REPEATING, 6, 4, 5, classes_index_type=classes, sequence_length_type=lengths)
        for classes in ("i32", "i64")
        for lengths in ("i32", "i64")
    ),
    *LOSSES,
]
