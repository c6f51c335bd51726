"""Read, validate and run OpenVINO IR models exactly, with NumPy.

>>> import ir_runtime
>>> model = ir_runtime.read_fragment('<layer id="0" type="ReduceSum" version="opset1">'
...     '<input><port id="0"><dim>2</dim><dim>3</dim></port><port id="1"/></input>'
...     '<output><port id="2"/></output></layer>', values={1: -1})
>>> compiled = ir_runtime.compile_model(model)
>>> compiled([[[1, 2, 3], [4, 5, 6]]])[0]
array([ 6., 15.], dtype=float32)
"""

from __future__ import annotations

import sys

from . import _version

__version__ = _version.API_VERSION

TYPE_CHECKING = False  # type checkers treat it as typing.TYPE_CHECKING, whose import would take longer than the rest of this file
if TYPE_CHECKING:
    from typing import Any

    from . import (
        debug,
        exceptions,
        frontend,
        helpers,
        op,
        opset1,
        opset2,
        opset3,
        opset4,
        opset5,
        opset6,
        opset7,
        opset8,
        opset9,
        opset10,
        opset11,
        opset12,
        opset13,
        opset14,
        opset15,
        opset16,
        opset17,
        passes,
        preprocess,
        properties,
        tools,
        utils,
    )
    from .bench.profiling import profile
    from .diagnostics import Diagnostic, Diagnostics, Location, Severity
    from .errors import (
        ExecutionError,
        InferenceError,
        InputError,
        IRError,
        LengthError,
        LimitError,
        ParseError,
        UnsupportedError,
        ValidationError,
    )
    from .executor.step import Observer, Step
    from .ir.dimension import Symbol
    from .ir.element import ElementType as Type
    from .limits import Limits
    from .openvino import layout_helpers
    from .openvino.any_value import OVAny
    from .openvino.batch import get_batch, set_batch
    from .openvino.compiled import CompiledModel, InferRequest
    from .openvino.const_ports import ConstOutput
    from .openvino.conversion import convert_model
    from .openvino.core import Core, Version, compile_model
    from .openvino.costing import cost
    from .openvino.custom_op import Extension, Op, OpExtension
    from .openvino.layout import Layout
    from .openvino.model import Model
    from .openvino.node import DiscreteTypeInfo, Input, Node, Output
    from .openvino.profiling import ProfilingInfo
    from .openvino.queue import AsyncInferQueue
    from .openvino.reading import read_fragment, read_fragments, read_model
    from .openvino.results import OVDict
    from .openvino.rt_info import RTMap
    from .openvino.saving import save_model, serialize
    from .openvino.shapes import (
        AxisSet,
        AxisVector,
        Coordinate,
        CoordinateDiff,
        Dimension,
        PartialShape,
        Shape,
        Strides,
    )
    from .openvino.tensor import Tensor, tensor_from_file
    from .openvino.validating import validate

# The module of each public name. Modules are imported on first use, so importing the package costs almost nothing.
_MODULES = {
    "openvino.batch": ("get_batch", "set_batch"),
    "openvino.compiled": ("CompiledModel", "InferRequest"),
    "openvino.core": ("Core", "Version", "compile_model"),
    "openvino.costing": ("cost",),
    "openvino.layout": ("Layout",),
    "openvino.layout_helpers": ("layout_helpers",),
    "openvino.model": ("Model",),
    "openvino.const_ports": ("ConstOutput",),
    "openvino.custom_op": ("Extension", "Op", "OpExtension"),
    "openvino.node": ("DiscreteTypeInfo", "Input", "Node", "Output"),
    "openvino.queue": ("AsyncInferQueue",),
    "openvino.profiling": ("ProfilingInfo",),
    "openvino.reading": ("read_fragment", "read_fragments", "read_model"),
    "openvino.results": ("OVDict",),
    "openvino.any_value": ("OVAny",),
    "openvino.rt_info": ("RTMap",),
    "openvino.saving": ("save_model", "serialize"),
    "openvino.shapes": (
        "AxisSet",
        "AxisVector",
        "Coordinate",
        "CoordinateDiff",
        "Dimension",
        "PartialShape",
        "Shape",
        "Strides",
    ),
    "openvino.tensor": ("Tensor", "tensor_from_file"),
    "openvino.validating": ("validate",),
    "bench.profiling": ("profile",),
    "debug": ("debug",),
    "diagnostics": ("Diagnostic", "Diagnostics", "Location", "Severity"),
    "errors": (
        "ExecutionError",
        "IRError",
        "InferenceError",
        "InputError",
        "LengthError",
        "LimitError",
        "ParseError",
        "UnsupportedError",
        "ValidationError",
    ),
    "ir.element": ("Type",),
    "ir.dimension": ("Symbol",),
    "limits": ("Limits",),
    "openvino.conversion": ("convert_model",),
    "exceptions": ("exceptions",),
    "frontend": ("frontend",),
    "helpers": ("helpers",),
    "preprocess": ("preprocess",),
    "properties": ("properties",),
    "tools": ("tools",),
    "utils": ("utils",),
    "executor.step": ("Observer", "Step"),
    "op": ("op",),
    "passes": ("passes",),
    **{f"opset{number}": (f"opset{number}",) for number in range(1, 18)},
}
_WHERE = {name: module for module, names in _MODULES.items() for name in names}
_RENAMED = {"Type": "ElementType"}

