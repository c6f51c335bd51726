"""Functions that create the operations of opset3, as ``openvino.opset3`` has them. Written by ``make index``."""

from .. import opset2 as _before
from ..opset2 import *
from . import ops as _own
from .ops import *

__all__: list[str] = []
__all__ += _before.__all__
__all__ += _own.__all__
