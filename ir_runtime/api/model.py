"""A model: read, looked at, reshaped, and ready to be compiled."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from ..codes import Code
from ..diagnostics import Diagnostic, Diagnostics
from ..errors import InputError, UnsupportedError, ValidationError
from ..frontend.model import Document
from ..ir.element import ElementType
from ..ir.graph import Graph, Layer, Port
from ..ir.shape import PartialShape, Shape
from ..ir.tensor import Array, TensorType, Value
from ..limits import Limits, within
from ..passes.check import check
from ..passes.infer import infer
from ..passes.state import check_assigned, variables_of, with_variables
from .names import find_port, find_ports, no_such
from .nodes import Input, Node
from .ports import Output, show_ports

if TYPE_CHECKING:
    import networkx as nx

    from ..passes.constraint import Constraints

__all__ = ["Model", "ShapeLike"]

ShapeLike: TypeAlias = "PartialShape | Sequence[Any] | str"


class Model:
    """A graph of layers with what was inferred about it. As OpenVINO's ``Model``.

    Use `ir_runtime.read_model` to get one. ``graph`` is the networkx graph; ``report`` has what was
    found wrong or noteworthy.
    """

    def __init__(self, document: Document, report: Diagnostics) -> None:
        self._document, self.report = document, report
        self._graph = document.graph
        self._parameters: dict[int, TensorType] | None = None
        self._extra: list[Port] = []
        check(self._graph, report)
        self._values = infer(self._graph, report, explain=True)
        report.arrange()
        check_assigned(self._graph, self._values, report)
        self.friendly_name = document.name

    @property
    def limits(self) -> Limits:
        """Those it was read with; compiling and running it are held to them, too."""
        return self._document.limits

    def raise_if_invalid(self, allowed: Collection[str] = ()) -> Model:
        """Return the model, or raise what was found wrong with it, except for codes in ``allowed``.

        Raises:
            UnsupportedError: if all that is wrong is operations that are not known.
            ValidationError: else; ``diagnostics`` has every finding.
        """
        errors = [error for error in self.report.errors if error.code not in allowed]
        if not errors:
            return self
        first = errors[0]
        if all(e.code == Code.UNKNOWN_OPERATION for e in errors):
            message = first.message + _as_well(errors[1:])
            raise UnsupportedError(message, code=first.code, where=first.where, hint=first.hint)
        raise ValidationError.of(errors)

    @property
    def graph(self) -> nx.MultiDiGraph:
        """The layers and edges as a frozen networkx graph.

        Nodes are layer ids with a ``layer``; an edge's key is the input it ends at, its ``source``
        the output it starts from.
        """
        return self._graph.network

    @property
    def name(self) -> str:
        """The name in the file."""
        return self._document.name

    @property
    def inputs(self) -> list[Output]:
        """The inputs, in the order of the file."""
        return [self._output(Port(layer.id, 0)) for layer in self._graph.of_type("Parameter")]

    @property
    def outputs(self) -> list[Output]:
        """The outputs, in the order of the file, then those added."""
        return [*self._results(), *map(self._output, self._extra)]

    def input(self, key: int | str | None = None) -> Output:
        """An input by index or name; without a key, the only one."""
        return find_port(self.inputs, key, "input")

    def output(self, key: int | str | None = None) -> Output:
        """An output by index or name; without a key, the only one."""
        return find_port(self.outputs, key, "output")

    @property
    def parameters(self) -> list[Node]:
        """The Parameter layers."""
        return list(map(self._node, self._graph.of_type("Parameter")))

    @property
    def results(self) -> list[Node]:
        """The Result layers."""
        return list(map(self._node, self._graph.of_type("Result")))

    @property
    def result(self) -> Node:
        """The only Result layer."""
        return self.output().node

    def get_parameters(self) -> list[Node]:
        """The Parameter layers."""
        return self.parameters

    def get_results(self) -> list[Node]:
        """The Result layers."""
        return self.results

    def get_ops(self) -> list[Node]:
        """Every layer, in the order of the file."""
        return list(map(self._node, self._graph.layers.values()))

    def get_ordered_ops(self) -> list[Node]:
        """Every layer, each behind those it depends on."""
        return list(map(self._node, self._graph))

    def get_friendly_name(self) -> str:
        """The name."""
        return self.friendly_name

    def set_friendly_name(self, name: str) -> None:
        """Give the model another name."""
        self.friendly_name = name

    def get_name(self) -> str:
        """The name."""
        return self.name

    @property
    def dynamic(self) -> bool:
        """Whether any shape is not known before the model runs."""
        return self.is_dynamic()

    def get_result(self) -> Node:
        """The only Result layer."""
        return self.result

    def get_output_op(self, index: int) -> Node:
        """The Result layer of an output."""
        return self.output(index).node

    def is_dynamic(self) -> bool:
        """Whether any shape is not known before the model runs."""
        return any(value.shape.is_dynamic for value in self._values.values())

    @property
    def rt_info(self) -> Mapping[str, Any]:
        """What the file says beside the graph."""
        return self._document.rt_info

    def get_rt_info(self, path: str | Sequence[str] = ()) -> Any:
        """What the file says beside the graph, or the entry at a path."""
        found: Any = self.rt_info
        for key in [path] if isinstance(path, str) else path:
            if not isinstance(found, Mapping) or key not in found:
                raise InputError(f"rt_info has no {key!r}", code=Code.NO_SUCH_NAME)
            found = found[key]
        return found

    def has_rt_info(self, path: str | Sequence[str]) -> bool:
        """Whether rt_info has an entry at a path."""
        try:
            self.get_rt_info(path)
        except InputError:
            return False
        return True

    def add_outputs(self, outputs: Any) -> list[Output]:
        """Also compute these: tensor names, layer names, globs, (layer name, output) or ports."""
        single = isinstance(outputs, str | Output) or (
            isinstance(outputs, tuple) and len(outputs) == 2 and isinstance(outputs[1], int)
        )
        found = find_ports(self._graph, [outputs] if single else outputs)
        known = {output._port for output in self.outputs}
        self._extra += [port for port in found if port not in known]
        return [next(o for o in self.outputs if o._port == port) for port in found]

    def reshape(
        self,
        shapes: ShapeLike | Mapping[Any, ShapeLike],
        variables_shapes: Mapping[str, ShapeLike] | None = None,
    ) -> None:
        """Give inputs and variables other shapes, and infer everything again.

        Args:
            shapes: the shape of the only input, or shapes by index, name or port. A shape is a
                `PartialShape`, its text (``"?,3,1..8"``), or a sequence of lengths (-1 for any).
            variables_shapes: shapes of variables by their ids.

        Raises:
            ValidationError: if a layer refuses; the model is then as before.
        """
        given = shapes if isinstance(shapes, Mapping) else {None: shapes}
        parameters = dict(self._parameters or {})
        parameters |= {port._port.layer: type for port, type in self._reshaped(given)}
        graph, report = self._with_variables(variables_shapes or {}), Diagnostics()
        with within(self.limits):
            values = infer(graph, report, self._all_parameters(parameters), explain=True)
        check_assigned(graph, values, report)
        if report.errors:
            raise ValidationError.of(report.errors)
        self._parameters, self._graph, self._values = parameters, graph, values

    def constraints(self, confirm: bool = True, seconds: float = 20.0) -> Constraints:
        """What the graph demands of the open lengths of its inputs: ``height is a multiple of 32``.

        Found by asking inference which lengths it accepts, so that it holds for any operation.

        Args:
            confirm: also run the model with random inputs, to see whether running agrees.
            seconds: how long asking may take, and how long running may; what is not found out by
                then is said in ``undecided``.
        """
        from ..passes.constraints import find_constraints
        from .confirming import confirmed

        parameters = {port._port.layer: port._type for port in self.inputs}
        with within(self.limits):
            found = find_constraints(self._graph, self._values, parameters, seconds=seconds)
            return confirmed(self, found, seconds) if confirm else found

    def _with_variables(self, given: Mapping[str, ShapeLike]) -> Graph:
        known = variables_of(self._graph, self._values)
        for name in given:
            if name not in known:
                raise no_such("variable", name, known)
        shapes = {name: _shape(shape) for name, shape in given.items()}
        return with_variables(self._graph, shapes) if shapes else self._graph

    def _reshaped(self, given: Mapping[Any, ShapeLike]) -> Iterator[tuple[Output, TensorType]]:
        for key, shape in given.items():
            port = find_port(self.inputs, key, "input")
            yield port, TensorType(port.element_type, _shape(shape))

    def _all_parameters(self, parameters: Mapping[int, TensorType]) -> dict[int, Value]:
        current = {port._port.layer: port._type for port in self.inputs}
        return {layer: Value(type) for layer, type in {**current, **parameters}.items()}

    def validate_nodes_and_infer_types(self) -> None:
        """Raise if the model is not valid; inference has already been done."""
        self.raise_if_invalid()

    def clone(self) -> Model:
        """A model of its own over the same graph and constants."""
        other = copy.copy(self)
        other._extra = list(self._extra)
        return other

    def narrow(self) -> None:
        """Compute in f16 what the model has in f32; inputs and outputs stay what they are."""
        from ..passes.narrow import narrow

        parameters = self._all_parameters(self._parameters or {})
        self._graph = narrow(self._graph, self._values)
        self._values = infer(self._graph, Diagnostics(), parameters)

    def compute_types(self) -> None:
        """Take types and shapes from the operations alone, as running does, whatever outputs declare."""
        self.report = Diagnostics()
        parameters = self._all_parameters(self._parameters or {})
        self._values = infer(self._graph, self.report, parameters, compare=False)

    def constant(self, name: str) -> Array:
        """The contents of the Constant layer of that name."""
        layers = [la for la in self._graph.of_type("Constant") if la.name == name]
        if not layers:
            known = [la.name for la in self._graph.of_type("Constant")]
            raise no_such("Constant", name, known)
        return self._node(layers[0]).get_data()

    def get_parameter_index(self, parameter: Node) -> int:
        """The position of a Parameter among the inputs, or -1."""
        return next((i for i, node in enumerate(self.parameters) if node == parameter), -1)

    def get_result_index(self, output: Output | Node) -> int:
        """The position of an output, or -1."""
        nodes = [o.node if isinstance(output, Node) else o for o in self.outputs]
        return nodes.index(output) if output in nodes else -1

    def get_output_size(self) -> int:
        """How many outputs there are."""
        return len(self.outputs)

    def get_output_shape(self, index: int) -> Shape:
        """The shape of an output, all of which must be known."""
        return self.output(index).shape

    def get_output_partial_shape(self, index: int) -> PartialShape:
        """The shape of an output, as far as it is known."""
        return self.output(index).partial_shape

    def get_output_element_type(self, index: int) -> ElementType:
        """The element type of an output."""
        return self.output(index).element_type

    def get_variables(self) -> list[Any]:
        """The variables of the model."""
        return []

    def _node(self, layer: Layer) -> Node:
        return Node(self, layer)

    def _readers(self, port: Port) -> set[Input]:
        return {Input(self, reader) for reader in self._graph.readers(port)}

    def _results(self) -> Iterable[Output]:
        for layer in self._graph.of_type("Result"):
            for source in self._graph.sources(layer):
                if source is not None and source in self._values:
                    yield self._output(source, layer)

    def _output(self, port: Port, result: Layer | None = None) -> Output:
        specs = self._graph[port.layer].outputs[port.number : port.number + 1]
        names = tuple(name for spec in specs for name in spec.names)
        if result is not None:
            names = tuple(dict.fromkeys((*(n for spec in result.inputs for n in spec.names), *names)))
        value = self._values.get(port)
        unknown = TensorType(ElementType.dynamic, PartialShape.dynamic())
        return Output(self, port, value.type if isinstance(value, Value) else unknown, names, result)

    def __repr__(self) -> str:
        return f"<Model: {self.friendly_name!r}\n{show_ports(self.inputs, self.outputs)}>"


def _shape(given: ShapeLike) -> PartialShape:
    try:
        return PartialShape(given)
    except (TypeError, ValueError) as reason:
        raise InputError(f"{given!r} is no shape: {reason}", hint='such as "?,3,1..8" or [-1, 3]') from None


def _as_well(errors: Sequence[Diagnostic]) -> str:
    """Name the other operations that are not known, so that one run tells of all."""
    operations = sorted({e.where.operation for e in errors if e.where})
    return f"; {len(errors)} more layers are unknown: {', '.join(operations)}" if operations else ""
