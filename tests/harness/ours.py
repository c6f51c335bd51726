"""Our own answers, straight from the parts: reader, passes, plan."""

from __future__ import annotations

from collections.abc import Sequence

from ir_runtime.analysis.validate import check_graph
from ir_runtime.backends import load as load_backend
from ir_runtime.compiler.compile import compile_plan
from ir_runtime.diagnostics import Diagnostics
from ir_runtime.io.reader.model import load
from ir_runtime.ir.graph import Port
from ir_runtime.ir.tensor import Array, Value


class Ours:
    """A model as we read it, with what was found wrong with it."""

    def __init__(self, xml: bytes, weights: bytes = b"") -> None:
        self.report = Diagnostics()
        self.graph = load(xml, weights, self.report)[0].graph
        self.values = check_graph(self.graph, self.report).values
        results = self.graph.of_type("Result")
        self.outputs = [p for r in results for p in self.graph.sources(r) if p is not None]

    def types(self) -> list[Value]:
        return [self.values[port] for port in self.outputs]

    def run(self, inputs: Sequence[Array], backend: str = "reference") -> list[Array]:
        name, chain = load_backend(backend)
        plan = compile_plan(self.graph, self.values, self.outputs, chain, fold=name != "reference")
        return plan.run(inputs)

    def value(self, layer: str) -> Value:
        found = next(la for la in self.graph if la.name == layer)
        return self.values[Port(found.id, 0)]
