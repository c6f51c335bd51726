"""Functions that create the operations of opset5, as ``openvino.opset5`` has them. Written by ``make index``."""

from .. import opset4 as _before
from ..opset4 import *
from . import ops as _own
from .ops import *

__all__: list[str] = []
__all__ += _before.__all__
__all__ += _own.__all__
