"""Functions that create the operations of opset17, as ``openvino.opset17`` has them. Written by ``make index``."""

from ..opset1.ops import *
from ..opset2.ops import *
from ..opset3.ops import *
from ..opset4.ops import *
from ..opset5.ops import *
from ..opset6.ops import *
from ..opset7.ops import *
from ..opset8.ops import *
from ..opset9.ops import *
from ..opset10.ops import *
from ..opset11.ops import *
from ..opset12.ops import *
from ..opset13.ops import *
from ..opset14.ops import *
from ..opset15.ops import *
from ..opset16.ops import *
from .ops import *
