"""Change models: derive the graph, and what is inferred about it, again after changes of their nodes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from ..analysis.former import Former
from ..analysis.infer import Inferred, infer
from ..analysis.state import check_assigned
from ..analysis.validate.structure import check
from ..analysis.validate.variables import check_assigns
from ..codes import Code
from ..diagnostics import Diagnostics
from ..io.reader.model import Document
from ..ir.graph import Graph, Layer, Port
from ..limits import within
from .any_value import Entries
from .building.derive import Members, derived, joined_weights, members_of, undeclared, with_types
from .building.ends import Parameter, Result
from .building.order import Order
from .building.refreshing import Refreshed, refreshed, values_of
from .building.variables import Variable
from .graph_nodes import GraphNodes
from .node_changes import EDITS
from .nodes import Node
from .reporting import ModelReport, model_html
from .view import View

if TYPE_CHECKING:
    from ..analysis.constraints.constraint import Constraints
    from ..ir.tensor import TensorType

__all__ = ["Editing"]


class Editing(View):
    """A model whose graph is that which was read until a node is changed, and is then derived from its nodes.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import opset1
    >>> x = opset1.parameter([1, -1, 4], np.float32, name="x")
    >>> model = ov.Model([opset1.reshape(x, np.int64([1, -1, 8]), False)], [x], "small")
    >>> model.name, model.raise_if_invalid().report.summary
    ('small', '0 errors, 0 warnings')
    >>> print(model.constraints(confirm=False))
    seq is a multiple of 2
    """

    def _start(self, document: Document, nodes: GraphNodes, report: Diagnostics) -> None:
        self._document = document
        self.friendly_name: str = document.name
        self._rt_info: Mapping[str, object] = document.rt_info
        self._table, self._report = nodes, report
        self._members: Members | None = None
        self._refreshed: Refreshed | None = None
        self._seen, self._edited = -1, 0
        self._added: list[Port] = []
        self._contradicted: Diagnostics | None = None
        self._declared_variables: list[Variable] = []

    def _entries(self) -> Mapping[str, object]:
        return self._rt_info

    def _replace_rt_info(self, entries: Entries) -> None:
        self._rt_info = entries

    @property
    def report(self) -> ModelReport:
        """What was found wrong or noteworthy. Calling it returns a page of the model to look at."""
        self._nodes()
        return ModelReport(self, self._report)

    @property
    @abstractmethod
    def _parameter_types(self) -> dict[int, TensorType]:
        """The types of the Parameters, by layer."""

    @abstractmethod
    def constraints(
        self, confirm: bool = True, seconds: float | None = None, evaluations: int | None = None
    ) -> Constraints:
        """Find the constraints on the dynamic dims of the inputs."""

    def _repr_html_(self) -> str:
        return model_html(self)

    @property
    def _extra(self) -> Sequence[Port]:
        return self._added

    def _nodes(self) -> GraphNodes:
        if self._table.is_settled:
            if self._changed_since(self._seen):
                self._derive()
            else:
                self._seen = EDITS.count  # nodes need not be asked again because other models changed
        return self._table

    def _changed_since(self, edit: int) -> bool:
        """Return whether the model, or a node of it, was changed after the change of that number."""
        if edit == EDITS.count:
            return False
        nodes = self._table.made.values() if self._refreshed is None else self._refreshed.nodes
        return self._edited > edit or any(node._changed_since(edit) for node in nodes)

    def _listed(self, order: Order) -> list[Node]:
        table = self._table
        if table.is_settled:
            members = self._settled()
            nodes = order([*members.results, *members.sinks, *members.parameters], Node._reads)
            self._release_others(nodes)
            return nodes
        graph = table.graph
        sinks = [layer.id for layer in _sinks(graph)]
        ends = [*_ids(graph, "Result"), *sinks, *_ids(graph, "Parameter")]
        found = order(ends, lambda layer: [port.layer for port in graph.reads(graph[layer])])
        return list(map(table.node, found))

    def _release_others(self, nodes: Sequence[Node]) -> None:
        """Keep no node that is not in the model any more: what it read has one consumer less, unless others keep it."""
        if self._changed_since(self._seen):
            present = set(map(id, nodes))
            table, known = self._table, self._refreshed
            table.made = {layer: node for layer, node in table.made.items() if id(node) in present}
            if known is not None:
                self._refreshed = known._replace(nodes=[node for node in known.nodes if id(node) in present])

    def _replace_graph(self, graph: Graph, values: Inferred) -> None:
        """Use a variant of the graph, which has the same layers."""
        self._table = GraphNodes(graph, values, origin=self._table.origin or self._table)
        self._members = self._refreshed = None

    def _derive(self) -> None:
        """Derive the graph from the nodes, and infer it."""
        members, is_known = self._settled(), self._is_refreshed()
        self._seen = EDITS.count
        graph, nodes = derived(members)
        report = Diagnostics(self._document.limits.findings)
        values = values_of(nodes) if is_known else self._inferred(graph, nodes, report)
        if missing := undeclared(nodes.values(), members):
            message = f"{missing.friendly_name!r} is not among the parameters of the model"
            report.error(Code.BAD_REQUEST, message, missing.layer.where)
        weights = joined_weights(self._document.weights, nodes.values())
        self._document = replace(self._document, graph=graph, weights=weights)
        self._table, self._report, self._contradicted = GraphNodes(graph, values, nodes=nodes), report, None
        self._table.is_sound = not len(report)
        if not is_known:
            self._refreshed = None

    def _inferred(self, graph: Graph, nodes: Mapping[int, Node], report: Diagnostics) -> Inferred:
        with within(self._document.limits):
            check(graph, report)
            values = infer(graph, report, compare=False, explain=True, former=self._former(nodes))
            check_assigned(graph, values, report)
            check_assigns(graph, report)
        return values

    def _is_refreshed(self) -> bool:
        """Return whether the nodes of a valid model have the values that follow from its last change."""
        return self._refreshed is not None and not self._changed_since(self._refreshed.edit)

    def _refresh(self) -> bool:
        """Infer only what has changed; return whether that is enough to know that the model is valid."""
        if not self._table.is_settled or len(self._report) or self._contradicted is not None:
            return False
        if not self._is_refreshed():
            with within(self._document.limits):
                self._refreshed = refreshed(self._settled(), EDITS.count)
        return self._refreshed is not None

    def _former(self, nodes: Mapping[int, Node]) -> Former | None:
        """Return what was inferred about the graph before it was changed, unless something is wrong with it."""
        if len(self._report) or self._contradicted is not None:
            return None
        table = self._table
        ids = {id(node): layer for layer, node in table.made.items()}
        known = {number: ids[id(node)] for number, node in nodes.items() if id(node) in ids}
        return Former(table.graph, table.values, known)

    def _declared_graph(self) -> Graph:
        """Return the graph with ports that declare what is inferred, as those of bodies do."""
        nodes = self._nodes()
        return with_types(nodes.graph, nodes.values)

    def _settled(self) -> Members:
        """Return what makes the model, as nodes that can be changed."""
        if self._members is None:
            self._table.settle()
            self._members = members_of(self._table)
            self._members.results += [Result.with_names(self._table.output(port)) for port in self._added]
            self._added = []
        return self._members

    def _edit(self) -> Members:
        members = self._settled()
        self._edited = EDITS.next()
        return members

    def _update_nodes(self) -> None:
        """Tell the nodes what was inferred about them."""
        table = self._nodes()
        for id, node in table.made.items() if table.is_settled else ():
            if node._home is None:
                ports = [Port(id, index) for index in range(len(node.layer.outputs))]
                read = [table.values.get(port) for port in table.graph.reads(table.graph[id])]
                known = [value for value in read if value is not None]
                is_known = table.is_sound and len(known) == len(node._own_sources)
                node._set_values(
                    [v for port in ports if (v := table.values.get(port))],
                    node._basis_of(known) if is_known else None,
                )

    def validate_nodes_and_infer_types(self) -> None:
        """Infer all types again after changes, and raise if the model is not valid.

        Raises:
            ValidationError: if it is not.
        """
        if not self._refresh():
            self.raise_if_invalid()
            self._update_nodes()

    @abstractmethod
    def raise_if_invalid(self) -> Self:
        """Raise what is wrong with the model."""

    @property
    def parameters(self) -> list[Parameter]:
        """The Parameter layers."""
        if not self._table.is_settled:
            return super().parameters
        return [node for node in self._settled().parameters if isinstance(node, Parameter)]

    @property
    def results(self) -> list[Result]:
        """The Result layers."""
        if not self._table.is_settled:
            return super().results
        return [node for node in self._settled().results if isinstance(node, Result)]

    @property
    def sinks(self) -> list[Node]:
        """The layers that assign variables."""
        if self._table.is_settled:
            return list(self._settled().sinks)
        return [self._table.node(layer.id) for layer in _sinks(self._table.graph)]


def _ids(graph: Graph, type: str) -> list[int]:
    return [layer.id for layer in graph.of_type(type)]


def _sinks(graph: Graph) -> list[Layer]:
    """Return the layers that assign variables."""
    return [layer for layer in graph.layers.values() if layer.op is not None and layer.op.has_side_effects]
