"""Functions that create the operations of opset13, as ``openvino.opset13`` has them. Written by ``make index``."""

from .. import opset12 as _before
from ..opset12 import *
from . import ops as _own
from .ops import *

__all__: list[str] = []
__all__ += _before.__all__
__all__ += _own.__all__
