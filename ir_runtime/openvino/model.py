"""Models: build, validate and reshape them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from io import BytesIO
from typing import TYPE_CHECKING, Any, Self

from .._util.wrong_arguments import ArgumentTypeError
from ..analysis.correct import corrected
from ..analysis.infer import Inferred, infer
from ..analysis.state import check_assigned
from ..analysis.validate.structure import check
from ..analysis.validate.variables import check_assigns
from ..codes import DECLARED, Code
from ..diagnostics import Diagnostic, Diagnostics
from ..errors import UnsupportedError, ValidationError
from ..io.reader.layers import FORMER_IR
from ..io.reader.model import Document
from ..io.reader.version_10 import convert_again
from ..ir.graph import Graph, Port
from ..limits import Limits, within
from .building.arguments import arguments, empty_document, name_ends
from .building.bodies import BodyNode
from .building.derive import Members
from .building.ends import Result
from .graph_nodes import GraphNodes
from .names import find_ports
from .nodes import Output
from .reshaping import Reshaping
from .tensor import Tensor

if TYPE_CHECKING:
    from ..analysis.constraints.confirming import Run
    from ..analysis.constraints.constraint import Constraints
    from ..io.writer.document import Content

__all__ = ["SAVED_WITH", "Model"]

SAVED_WITH = (Code.UNKNOWN_OPERATION, *DECLARED)
"""Findings that do not keep a model from being saved: operations from elsewhere are written as they were read, and what ports
declare is replaced by what is inferred."""

# Bounds on the runs that confirm constraints: least and most CPU seconds, bytes of files per further second, and
# the limits of each run.
_MIN_SECONDS, _MAX_SECONDS, _BYTES_PER_SECOND = 1.0, 20.0, 4 << 20
_CONFIRMING: dict[str, Any] = {"memory": 1 << 29, "trips": 10_000}

# A model may be read without being valid. Compiling looks only at layers that are needed, and refuses those
# without an operation; what outputs declare has no effect on what they are.
_HARMLESS = frozenset(
    {
        Code.BAD_ATTRIBUTE,
        *DECLARED,
        Code.UNKNOWN_OPERATION,
        Code.WEIGHTS_MISSING,
        Code.WEIGHTS_RANGE,
    }
)


class Model(Reshaping):
    """A graph of layers with what was inferred about it. As OpenVINO's ``Model``.

    `ir_runtime.read_model` reads one; ``Model(results, parameters)`` makes one of nodes. ``graph`` is the networkx
    graph; ``report`` has what was found wrong or noteworthy.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import opset1
    >>> x = opset1.parameter([-1, 3], np.float32, name="x")
    >>> model = ov.Model([opset1.relu(x, name="y")], [x], "small")
    >>> model.reshape([2, 3])
    >>> model.output().shape, [node.get_type_name() for node in model.get_ordered_ops()]
    (<Shape: [2,3]>, ['Parameter', 'Relu', 'Result'])

    Args:
        results: Results, or nodes and outputs that are to be the outputs of the model.
        sinks: layers that assign variables; may be left out.
        parameters: the inputs.
        variables: the variables; may be left out.
        name: the name of the model.

    Raises:
        ValidationError: if a layer refuses its inputs, or reads a Parameter that is not among the inputs.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if len(args) == 1 and isinstance(args[0], Model) and not kwargs:
            vars(self).update(vars(args[0].clone()))
            return
        members, variables, name = arguments(args, kwargs)
        document = empty_document(name)
        self._start(document, GraphNodes(document.graph, Inferred(), nodes={}), Diagnostics())
        self._parameters = None
        self._members, self._declared_variables = members, variables
        name_ends(members)
        self.validate_nodes_and_infer_types()

    @classmethod
    def _read(cls, document: Document, report: Diagnostics) -> Model:
        """Make a model of what was read; findings go into the report."""
        graph, model = document.graph, cls.__new__(cls)
        check(graph, report)
        before = Diagnostics(report.most)
        before.extend(report)
        # A page is there to show what ports declare, and old files say so how their layers were meant.
        strict = document.is_page or document.version < FORMER_IR
        nodes = GraphNodes(graph, infer(graph, report, explain=True, strict=strict))
        nodes.weights = document.weights
        model._start(document, nodes, report)
        model._parameters = None
        report.arrange()
        check_assigned(graph, nodes.values, report)
        check_assigns(graph, report, document.is_page)
        if any(report.count(code=code) > before.count(code=code) for code in DECLARED):
            model._ignore_declared(before)
        model._retype_outputs()
        model._table.is_sound = not len(report)
        return model

    @classmethod
    def _of_graph(cls, graph: Graph, name: str) -> Model:
        """Make a model of the graph inside a layer."""
        return cls._read(replace(empty_document(name), graph=graph), Diagnostics())

    def _ignore_declared(self, found: Diagnostics) -> None:
        """Take types and shapes from operations alone, as running does; and add what is wrong even so."""
        nodes = self._table
        nodes.values = infer(nodes.graph, found, compare=False, explain=True)
        check_assigned(nodes.graph, nodes.values, found)
        check_assigns(nodes.graph, found, self._document.is_page)
        self._contradicted = found

    def _retype_outputs(self) -> None:
        """Give the outputs of old files the types of today by what was inferred, if the file declares otherwise."""
        unconverted, weights = self._document.unconverted, self._document.weights
        if unconverted is None or (graph := convert_again(unconverted, self._table.values)) is None:
            return
        self._document = replace(self._document, graph=graph)
        self._table = GraphNodes(graph, infer(graph, Diagnostics(), compare=False))
        self._table.weights = weights

    @property
    def _is_contradicted(self) -> bool:
        """Whether ports declare something else than is inferred."""
        self._nodes()
        return self._contradicted is not None

    def raise_if_invalid(self, allowed: Collection[str] = ()) -> Self:
        """Return the model, or raise what was found wrong with it, except for codes in ``allowed``.

        Raises:
            UnsupportedError: if all that is wrong is operations that are not known.
            ValidationError: else; ``diagnostics`` has every finding.
        """
        errors = self._errors(allowed)
        if not errors:
            return self
        first = errors[0]
        if all(e.code == Code.UNKNOWN_OPERATION for e in errors):
            message = first.message + _as_well(errors[1:], self.report.count(code=first.code) - 1)
            raise UnsupportedError(message, code=first.code, where=first.where, hint=first.hint)
        raise ValidationError.of(errors, self.report.more)

    def _errors(self, allowed: Collection[str]) -> list[Diagnostic]:
        """Return the errors for which the model is refused, in the order of the file."""
        report = self.report
        if self._contradicted is None or not frozenset(allowed) >= DECLARED:
            return [error for error in report.errors if error.code not in allowed]
        errors = [error for error in self._contradicted.errors if error.code not in allowed]
        if not errors:
            return []
        declared = [error for error in report.errors if error.code in DECLARED]
        return sorted([*declared, *errors], key=lambda error: error.line or 0)

    def add_outputs(self, outputs: object) -> list[Output]:
        """Also compute these: tensor names, layer names, globs, (layer name, output) or ports.

        Returns:
            The output of the Result that takes each; there is one for each tensor.
        """
        wanted = [output for item in _listed(outputs) for output in self._asked(item)]
        known = {result.input_value(0): result for result in self.results}
        more = {output: Result.with_names(output) for output in dict.fromkeys(wanted) if output not in known}
        self.add_results(more.values())
        name_ends(Members(results=list(more.values())))
        return [(known | more)[output].output(0) for output in dict.fromkeys(wanted)]

    def _asked(self, item: object) -> list[Output]:
        if isinstance(item, Output):
            return [item.node.input_value(0) if item.node.type == "Result" else item]
        return list(map(self._nodes().output, self._ports([item])))

    def _compute_also(self, outputs: object) -> None:
        """Have outputs without Results, which only running knows."""
        known = {output._port for output in self._const_outputs()}
        self._added += [port for port in self._ports(_listed(outputs)) if port not in known]

    def _ports(self, asked: Iterable[Any]) -> list[Port]:
        nodes = self._nodes()
        return find_ports(
            nodes.graph, [self._port(item) if isinstance(item, Output) else item for item in asked]
        )

    def constraints(
        self, confirm: bool = True, seconds: float | None = None, evaluations: int | None = None
    ) -> Constraints:
        """Find the constraints on the dynamic dims of the inputs: ``height is a multiple of 32``.

        They are found by running shape inference at different lengths, so they hold for any operation.

        Args:
            confirm: also run the model with random inputs, to see whether running agrees.
            seconds: the CPU time that running may take; by default in proportion to the files, 1 to 20.
            evaluations: how many layers may be inferred, by default in proportion to the files; what is not found out
                by then is said in ``undecided``.
        """
        from ..analysis.constraints.confirming import confirmed
        from ..analysis.constraints.probing import Budget
        from ..analysis.constraints.solver import find_constraints

        graph, parameters, size = self._graph, self._parameter_types, self._document.size
        with within(self.limits):
            budget = Budget.of(size) if evaluations is None else Budget(evaluations=evaluations)
            found = find_constraints(graph, self._values, parameters, budget)
            if not confirm:
                return found
            if seconds is None:
                seconds = min(_MIN_SECONDS + size / _BYTES_PER_SECOND, _MAX_SECONDS)
            return confirmed(found, graph, parameters, self._compile_run, seconds)

    def _compile_run(self) -> Run:
        """Compile the model with default settings, and return the function that runs it in little memory."""
        from .executable import Executable

        limits, most = self.limits, _CONFIRMING
        limits = replace(limits, **{name: min(getattr(limits, name), limit) for name, limit in most.items()})
        return partial(Executable(self._runnable(), limits=limits)._run, kept=())

    def _runnable(self, f16: bool = False) -> Model:
        """Return a copy in which ports declare what is inferred, to be compiled.

        Raises:
            ValidationError: if something keeps the model from running.
        """
        model = self.raise_if_invalid(_HARMLESS)._variant()
        model._correct()
        if f16:
            model._narrow()
        return model

    def evaluate(
        self,
        output_tensors: Sequence[Tensor],
        input_tensors: Sequence[Tensor],
        evaluation_context: object = None,
    ) -> bool:
        """Compute the outputs by the plain definition of each layer, into tensors, which get their shapes.

        Args:
            output_tensors: a tensor for each output.
            input_tensors: a tensor for each input.
            evaluation_context: for OpenVINO's signature.

        Returns:
            True: every operation can be computed.
        """
        from .executable import Executable

        found = Executable(self._runnable(), "reference")._run(list(input_tensors))
        for tensor, array in zip(output_tensors, found.to_tuple(), strict=True):
            tensor.copy_from(array)
        return True

    def __copy__(self) -> Model:
        raise TypeError("a model cannot be copied in part: use copy.deepcopy, or clone")

    def __deepcopy__(self, memo: object) -> Model:
        return self.clone()

    def __reduce__(self) -> tuple[Callable[..., Model], tuple[bytes, bytes, Limits]]:
        from ..io.writer.document import write

        xml, weights = BytesIO(), BytesIO()
        write(self._content(), xml, weights)
        return _restore, (xml.getvalue(), weights.getvalue(), self.limits)

    def _content(self, allowed: Collection[str] = SAVED_WITH) -> Content:
        """Return the content of its files.

        Args:
            allowed: codes of findings with which it is written all the same.

        Raises:
            ValidationError: if the model is not valid.
        """
        from ..io.writer.document import Content
        from ..io.writer.results import with_results

        settled = self.raise_if_invalid(allowed).clone()
        settled._correct()
        graph = with_results(settled._graph, self._extra)
        declared = self._parameters is None  # what ports declare holds for the shapes of the file
        return Content(self.friendly_name, graph, self._values, self._rt_info, declared)

    def _get_raw_address(self) -> int:
        """Return a number that no other model has while this one lives; programs call it."""
        return id(self)

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *reason: object) -> None:
        """Leave the model as it is: nothing is held that would have to be given back."""

    def clone(self) -> Model:
        """Return a new model over the same graph and constants."""
        nodes, other = self._nodes(), self._variant()
        other._table = GraphNodes(nodes.graph, nodes.values)
        other._table.weights, other._table.is_sound = self._document.weights, nodes.is_sound
        return other

    def _variant(self) -> Model:
        """Return a copy with the same nodes, which does not follow changes of them."""
        nodes, other = self._nodes(), type(self).__new__(type(self))
        vars(other).update(vars(self))
        other._table = GraphNodes(nodes.graph, nodes.values, origin=nodes.origin or nodes)
        other._members, other._refreshed, other._added = None, None, list(self._added)
        other._declared_variables = list(self._declared_variables)
        return other

    def _narrow(self) -> None:
        """Compute in f16 what the model has in f32; inputs and outputs stay what they are."""
        from ..compiler.narrow import narrow

        parameters = self._all_parameters(self._parameters or {})
        graph = narrow(self._graph, self._values)
        self._replace_graph(graph, infer(graph, Diagnostics(), parameters))

    def _correct(self) -> None:
        """Replace declarations that contradict inference by what is inferred."""
        if self._is_contradicted:
            self._replace_graph(corrected(self._graph, self._values), self._values)


