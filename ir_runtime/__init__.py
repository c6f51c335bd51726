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

TYPE_CHECKING = (
    False  # type checkers take it for that of typing, whose import would take longer than all else here
)
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
    from .api import layout_helpers
    from .api.any_value import OVAny
    from .api.batch import get_batch, set_batch
    from .api.compiled import CompiledModel, InferRequest
    from .api.const_ports import ConstOutput
    from .api.conversion import convert_model
    from .api.core import Core, compile_model
    from .api.costing import cost
    from .api.custom_op import Extension, Op, OpExtension
    from .api.dimension import Dimension
    from .api.layout import Layout
    from .api.model import Model
    from .api.nodes import Input, Node, Output
    from .api.profiling import ProfilingInfo
    from .api.queue import AsyncInferQueue
    from .api.reading import read_fragment, read_fragments, read_model
    from .api.results import OVDict
    from .api.rt_info import RTMap
    from .api.saving import save_model, serialize
    from .api.shapes import PartialShape, Shape
    from .api.tensor import Tensor
    from .api.tensor_file import tensor_from_file
    from .api.type_info import DiscreteTypeInfo
    from .api.validating import validate
    from .api.vectors import AxisSet, AxisVector, Coordinate, CoordinateDiff, Strides
    from .api.versions import Version
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
    from .ir.element import ElementType as Type
    from .ir.symbol import Symbol
    from .limits import Limits

# Where each public name lives. Nothing is imported before it is used, so importing the package is free.
_MODULES = {
    "api.batch": ("get_batch", "set_batch"),
    "api.compiled": ("CompiledModel", "InferRequest"),
    "api.core": ("Core", "compile_model"),
    "api.costing": ("cost",),
    "api.layout": ("Layout",),
    "api.layout_helpers": ("layout_helpers",),
    "api.model": ("Model",),
    "api.const_ports": ("ConstOutput",),
    "api.custom_op": ("Extension", "Op", "OpExtension"),
    "api.type_info": ("DiscreteTypeInfo",),
    "api.nodes": ("Input", "Node", "Output"),
    "api.queue": ("AsyncInferQueue",),
    "api.profiling": ("ProfilingInfo",),
    "api.reading": ("read_fragment", "read_fragments", "read_model"),
    "api.results": ("OVDict",),
    "api.any_value": ("OVAny",),
    "api.rt_info": ("RTMap",),
    "api.saving": ("save_model", "serialize"),
    "api.dimension": ("Dimension",),
    "api.shapes": ("PartialShape", "Shape"),
    "api.tensor": ("Tensor",),
    "api.tensor_file": ("tensor_from_file",),
    "api.validating": ("validate",),
    "api.vectors": ("AxisSet", "AxisVector", "Coordinate", "CoordinateDiff", "Strides"),
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
    "ir.symbol": ("Symbol",),
    "limits": ("Limits",),
    "api.conversion": ("convert_model",),
    "api.versions": ("Version",),
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
    """Return the version of OpenVINO whose API this is, in OpenVINO's form, with the version of this package.

    >>> import ir_runtime as ov
    >>> ov.get_version().startswith("2026"), ov.get_version() == ov.__version__
    (True, True)
    """
    return __version__


def shutdown() -> None:
    """For OpenVINO's API: there is nothing to unload.

    >>> import ir_runtime as ov
    >>> ov.shutdown()
    """


class _Finder:
    """Says of modules that are not here why that is; the last one that Python asks."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> None:
        # importlib.util.find_spec, by which programs look for modules, returns None for those that are not here.
        looks = sys._getframe(2).f_globals.get("__name__") == "importlib.util"
        if name.startswith(f"{__name__}.") and not looks:
            from .absent import missing_module

            raise missing_module(name)


sys.meta_path.append(_Finder)


if not TYPE_CHECKING:  # or type checkers would take any name for an attribute

    def __getattr__(name: str) -> Any:
        if name not in _WHERE:
            from .absent import explaining_getattr

            explaining_getattr(__name__)(name)
        from importlib import import_module

        module = import_module(f".{_WHERE[name]}", __name__)
        found = (
            module if name == _WHERE[name].rpartition(".")[2] else getattr(module, _RENAMED.get(name, name))
        )
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    """Public names only, as completion shows them."""
    return list(__all__)
