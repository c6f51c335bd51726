"""Functions that create the operations of opset6, as ``openvino.opset6`` has them. Written by ``make index``."""

from ..opset1.ops import *
from ..opset1.until_14 import *
from ..opset1.until_13 import *
from ..opset1.until_8 import *
from ..opset1.until_7 import *
from ..opset1.until_10 import *
from ..opset1.until_16 import *
from ..opset1.until_12 import *
from ..opset1.until_15 import *
from ..opset2.ops import *
from ..opset2.until_7 import *
from ..opset3.ops import *
from ..opset3.until_9 import *
from ..opset3.until_12 import *
from ..opset3.until_11 import *
from ..opset4.ops import *
from ..opset4.until_15 import *
from ..opset5.ops import *
from ..opset5.until_8 import *
from ..opset5.until_9 import *
from .ops import *
