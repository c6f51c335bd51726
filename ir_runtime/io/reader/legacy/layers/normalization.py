"""Normalization."""

from __future__ import annotations

from typing import Literal

from .....ir.element import ElementType
from ..declaration import LegacyLayer, Spelling, attr, layer
from ..site import Site, Tensor

_LEAST = 2.0**-126
"""The replacement of an ``eps`` of 0, which operations do not support: it changes no sum but 0."""


@layer("Norm", "LRN")
class Norm(LegacyLayer):
    """LRN, across channels or over the spatial axes."""

    alpha: float = attr(doc="the factor of the sum")
    beta: float = attr(doc="the exponent")
    size: int = attr(gt=0, xml="local-size")
    region: Literal["across", "same"] = attr("across")
    k: float = attr(1.0)
    spelled = {"local-size": Spelling((("local_size",),))}

    def build(self, site: Site) -> Tensor:
        axes = [1] if self.region == "across" else list(range(2, len(site.dims())))
        settings = {"alpha": self.alpha, "beta": self.beta, "bias": self.k, "size": self.size}
        return site.op("LRN-1", site.inputs[0], site.constant(axes), **settings)


@layer("BatchNormalization")
class BatchNormalization(LegacyLayer):
    """Subtract the means ``<biases>``, Multiply by inverse deviations from ``<weights>``."""

    blobs = ("weights", "biases")
    epsilon: float = attr(ge=0)

    def build(self, site: Site) -> Tensor:
        means, variances = (
            site.blob(name, site.along_channels(site.blobs[name].length if name in site.blobs else 1))
            for name in ("biases", "weights")
        )
        centred = site.op("Subtract-1", site.inputs[0], means)
        deviation = site.op(
            "Sqrt-1", site.op("Add-1", variances, site.constant(self.epsilon, ElementType.f32))
        )
        return site.op("Divide-1", centred, deviation)


@layer("GRN")
class GRN(LegacyLayer):
    """GRN."""

    bias: float = attr(0.0)

    def build(self, site: Site) -> Tensor:
        return site.op("GRN-1", site.inputs[0], bias=self.bias)


@layer("MVN")
class MVN(LegacyLayer):
    """MVN."""

    across_channels: bool = attr(False)
    normalize_variance: bool = attr(True)
    eps: float = attr(1e-9)

    def build(self, site: Site) -> Tensor:
        settings = {"across_channels": self.across_channels, "normalize_variance": self.normalize_variance}
        return site.op("MVN-1", site.inputs[0], eps=max(self.eps, _LEAST), **settings)


@layer("Normalize")
class Normalize(LegacyLayer):
    """NormalizeL2, across channels or all axes but the first; Multiply by ``<weights>``."""

    blobs = ("weights",)
    across_spatial: bool = attr(False)
    channel_shared: bool = attr(False)
    eps: float = attr(doc="what is added to the sum of squares")
    leftovers = frozenset({"scale_filler", "type", "value"})

    def build(self, site: Site) -> Tensor:
        axes = list(range(1, len(site.dims()))) if self.across_spatial else [1]
        result = site.op(
            "NormalizeL2-1", site.inputs[0], site.constant(axes), eps=max(self.eps, _LEAST), eps_mode="add"
        )
        if "weights" not in site.blobs:
            return result
        count = 1 if self.channel_shared else site.blobs["weights"].length
        return site.op("Multiply-1", result, site.blob("weights", site.along_channels(count)))
