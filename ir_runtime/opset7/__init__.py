"""Functions that create the operations of opset7, as ``openvino.opset7`` has them. Written by ``make index``."""

from .. import opset6 as _before
from ..opset6 import *
from . import ops as _own
from .ops import *

__all__: list[str] = []
__all__ += _before.__all__
__all__ += _own.__all__
