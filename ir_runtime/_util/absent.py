"""Errors for OpenVINO names that this package lacks, which explain what to use instead.

Modules and classes look up missing names here. The explanation is the first sentence in `SENTENCES` whose pattern
matches; for names unknown to OpenVINO, it is the most similar existing name.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from difflib import SequenceMatcher
from fnmatch import fnmatchcase
from importlib import import_module
from opcode import opmap
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

from .nearest import nearest, suggestion

__all__ = [
    "SENTENCES",
    "ExplainsAbsent",
    "explaining_getattr",
    "explain_absent",
    "list_public",
    "missing_module",
    "sentence",
]

_CONVERT = (
    "models of other frameworks are not converted here: call openvino.convert_model where OpenVINO is installed, "
    "openvino.save_model, and read_model here"
)
_DEVICE_MEMORY = (
    "memory of GPUs is not available here: tensors are NumPy arrays, and Tensor shares their memory"
)
_BENCHMARK = "OpenVINO's benchmark_app is not part of this package: 'ir-runtime bench' takes its options"
_EXTENSION = "operations of your own are declared in Python here: see 'ir-runtime guide adding-an-operation'"
_COMPILED = "_pyopenvino"
_PYBIND = "it is only in OpenVINO's compiled module, of which the names of the public modules are here"
_COPIES = "the module only imports it: use the opset itself, or the package that it comes from"
_TYPE_INFO = "the type of a layer is a text here: see Node.get_type_name and Node.get_version"
_RUN = "compile the model with compile_model, and call what it returns"
_HELPER = "it is a helper inside OpenVINO's Python package, which no public function needs here"
_REWRITE = "no pass of this kind is available here: compile_model folds constants and fuses layers by itself"

SENTENCES: tuple[tuple[str, str], ...] = (
    ("RemoteTensor*", _DEVICE_MEMORY),
    ("RemoteContext*", _DEVICE_MEMORY),
    ("VA*", _DEVICE_MEMORY),
    ("*.*_context", _DEVICE_MEMORY),
    ("*.create_tensor", _DEVICE_MEMORY),
    ("*Extension", _CONVERT),
    ("*Description.get_type_info", _TYPE_INFO),
    ("*.add_extension", _EXTENSION),
    ("*.set_output_size", _EXTENSION),
    ("*.visit_attributes", _EXTENSION),
    ("*.evaluate", _RUN),
    ("*.get_*put_tensor", "a port has it: node.output(index).get_tensor(), node.input(index).get_tensor()"),
    ("*.get_instance_id", "nodes are told apart by their friendly names, or by 'is'"),
    ("Constant.*strides", "constants have no gaps: see the strides of Constant.data"),
    ("TensorVector", "a list of tensors serves: see Request.set_input_tensors"),
    ("opset*.ops.*", _COPIES),
    ("helpers.packing.*", _COPIES),
    ("op.util.*", "operations have no common classes here: see Node.get_type_name"),
    (
        "experimental*",
        "bounds and types are computed by inference here: see Model.reshape and 'ir-runtime shapes'",
    ),
    ("torch*", "torch.compile has no backend here: " + _CONVERT),
    ("frontend*", _CONVERT),
    ("tools.benchmark*", _BENCHMARK),
    ("tools.ovc*", _CONVERT),
    ("tools*", _CONVERT),
    (
        "preprocess.torchvision*",
        "torchvision transforms are not converted here: use preprocess.PrePostProcessor",
    ),
    (f"{_COMPILED}*", _PYBIND),
    ("_offline_transformations.*", _REWRITE),
    ("passes.*", _REWRITE),
    ("package_utils*", _HELPER),
    ("utils.*", _HELPER),
)
"""Patterns of names without the name of the package, and the message for each."""

# At this similarity, an existing name is suggested even if there is a sentence.
_ALIKE = 0.85


def sentence(name: str) -> str:
    """Return the sentence about a name of OpenVINO, given without the name of the package; empty if there is none.

    >>> sentence("tools.benchmark.main")
    "OpenVINO's benchmark_app is not part of this package: 'ir-runtime bench' takes its options"
    """
    public = name.removeprefix(f"{_COMPILED}.")  # the public module's reason applies, if it has the name
    candidates = (public, name) if public != name else (name,)
    return next(
        (
            matching
            for candidate in candidates
            for pattern, matching in SENTENCES
            if fnmatchcase(candidate, pattern)
        ),
        "",
    )


def _why(name: str, names: Iterable[str]) -> str:
    """Return the explanation to append to a message about a missing name; ``names`` are the existing ones."""
    last, explanation = name.rpartition(".")[2], sentence(name)
    near = nearest(last, names)
    if explanation and near and SequenceMatcher(None, near.lower(), last.lower()).ratio() < _ALIKE:
        near = None
    return (f": {explanation}" if explanation else "") + suggestion(near, before="; ")


def _is_import(frame: FrameType) -> bool:
    """Return whether a frame is executing ``from module import name``."""
    return frame.f_code.co_code[frame.f_lasti] == opmap["IMPORT_FROM"]


def _below(module: str) -> str:
    """Return the name of a module without the name of its outermost package."""
    return module.partition(".")[2]


def explaining_getattr(module: str) -> Callable[[str], NoReturn]:
    """Return a ``__getattr__`` for a module that explains missing names; if the module has no ``__dir__``, add that of `completion`."""
    vars(sys.modules[module]).setdefault("__dir__", completion(module))

    def explaining(name: str) -> NoReturn:
        message = f"module {module!r} has no attribute {name!r}"
        if name.startswith("__"):
            raise AttributeError(message, name=name)
        names = completion(module)()
        why = _why(f"{_below(module)}.{name}".lstrip("."), names)
        if _is_import(
            sys._getframe(1)
        ):  # Python would replace an AttributeError by an ImportError without the reason
            raise ImportError(f"cannot import {name!r} from {module!r}{why}", name=module)
        raise AttributeError(message + why, name=name, obj=sys.modules[module])

    return explaining


def explain_absent(module: str) -> None:
    """Give a module a ``__getattr__`` that explains missing names, hidden from type checkers."""
    vars(sys.modules[module])["__getattr__"] = explaining_getattr(module)


def list_public(module: str) -> None:
    """Give a module a ``__dir__`` that lists only its public names."""
    vars(sys.modules[module])["__dir__"] = completion(module)


def completion(module: str) -> Callable[[], list[str]]:
    """Return a ``__dir__`` for a module: the names in ``__all__``, or its public functions and classes."""

    def names() -> list[str]:
        every = vars(sys.modules[module])
        if "__all__" in every:
            return list(every["__all__"])
        return [
            name
            for name, thing in every.items()
            if name[0] != "_" and callable(thing) and thing not in (explain_absent, list_public)
        ]

    return names


class ExplainsAbsent:
    """Base of the classes of OpenVINO's API, whose errors for missing attributes explain what to use instead."""

    __slots__ = ()

    if not TYPE_CHECKING:  # otherwise, type checkers would accept any attribute

        def __getattr__(self, name: str) -> Any:
            raise _MissingAttributeError(self, name)


class _MissingAttributeError(AttributeError):
    """A missing attribute. The reason is looked up only when the error is shown, as programs probe by ``hasattr``."""

    def __init__(self, obj: object, name: str) -> None:
        super().__init__(name=name, obj=obj)

    def __str__(self) -> str:
        cls, name = type(self.obj), str(self.name)
        message = f"{cls.__name__!r} object has no attribute {name!r}"
        if name.startswith("_"):
            return message
        return message + _why(
            f"{cls.__name__}.{name}", [attribute for attribute in dir(cls) if attribute[0] != "_"]
        )


# Tracebacks show it as the error that programs catch.
_MissingAttributeError.__name__ = _MissingAttributeError.__qualname__ = AttributeError.__name__
_MissingAttributeError.__module__ = AttributeError.__module__


def missing_module(name: str) -> ModuleNotFoundError:
    """Return the error for a missing module of this package."""
    parent, _, last = name.rpartition(".")
    siblings = [attribute for attribute in dir(import_module(parent)) if not attribute.startswith("_")]
    message = f"cannot import {last!r} from {parent!r}{_why(_below(name), siblings)}"
    return ModuleNotFoundError(
        message, name=parent
    )  # with its own name, "from … import" would hide the error
