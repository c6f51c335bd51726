"""Functions that create the operations of opset11, as ``openvino.opset11`` has them. Written by ``make index``."""

from ..opset1.ops import *
from ..opset1.until_14 import *
from ..opset1.until_13 import *
from ..opset1.until_16 import *
from ..opset1.until_12 import *
from ..opset1.until_15 import *
from ..opset2.ops import *
from ..opset3.ops import *
from ..opset3.until_12 import *
from ..opset4.ops import *
from ..opset4.until_15 import *
from ..opset5.ops import *
from ..opset6.ops import *
from ..opset7.ops import *
from ..opset8.ops import *
from ..opset8.until_14 import *
from ..opset9.ops import *
from ..opset10.ops import *
from .ops import *
