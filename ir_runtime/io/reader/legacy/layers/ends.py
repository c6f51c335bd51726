"""Inputs, constants and variables."""

from __future__ import annotations

from .....codes import Code
from .....ir.element import ElementType
from .....ir.shape import PartialShape
from ..building import Blob
from ..declaration import LegacyLayer, attr, layer
from ..site import Site, Tensor


@layer("Input")
class Input(LegacyLayer):
    """Parameter; and Subtract if ``<pre-process>`` has means."""

    inputs = (0, 0)

    def build(self, site: Site) -> Tensor:
        element = site.declared() or site.precision
        shape = PartialShape(site.output_dims())
        input = site.op("Parameter-1", element_type=element, shape=shape)
        site.main = input
        means = site.net.means.get(site.layer.id)
        if means is None:
            return input
        channels = means.channels
        numbers = [mean for mean in channels if isinstance(mean, float)]
        if len(numbers) == len(channels):
            subtracted = site.constant(numbers, ElementType.f32, "mean")
            subtracted = site.reshape(subtracted, (len(channels), *(1,) * 2))
        else:
            subtracted = site.op("Concat-1", *(self._image(site, mean) for mean in channels), axis=0)
        return site.op("Subtract-1", site.convert(input, ElementType.f32), subtracted)

    def _image(self, site: Site, mean: float | Blob) -> Tensor:
        """Return the mean of a channel with a leading dim of 1."""
        height, width = site.output_dims()[-2:]
        if isinstance(mean, float):
            return site.op(
                "Broadcast-1", site.constant(mean, ElementType.f32), site.constant([1, height, width])
            )
        stored = site.net.stored(mean, mean.element, (1, height, width), site.layer.where)
        return site.convert(site.add(stored, name="mean")[0], ElementType.f32)


@layer("Const")
class Const(LegacyLayer):
    """Constant; and Convert if it is stored in f16."""

    inputs = (0, 0)
    blobs = ("custom",)

    def build(self, site: Site) -> Tensor:
        blob = site.blobs.get("custom")
        value = site.blob("custom", site.output_dims(), raw=None if blob is None else blob.element)
        return site.convert(value, ElementType.f32) if value.element is ElementType.f16 else value


@layer("Memory")
class Memory(LegacyLayer):
    """ReadValue, initially zeros, or Assign."""

    inputs = (0, 1)
    id: str = attr(doc="the name that both layers of a pair have")
    index: int = attr(1)
    size: int = attr(2)

    def build(self, site: Site) -> Tensor | tuple[Tensor, ...]:
        if self.size != 2:
            site.refuse(
                f"attribute 'size' is {self.size}; only pairs of layers are defined", Code.BAD_ATTRIBUTE
            )
        if site.inputs:
            site.op("Assign-6", site.inputs[0], variable_id=self.id)
            return ()
        zeros = site.op(
            "Broadcast-1", site.constant(0, ElementType.f32), site.constant(list(site.output_dims()))
        )
        shape = PartialShape(site.output_dims())
        return site.op(
            "ReadValue-6", zeros, variable_id=self.id, variable_type=ElementType.f32, variable_shape=shape
        )
