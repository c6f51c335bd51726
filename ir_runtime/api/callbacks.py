"""Calls of functions that programs register."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..codes import Code
from ..errors import ExecutionError

__all__ = ["call_back"]


def call_back(owner: str, callback: Callable[..., Any], *arguments: object) -> Any:
    """Call a callback; raise what it raises as a RuntimeError, which is what OpenVINO makes of every exception.

    Exits and interrupts are meant for the program, and pass as they are.

    >>> call_back("request 'x'", {}.__getitem__, "key")
    Traceback (most recent call last):
        ...
    ir_runtime.errors.ExecutionError: error[IR000]: the callback of request 'x' raised KeyError: 'key'

    Args:
        owner: what the callback belongs to, for the message.
        callback: the function.
        arguments: its arguments.
    """
    try:
        return callback(*arguments)
    except RuntimeError:
        raise
    except Exception as reason:
        said = f"the callback of {owner} raised {type(reason).__name__}: {reason}"
        raise ExecutionError(said, code=Code.ANY) from reason
