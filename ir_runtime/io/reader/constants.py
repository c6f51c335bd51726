"""Read constants: check their sizes, and take their values from the weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...codes import Code
from ...diagnostics import Diagnostics, Location, Mark
from ...errors import IRError, ValidationError
from ...ir.element import ElementType
from ...ir.shape import PartialShape
from ...limits import Limits
from ...ops import Op
from .document import Element
from .ports import check_size, dim_text
from .weights import Weights, packed_bytes

__all__ = ["ConstantReader", "ConstantSizes", "declared_by_port", "report_problem"]


@dataclass(slots=True)
class ConstantSizes:
    """The total size of the constants of a file, including those in bodies."""

    stored: int = 0
    copied: int = 0

    def add(self, element: ElementType, size: int, limits: Limits, where: Location) -> None:
        """Count a constant before it is read; strings and booleans are copied, others are views."""
        self.stored += size
        limits.check("constant_bytes", self.stored, where)
        if element in (ElementType.string, ElementType.boolean):
            self.copied += size
            limits.check("memory", self.copied, where)


@dataclass(frozen=True, slots=True)
class ConstantReader:
    """Reads the values of constants."""

    report: Diagnostics
    weights: Weights
    limits: Limits
    sizes: ConstantSizes

    def read(self, op: Op, where: Location) -> Op:
        """Return the operation with its value."""
        attributes = vars(op)
        element, shape, offset, size = (
            attributes["element_type"],
            attributes["shape"],
            attributes["offset"],
            attributes["size"],
        )
        check_size(shape, self.limits, where)
        lengths = _static(shape)
        if element is ElementType.dynamic:
            raise ValidationError(
                "a constant must have an element type, got dynamic", code=Code.BAD_ATTRIBUTE
            )
        packed = packed_bytes(element, lengths)
        self.sizes.add(element, max(size, packed), self.limits, where)
        value = self.weights.tensor(element, lengths, offset, size, where)
        if 0 < packed < size and element is not ElementType.string:  # which OpenVINO accepts
            type = f"{element.label}[{','.join(map(str, lengths))}]"
            message = f"attribute 'size' is {size}, but {type} takes {packed} bytes; the rest is ignored"
            self.report.warning(Code.WEIGHTS_RANGE, message, where, mark=Mark("size"))
        return op.replace(value=value)


def report_problem(report: Diagnostics, problem: IRError, where: Location) -> None:
    """Report a problem of a layer; missing weights are reported once for all constants."""
    if problem.code == Code.WEIGHTS_MISSING and report.count(code=problem.code):
        report.add_consequence(where)
    else:
        report.error(problem.code, problem.message, where, problem.hint)


def declared_by_port(cls: type[Op] | None, element: Element, data: Mapping[str, str]) -> Mapping[str, str]:
    """Take the type and shape of a constant from its port, as declared by OpenVINO 2020."""
    if cls is None or cls.name != "Constant" or (port := element.find("output/port")) is None:
        return data
    declared = {"element_type": _label(port), "shape": ",".join(map(dim_text, port.iterfind("dim")))}
    return {**{k: v for k, v in declared.items() if v is not None}, **data}


def _label(port: Element) -> str | None:
    """Return the element type of a port as an attribute spells it, if it has one."""
    try:
        return ElementType.of_port(port.get("precision", "")).label
    except ValueError:
        return None


def _static(shape: PartialShape) -> tuple[int, ...]:
    if not shape.is_static:
        raise ValidationError(f"a constant must have a static shape, got {shape}", code=Code.BAD_ATTRIBUTE)
    return shape.static
