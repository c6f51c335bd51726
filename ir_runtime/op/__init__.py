"""Nodes with properties of their own: inputs, constants, outputs, variables, branches and loops. As ``openvino.op``."""

from ..api.building.ends import Assign as assign
from ..api.building.ends import Constant, Parameter, Result
from ..api.building.ends import ReadValue as read_value
from . import util

__all__ = ["Constant", "Parameter", "Result", "assign", "read_value", "util"]
