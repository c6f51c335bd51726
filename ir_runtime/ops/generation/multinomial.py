"""Multinomial sampling: random classes with given probabilities."""

from __future__ import annotations

import numpy as np

from ...errors import InferenceError
from ...ir.element import ElementType as E
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from .._define.operation import T_FLOAT, T_INDEX_64, Input, Output, attr, check_index_types, op
from .._lengths import length_of, of_rank
from ._seeded import RandomOp


@op("Multinomial-13")
class Multinomial(RandomOp):
    """Indices of classes, drawn at random by their probabilities ``probs``; the same for the same seeds.

    As in OpenVINO's CPU plugin, all is computed in f32, and the numbers are drawn by MT19937 from both seeds. With
    seeds, every run starts again.
    """

    flops_per_input = {"probs": 1}

    probs = Input(T_FLOAT, "[batch, classes], not negative; they need not add up to 1")
    num_samples = Input(T_INDEX_64, "how many to draw for each batch entry, one number")
    output = Output("convert_type", "[batch, num_samples]")

    convert_type: E = attr(doc="element type of the output, i64 or i32")
    with_replacement: bool = attr(doc="whether a class may be drawn again")
    log_probs: bool = attr(doc="whether probs are logarithms of probabilities")

    def verify(self) -> None:
        """Require an index type."""
        check_index_types(convert_type=self.convert_type)

    def infer(self, probs: Value, num_samples: Value) -> PartialShape:
        count = length_of(num_samples, "num_samples")
        batch, classes = of_rank(probs, "probs", "[batch, classes]")
        if classes == 0 and count.min:
            raise InferenceError(
                f"probs {probs.shape} has no classes to draw from, but num_samples is {count}",
                clause="probs has classes to draw from, unless num_samples is 0",
            )
        if not self.with_replacement and classes.max is not None and count.min > classes.max:
            raise InferenceError(
                f"num_samples is {count}, but probs {probs.shape} has {classes} classes, each of which can be drawn "
                f"once",
                hint="attribute 'with_replacement' true lets a class be drawn again",
                clause="num_samples is at most the number of classes, without replacement",
            )
        return PartialShape([batch, count])

    def evaluate(self, probs: Array, num_samples: Array) -> Array:
        shape = self.infer(Value.constant(probs), Value.constant(num_samples)).static
        if 0 in shape:
            return np.zeros(shape, self.convert_type.dtype)
        weights = probs.astype(np.float32)
        chances = np.exp(weights) if self.log_probs else weights
        reached = np.add.accumulate(chances, 1)
        reached = reached / reached[:, -1:]
        drawn = self.as_plugin(shape)
        pick = _again if self.with_replacement else _once
        return pick(reached, drawn).astype(self.convert_type.dtype)


def _again(reached: Array, drawn: Array) -> Array:
    """Sample with replacement: return the first class whose cumulative probability reaches a number."""
    rows = zip(reached.astype(np.float64), drawn.astype(np.float64), strict=True)
    classes = np.stack([np.searchsorted(chances, numbers) for chances, numbers in rows])
    return np.where(classes < reached.shape[1], classes, 0)


def _once(reached: Array, drawn: Array) -> Array:
    """Sample without replacement: like `_again`, but drawn classes are removed."""
    classes = np.zeros(drawn.shape, np.int64)
    before = np.zeros_like(reached[:, :1])
    entries, places = np.arange(len(reached)), np.arange(reached.shape[1])
    for i, numbers in enumerate(drawn.T):
        classes[:, i] = chosen = (numbers[:, None] <= reached).argmax(1)
        bounds = np.concatenate([before, reached], 1)
        chance = (bounds[entries, chosen + 1] - bounds[entries, chosen])[:, None]
        rest = np.where(places >= chosen[:, None], reached - chance, reached)
        reached = rest / (reached.dtype.type(1) - chance)
    return classes
