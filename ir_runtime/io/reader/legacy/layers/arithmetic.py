"""Arithmetic, comparison and logic of several tensors."""

from __future__ import annotations

from .....codes import Code
from .....ir.element import ElementType
from ..declaration import LegacyLayer, attr, layer
from ..site import Site, Tensor

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
    """Add, Multiply, Maximum and the like, applied to the inputs one after another; comparisons give 1 and 0."""

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
        """Return the inputs of a sum, multiplied by their coefficients."""
        inputs = self._unify_types(site, site.inputs)
        if not self.coeff:
            return inputs
        if len(self.coeff) != len(inputs):
            site.refuse(
                f"attribute 'coeff' has {len(self.coeff)} numbers, but the layer {len(inputs)} inputs",
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
        """Convert inputs of several types to f32, as the runtimes of that time did."""
        elements = {tensor.element for tensor in inputs} - {ElementType.dynamic}
        return [site.floating(tensor) for tensor in inputs] if len(elements) > 1 else list(inputs)


@layer("Power")
class Power(LegacyLayer):
    """Multiply by ``scale``, Add ``shift``, Power; neutral ones are left out."""

    power: float = attr(doc="the exponent, after scale and shift")
    scale: float = attr(doc="the factor")
    shift: float = attr(doc="what is added")

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
    """Multiply by ``<weights>`` and Add ``<biases>``, each a number for all channels or one per channel."""

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
    """Select with a condition of any type."""

    inputs = (3, 3)

    def build(self, site: Site) -> Tensor:
        condition, *choices = site.inputs
        return site.op("Select-1", site.convert(condition, ElementType.boolean), *choices)


@layer("Gemm")
class Gemm(LegacyLayer):
    """MatMul; Multiply by ``alpha`` and ``beta``, Add."""

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
    """FakeQuantize."""

    inputs = (5, 5)
    levels: int = attr(ge=2)

    def build(self, site: Site) -> Tensor:
        return site.op("FakeQuantize-1", *site.inputs, levels=self.levels)
