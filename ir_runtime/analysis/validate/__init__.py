"""The definition of a valid graph.

A graph is valid if its structure is sound (every input connected, no cycle, every output port known to the operation),
inference accepts every layer and agrees with what ports declare, and its variables are consistent: `check_graph`. This
is what reading, editing and compiling ask. `validate` also reports what is probably a mistake, such as duplicate names,
unused layers and bytes without an owner.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ...codes import DECLARED, Code
from ...diagnostics import Diagnostics
from ...ir.graph import Graph
from ...ir.tensor import TensorType, Value
from ..former import Former
from ..infer import Inferred, infer
from .structure import check_structure
from .variables import check_assigned, check_assigns

__all__ = ["COMPILED_WITH", "SAVED_WITH", "Checked", "check_graph", "check_shapes", "validate"]

SAVED_WITH = frozenset({Code.UNKNOWN_OPERATION, *DECLARED})
"""Codes of findings that do not prevent saving: unknown operations are written as they were read, and declarations of
ports are replaced by inferred ones."""

COMPILED_WITH = frozenset(
    {
        Code.BAD_ATTRIBUTE,
        *DECLARED,
        Code.UNKNOWN_OPERATION,
        Code.WEIGHTS_MISSING,
        Code.WEIGHTS_RANGE,
    }
)
"""Codes of findings that do not prevent compiling: it looks at needed layers only, and refuses those without an operation;
what ports declare has no effect on results."""


class Checked(NamedTuple):
    """The result of `check_graph`."""

    values: Inferred
    """The inferred value of every output."""
    contradicted: Diagnostics | None = None
    """The findings if declarations of ports are ignored; None unless inference contradicts some."""


def check_graph(
    graph: Graph,
    report: Diagnostics,
    *,
    strict: bool = False,
    is_page: bool = False,
    is_built: bool = False,
    former: Former | None = None,
) -> Checked:
    """Report why a graph is not valid.

    Args:
        graph: the layers.
        report: takes the findings; those of reading are in it already.
        strict: report every contradicted declaration as an error, even if no layer computes with it.
        is_page: whether the layers are an example from a documentation page, which may show an Assign or a ReadValue alone.
        is_built: whether the graph was derived from nodes, so that its ports declare nothing.
        former: the inference of the graph before it was changed.
    """
    check_structure(graph, report)
    if is_built:
        return Checked(_infer(graph, report, is_page, compare=False, former=former))
    unreported = Diagnostics(report.most)
    unreported.extend(report)
    values = _infer(graph, report, is_page, strict=strict)
    if all(report.count(code=code) == unreported.count(code=code) for code in DECLARED):
        return Checked(values)
    return Checked(_infer(graph, unreported, is_page, compare=False), unreported)


def _infer(
    graph: Graph,
    report: Diagnostics,
    is_page: bool,
    compare: bool | None = None,
    strict: bool = False,
    former: Former | None = None,
) -> Inferred:
    values = infer(graph, report, compare=compare, explain=True, strict=strict, former=former)
    check_assigned(graph, values, report)
    check_assigns(graph, report, is_page)
    return values


def check_shapes(graph: Graph, report: Diagnostics, parameters: Mapping[int, Value]) -> Inferred:
    """Report why a graph, checked before, is not valid with other types of its Parameters; return the values.

    Args:
        graph: the layers.
        report: takes the findings.
        parameters: the values of Parameters, by layer.
    """
    values = infer(graph, report, parameters, explain=True)
    check_assigned(graph, values, report)
    return values


def validate(
    graph: Graph,
    report: Diagnostics | None = None,
    values: Inferred | None = None,
    *,
    parameters: Mapping[int, TensorType] | None = None,
    weights: tuple[str, int] | None = None,
    is_page: bool = False,
) -> Diagnostics:
    """Find errors and probable mistakes in a graph; return the report.

    >>> from ir_runtime.io.reader.load import load
    >>> xml = b'''<net name="n" version="11"><layers>
    ... <layer id="0" name="x" type="Parameter" version="opset1"><data shape="2" element_type="f32"/>
    ... <output><port id="0"><dim>2</dim></port></output></layer></layers><edges/></net>'''
    >>> validate(load(xml)[0].graph).summary
    '0 errors, 0 warnings'

    Args:
        graph: the layers.
        report: takes the findings; those of reading, and of `check_graph` if there are ``values``, are in it already.
        values: the values from `check_graph`, which is otherwise called here.
        parameters: the types of the Parameters, by layer; their dynamic lengths are checked for feasibility if given.
        weights: the name of the ``.bin`` and its number of bytes, which constants must cover.
        is_page: whether the layers are an example from a documentation page.
    """
    from ..constraints.solver import check_lengths
    from .audit import audit
    from .constants import check_bytes
    from .variables import check_reads

    report = Diagnostics() if report is None else report
    if values is None:
        values = check_graph(graph, report, is_page=is_page).values
    audit(graph, values, report)
    if not is_page:
        check_reads(graph, report)
    if weights is not None:
        name, size = weights
        check_bytes(graph, size, name, report)
    if parameters is not None and report.ok:
        check_lengths(graph, values, parameters, report)
    return report
