"""Legacy layers for activations, elementwise arithmetic, reductions, and normalization."""

from __future__ import annotations

from typing import Literal

from .....codes import Code
from .....ir.element import ElementType
from ..declaration import LegacyLayer, Spelling, attr, find_declaration, layer
from ..site import Site, Tensor

# Elementwise functions of one tensor.


def _function(operation: str, *types: str) -> type[LegacyLayer]:
    """Declare a layer type without attributes that is upgraded to one operation on its only input."""

    class Function(LegacyLayer):
        is_activation = True

        def build(self, site: Site) -> Tensor:
            return site.op(operation, site.floating(site.inputs[0]))

    Function.__doc__ = f"Upgraded to {operation.rpartition('-')[0]}."
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
    """Upgraded to the operation for the function that attribute `type` names."""

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
    """Upgraded to ReLU, or PReLU if ``negative_slope`` is not 0."""

    is_activation = True
    negative_slope: float = attr(0.0)

    def build(self, site: Site) -> Tensor:
        data = site.inputs[0]
        if not self.negative_slope:
            return site.op("ReLU-1", data)
        return site.op("PReLU-1", data, site.constant([self.negative_slope], ElementType.f32, "slope"))


@layer("ReLU6")
class ReLU6(LegacyLayer):
    """Upgraded to Clamp from 0 to ``n``, by default 6."""

    is_activation = True
    n: float = attr(6.0)

    def build(self, site: Site) -> Tensor:
        return site.op("Clamp-1", site.inputs[0], min=0.0, max=self.n)


@layer("Clamp")
class Clamp(LegacyLayer):
    """Upgraded to Clamp."""

    is_activation = True
    min: float = attr(doc="the lower bound")
    max: float = attr(doc="the upper bound")

    def build(self, site: Site) -> Tensor:
        return site.op("Clamp-1", site.inputs[0], min=self.min, max=self.max)


@layer("ELU")
class ELU(LegacyLayer):
    """Upgraded to Elu."""

    is_activation = True
    alpha: float = attr(1.0)

    def build(self, site: Site) -> Tensor:
        return site.op("Elu-1", site.inputs[0], alpha=self.alpha)


@layer("PReLU")
class PReLU(LegacyLayer):
    """Upgraded to PReLU with the slopes in ``<weights>``, one for all channels or one per channel."""

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
    """Upgraded to Selu."""

    is_activation = True
    alpha: float = attr(1.67326319217681884765625)
    gamma: float = attr(1.05070102214813232421875)

    def build(self, site: Site) -> Tensor:
        data = site.inputs[0]
        return site.op("Selu-1", data, site.number(self.alpha, data), site.number(self.gamma, data))


@layer("HardSigmoid")
class HardSigmoid(LegacyLayer):
    """Upgraded to HardSigmoid."""

    is_activation = True
    alpha: float = attr(0.2)
    beta: float = attr(0.5)

    def build(self, site: Site) -> Tensor:
        data = site.inputs[0]
        return site.op("HardSigmoid-1", data, site.number(self.alpha, data), site.number(self.beta, data))


@layer("Reciprocal")
class Reciprocal(LegacyLayer):
    """Upgraded to Power with exponent -1."""

    is_activation = True

    def build(self, site: Site) -> Tensor:
        data = site.floating(site.inputs[0])
        return site.op("Power-1", data, site.number(-1.0, data))


@layer("Not")
class Not(LegacyLayer):
    """Upgraded to LogicalNot, with results converted to 1 and 0."""

    is_activation = True

    def build(self, site: Site) -> Tensor:
        result = site.op("LogicalNot-1", site.convert(site.inputs[0], ElementType.boolean))
        return site.convert(result, site.declared() or site.precision)


@layer("SoftMax")
class SoftMax(LegacyLayer):
    """Upgraded to SoftMax."""

    axis: int = attr(1)

    def build(self, site: Site) -> Tensor:
        return site.op("SoftMax-1", site.inputs[0], axis=site.axis(self.axis, len(site.dims())))


@layer("LogSoftmax")
class LogSoftmax(LegacyLayer):
    """Upgraded to LogSoftmax."""

    axis: int = attr(1)

    def build(self, site: Site) -> Tensor:
        return site.op("LogSoftmax-5", site.inputs[0], axis=site.axis(self.axis, len(site.dims())))


