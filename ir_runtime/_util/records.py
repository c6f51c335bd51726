"""Conversion of reports to data for JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

__all__ = ["Json", "Record", "encodable"]

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
"""The data of a report; numbers may be infinite or NaN."""
Record: TypeAlias = "dict[str, Json]"


def encodable(data: Json) -> Json:
    """Return data with NaN and infinities, which JSON lacks, replaced by strings.

    >>> encodable({"R": [1.5, float("inf"), float("-inf"), float("nan")]})
    {'R': [1.5, 'Infinity', '-Infinity', 'NaN']}
    """
    if isinstance(data, Mapping):
        return {str(key): encodable(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [encodable(value) for value in data]
    if isinstance(data, float) and not math.isfinite(data):
        return "NaN" if math.isnan(data) else "Infinity" if data > 0 else "-Infinity"
    return data
