"""Adapters: how a runtime is given a case, and its outputs are taken. One for another runtime is a function of a case."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from harness import oracle

from conformance.case import Case
from ir_runtime.backends import available
from ir_runtime.codes import Code
from ir_runtime.errors import InputError
from ir_runtime.ir.tensor import Array

__all__ = ["Adapter", "Unsupported", "adapter"]

Adapter: TypeAlias = Callable[[Case], Sequence[Array]]
"""Runs a case and returns its outputs; raises `Unsupported` if the runtime lacks the operation, else any exception."""


class Unsupported(Exception):  # noqa: N818 - an answer
    """The runtime does not implement the operation of a case."""


def adapter(name: str) -> Adapter:
    """Return the adapter for a runtime.

    Args:
        name: ``openvino`` for its CPU plugin, ``openvino:reference`` for
            ``Model.evaluate``; or a backend of this package.

    Raises:
        InputError: if there is no such runtime.
    """
    if name in _OPENVINO:
        return _OPENVINO[name]
    if name in available():
        return _OnBackend(name)
    raise InputError(
        f"unknown runtime {name!r}",
        code=Code.NO_SUCH_NAME,
        hint=f"expected openvino, openvino:reference, {', '.join(available())}",
    )


class _OnBackend:
    """A backend of this package."""

    def __init__(self, backend: str) -> None:
        self._backend = backend

    def __call__(self, case: Case) -> Sequence[Array]:
        from ir_runtime.openvino.core import compile_model
        from ir_runtime.openvino.reading import read_model

        compiled = compile_model(read_model(case.xml, case.weights), backend=self._backend)
        results = compiled(list(case.inputs))
        return [results[index] for index in range(len(compiled.outputs))]


def _plugin(case: Case) -> Sequence[Array]:
    """Run OpenVINO's CPU plugin at f32, without its own shortcuts."""
    return oracle.plugin(oracle.read(case.xml, case.weights), case.inputs)


def _evaluate(case: Case) -> Sequence[Array]:
    """Run OpenVINO's own definitions of the operations."""
    outputs = oracle.evaluated(oracle.read(case.xml, case.weights), case.inputs)
    if outputs is None:
        raise Unsupported("Model.evaluate does not implement it")
    return outputs


_OPENVINO: dict[str, Adapter] = {"openvino": _plugin, "openvino:reference": _evaluate}
