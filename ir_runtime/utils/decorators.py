"""Decorators for user functions, as ``openvino.utils.decorators``."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from .._util.absent import explain_absent
from ..openvino.node import Node, Output

__all__ = ["custom_preprocess_function"]


def custom_preprocess_function(
    custom_function: Callable[[Output], Node | Output],
) -> Callable[[Output], Output]:
    """Adapt a function that returns a node with one output for use in ``PreProcessSteps.custom``.

    >>> import numpy as np, ir_runtime as ov
    >>> from ir_runtime import opset13 as ops
    >>> x = ops.parameter([2], np.float32, "x")
    >>> steps = ov.preprocess.PrePostProcessor(ov.Model([ops.relu(x)], [x]))
    >>> halved = custom_preprocess_function(lambda output: ops.multiply(output, np.float32(0.5)))
    >>> _ = steps.input().preprocess().custom(halved)
    >>> ov.compile_model(steps.build())([np.float32([2, -4])])[0].tolist()
    [1.0, 0.0]
    """

    @wraps(custom_function)
    def output_of(tensor: Output) -> Output:
        returned: Any = custom_function(tensor)
        result: Output = returned.output(0) if isinstance(returned, Node) else returned
        return result

    return output_of


explain_absent(__name__)
