"""Descriptions of port maps: connections between ports of a node and Parameters and Results of a body."""

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
        """Return a copy that can be changed.

        >>> (former := SliceInputDescription(0, 1)).copy() == former
        True
        """
        return replace(self)  # type: ignore[type-var]  # each is a dataclass


@dataclass
class InvariantInputDescription(_Description):
    """An input that feeds a Parameter with the same tensor in each iteration.

    >>> InvariantInputDescription(input_index=0, body_parameter_index=1)
    InvariantInputDescription(input_index=0, body_parameter_index=1)
    """

    input_index: int = 0
    body_parameter_index: int = 0


@dataclass
class MergedInputDescription(_Description):
    """An input that initializes a Parameter, which a Result feeds afterwards.

    >>> MergedInputDescription(input_index=0, body_parameter_index=1, body_value_index=0)
    MergedInputDescription(input_index=0, body_parameter_index=1, body_value_index=0)
    """

    input_index: int = 0
    body_parameter_index: int = 0
    body_value_index: int = 0


@dataclass
class SliceInputDescription(_Description):
    """An input that feeds a Parameter with one slice in each iteration.

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
    """A Result that feeds an output in the last iteration.

    >>> BodyOutputDescription(body_value_index=0, output_index=1)
    BodyOutputDescription(body_value_index=0, output_index=1, iteration=-1)
    """

    body_value_index: int = 0
    output_index: int = 0
    iteration: int = -1


@dataclass
class ConcatOutputDescription(_Description):
    """A Result that feeds an output, concatenated over all iterations.

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
