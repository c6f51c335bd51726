"""Boxes and their scores as inputs, and inputs that are one number."""

from __future__ import annotations

from ..errors import InferenceError
from ..ir.dimension import Dimension
from ..ir.element import ElementType as E
from ..ir.signature import FLOATS
from ..ir.tensor import Array, Value
from ._define.operation import Element
from ._lengths import of_rank

__all__ = ["T_BOX", "T_NUMBER", "T_WIDE_NUMBER", "at_most", "box_counts", "check_number", "number"]

_UP_TO_32 = (E.f32, E.f16, E.bf16)
T_BOX = Element("T", _UP_TO_32, "f32, f16 or bf16")
T_NUMBER = Element("T_NUMBER", _UP_TO_32, "f32, f16 or bf16", shared=False)
T_WIDE_NUMBER = Element("T_NUMBER", FLOATS, "any floating-point type", shared=False)


def box_counts(boxes: Value, scores: Value, size: int = 4) -> tuple[Dimension, Dimension, Dimension]:
    """Return the numbers of batch entries, classes and boxes."""
    of_boxes = of_rank(boxes, "boxes", f"[batches, boxes, {size}]")
    of_scores = of_rank(scores, "scores", "[batches, classes, boxes]")
    if not of_boxes[2].contains(size):
        raise InferenceError(
            f"boxes must be [batches, boxes, {size}], {size} numbers each, found {of_boxes}",
            clause=f"boxes is [batches, boxes, {size}]",
        )
    batches, count = of_boxes[0].merge(of_scores[0]), of_boxes[1].merge(of_scores[2])
    if batches is None:
        raise InferenceError(
            f"boxes {of_boxes} and scores {of_scores} differ in batch size, the first dimension",
            clause="boxes and scores have the same batch size",
        )
    if count is None:
        raise InferenceError(
            f"boxes {of_boxes} are {of_boxes[1]}, but scores {of_scores} are for {of_scores[2]}",
            hint=f"boxes must be [batches, boxes, {size}], and scores [batches, classes, boxes]",
            clause="boxes and scores are for the same number of boxes",
        )
    return batches, of_scores[1], count


def check_number(value: Value | None, name: str, most_rank: int = 1) -> None:
    """Require a single number of at most this rank."""
    if value is None or value.shape.rank is None:
        return
    if value.shape.rank > most_rank or not all(d.contains(1) for d in value.shape):
        form = "a scalar or of shape [1]" if most_rank else "a scalar"
        raise InferenceError(f"{name} must be {form}, not of shape {value.shape}", clause=f"{name} is {form}")


def at_most(limit: Value | None) -> int | None:
    """Return the upper bound of a limit; 0 if there is none, ``None`` if unknown."""
    if limit is None:
        return 0
    numbers = limit.numbers()
    if not numbers:
        return None
    most = numbers[0] if isinstance(numbers[0], int) else numbers[0].max
    return most if most is None else max(most, 0)


def number(array: Array | None) -> float:
    return 0 if array is None else float(array.reshape(-1)[0])
