"""Functions that create the operations of opset1, as ``openvino.opset1`` has them. Written by ``make index``."""

from .ops import *
from .until_14 import *
from .until_5 import *
from .until_3 import *
from .until_13 import *
from .until_8 import *
from .until_7 import *
from .until_10 import *
from .until_4 import *
from .until_16 import *
from .until_12 import *
from .until_15 import *