__all__ = [
    "AsyncInferQueue",
    "AxisSet",
    "AxisVector",
    "CompiledModel",
    "ConstOutput",
    "Coordinate",
    "CoordinateDiff",
    "Core",
    "Diagnostic",
    "Diagnostics",
    "Dimension",
    "DiscreteTypeInfo",
    "ExecutionError",
    "Extension",
    "IRError",
    "InferRequest",
    "InferenceError",
    "Input",
    "InputError",
    "Layout",
    "LengthError",
    "LimitError",
    "Limits",
    "Location",
    "Model",
    "Node",
    "OVAny",
    "OVDict",
    "Observer",
    "Op",
    "OpExtension",
    "Output",
    "ParseError",
    "PartialShape",
    "ProfilingInfo",
    "RTMap",
    "Severity",
    "Shape",
    "Step",
    "Strides",
    "Symbol",
    "Tensor",
    "Type",
    "UnsupportedError",
    "ValidationError",
    "Version",
    "__version__",
    "compile_model",
    "cost",
    "debug",
    "convert_model",
    "exceptions",
    "frontend",
    "get_batch",
    "get_version",
    "helpers",
    "layout_helpers",
    "op",
    "opset1",
    "opset10",
    "opset11",
    "opset12",
    "opset13",
    "opset14",
    "opset15",
    "opset16",
    "opset17",
    "opset2",
    "opset3",
    "opset4",
    "opset5",
    "opset6",
    "opset7",
    "opset8",
    "opset9",
    "passes",
    "preprocess",
    "profile",
    "properties",
    "read_fragment",
    "read_fragments",
    "read_model",
    "save_model",
    "serialize",
    "set_batch",
    "shutdown",
    "tensor_from_file",
    "tools",
    "utils",
    "validate",
]


def get_version() -> str:
    """Return the version of OpenVINO whose API this is, in OpenVINO's format, followed by the version of this package.

    >>> import ir_runtime as ov
    >>> ov.get_version().startswith("2026"), ov.get_version() == ov.__version__
    (True, True)
    """
    return __version__


def shutdown() -> None:
    """Do nothing. OpenVINO's function unloads plugins, which do not exist here.

    >>> import ir_runtime as ov
    >>> ov.shutdown()
    """


class _Finder:
    """The last finder of `sys.meta_path`, which raises an error that explains why a module is missing."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> None:
        # importlib.util.find_spec, with which programs test for a module, must return None rather than raise.
        is_probe = sys._getframe(2).f_globals.get("__name__") == "importlib.util"
        if name.startswith(f"{__name__}.") and not is_probe:
            from ._util.absent import missing_module

            raise missing_module(name)


sys.meta_path.append(_Finder)


if not TYPE_CHECKING:  # hidden from type checkers, which would accept any attribute

    def __getattr__(name: str) -> Any:
        if name not in _WHERE:
            from ._util.absent import explaining_getattr

            explaining_getattr(__name__)(name)
        from importlib import import_module

        from ._util.scoped import no_collection

        with no_collection():  # modules are never garbage
            module = import_module(f".{_WHERE[name]}", __name__)
        attribute = (
            module if name == _WHERE[name].rpartition(".")[2] else getattr(module, _RENAMED.get(name, name))
        )
        globals()[name] = attribute
        return attribute


def __dir__() -> list[str]:
    """Return the public names only, for completion."""
    return list(__all__)
