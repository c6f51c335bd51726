"""A backend: kernels, patterns and settings that replace the reference where they are faster.

A pattern is a group of layers computed by one kernel, matched backwards from the last layer. It explains near
misses, for ``ir-runtime inspect --fusion``.
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
        layers: those that it computes, each after what it reads; the last one gives the result. Others
            may read the rest, too: then they run as well.
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
    """The reason why layers almost match a pattern.

    >>> Refusal("another layer reads the scores").reason
    'another layer reads the scores'

    Args:
        reason: a clause that completes "not fused, because".
        layer: the last layer of what would have matched.
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
    """Return the value of a port visible to kernels; contents only if constant."""

    def sources(self, layer: Layer) -> tuple[Port, ...]:
        """Return the ports that a layer reads."""
        return self.graph.reads(layer)

    def producer(self, port: Port, *types: str) -> Layer | None:
        """Return the layer that produces a port, if it has one of these types and is not constant.

        A layer with several outputs is never returned.
        """
        layer = self.graph[port.layer]
        fits = layer.type in types and layer.op is not None and len(layer.outputs) == 1
        return layer if fits and not self.value(port).is_known else None

    def reads(self, layers: Collection[Layer], *first: Port) -> tuple[Port, ...]:
        """Return the ports read from outside of layers: all of ``first``, then each other port once."""
        inside = {layer.id for layer in layers}
        ports = [port for layer in layers for port in self.sources(layer) if port.layer not in inside]
        return (*first, *(port for port in dict.fromkeys(ports) if port not in first))

    def scalar(self, port: Port) -> float | None:
        """Return the constant real number of a port, or ``None``."""
        known = self.value(port).known()
        return (
            float(known.item()) if known is not None and known.size == 1 and known.dtype.kind == "f" else None
        )


Pattern: TypeAlias = "Callable[[MatchContext, Layer], Fusion | Refusal | None]"
"""A function from a layer to the `Fusion` that it ends, a `Refusal`, or ``None``."""


@dataclass(frozen=True)
class CachedAttention:
    """Attention with possibly packed keys and values.

    >>> CachedAttention(layers=(), reads=(), value=2, kernel=Kernel(abs)).value
    2

    Args:
        layers: those that it computes, the attention last.
        reads: the inputs of the kernel: the queries, the keys, and so on.
        value: which of them are the values.
        kernel: takes keys and values as f32 or as packed rows, of any lengths; checks its inputs itself.
    """

    layers: tuple[Layer, ...]
    reads: tuple[Port, ...]
    value: int
    kernel: Kernel


Attention: TypeAlias = Callable[[MatchContext, Layer], "CachedAttention | None"]


@dataclass(frozen=True)
class CacheKernels:
    """The kernels of caches in 8 bits; `ir.quantized_cache` says how rows are packed.

    >>> from ir_runtime.ir.quantized_cache import pack_rows
    >>> CacheKernels(pack_rows, lambda context, layer: None).pack is pack_rows
    True

    Args:
        pack: packs the rows of an f32 array.
        attention: returns the kernel of a layer of attention, or ``None`` if it has none.
    """

    pack: Callable[[Array], Array]
    attention: Attention


_BACKENDS = __package__.rpartition(".")[0]
_Function = TypeVar("_Function")


