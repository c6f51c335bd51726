"""Attribute checks for functions that create nodes, as ``openvino.utils.input_validation``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from .._util.absent import explain_absent
from ..exceptions import UserInputError

__all__ = [
    "assert_list_of_ints",
    "check_valid_attribute",
    "check_valid_attributes",
    "is_non_negative_value",
    "is_positive_value",
]

Condition = Callable[[Any], bool]


def assert_list_of_ints(value_list: Iterable[int], message: str) -> None:
    """Raise `UserInputError` with ``message`` unless every value is an integer.

    >>> assert_list_of_ints([1, 2], "strides must be integers")
    """
    if not isinstance(value_list, Iterable) or not all(isinstance(value, int) for value in value_list):
        raise UserInputError(message, value_list)


def check_valid_attributes(
    op_name: str,
    attributes: Mapping[str, Any],
    requirements: Iterable[tuple[str, bool, Any, Condition | None]],
) -> bool:
    """Check attributes against requirements: tuples of name, is required, NumPy type, and predicate or None.

    >>> check_valid_attributes("Pool", {"kernel": [2, 2]}, [("kernel", True, np.integer, is_positive_value)])
    True

    Raises:
        UserInputError: if an attribute is missing, or a value has the wrong type or fails its predicate.
    """
    for key, is_required, kind, condition in requirements:
        check_valid_attribute(op_name, attributes, key, kind, condition, is_required)
    return True


def check_valid_attribute(
    op_name: str,
    attr_dict: Mapping[str, Any],
    attr_key: str,
    val_type: Any,
    cond: Condition | None = None,
    required: bool | None = False,
) -> bool:
    """Check the value of an attribute, or each of its values.

    >>> check_valid_attribute("Pool", {"kernel": 2}, "kernel", np.integer)
    True

    Args:
        op_name: the operation, for the message.
        attr_dict: the attributes by name.
        attr_key: the name of the attribute to check.
        val_type: the NumPy type that values must have, such as ``np.integer``.
        cond: a predicate that each value must satisfy.
        required: whether the attribute must be present.

    Raises:
        UserInputError: if the attribute is required but missing, or a value has the wrong type or fails
            ``cond``.
    """
    if attr_key not in attr_dict:
        if required:
            raise UserInputError(f"{op_name} needs the attribute {attr_key!r}")
        return True
    value = attr_dict[attr_key]
    for item in [value] if np.isscalar(value) else value:
        _check_value(op_name, attr_key, item, val_type, cond)
    return True


def _check_value(
    op_name: str, attr_key: str, value: Any, val_type: Any, cond: Condition | None = None
) -> bool:
    if not np.issubdtype(type(value), val_type):
        expected = getattr(val_type, "__name__", val_type)
        raise UserInputError(
            f"attribute {attr_key!r} of {op_name} must be {expected}, got {value!r} of {type(value).__name__}"
        )
    if cond is not None and not cond(value):
        raise UserInputError(f"attribute {attr_key!r} of {op_name} must not be {value!r}")
    return True


def is_positive_value(value: Any) -> bool:
    """Return whether a value is positive.

    >>> is_positive_value(2)
    True
    """
    return bool(value > 0)


def is_non_negative_value(value: Any) -> bool:
    """Return whether a value is at least 0.

    >>> is_non_negative_value(0)
    True
    """
    return bool(value >= 0)


explain_absent(__name__)
