"""The model that runs, as OpenVINO's ``get_runtime_model`` returns it."""

from __future__ import annotations

from ..analysis.infer import Inferred
from ..diagnostics import Diagnostics
from ..ir.tensor import Value
from .executable import Executable
from .execution_graph import ExecutionGraph
from .graph_nodes import GraphNodes
from .model import Model

__all__ = ["runtime_model"]


def runtime_model(compiled: Executable) -> Model:
    """Return a model with a node for each step of a compiled model's plan."""
    model = compiled._model
    types = {port: value.type for port, value in model._values.items()}
    graph = ExecutionGraph(model._graph, types, compiled._plan, compiled.backend, compiled._performance)
    outputs = [(port._port, port.node.friendly_name) for port in compiled.outputs]
    document = graph.document([port._port for port in compiled.inputs], outputs, model.friendly_name)
    values = Inferred()
    values.update({port: Value(type) for port, type in graph.made.items()})
    made = Model.__new__(Model)
    made._start(document, GraphNodes(document.graph, values), Diagnostics())
    made._parameters = None
    return made
