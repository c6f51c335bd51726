"""Do the layers that read variables and those that assign them belong together?"""

from __future__ import annotations

from collections import defaultdict

from ..codes import Code
from ..diagnostics import Diagnostics, Mark
from ..ir.graph import Graph, Layer

__all__ = ["check_variables"]

_MARK = Mark(attribute="variable_id")


def check_variables(graph: Graph, report: Diagnostics) -> None:
    """Report variables that are read and never assigned, assigned and never read, or assigned twice.

    Args:
        graph: the layers; those inside bodies count, too.
        report: takes the findings.
    """
    reads: defaultdict[str, list[Layer]] = defaultdict(list)
    assigns: defaultdict[str, list[Layer]] = defaultdict(list)
    for layer in graph.everywhere():
        if layer.type in ("ReadValue", "Assign") and layer.op is not None:
            found = reads if layer.type == "ReadValue" else assigns
            found[vars(layer.op)["variable_id"]].append(layer)
    for name, layers in reads.items():
        if name not in assigns:
            message = f"variable {name!r} is read, but no Assign gives it a value"
            hint = "add the Assign, or feed the value as a Parameter"
            report.warning(Code.VARIABLE, message, layers[0].where, hint, _MARK)
    for name, layers in assigns.items():
        if name not in reads:
            message = f"variable {name!r} is assigned, but no ReadValue reads it"
            report.error(Code.VARIABLE, message, layers[0].where, "add the ReadValue", mark=_MARK)
        for again in layers[1:]:
            message = f"variable {name!r} is assigned at line {layers[0].where.line}, too"
            report.error(Code.VARIABLE, message, again.where, "leave one of them", mark=_MARK)
