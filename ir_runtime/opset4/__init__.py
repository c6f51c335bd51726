"""Functions that create the operations of opset4, as ``openvino.opset4`` has them. Written by ``make index``."""

from .. import opset3 as _before
from ..opset3 import *
from . import ops as _own
from .ops import *

__all__: list[str] = []
__all__ += _before.__all__
__all__ += _own.__all__
