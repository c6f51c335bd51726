"""Variables, and the port-map descriptions of loops and If, as ``openvino.op.util``.

>>> import numpy as np, ir_runtime as ov
>>> from ir_runtime import op, opset13 as ops
>>> info = op.util.VariableInfo()
>>> info.data_shape, info.data_type, info.variable_id = ov.PartialShape([2]), ov.Type.f32, "sum"
>>> variable = op.util.Variable(info)
>>> x = ops.parameter([2], np.float32, "x")
>>> total = ops.add(op.read_value(ops.constant(np.zeros(2, np.float32)), variable), x)
>>> model = ov.Model([ops.result(total)], [op.assign(total, variable)], [x], [variable], "running sum")
>>> request = ov.compile_model(model).create_infer_request()
>>> [request.infer([np.float32([1, 2])])[0].tolist() for _ in range(2)]
[[1.0, 2.0], [2.0, 4.0]]
"""

from ..._util.absent import explain_absent
from ...openvino.build.descriptions import (
    BodyOutputDescription,
    ConcatOutputDescription,
    InvariantInputDescription,
    MergedInputDescription,
    SliceInputDescription,
)
from ...openvino.build.variables import Variable, VariableInfo

__all__ = [
    "BodyOutputDescription",
    "ConcatOutputDescription",
    "InvariantInputDescription",
    "MergedInputDescription",
    "SliceInputDescription",
    "Variable",
    "VariableInfo",
]

explain_absent(__name__)
