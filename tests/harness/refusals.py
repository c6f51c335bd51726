"""Refusals: models of one invalid layer, and the message that a user sees."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import ir_runtime as ir
from harness.files import precision
from harness.nets import End, Net
from harness.sample import text, value
from ir_runtime.ir.tensor import Array, Value
from ir_runtime.ops import Op, registry

TABLES = Path(__file__).parents[1] / "messages"


@dataclass(frozen=True)
class Refusal:
    """One invalid layer with its inputs, refused when the model is validated or when it runs."""

    name: str
    op: str
    inputs: tuple[Any, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    fed: Sequence[int] | None = None
    """Arrays that are Parameters in the file. They are fed where the model runs: then all are, by default."""
    run: bool = False
    """Whether the model is valid, and the layer fails on the data."""
    outputs: int | None = None
    """How many outputs the layer has, where its operation does not say."""
    backend: str | None = None
    """The backend that runs it; the usual one by default."""

    @property
    def cls(self) -> type[Op]:
        name, _, since = self.op.rpartition("-")
        return next(c for c in registry.versions(name) if c.since == int(since))

    def net(self) -> Net:
        """The model; the layer has the name of its operation, the inputs those of its ports."""
        net = Net()
        sources = [self._source(net, index, value(x)) for index, x in enumerate(self.inputs)]
        # One of outputs without a number, as runtimes drop layers that nothing reads.
        declared = sum(not port.variadic for port in self.cls.outputs) or len(self.cls.outputs)
        data = {k: text(v) for k, v in self.attributes.items()}
        ends = net.layer(
            self.cls.name,
            [end for end, _ in sources],
            [""] * (declared if self.outputs is None else self.outputs),
            inputs=[says for _, says in sources],
            version=f"opset{self.cls.since}",
            **data,
        )
        for index, end in enumerate(ends):
            net.result(end, f"result{index or ''}")
        return net

    def feeds(self) -> list[Array]:
        """The arrays to feed if the model runs."""
        return [np.asarray(x) for i, x in enumerate(self.inputs) if self.is_fed(i)]

    def said(self) -> str:
        """The message that a user sees."""
        return said_when_run(self.net(), self.feeds(), self.backend) if self.run else said_of(self.net())

    def is_fed(self, index: int) -> bool:
        """Return whether an input is a Parameter."""
        if value(self.inputs[index]).known() is None:
            return True
        return self.run if self.fed is None else index in self.fed

    def _source(self, net: Net, index: int, known: Value) -> tuple[End, str]:
        """Return a Parameter or a constant for an input, and the declaration of the port that it feeds."""
        port, element = self._port(index), known.element.label
        says = " ".join([precision(known.element), *_dims(known)])
        if not self.is_fed(index):
            return net.constant(known.known(), element, name=port), says
        ranked = known.shape.rank is not None
        shape = ",".join(map(str, known.shape)) if ranked else "..."
        return net.parameter(port, shape, element, out=says if ranked else ""), says if ranked else ""

    def _port(self, index: int) -> str:
        ports = self.cls.inputs
        port = ports[min(index, len(ports) - 1)]
        return f"{port.name}{index - len(ports) + 1}" if port.variadic or index >= len(ports) else port.name


def refusal(name: str, op: str, *inputs: Any, **attributes: Any) -> Refusal:
    """Return a refusal from its name, the operation, inputs and attributes.

    Arrays are constants, ``"f32 2,?"`` is a Parameter of that type and partial shape. A dash in an
    attribute's name is written ``__``; a leading ``_`` marks a field of `Refusal`: with ``_run=True``
    arrays are fed instead, all or those of ``_fed``.
    """
    fields = {k[1:]: v for k, v in attributes.items() if k.startswith("_")}
    named = {k.replace("__", "-"): v for k, v in attributes.items() if not k.startswith("_")}
    return Refusal(name, op, inputs, named, **fields)


@dataclass(frozen=True)
class Call:
    """An invalid call, and the exceptions that it may raise."""

    name: str
    call: Callable[[], Any]
    errors: tuple[type[Exception], ...] = (ir.IRError,)

    def said(self) -> str:
        """The message that a user sees."""
        return said_by(self.call, *self.errors)


Case = Refusal | Call | Callable[[], "Net | tuple[Net, Sequence[Array]] | str"]
"""A refusal, or a function that returns a net to check, one to run on arrays, or what was said."""


def told(case: Case) -> tuple[str, str]:
    """Return the name of a case, and the message that a user sees."""
    if isinstance(case, Refusal | Call):
        return case.name, case.said()
    made = case()
    if isinstance(made, tuple):
        return case.__name__, said_when_run(*made)
    return case.__name__, made if isinstance(made, str) else said_of(made)


def said_of(net: Net) -> str:
    """Return the findings of a model."""
    found = ir.validate(net.xml(), net.weights or None)
    return "\n".join(map(_shown, found)) or "nothing"


def said_when_run(net: Net, feeds: Sequence[Array], backend: str | None = None) -> str:
    """Return the error raised by running a valid model on these arrays."""
    model = ir.read_model(net.xml(), net.weights)
    return said_by(lambda: ir.compile_model(model, backend=backend)(list(feeds)))


def said_by(call: Callable[[], Any], *errors: type[Exception]) -> str:
    """Return the error raised by a call."""
    try:
        call()
    except (*errors, ir.IRError) as problem:
        return _shown(problem)
    return "nothing"


def groups() -> list[str]:
    """Return the names of the tables, which are modules of ``tests/messages``."""
    files = sorted(TABLES.glob("[a-z]*.py"))
    return [file.stem for file in files if "\nREFUSALS" in file.read_text(encoding="utf-8")]


def cases(group: str) -> list[Case]:
    """Return the cases of a table."""
    return list(import_module(f"messages.{group}").REFUSALS)


def folder(group: str) -> str:
    """Return the folder of a table's snapshot below ``snapshots``; by default that of operations."""
    return str(getattr(import_module(f"messages.{group}"), "FOLDER", "messages/ops"))


def _shown(found: object) -> str:
    return str(found).replace("<bytes>", "model.xml")


def _dims(known: Value) -> list[str]:
    if known.shape.rank is None:
        return []
    return [str(d) if d.is_static else "-1" for d in known.shape]
