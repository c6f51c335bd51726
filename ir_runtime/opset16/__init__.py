"""Functions that create the operations of opset16, as ``openvino.opset16`` has them. Written by ``make index``."""

from .. import opset15 as _before
from ..opset15 import *
from . import ops as _own
from .ops import *

__all__: list[str] = []
__all__ += _before.__all__
__all__ += _own.__all__
