"""Elementwise functions of one tensor."""

from __future__ import annotations

from .....codes import Code
from .....ir.element import ElementType
from ..declaration import LegacyLayer, attr, find_declaration, layer
from ..site import Site, Tensor


def _function(operation: str, *types: str) -> type[LegacyLayer]:
    """Declare layers that are replaced by one operation of their only input, without attributes."""

    class Function(LegacyLayer):
        is_activation = True

        def build(self, site: Site) -> Tensor:
            return site.op(operation, site.floating(site.inputs[0]))

    Function.__doc__ = f"{operation.rpartition('-')[0]}."
    Function.__name__ = Function.__qualname__ = types[0]
    return layer(*types)(Function)


for _operation, *_types in (
    ("Abs-1", "Abs"),
    ("Acos-1", "Acos"),
    ("Acosh-4", "Acosh"),
    ("Asin-1", "Asin"),
    ("Asinh-4", "Asinh"),
    ("Atan-1", "Atan"),
    ("Atanh-4", "Atanh"),
    ("Ceiling-1", "Ceil", "Ceiling"),
    ("Cos-1", "Cos"),
    ("Cosh-1", "Cosh"),
    ("Erf-1", "Erf"),
    ("Exp-1", "Exp"),
    ("Floor-1", "Floor"),
    ("Log-1", "Log"),
    ("Negative-1", "Neg"),
    ("Sigmoid-1", "Sigmoid"),
    ("Sign-1", "Sign"),
    ("Sin-1", "Sin"),
    ("Sinh-1", "Sinh"),
    ("SoftPlus-4", "Softplus"),
    ("SoftSign-9", "Softsign"),
    ("Tan-1", "Tan"),
    ("Tanh-1", "TanH"),
):
    _function(_operation, *_types)


@layer("Activation")
class Activation(LegacyLayer):
    """The layer named by attribute `type`."""

    type: str = attr(doc="the activation function")
    negative_slope: float = attr(0.0)
    alpha: float = attr(1.0)
    min: float = attr(0.0)
    max: float = attr(0.0)

    def build(self, site: Site) -> Tensor:
        declared = find_declaration(self.type)
        if declared is None or not declared.is_activation:
            site.refuse(f"unknown activation function {self.type!r}", Code.BAD_ATTRIBUTE)
        data = {name: text for name, text in site.layer.attributes.items() if name != "type"}
        built = declared.parse(data).build(site)
        assert isinstance(built, Tensor)
        return built


@layer("ReLU")
class ReLU(LegacyLayer):
    """ReLU, or PReLU with a slope for negative numbers."""

    is_activation = True
    negative_slope: float = attr(0.0)

    def build(self, site: Site) -> Tensor:
        data = site.inputs[0]
        if not self.negative_slope:
            return site.op("ReLU-1", data)
        return site.op("PReLU-1", data, site.constant([self.negative_slope], ElementType.f32, "slope"))


@layer("ReLU6")
class ReLU6(LegacyLayer):
    """Clamp to the range from 0 to ``n``, usually 6."""

    is_activation = True
    n: float = attr(6.0)

    def build(self, site: Site) -> Tensor:
        return site.op("Clamp-1", site.inputs[0], min=0.0, max=self.n)


@layer("Clamp")
class Clamp(LegacyLayer):
    """Clamp."""

    is_activation = True
    min: float = attr(doc="the least number")
    max: float = attr(doc="the greatest number")

    def build(self, site: Site) -> Tensor:
        return site.op("Clamp-1", site.inputs[0], min=self.min, max=self.max)


@layer("ELU")
class ELU(LegacyLayer):
    """Elu."""

    is_activation = True
    alpha: float = attr(1.0)

    def build(self, site: Site) -> Tensor:
        return site.op("Elu-1", site.inputs[0], alpha=self.alpha)


@layer("PReLU")
class PReLU(LegacyLayer):
    """PReLU with the slopes in ``<weights>``: one, or one for each channel."""

    is_activation = True
    blobs = ("weights",)
    channel_shared: bool = attr(False)
    leftovers = frozenset(
        {"filler_type", "filler_value", "min", "max", "mean", "sparse", "std", "variance_norm"}
    )

    def build(self, site: Site) -> Tensor:
        blob = site.blobs.get("weights")
        count = 1 if self.channel_shared or blob is None else blob.length
        site.along_channels(count)
        return site.op("PReLU-1", site.inputs[0], site.blob("weights", (count,)))


@layer("Selu")
class Selu(LegacyLayer):
    """Selu."""

    is_activation = True
    alpha: float = attr(1.67326319217681884765625)
    gamma: float = attr(1.05070102214813232421875)

    def build(self, site: Site) -> Tensor:
        data = site.inputs[0]
        return site.op("Selu-1", data, site.number(self.alpha, data), site.number(self.gamma, data))


@layer("HardSigmoid")
class HardSigmoid(LegacyLayer):
    """HardSigmoid."""

    is_activation = True
    alpha: float = attr(0.2)
    beta: float = attr(0.5)

    def build(self, site: Site) -> Tensor:
        data = site.inputs[0]
        return site.op("HardSigmoid-1", data, site.number(self.alpha, data), site.number(self.beta, data))


@layer("Reciprocal")
class Reciprocal(LegacyLayer):
    """Power with exponent -1."""

    is_activation = True

    def build(self, site: Site) -> Tensor:
        data = site.floating(site.inputs[0])
        return site.op("Power-1", data, site.number(-1.0, data))


@layer("Not")
class Not(LegacyLayer):
    """LogicalNot, with results 1 and 0."""

    is_activation = True

    def build(self, site: Site) -> Tensor:
        result = site.op("LogicalNot-1", site.convert(site.inputs[0], ElementType.boolean))
        return site.convert(result, site.declared() or site.precision)


@layer("SoftMax")
class SoftMax(LegacyLayer):
    """SoftMax."""

    axis: int = attr(1)

    def build(self, site: Site) -> Tensor:
        return site.op("SoftMax-1", site.inputs[0], axis=site.axis(self.axis, len(site.dims())))


@layer("LogSoftmax")
class LogSoftmax(LegacyLayer):
    """LogSoftmax."""

    axis: int = attr(1)

    def build(self, site: Site) -> Tensor:
        return site.op("LogSoftmax-5", site.inputs[0], axis=site.axis(self.axis, len(site.dims())))
