"""Functions that create the operations of opset2, as ``openvino.opset2`` has them. Written by ``make index``."""

from ..opset1.ops import *
from ..opset1.until_14 import *
from ..opset1.until_5 import *
from ..opset1.until_3 import *
from ..opset1.until_13 import *
from ..opset1.until_8 import *
from ..opset1.until_7 import *
from ..opset1.until_10 import *
from ..opset1.until_4 import *
from ..opset1.until_16 import *
from ..opset1.until_12 import *
from ..opset1.until_15 import *
from .ops import *
from .until_7 import *
from .until_6 import *