# Arithmetic, comparison and logic of several tensors.

_BINARY = {
    "sum": "Add-1",
    "sub": "Subtract-1",
    "mul": "Multiply-1",
    "prod": "Multiply-1",
    "div": "Divide-1",
    "max": "Maximum-1",
    "min": "Minimum-1",
    "squared_diff": "SquaredDifference-1",
    "floor_mod": "FloorMod-1",
    "pow": "Power-1",
    "less": "Less-1",
    "less_equal": "LessEqual-1",
    "greater": "Greater-1",
    "greater_equal": "GreaterEqual-1",
    "equal": "Equal-1",
    "not_equal": "NotEqual-1",
    "logical_and": "LogicalAnd-1",
    "logical_or": "LogicalOr-1",
    "logical_xor": "LogicalXor-1",
}


@layer("Eltwise")
class Eltwise(LegacyLayer):
    """Upgraded to a chain of Add, Multiply, Maximum or another binary operation; comparisons give 1 and 0."""

    inputs = (1, None)
    operation: str = attr("sum")
    coeff: tuple[float, ...] = attr(())
    leftovers = frozenset({"stable_prod_grad"})

    def build(self, site: Site) -> Tensor:
        name = self.operation.lower() or "sum"
        operation = _BINARY.get(name)
        if operation is None:
            allowed = ", ".join(_BINARY)
            site.refuse(f"attribute 'operation' must be one of {allowed}, not {name!r}", Code.BAD_ATTRIBUTE)
        result, *others = self._scale_inputs(site) if name == "sum" else self._unify_types(site, site.inputs)
        for other in others:
            if name.startswith("logical"):
                result, other = (site.convert(tensor, ElementType.boolean) for tensor in (result, other))
            result = site.op(operation, result, other)
            if result.element is ElementType.boolean:
                result = site.convert(result, site.declared() or site.precision)
        return result

    def _scale_inputs(self, site: Site) -> list[Tensor]:
        """Return the inputs of a sum, each multiplied by its coefficient."""
        inputs = self._unify_types(site, site.inputs)
        if not self.coeff:
            return inputs
        if len(self.coeff) != len(inputs):
            site.refuse(
                f"attribute 'coeff' has length {len(self.coeff)}, but the layer has {len(inputs)} inputs",
                Code.BAD_ATTRIBUTE,
            )
        if all(factor == 1 for factor in self.coeff):
            return inputs
        inputs = [site.floating(tensor) for tensor in inputs]
        return [
            tensor if factor == 1 else site.op("Multiply-1", tensor, site.number(factor, tensor))
            for tensor, factor in zip(inputs, self.coeff, strict=True)
        ]

    def _unify_types(self, site: Site, inputs: tuple[Tensor, ...]) -> list[Tensor]:
        """Return inputs with integers converted to f32 if their types differ, as runtimes of that time did."""
        elements = {tensor.element for tensor in inputs} - {ElementType.dynamic}
        return [site.floating(tensor) for tensor in inputs] if len(elements) > 1 else list(inputs)


@layer("Power")
class Power(LegacyLayer):
    """Upgraded to Multiply by ``scale``, Add of ``shift``, and Power; steps without effect are omitted."""

    power: float = attr(doc="the exponent, applied last")
    scale: float = attr(doc="the factor, applied first")
    shift: float = attr(doc="the addend")

    def build(self, site: Site) -> Tensor:
        result = site.inputs[0]
        numbers = (self.scale, self.shift, self.power)
        if (
            any(number != int(number) if abs(number) < 2**31 else True for number in numbers)
            or self.power < 0
        ):
            result = site.floating(result)
        for operation, number, neutral in zip(
            ("Multiply-1", "Add-1", "Power-1"), numbers, (1, 0, 1), strict=True
        ):
            if number != neutral:
                result = site.op(operation, result, site.number(number, result))
        return result


