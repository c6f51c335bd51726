"""Functions that create the operations of opset6, as ``openvino.opset6`` has them. Written by ``make index``."""

from .. import opset5 as _before
from ..opset5 import *
from . import ops as _own
from .ops import *

__all__: list[str] = []
__all__ += _before.__all__
__all__ += _own.__all__
