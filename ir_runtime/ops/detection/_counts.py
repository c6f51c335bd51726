"""Numbers of priors and classes, from the lengths of inputs."""

from __future__ import annotations

from ...errors import InferenceError
from ...ir.dimension import Dimension

__all__ = ["common_quotient"]

_HINTS = {
    "proposals": "a prior takes 4 numbers with attribute 'normalized' true, 5 with false",
    "class_preds": "class_preds holds a number for each prior and class",
    "box_logits": "box_logits holds 4 numbers for each prior; and for each class, if 'share_location' is false",
    "aux_class_preds": "aux_class_preds holds 2 numbers for each prior",
}


def common_quotient(lengths: list[tuple[Dimension, int, str]], what: str) -> Dimension:
    """Return the common quotient of lengths and their divisors."""
    quotient = Dimension()
    for length, each, name in lengths:
        if not length.is_static:
            continue
        count, rest = divmod(length.__index__(), each)
        if rest:
            raise InferenceError(
                f"the last dim of {name} is {length}, not a multiple of {each}, as it holds {each} numbers for each of "
                f"the {what}",
                hint=_HINTS[name],
                clause=f"the last dim of {name} is a multiple of {each}, the numbers for each of the {what}",
            )
        merged = quotient.merge(Dimension(count))
        if merged is None:
            raise InferenceError(
                f"the last dim of {name} is {length}, {each} numbers for each of {count} {what}, but the inputs before "
                f"are for {quotient}",
                hint=_HINTS[name],
                clause=f"{name} is for as many {what} as the inputs before it",
            )
        quotient = merged
    return quotient
