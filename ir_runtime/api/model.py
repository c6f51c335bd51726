"""Models: validate, reshape and change them."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from ..analysis.correct import corrected
from ..analysis.infer import infer
from ..analysis.state import check_assigned, variables_of, with_variables
from ..analysis.validate.structure import check
from ..analysis.validate.variables import check_assigns
from ..codes import DECLARED, Code
from ..diagnostics import Diagnostic, Diagnostics
from ..errors import InputError, UnsupportedError, ValidationError
from ..ir.graph import Graph
from ..ir.shape import PartialShape
from ..ir.tensor import TensorType, Value
from ..limits import Limits, within
from ..reader.model import Document
from .names import find_port, find_ports, unknown_name
from .nodes import Output
from .view import View

if TYPE_CHECKING:
    from ..analysis.constraints.confirming import Run
    from ..analysis.constraints.constraint import Constraints

__all__ = ["Model", "ShapeLike"]

ShapeLike: TypeAlias = "PartialShape | Sequence[Any] | str"

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


class Model(View):
    """A graph of layers with what was inferred about it. As OpenVINO's ``Model``.

    Use `ir_runtime.read_model` to get one. ``graph`` is the networkx graph; ``report`` has what was
    found wrong or noteworthy.
    """

    def __init__(self, document: Document, report: Diagnostics) -> None:
        self.report = report
        self._parameters: dict[int, TensorType] | None = None
        self._contradicted: Diagnostics | None = None
        check(document.graph, report)
        before = Diagnostics(report.most)
        before.extend(report)
        super().__init__(document, infer(document.graph, report, explain=True))
        report.arrange()
        check_assigned(self._graph, self._values, report)
        check_assigns(self._graph, report)
        if any(report.count(code=code) > before.count(code=code) for code in DECLARED):
            self._ignore_declared(before)

    def _ignore_declared(self, found: Diagnostics) -> None:
        """Take types and shapes from operations alone, as running does; and add what is wrong even so."""
        self._values = infer(self._graph, found, compare=False, explain=True)
        check_assigned(self._graph, self._values, found)
        check_assigns(self._graph, found)
        self._contradicted = found

    @property
    def is_contradicted(self) -> bool:
        """Whether ports declare something else than is inferred."""
        return self._contradicted is not None

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
        errors = self._errors(allowed)
        if not errors:
            return self
        first = errors[0]
        if all(e.code == Code.UNKNOWN_OPERATION for e in errors):
            message = first.message + _as_well(errors[1:], self.report.count(code=first.code) - 1)
            raise UnsupportedError(message, code=first.code, where=first.where, hint=first.hint)
        raise ValidationError.of(errors, self.report.more)

    def _errors(self, allowed: Collection[str]) -> list[Diagnostic]:
        """What keeps the model from being accepted, in the order of the file."""
        if self._contradicted is None or not frozenset(allowed) >= DECLARED:
            return [error for error in self.report.errors if error.code not in allowed]
        errors = [error for error in self._contradicted.errors if error.code not in allowed]
        if not errors:
            return []
        declared = [error for error in self.report.errors if error.code in DECLARED]
        return sorted([*declared, *errors], key=lambda error: error.line or 0)

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
        graph = self._with_variables(variables_shapes or {})
        report = Diagnostics(self.limits.findings)
        with within(self.limits):
            values = infer(graph, report, self._all_parameters(parameters), explain=True)
        check_assigned(graph, values, report)
        if report.errors:
            raise ValidationError.of(report.errors, report.more)
        self._parameters, self._graph, self._values = parameters, graph, values

    def constraints(self, confirm: bool = True, seconds: float = 20.0) -> Constraints:
        """Find the constraints on the dynamic dims of the inputs: ``height is a multiple of 32``.

        They are found by running shape inference at different lengths, so they hold for any operation.

        Args:
            confirm: also run the model with random inputs, to see whether running agrees.
            seconds: how long asking may take, and how long running may; what is not found out by
                then is said in ``undecided``.
        """
        from ..analysis.constraints.confirming import confirmed
        from ..analysis.constraints.solver import find_constraints

        graph, parameters = self._graph, self._parameter_types
        with within(self.limits):
            found = find_constraints(graph, self._values, parameters, seconds=seconds)
            return confirmed(found, graph, parameters, self._compile_run, seconds) if confirm else found

    def _compile_run(self) -> Run:
        """Compile the model with default settings, and return the function that runs it."""
        from .executable import Executable

        return partial(Executable(self._runnable())._run, kept={})

    def _runnable(self, f16: bool = False) -> Model:
        """Return a copy in which ports declare what is inferred, to be compiled.

        Raises:
            ValidationError: if something keeps the model from running.
        """
        model = self.raise_if_invalid(_HARMLESS).clone()
        model.correct()
        if f16:
            model.narrow()
        return model

    @property
    def _parameter_types(self) -> dict[int, TensorType]:
        return {port._port.layer: port._type for port in self.inputs}

    def _with_variables(self, given: Mapping[str, ShapeLike]) -> Graph:
        known = variables_of(self._graph, self._values)
        for name in given:
            if name not in known:
                raise unknown_name("variable", name, known)
        shapes = {name: _shape(shape) for name, shape in given.items()}
        return with_variables(self._graph, shapes) if shapes else self._graph

    def _reshaped(self, given: Mapping[Any, ShapeLike]) -> Iterator[tuple[Output, TensorType]]:
        inputs = self.inputs
        for key, shape in given.items():
            port = find_port(inputs, key, "input")
            yield port, TensorType(port.element_type, _shape(shape))

    def _all_parameters(self, parameters: Mapping[int, TensorType]) -> dict[int, Value]:
        types = {**self._parameter_types, **parameters}
        return {layer: Value(type) for layer, type in types.items()}

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
        from ..transform.narrow import narrow

        parameters = self._all_parameters(self._parameters or {})
        self._graph = narrow(self._graph, self._values)
        self._values = infer(self._graph, Diagnostics(), parameters)

    def correct(self) -> None:
        """Replace declarations that contradict inference by what is inferred."""
        if self.is_contradicted:
            self._graph = corrected(self._graph, self._values)


def _shape(given: ShapeLike) -> PartialShape:
    try:
        return PartialShape(given)
    except (TypeError, ValueError) as reason:
        raise InputError(
            f"{given!r} is not a shape: {reason}", hint='expected a shape such as "?,3,1..8" or [-1, 3]'
        ) from None


def _as_well(errors: Sequence[Diagnostic], count: int) -> str:
    """Name the other operations that are not known, so that one run tells of all."""
    operations = sorted({e.where.operation for e in errors if e.where})
    return f"; {count} more layers have unknown operations: {', '.join(operations)}" if operations else ""