@dataclass(frozen=True)
class Backend:
    """A name and, per operation, functions that offer a kernel or decline with ``None``.

    A backend registers functions that may offer kernels for operations:

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

    Others are for compressed weights, or recognise layers that one kernel computes together:

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
    """The context of its kernels during a run, such as a number of threads."""
    flushing: Scope | None = None
    """Around a run, lets denormal numbers be zero to its kernels, if they can do so."""
    compiling: Callable[[], AbstractContextManager[object]] = nullcontext
    """The context of a compilation, which ends when its kernels are ready."""
    kernel_modules: Mapping[str, str] = field(default_factory=dict)
    """Modules of its package that are imported when a model has an operation of that type; spaces between."""
    pattern_modules: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Likewise, the modules that may find it to be the last of a `Fusion`, each with the types of operations that it must
    follow, empty for any: modules for others stay unimported."""
    packed_modules: Mapping[str, str] = field(default_factory=dict)
    """Likewise, the modules with kernels for compressed weights, when such an operation reads some."""
    products: tuple[str, ...] = ("f32",)
    """The types to which its kernels can round the inputs of products, or weights alone."""
    dynamic_groups: tuple[int, ...] = (0,)
    """The supported numbers of activations per scale for compressed weights; 0 for f32."""
    fastest: Callable[[], Precision] = Precision
    """Returns the fastest precision on this processor."""
    quantized_cache: Callable[[], CacheKernels] | None = None
    """Returns the kernels of caches of keys and values in 8 bits, if it has any."""
    contiguous: Callable[[], Callable[[Array], Array]] | None = None
    """Returns a function that copies arrays to C order faster than NumPy, if it has one."""
    copy: Callable[[], Callable[[Array, Array], bool]] | None = None
    """Returns a function that copies an array to another one by a recorded call, or returns false, if it has one."""

    def followed(self, precision: Precision) -> Precision:
        """Return the part of a precision that its kernels support.

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
        """The supported types of key and value caches between runs.

        >>> Backend("mine").kv_caches
        ('f32',)
        """
        return ("f32",) if self.quantized_cache is None else ("f32", "u8")

    @property
    def packed_readers(self) -> frozenset[str]:
        """The types of operations that may have kernels for compressed weights."""
        return frozenset((*self.packed_modules, *(op.name for op in self.packed)))

    def accelerates(self, *ops: type[Operation]) -> Callable[[Offer], Offer]:
        """Register a function that may offer kernels for the given operations.

        It is called once for each layer at compile time, with the operation and a `Value` for each input:
        constants have their contents, which the kernel may pack. For operations with several outputs,
        ``unread`` lists unused ones, for which the kernel may return anything.
        """

        def register(offer: Offer) -> Offer:
            for cls in ops:
                modules = self.kernel_modules.get(getattr(cls, "name", ""), "")
                _insert(offer, self.offers.setdefault(cls, []), modules.split())
            return offer

        return register

    def quantized(self, *ops: type[Operation]) -> Callable[[Offer], Offer]:
        """Register a function that may offer kernels where an input is `QuantizedWeights`.

        Such an input has ``compressed`` instead of contents; at run time the kernel receives zeros of its
        shape, without memory.
        """

        def register(offer: Offer) -> Offer:
            for cls in ops:
                self.packed.setdefault(cls, []).append(offer)
            return offer

        return register

    def pattern(self, *ops: type[Operation], after: str = "") -> Callable[[Pattern], Pattern]:
        """Register a function that may find a `Fusion` ending with one of these operations.

        ``after`` are types of operations, with spaces between, of which one must produce an input; by default, any may.
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
        """Import all modules for an operation in advance.

        >>> from ir_runtime import opset1
        >>> Backend("mine").prepare(type(opset1.relu(opset1.parameter([2], "f32", name="x")).layer.op))
        """
        for modules in (self.kernel_modules, self.packed_modules):
            self._import(op, modules)
        _import_once(self.name, " ".join(self.pattern_modules.get(op.name, ())))

    def match(self, context: MatchContext, layer: Layer) -> tuple[Fusion | None, list[Refusal]]:
        """Return the first fusion that ends with a layer, and the refusals of patterns before it."""

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
            found, name = pattern(context, layer), f"{self.name}: {pattern.__name__}"
            if isinstance(found, Fusion):
                return replace(found, pattern=name), refused
            if found is not None:
                refused.append(replace(found, layer=layer, pattern=name))
        return None, refused

    def kernel_packed(self, op: Operation, inputs: Sequence[Value]) -> KernelTemplate | None:
        """Return the first kernel offered for a layer with compressed inputs, or ``None``."""
        self._import(type(op), self.packed_modules)
        offers = (offer(op, *inputs) for offer in self.packed.get(type(op), ()))
        return next((kernel for kernel in offers if kernel is not None), None)

    def kernel(
        self, op: Operation, inputs: Sequence[Value], unread: Collection[int] = ()
    ) -> KernelTemplate | None:
        """Return the first kernel offered for an operation; ``unread`` outputs are unused."""
        self._import(type(op), self.kernel_modules)
        several = len(op.outputs) > 1 or any(port.variadic for port in op.outputs)
        how = {"unread": unread} if several else {}
        if len(inputs) < sum(not (port.optional or port.variadic) for port in op.inputs):
            return None  # refused by the operation with a message
        with np.errstate(all="ignore"):  # constants may have any contents
            offered = (offer(op, *inputs, **how) for offer in self.offers.get(type(op), ()))
            return next((kernel for kernel in offered if kernel is not None), None)


class LastLayer(NamedTuple):
    """A pattern of an operation, the types of operations that must come before it, empty for any, and its module."""

    match: Pattern
    after: frozenset[str]
    module: str


def _insert(function: _Function, registered: list[_Function], modules: Sequence[str]) -> None:
    """Insert a function among those of an operation, in the order of their modules rather than of imports."""

    def place(registered: _Function) -> int:
        module = _module(registered).rpartition(".")[2]
        return modules.index(module) if module in modules else len(modules)

    registered.append(function)
    registered.sort(key=place)


def _module(registered: object) -> str:
    """Return the name of the module of a function or pattern."""
    return registered.module if isinstance(registered, LastLayer) else getattr(registered, "__module__", "")


@cache
def _import_once(backend: str, modules: str) -> None:
    """Import modules of kernels; later layers of the operation skip this."""
    for module in modules.split():
        import_module(f"{_BACKENDS}.{backend}.kernels.{module}")


def choose(
    op: Operation, inputs: Sequence[Value], backends: Sequence[Backend], unread: Collection[int] = ()
) -> KernelTemplate | None:
    """Return the first kernel that a backend offers for a layer; ``None`` selects the reference.

    >>> from ir_runtime import opset1
    >>> x = opset1.parameter([2], "f32", name="x")
    >>> choose(opset1.relu(x).layer.op, [x._value(0)], [Backend("empty")]) is None
    True
    """
    offered = (backend.kernel(op, inputs, unread) for backend in backends)
    return next((kernel for kernel in offered if kernel is not None), None)
