"""Reductions along the axes of a second input."""

from __future__ import annotations

from .....ir.element import ElementType
from ..declaration import LegacyLayer, attr, layer
from ..site import Site, Tensor


def _reduction(type: str, operation: str) -> type[LegacyLayer]:
    """Declare a reduction that is one operation."""

    class Reduction(LegacyLayer):
        inputs = (2, 2)
        keep_dims: bool = attr(True)

        def build(self, site: Site) -> Tensor:
            data, axes = site.inputs
            is_logical = "Logical" in operation
            data = site.convert(data, ElementType.boolean) if is_logical else data
            result = site.op(operation, data, site.indices(axes), keep_dims=self.keep_dims)
            return site.convert(result, site.declared() or site.precision) if is_logical else result

    Reduction.__doc__ = f"{operation.rpartition('-')[0]}."
    Reduction.__name__ = Reduction.__qualname__ = type
    return layer(type)(Reduction)


for _type, _operation in (
    ("ReduceAnd", "ReduceLogicalAnd-1"),
    ("ReduceL1", "ReduceL1-4"),
    ("ReduceL2", "ReduceL2-4"),
    ("ReduceMax", "ReduceMax-1"),
    ("ReduceMean", "ReduceMean-1"),
    ("ReduceMin", "ReduceMin-1"),
    ("ReduceOr", "ReduceLogicalOr-1"),
    ("ReduceProd", "ReduceProd-1"),
    ("ReduceSum", "ReduceSum-1"),
):
    _reduction(_type, _operation)
