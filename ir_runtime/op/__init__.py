"""Nodes with properties of their own: inputs, constants, outputs, variables, branches and loops. As ``openvino.op``."""

from ..absent import answers
from ..api.building.control import If as if_op
from ..api.building.control import Loop as loop
from ..api.building.control import TensorIterator as tensor_iterator
from ..api.building.ends import Assign as assign
from ..api.building.ends import Constant, Parameter, Result
from ..api.building.ends import ReadValue as read_value
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

__getattr__ = answers(__name__)
