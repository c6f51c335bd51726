"""Decorators that programs put around functions of their own."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from ..absent import answers
from ..api.nodes import Node, Output

__all__ = ["custom_preprocess_function"]


def custom_preprocess_function(
    custom_function: Callable[[Output], Node | Output],
) -> Callable[[Output], Output]:
    """Let a function for ``PreProcessSteps.custom`` return a node: its only output is meant."""

    @wraps(custom_function)
    def output_of(tensor: Output) -> Output:
        found: Any = custom_function(tensor)
        result: Output = found.output(0) if isinstance(found, Node) else found
        return result

    return output_of


__getattr__ = answers(__name__)
