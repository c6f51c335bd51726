"""Port-map entries: connections between the ports of a node and the Parameters and Results of a body."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from ..._util.absent import ExplainsAbsent

__all__ = [
    "BodyOutputDescription",
    "ConcatOutputDescription",
    "InvariantInputDescription",
    "MergedInputDescription",
    "SliceInputDescription",
]


class _Description(ExplainsAbsent):
    def copy(self) -> Self:
        """Return a mutable copy.

        >>> (former := SliceInputDescription(0, 1)).copy() == former
        True
        """
        return replace(self)  # type: ignore[type-var]  # each is a dataclass


@dataclass
class InvariantInputDescription(_Description):
    """Feeds a Parameter with the same input tensor in each iteration.

    >>> InvariantInputDescription(input_index=0, body_parameter_index=1)
    InvariantInputDescription(input_index=0, body_parameter_index=1)
    """

    input_index: int = 0
    body_parameter_index: int = 0


@dataclass
class MergedInputDescription(_Description):
    """Feeds a Parameter with an input in the first iteration, and with a Result of the previous one afterwards.

    >>> MergedInputDescription(input_index=0, body_parameter_index=1, body_value_index=0)
    MergedInputDescription(input_index=0, body_parameter_index=1, body_value_index=0)
    """

    input_index: int = 0
    body_parameter_index: int = 0
    body_value_index: int = 0


@dataclass
class SliceInputDescription(_Description):
    """Feeds a Parameter with one slice of an input in each iteration.

    ``start`` and ``end`` are inclusive positions along ``axis``; ``stride`` and ``part_size`` count elements.

    >>> SliceInputDescription(input_index=0, body_parameter_index=1, stride=2, part_size=2)
    SliceInputDescription(input_index=0, body_parameter_index=1, start=0, stride=2, part_size=2, end=-1, axis=0)
    """

    input_index: int = 0
    body_parameter_index: int = 0
    start: int = 0
    stride: int = 1
    part_size: int = 1
    end: int = -1
    axis: int = 0


@dataclass
class BodyOutputDescription(_Description):
    """Sets an output to the value of a Result in the last iteration.

    >>> BodyOutputDescription(body_value_index=0, output_index=1)
    BodyOutputDescription(body_value_index=0, output_index=1, iteration=-1)
    """

    body_value_index: int = 0
    output_index: int = 0
    iteration: int = -1


@dataclass
class ConcatOutputDescription(_Description):
    """Sets an output to the concatenation of a Result over all iterations.

    ``start`` and ``end`` are inclusive positions along ``axis``; ``stride`` and ``part_size`` count elements.

    >>> ConcatOutputDescription(body_value_index=0, output_index=1, axis=1)
    ConcatOutputDescription(body_value_index=0, output_index=1, start=0, stride=1, part_size=1, end=-1, axis=1)
    """

    body_value_index: int = 0
    output_index: int = 0
    start: int = 0
    stride: int = 1
    part_size: int = 1
    end: int = -1
    axis: int = 0
