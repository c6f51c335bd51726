"""Functions that create the operations of opset3, as ``openvino.opset3`` has them. Written by ``make index``."""

from ..opset1.ops import *
from ..opset1.until_14 import *
from ..opset1.until_5 import *
from ..opset1.until_13 import *
from ..opset1.until_8 import *
from ..opset1.until_7 import *
from ..opset1.until_10 import *
from ..opset1.until_4 import *
from ..opset1.until_16 import *
from ..opset1.until_12 import *
from ..opset1.until_15 import *
from ..opset2.ops import *
from ..opset2.until_7 import *
from ..opset2.until_6 import *
from .until_6 import *
from .ops import *
from .until_4 import *
from .until_9 import *
from .until_12 import *
from .until_11 import *