@layer("ScaleShift")
class ScaleShift(LegacyLayer):
    """Upgraded to Multiply by ``<weights>`` and Add of ``<biases>``, for all channels or per channel."""

    blobs = ("weights", "biases")
    broadcast: int = attr(0)
    leftovers = frozenset({"axis", "num_axes", "bias_term", "type"})

    def build(self, site: Site) -> Tensor:
        result = site.floating(site.inputs[0])
        for name, operation in (("weights", "Multiply-1"), ("biases", "Add-1")):
            if name in site.blobs:
                shape = site.along_channels(site.blobs[name].length)
                result = site.op(operation, result, site.blob(name, shape))
        return result


@layer("Select")
class Select(LegacyLayer):
    """Upgraded to Select, with the condition converted to Boolean."""

    inputs = (3, 3)

    def build(self, site: Site) -> Tensor:
        condition, *choices = site.inputs
        return site.op("Select-1", site.convert(condition, ElementType.boolean), *choices)


@layer("Gemm")
class Gemm(LegacyLayer):
    """Upgraded to MatMul, Multiply by ``alpha`` and ``beta``, and Add."""

    inputs = (2, 3)
    alpha: float = attr(1.0)
    beta: float = attr(1.0)
    transpose_a: bool = attr(False)
    transpose_b: bool = attr(False)

    def build(self, site: Site) -> Tensor:
        a, b, *rest = site.inputs
        result = site.op("MatMul-1", a, b, transpose_a=self.transpose_a, transpose_b=self.transpose_b)
        if self.alpha != 1:
            result = site.op("Multiply-1", result, site.number(self.alpha, result))
        for added in rest:
            if self.beta != 1:
                added = site.op("Multiply-1", added, site.number(self.beta, added))
            result = site.op("Add-1", result, added)
        return result


@layer("FakeQuantize", "Quantize")
class FakeQuantize(LegacyLayer):
    """Upgraded to FakeQuantize."""

    inputs = (5, 5)
    levels: int = attr(ge=2)

    def build(self, site: Site) -> Tensor:
        return site.op("FakeQuantize-1", *site.inputs, levels=self.levels)


# Reductions along the axes of a second input.


def _reduction(type: str, operation: str) -> type[LegacyLayer]:
    """Declare a layer type that is upgraded to one reduction."""

    class Reduction(LegacyLayer):
        inputs = (2, 2)
        keep_dims: bool = attr(True)

        def build(self, site: Site) -> Tensor:
            data, axes = site.inputs
            is_logical = "Logical" in operation
            data = site.convert(data, ElementType.boolean) if is_logical else data
            result = site.op(operation, data, site.indices(axes), keep_dims=self.keep_dims)
            return site.convert(result, site.declared() or site.precision) if is_logical else result

    Reduction.__doc__ = f"Upgraded to {operation.rpartition('-')[0]}."
    Reduction.__name__ = Reduction.__qualname__ = type
    return layer(type)(Reduction)


for _type, _reduction_name in (
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
    _reduction(_type, _reduction_name)


# Normalization.

_LEAST = 2.0**-126
"""The replacement of an ``eps`` of 0, which operations do not support; it changes no sum except 0."""


@layer("Norm", "LRN")
class Norm(LegacyLayer):
    """Upgraded to LRN across channels or over the spatial axes."""

    alpha: float = attr(doc="the factor of the sum of squares")
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
    """Upgraded to a Subtract of the means in ``<biases>``, and a Divide by deviations, from variances in ``<weights>``."""

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
    """Upgraded to GRN."""

    bias: float = attr(0.0)

    def build(self, site: Site) -> Tensor:
        return site.op("GRN-1", site.inputs[0], bias=self.bias)


@layer("MVN")
class MVN(LegacyLayer):
    """Upgraded to MVN."""

    across_channels: bool = attr(False)
    normalize_variance: bool = attr(True)
    eps: float = attr(1e-9)

    def build(self, site: Site) -> Tensor:
        settings = {"across_channels": self.across_channels, "normalize_variance": self.normalize_variance}
        return site.op("MVN-1", site.inputs[0], eps=max(self.eps, _LEAST), **settings)


@layer("Normalize")
class Normalize(LegacyLayer):
    """Upgraded to NormalizeL2 over the channels, or over all axes but the first, and Multiply by ``<weights>``."""

    blobs = ("weights",)
    across_spatial: bool = attr(False)
    channel_shared: bool = attr(False)
    eps: float = attr(doc="the addend to the sum of squares")
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
