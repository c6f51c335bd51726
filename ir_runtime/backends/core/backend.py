"""A backend: the kernels, fusion patterns and settings that replace the reference implementation.

A pattern matches a group of layers that one kernel computes, backwards from the last layer. It reports near misses with a
reason, for ``ir-runtime inspect --fusion``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np

from ..._util.scoped import NOTHING, Scope
from ...ir.graph import Graph, Layer, Port
from ...ir.operation import Operation
from ...ir.tensor import Array, Value
from .kernel import Kernel, KernelTemplate, Offer
from .precision import Precision

__all__ = [
    "Backend",
    "CachedAttention",
    "CacheKernels",
    "choose",
    "Fusion",
    "MatchContext",
    "Pattern",
    "Refusal",
]


@dataclass(frozen=True)
class Fusion:
    """Layers that match a pattern, and the kernel that computes them.

    >>> from ir_runtime.backends import Kernel
    >>> fusion = Fusion(layers=(), reads=(), kernel=Kernel(abs), pattern="numpy: gelu")
    >>> fusion.pattern
    'numpy: gelu'

    Args:
        layers: the fused layers in topological order; the last one gives the result. A layer whose output is also read
            elsewhere runs as well.
        reads: the inputs of the kernel.
        kernel: the kernel.
        pattern: the name of the pattern.
    """

    layers: tuple[Layer, ...]
    reads: tuple[Port, ...]
    kernel: KernelTemplate
    pattern: str = field(default="", compare=False)


@dataclass(frozen=True)
class Refusal:
    """A near miss: layers that almost match a pattern, and the reason why they do not.

    >>> Refusal("another layer reads the scores").reason
    'another layer reads the scores'

    Args:
        reason: a clause that completes "not fused, because".
        layer: the last layer of the group.
        pattern: the name of the pattern.
    """

    reason: str
    layer: Layer | None = None
    pattern: str = ""


@dataclass(frozen=True)
class MatchContext:
    """The graph around a layer, and the values of its ports.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import opset1
    >>> x = opset1.parameter([2], np.float32, name="x")
    >>> model = ov.Model([opset1.multiply(opset1.relu(x, name="a"), np.float32(0.5), name="y")], [x])
    >>> context = MatchContext(model._graph, model._values.__getitem__)
    >>> (layer,) = model._graph.of_type("Multiply")
    >>> left, right = context.sources(layer)
    >>> context.producer(left, "Relu", "ReLU").name, context.producer(left, "Convolution"), context.scalar(right)
    ('a', None, 0.5)
    >>> context.reads([layer], left) == context.reads([layer]) == (left, right)
    True
    """

    graph: Graph
    value: Callable[[Port], Value]
    """Return the type and shape of a port as a `Value`, with its contents if it is constant."""

    def sources(self, layer: Layer) -> tuple[Port, ...]:
        """Return the ports that a layer reads."""
        return self.graph.reads(layer)

    def producer(self, port: Port, *types: str) -> Layer | None:
        """Return the layer that produces a port if it has one of ``types`` and a single, non-constant output, else ``None``."""
        layer = self.graph[port.layer]
        fits = layer.type in types and layer.op is not None and len(layer.outputs) == 1
        return layer if fits and not self.value(port).is_known else None

    def reads(self, layers: Collection[Layer], *first: Port) -> tuple[Port, ...]:
        """Return the ports that a group of layers reads from outside: all of ``first``, then each other port once."""
        inside = {layer.id for layer in layers}
        ports = [port for layer in layers for port in self.sources(layer) if port.layer not in inside]
        return (*first, *(port for port in dict.fromkeys(ports) if port not in first))

    def scalar(self, port: Port) -> float | None:
        """Return the value of a port that is a constant with a single floating-point element, else ``None``."""
        known = self.value(port).known()
        return (
            float(known.item()) if known is not None and known.size == 1 and known.dtype.kind == "f" else None
        )


Pattern: TypeAlias = "Callable[[MatchContext, Layer], Fusion | Refusal | None]"
"""A function that returns the `Fusion` ending with a layer, a `Refusal` for a near miss, or ``None``."""


@dataclass(frozen=True)
class CachedAttention:
    """Layers of attention whose kernel also reads keys and values from a packed 8-bit cache.

    >>> CachedAttention(layers=(), reads=(), value=2, kernel=Kernel(abs)).value
    2

    Args:
        layers: the layers that the kernel computes, the attention itself last.
        reads: the inputs of the kernel: queries, keys, and so on.
        value: the index in ``reads`` of the values.
        kernel: takes keys and values as f32 or as packed rows, of any lengths; checks its inputs itself.
    """

    layers: tuple[Layer, ...]
    reads: tuple[Port, ...]
    value: int
    kernel: Kernel


Attention: TypeAlias = Callable[[MatchContext, Layer], "CachedAttention | None"]


@dataclass(frozen=True)
class CacheKernels:
    """The kernels of 8-bit key/value caches; `ir.quantized_cache` defines the packed format.

    >>> from ir_runtime.ir.quantized_cache import pack_rows
    >>> CacheKernels(pack_rows, lambda context, layer: None).pack is pack_rows
    True

    Args:
        pack: packs the rows of an f32 array.
        attention: matches the attention that ends with a layer, or returns ``None``.
    """

    pack: Callable[[Array], Array]
    attention: Attention


_BACKENDS = __package__.rpartition(".")[0]
_Function = TypeVar("_Function")


@dataclass(frozen=True)
class Backend:
    """A named set of kernels and fusion patterns, registered by operation.

    A function registered with `accelerates` returns a kernel for a layer, or ``None`` to decline:

    >>> import numpy as np
    >>> from ir_runtime import opset1
    >>> from ir_runtime.backends import Kernel
    >>> from ir_runtime.ir.graph import Graph
    >>> from ir_runtime.ops import registry
    >>> mine = Backend("mine")
    >>> relu = registry.resolve("Relu", 1)
    >>> offer = mine.accelerates(relu)(lambda op, x: Kernel(lambda array: np.maximum(array, 0)))
    >>> x = opset1.parameter([2], np.float32, name="x")
    >>> node = opset1.relu(x)
    >>> mine.kernel(node.layer.op, [x._value(0)])(np.float32([-1, 2]))
    array([0., 2.], dtype=float32)
    >>> choose(node.layer.op, [x._value(0)], [mine]) is None
    False

    `quantized` registers kernels for compressed weights, and `pattern` groups of layers that one kernel computes:

    >>> offer = mine.quantized(relu)(lambda op, x: None)
    >>> mine.kernel_packed(node.layer.op, [x._value(0)])
    >>> pattern = mine.pattern(relu)(lambda context, layer: Refusal("its input is not a Convolution"))
    >>> fusion, refused = mine.match(MatchContext(Graph([], []), lambda port: x._value(0)), node.layer)
    >>> fusion, refused[0].reason
    (None, 'its input is not a Convolution')
    """

    name: str
    offers: dict[type, list[Offer]] = field(default_factory=dict)
    packed: dict[type[Operation], list[Offer]] = field(default_factory=dict)
    patterns: dict[type, list[LastLayer]] = field(default_factory=dict)
    around: Scope = NOTHING
    """The context in which its kernels run, such as a number of threads."""
    flushing: Scope | None = None
    """The context of a run in which its kernels treat denormals as zero; ``None`` if unsupported."""
    compiling: Callable[[], AbstractContextManager[object]] = nullcontext
    """The context of a compilation, entered before kernels are chosen and left when all are prepared."""
    kernel_modules: Mapping[str, str] = field(default_factory=dict)
    """For each operation type, the kernel modules to import when a model contains it, separated by spaces."""
    pattern_modules: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """For each operation type, the modules with patterns that end in it, each with the types of which one must produce an
    input (empty for any). A module is imported only where that holds."""
    packed_modules: Mapping[str, str] = field(default_factory=dict)
    """For each operation type, the modules with kernels for compressed weights."""
    products: tuple[str, ...] = ("f32",)
    """The types to which its kernels can round the operands of products, or only the weights."""
    dynamic_groups: tuple[int, ...] = (0,)
    """The supported group sizes of dynamic quantization; 0 for none."""
    fastest: Callable[[], Precision] = Precision
    """Returns the precision that is fastest on this processor."""
    quantized_cache: Callable[[], CacheKernels] | None = None
    """Returns the kernels of 8-bit key/value caches; ``None`` if unsupported."""
    contiguous: Callable[[], Callable[[Array], Array]] | None = None
    """Returns a function that copies an array to C order faster than NumPy, or ``None``."""
    copy: Callable[[], Callable[[Array, Array], bool]] | None = None
    """Returns a function that copies one array into another by a call that replay can record, and returns false if it cannot."""

    def followed(self, precision: Precision) -> Precision:
        """Return a copy of ``precision`` in which settings that this backend does not support have their defaults.

        >>> Backend("mine", products=("f32", "bf16")).followed(Precision("bf16", 32))
        Precision(products='bf16', dynamic_group=0, kv_cache='f32', weights='f32', flush_denormals=False, f16='f32')
        """
        return Precision(
            precision.products if precision.products in self.products else "f32",
            precision.dynamic_group if precision.dynamic_group in self.dynamic_groups else 0,
            precision.kv_cache if precision.kv_cache in self.kv_caches else "f32",
            precision.weights if precision.weights in self.products else "f32",
            precision.flush_denormals and self.flushing is not None,
            precision.f16,
        )

    @property
    def kv_caches(self) -> tuple[str, ...]:
        """The types in which key/value caches can be stored between runs.

        >>> Backend("mine").kv_caches
        ('f32',)
        """
        return ("f32",) if self.quantized_cache is None else ("f32", "u8")

    @property
    def packed_readers(self) -> frozenset[str]:
        """The operation types that may have kernels for compressed weights."""
        return frozenset((*self.packed_modules, *(op.name for op in self.packed)))

    def accelerates(self, *ops: type[Operation]) -> Callable[[Offer], Offer]:
        """Register a function that offers kernels for the given operations.

        It is called at compile time for each layer, with the operation and a `Value` for each input. Constants carry their
        contents, which the kernel may pack. For an operation with several outputs, ``unread`` lists those without consumers,
        for which the kernel may return anything.
        """

        def register(offer: Offer) -> Offer:
            for cls in ops:
                modules = self.kernel_modules.get(getattr(cls, "name", ""), "")
                _insert(offer, self.offers.setdefault(cls, []), modules.split())
            return offer

        return register

    def quantized(self, *ops: type[Operation]) -> Callable[[Offer], Offer]:
        """Register a function that offers kernels for the given operations where an input is `QuantizedWeights`.

        Such an input has ``quantized`` instead of contents. At run time, the kernel receives a broadcast zero of its shape in
        its place.
        """

        def register(offer: Offer) -> Offer:
            for cls in ops:
                self.packed.setdefault(cls, []).append(offer)
            return offer

        return register

    def pattern(self, *ops: type[Operation], after: str = "") -> Callable[[Pattern], Pattern]:
        """Register a function that matches groups of layers ending with one of the given operations.

        ``after`` lists operation types, separated by spaces; one of them must produce an input of the last layer. By default,
        any may.
        """

        def register(pattern: Pattern) -> Pattern:
            for cls in ops:
                modules = self.pattern_modules.get(getattr(cls, "name", ""), {})
                last = LastLayer(pattern, frozenset(after.split()), pattern.__module__)
                _insert(last, self.patterns.setdefault(cls, []), list(modules))
            return pattern

        return register

    def _import(self, op: type, where: Mapping[str, str]) -> None:
        _import_once(self.name, where.get(getattr(op, "name", ""), ""))

    def prepare(self, op: type[Operation]) -> None:
        """Import all kernel and pattern modules for an operation in advance.

        >>> from ir_runtime import opset1
        >>> Backend("mine").prepare(type(opset1.relu(opset1.parameter([2], "f32", name="x")).layer.op))
        """
        for modules in (self.kernel_modules, self.packed_modules):
            self._import(op, modules)
        _import_once(self.name, " ".join(self.pattern_modules.get(op.name, ())))

    def match(self, context: MatchContext, layer: Layer) -> tuple[Fusion | None, list[Refusal]]:
        """Return the first fusion that ends with a layer, or ``None``, and the refusals of the patterns tried before it."""

        def follows(types: Collection[str]) -> bool:
            return not types or any(
                context.graph[port.layer].type in types for port in context.sources(layer)
            )

        for module, after in self.pattern_modules.get(layer.op.name if layer.op else "", {}).items():
            if follows(after.split()):
                _import_once(self.name, module)
        refused: list[Refusal] = []
        for pattern, types, _ in self.patterns.get(type(layer.op), ()):
            if not follows(types):
                continue
            match, name = pattern(context, layer), f"{self.name}: {pattern.__name__}"
            if isinstance(match, Fusion):
                return replace(match, pattern=name), refused
            if match is not None:
                refused.append(replace(match, layer=layer, pattern=name))
        return None, refused

    def kernel_packed(self, op: Operation, inputs: Sequence[Value]) -> KernelTemplate | None:
        """Return the first kernel offered for a layer with compressed inputs, or ``None``."""
        self._import(type(op), self.packed_modules)
        offers = (offer(op, *inputs) for offer in self.packed.get(type(op), ()))
        return next((kernel for kernel in offers if kernel is not None), None)

    def kernel(
        self, op: Operation, inputs: Sequence[Value], unread: Collection[int] = ()
    ) -> KernelTemplate | None:
        """Return the first kernel offered for a layer, or ``None``; ``unread`` has the indices of the outputs that nothing reads."""
        self._import(type(op), self.kernel_modules)
        several = len(op.outputs) > 1 or any(port.variadic for port in op.outputs)
        how = {"unread": unread} if several else {}
        if len(inputs) < sum(not (port.optional or port.variadic) for port in op.inputs):
            return None  # the operation itself raises an error
        with np.errstate(all="ignore"):  # constants may have any contents
            offered = (offer(op, *inputs, **how) for offer in self.offers.get(type(op), ()))
            return next((kernel for kernel in offered if kernel is not None), None)


class LastLayer(NamedTuple):
    """A registered pattern: its function, and the name of its module.

    ``after`` has the operation types of which one must produce an input of the last layer; if it is empty, any may.
    """

    match: Pattern
    after: frozenset[str]
    module: str


def _insert(function: _Function, registered: list[_Function], modules: Sequence[str]) -> None:
    """Insert a function into those registered for an operation, in the order of their modules in ``modules``.

    Priority thus does not depend on the order of imports.
    """

    def place(registered: _Function) -> int:
        module = _module(registered).rpartition(".")[2]
        return modules.index(module) if module in modules else len(modules)

    registered.append(function)
    registered.sort(key=place)


def _module(registered: object) -> str:
    """Return the name of the module that defines a registered function or pattern."""
    return registered.module if isinstance(registered, LastLayer) else getattr(registered, "__module__", "")


@cache
def _import_once(backend: str, modules: str) -> None:
    """Import kernel modules of a backend; ``modules`` has their names, separated by spaces."""
    for module in modules.split():
        import_module(f"{_BACKENDS}.{backend}.kernels.{module}")


def choose(
    op: Operation, inputs: Sequence[Value], backends: Sequence[Backend], unread: Collection[int] = ()
) -> KernelTemplate | None:
    """Return the first kernel that any of the backends offers for a layer, or ``None`` to run the reference.

    >>> from ir_runtime import opset1
    >>> x = opset1.parameter([2], "f32", name="x")
    >>> choose(opset1.relu(x).layer.op, [x._value(0)], [Backend("empty")]) is None
    True
    """
    offered = (backend.kernel(op, inputs, unread) for backend in backends)
    return next((kernel for kernel in offered if kernel is not None), None)