def _listed(outputs: Any) -> list[Any]:
    """Return what stands for outputs as a list: one may stand alone.

    Raises:
        ArgumentTypeError: if something stands for none.
    """
    listed = [outputs] if _stands_for_output(outputs) or not isinstance(outputs, Iterable) else list(outputs)
    for each in listed:
        if not _stands_for_output(each):
            message = f"{each!r} is not an output: expected a name, (layer name, output) or a port"
            raise ArgumentTypeError(message, code=Code.BAD_REQUEST)
    return listed


def _stands_for_output(item: object) -> bool:
    numbered = isinstance(item, tuple) and [*map(type, item)] == [str, int]
    return isinstance(item, str | Output | Port) or numbered


def _as_well(errors: Sequence[Diagnostic], count: int) -> str:
    """List the other unknown operations, so that one run reports all."""
    operations = sorted({e.where.operation for e in errors if e.where})
    return f"; {count} more layers have unknown operations: {', '.join(operations)}" if operations else ""


BodyNode.model_class = Model


def _restore(xml: bytes, weights: bytes, limits: Limits) -> Model:
    """Return a model that was pickled."""
    from ..io.reader.load import load

    report = Diagnostics(limits.findings)
    with within(limits):
        (document,) = load(xml, weights, report, limits)
        return Model._read(document, report).raise_if_invalid(SAVED_WITH)
