"""Functions that create the operations of opset14, as ``openvino.opset14`` has them. Written by ``make index``."""

from .. import opset13 as _before
from ..opset13 import *
from . import ops as _own
from .ops import *

__all__: list[str] = []
__all__ += _before.__all__
__all__ += _own.__all__
