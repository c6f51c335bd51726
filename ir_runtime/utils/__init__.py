"""Graph-editing and validation helpers of ``openvino.utils``.

>>> import numpy as np, ir_runtime as ov
>>> from ir_runtime import opset13 as ops, utils
>>> x = ops.parameter([2], np.float32, "x")
>>> inner = ops.relu(x)
>>> model = ov.Model([ops.exp(inner)], [x])
>>> utils.replace_node(inner, ops.abs(x))
>>> [node.get_type_name() for node in model.get_ordered_ops()]
['Parameter', 'Abs', 'Exp', 'Result']
>>> found = model.get_ordered_ops()[2]
>>> utils.replace_output_update_name(found.output(0), found.input_value(0))
True
>>> [node.get_type_name() for node in model.get_ordered_ops()]
['Parameter', 'Abs', 'Result']
"""

from __future__ import annotations

from .._util.absent import explain_absent
from ..openvino.build.replacing import replace_node, replace_output_update_name
from . import data_helpers, decorators, input_validation, node_factory, types

__all__ = [
    "data_helpers",
    "decorators",
    "input_validation",
    "node_factory",
    "replace_node",
    "replace_output_update_name",
    "types",
]

explain_absent(__name__)
