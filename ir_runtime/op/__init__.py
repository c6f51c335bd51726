"""Node classes with properties of their own: Parameter, Constant, Result, variables, If and loops. As ``openvino.op``.

>>> import numpy as np, ir_runtime as ov
>>> from ir_runtime import op, opset13 as ops
>>> rows = op.Parameter(ov.Type.f32, ov.Shape([3, 2]))
>>> row, carried = op.Parameter(ov.Type.f32, ov.Shape([1, 2])), op.Parameter(ov.Type.f32, ov.Shape([1, 2]))
>>> body = ov.Model([op.Result(ops.add(carried, row))], [carried, row])
>>> total = op.tensor_iterator()
>>> total.set_body(body)
>>> total.set_sliced_input(row, rows.output(0), 0, 1, 1, -1, 0)
>>> zeros = op.Constant(np.zeros((1, 2), np.float32))
>>> total.set_merged_input(carried, zeros.output(0), body.results[0].output(0))
>>> model = ov.Model([total.get_iter_value(body.results[0].output(0), -1)], [rows])
>>> ov.compile_model(model)([np.float32([[1, 2], [3, 4], [5, 6]])])[0].tolist()
[[9.0, 12.0]]
"""

from .._util.absent import explain_absent
from ..openvino.build.control import If as if_op
from ..openvino.build.control import Loop as loop
from ..openvino.build.control import TensorIterator as tensor_iterator
from ..openvino.build.ends import Assign as assign
from ..openvino.build.ends import Constant, Parameter, Result
from ..openvino.build.ends import ReadValue as read_value
from . import util

__all__ = [
    "Constant",
    "Parameter",
    "Result",
    "assign",
    "if_op",
    "loop",
    "read_value",
    "tensor_iterator",
    "util",
]

explain_absent(__name__)
