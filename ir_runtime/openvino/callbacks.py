"""Invocation of user callbacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..codes import Code
from ..errors import ExecutionError

__all__ = ["call_back"]


def call_back(owner: str, callback: Callable[..., Any], *arguments: object) -> Any:
    """Invoke a callback, and convert its exceptions to RuntimeError as OpenVINO does.

    A RuntimeError, SystemExit or KeyboardInterrupt propagates unchanged.

    >>> call_back("request 'x'", {}.__getitem__, "key")
    Traceback (most recent call last):
        ...
    ir_runtime.errors.ExecutionError: error[IR000]: the callback of request 'x' raised KeyError: 'key'

    Args:
        owner: the owner of the callback, for the message.
        callback: the function.
        arguments: its arguments.
    """
    try:
        return callback(*arguments)
    except RuntimeError:
        raise
    except Exception as reason:
        message = f"the callback of {owner} raised {type(reason).__name__}: {reason}"
        raise ExecutionError(message, code=Code.ANY) from reason
