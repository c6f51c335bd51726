"""HTML reports of a model, and its display in notebooks."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Protocol

from ..diagnostics import Diagnostics

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..analysis.constraints.constraint import Constraints
    from ..analysis.infer import Inferred
    from ..io.reader.document import Document
    from ..ir.graph import Graph
    from ..ir.tensor import TensorType
    from ..report import Measures, OldModel, Page, Source

__all__ = ["ModelReport", "model_html", "source_of"]


class Reported(Protocol):
    """The parts of a model that a report uses."""

    friendly_name: str
    _document: Document

    @property
    def _graph(self) -> Graph: ...

    @property
    def _values(self) -> Inferred: ...

    @property
    def _parameter_types(self) -> Mapping[int, TensorType]: ...

    @property
    def report(self) -> Diagnostics: ...

    def constraints(
        self, confirm: bool = True, seconds: float | None = None, evaluations: int | None = None
    ) -> Constraints: ...


class ModelReport(Diagnostics):
    """The findings about a model. Call it for an HTML page with the graph and all layers.

    >>> import ir_runtime
    >>> model = ir_runtime.read_fragment('<layer id="0" name="e" type="Exp" version="opset1">'
    ...     '<input><port id="0"><dim>1</dim></port></input><output><port id="1"/></output></layer>')
    >>> len(model.report), model.report().html.startswith("<!doctype html>")
    (0, True)
    """

    __slots__ = ("_model",)

    def __init__(self, model: Reported, findings: Diagnostics) -> None:
        self.__dict__ = findings.__dict__  # the findings themselves, not a copy, so that more can be added
        self._model = model

    def __call__(
        self,
        path: str | os.PathLike[str] | None = None,
        measures: Measures | None = None,
        *,
        constraints: bool = True,
        old: OldModel | None = None,
    ) -> Page:
        """Return an HTML page of the model: one file that needs no network.

        Args:
            path: where to write it, if given.
            measures: measurements from `ir_runtime.debug.measure`.
            constraints: find the constraints on the inputs, which may take some seconds.
            old: a model to show beside this one, from `ir_runtime.debug.old_model`.
        """
        from ..report import page

        result = page(source_of(self._model, constraints), measures, old)
        if path is not None:
            result.save(path)
        return result


def source_of(model: Reported, constraints: bool = True) -> Source:
    """Return the data for a report of a model."""
    from ..report import Source

    with_constraints = (
        constraints and model.report.ok and any(t.shape.is_dynamic for t in model._parameter_types.values())
    )
    document = model._document
    return Source(
        graph=model._graph,
        values=model._values,
        types=model._parameter_types,
        report=model.report,
        constraints=model.constraints(confirm=False) if with_constraints else None,
        file=str(document.file),
        name=model.friendly_name,
        version=document.version,
    )


def model_html(model: Reported) -> str:
    """Return the HTML that a notebook shows for a model."""
    from ..report import summary

    return summary(source_of(model, constraints=False))
