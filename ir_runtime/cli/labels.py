"""Names of classes, for the scores that a model gives."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from ..errors import InputError
from ..ir.tensor import Array
from ..openvino.model import Model

__all__ = ["best_rows", "label", "labels_of"]

_INFO = ("model_info", "labels")
_ROWS = 20


def labels_of(model: Model, path: str | None) -> list[str]:
    """Return the names of classes: from a file, or else from the model's ``model_info``, or none.

    Args:
        model: the model.
        path: a file with a name in each line, or a JSON list, or a JSON object from numbers to names.

    Raises:
        InputError: if the file cannot be read.
    """
    if path is not None:
        return _read_names(path)
    if not model.has_rt_info(_INFO):
        return []
    return [name.replace("_", " ") for name in str(model.get_rt_info(_INFO).value).split()]


def _read_names(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except OSError as reason:
        raise InputError(f"{path} cannot be read: {reason.strerror or reason}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not text in UTF-8", hint="expected a name in each line") from None
    if not text.lstrip().startswith(("[", "{")):
        return text.splitlines()
    try:
        return _names(json.loads(text))
    except (ValueError, TypeError, RecursionError):
        raise InputError(
            f"{path} is not a list of names", hint="expected a JSON list, or an object from numbers to names"
        ) from None


def _names(content: object) -> list[str]:
    if isinstance(content, list):
        return [str(each) for each in content]
    if not isinstance(content, dict):
        raise TypeError
    numbered = {
        int(number): str(name[-1] if isinstance(name, list) else name) for number, name in content.items()
    }
    return [numbered.get(number, "") for number in range(max(numbered, default=-1) + 1)]


def label(labels: Sequence[str], index: int) -> str:
    """Return the name of a class; empty where it has none."""
    return labels[index] if index < len(labels) else ""


def best_rows(array: Array) -> list[tuple[int, int, float]]:
    """Return the row, the best class and its score for each row of a batch of scores; none for other arrays."""
    if array.ndim != 2 or array.shape[0] < 2 or array.shape[1] < 2 or array.dtype.kind != "f":
        return []
    best = np.asarray(array.argmax(axis=1))
    return [(row, int(best[row]), float(array[row, best[row]])) for row in range(min(len(best), _ROWS))]
