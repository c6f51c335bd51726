"""Sparse tensors, and buckets."""

from __future__ import annotations

from .....ir.element import ElementType
from ..declaration import LegacyLayer, attr, layer
from ..site import Site, Tensor


@layer("SparseToDense")
class SparseToDense(LegacyLayer):
    """Broadcast of the default value, ScatterNDUpdate."""

    inputs = (3, 4)

    def build(self, site: Site) -> Tensor:
        indices, shape, values, *default = site.inputs
        rest = site.scalar(default[0]) if default else site.number(0, values)
        dense = site.op("Broadcast-1", rest, site.indices(shape))
        return site.op("ScatterNDUpdate-4", dense, site.indices(indices), values)


@layer("Bucketize")
class Bucketize(LegacyLayer):
    """Bucketize."""

    inputs = (2, 2)
    with_right_bound: bool = attr(doc="whether buckets include their right ends")

    def build(self, site: Site) -> Tensor:
        result = site.op(
            "Bucketize-3", *site.inputs, output_type=ElementType.i32, with_right_bound=self.with_right_bound
        )
        return site.convert(result, site.declared() or ElementType.i32)
