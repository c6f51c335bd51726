"""The base class of operations, common type variables, the propagation of contents, and the registry."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from importlib import import_module
from importlib.resources import files
from inspect import signature
from itertools import product, zip_longest
from types import CodeType
from typing import Any, ClassVar, Generic, Protocol, Self, TypeAlias, TypeVar, dataclass_transform

import numpy as np

from ..._util.forks import cached_by_class
from ..._util.nearest import nearest
from ...errors import InferenceError, ValidationError
from ...ir.element import ElementType
from ...ir.formula import Count, total
from ...ir.graph import Body, bodies_of
from ...ir.operation import Operands, size
from ...ir.shape import PartialShape
from ...ir.signature import FLOATS, Element, Input, Output, bind, port_at, promotions
from ...ir.tensor import Array, Bounds, TensorType, Value, empty_results, objects, span_of
from .._index import MODULES
from .attributes import Attribute, attr, blob_field, body_field, raise_invalid, read_schema
from .bounds import fit

__all__ = [
    "Contents",
    "Element",
    "InferenceError",
    "Input",
    "MAX_PROPAGATED",
    "Op",
    "Output",
    "Propagated",
    "Registry",
    "attr",
    "blob_field",
    "body_field",
    "cite",
    "clauses",
    "is_large",
    "keywords_of",
    "op",
    "propagate_contents",
    "registry",
    "to_value",
]


E: TypeAlias = ElementType
Types: TypeAlias = Sequence[E]
"""The element type of each input, as `Op.evaluator` passes them to operations that take ``types``."""

SIGNED = (E.i64, E.i32, E.i16, E.i8)
UNSIGNED = (E.u64, E.u32, E.u16, E.u8)
INTEGERS = SIGNED + UNSIGNED
NUMBERS = FLOATS + INTEGERS
EVERY = tuple(e for e in E if e is not E.dynamic)

T = Element("T", NUMBERS, "any numeric type")
T_FLOAT = Element("T", FLOATS, "any floating-point type")
T_SHORT_FLOAT = Element("T", (E.f32, E.f16, E.bf16), "f32, f16 or bf16")
T_INTEGER = Element("T", INTEGERS, "any integer type")
T_ANY = Element("T", EVERY, "any type")
T_PLAIN = Element("T", (*NUMBERS, E.boolean), "any numeric type or boolean")
T_BOOLEAN = Element("T_BOOL", (E.boolean,), "boolean")
T_INDEX = Element("T_IND", INTEGERS, "any integer type", shared=False)
T_INDEX_64 = Element("T_IND", (E.i64, E.i32), "i64 or i32", shared=False)
T_AXIS = Element("T_AXIS", INTEGERS, "any integer type", shared=False)
T_SHAPE = Element("T_SHAPE", INTEGERS, "any integer type", shared=False)


def elements(arrays: Sequence[Array], types: Types) -> tuple[E, ...]:
    """Return the element type of each array: from ``types`` if known there, or else derived from the dtype."""
    pairs = zip_longest(arrays, types, fillvalue=E.dynamic)
    return tuple(E.from_dtype(a.dtype) if e is E.dynamic else e for a, e in pairs)


def check_index_types(**attributes: E) -> None:
    """Require that the given attributes are i64 or i32; called by `Op.verify` of operations that return indices."""
    for name, element in attributes.items():
        if element not in (E.i64, E.i32):
            raise ValidationError(
                f"attribute {name!r} must be i64 or i32, not {element.label}",
                clause=f"attribute {name!r} is i64 or i32",
            )


@dataclass_transform(
    kw_only_default=True, frozen_default=True, field_specifiers=(attr, blob_field, body_field)
)
class Op:
    """Base class of operation versions. An instance holds the attributes of one layer.

    A subclass declares ports (`Input`, `Output`) and attributes (annotations), and defines
    `infer` and `evaluate`. Both take the inputs by position, in declared order.
    """

    name: ClassVar[str] = ""
    since: ClassVar[int] = 0
    until: ClassVar[int | None] = None
    """The last opset that contains the operation, if it was removed later."""
    spec: ClassVar[str] = ""
    inputs: ClassVar[tuple[Input, ...]] = ()
    outputs: ClassVar[tuple[Output, ...]] = ()
    pure: ClassVar[bool] = True
    """Whether equal inputs give equal outputs; false for random and stateful operations."""
    symbolic: ClassVar[bool] = False
    """Whether `evaluate` also accepts arrays of `Interval`, so that shape arithmetic propagates through it."""
    bounded: ClassVar[bool] = False
    """Whether no output has more elements than the product, or the sum, of the sizes of the nonempty inputs.
    The dynamic output sizes of other operations are checked before each run."""
    monotonicity: ClassVar[str] = ""
    """How floating-point outputs depend on floating-point inputs: ``increasing`` in all inputs (the default if
    `symbolic`), monotonic in ``each input``, so that extremes are at the corners of the box, or ``unknown``."""
    has_side_effects: ClassVar[bool] = False
    """Whether the operation must run even if its outputs are unused, as Assign does."""
    keeps_types: ClassVar[bool] = False
    """Whether the operation runs only in its declared element types, as its code may not support others."""
    decisions: ClassVar[tuple[str, ...]] = ()
    """The behavior chosen where the specification is silent or OpenVINO deviates from it; see `Op.decided`."""
    flops_per_element: ClassVar[int] = 1
    """Arithmetic operations per element of the first output, in addition to `macs`; 0 for data movement."""
    flops_per_input: ClassVar[Mapping[str, int]] = {}
    """Arithmetic operations per element of an input, by the name of the input."""
    has_mixed_inputs: ClassVar[bool] = False
    """Whether some port is `Input.mixed`."""
    _needs: ClassVar[frozenset[str]] = frozenset()
    _schema: ClassVar[Mapping[str, Attribute]] = {}
    _declared: ClassVar[Mapping[str, Input | Output]] = {}
    """The ports that the class declares itself, without those of its bases."""

    def __init_subclass__(cls) -> None:
        cls._declared = {
            n: dataclasses.replace(p, name=n) for n, p in vars(cls).items() if isinstance(p, (Input, Output))
        }
        declared: dict[str, Input | Output] = {}
        for base in reversed(cls.__mro__):
            declared |= vars(base).get("_declared", {})
        ports = [port for name, port in declared.items() if getattr(cls, name) is not None]
        cls.inputs = tuple(p for p in ports if isinstance(p, Input))
        cls.outputs = tuple(p for p in ports if isinstance(p, Output))
        cls.has_mixed_inputs = any(port.mixed for port in cls.inputs)
        cls._needs = keywords_of(cls.evaluate)

    def __init__(self, **values: object) -> None:
        problems: list[str] = []
        clauses: list[str] = []
        for name, attribute in self.schema().items():
            value = values.pop(name, attribute.default)
            try:
                vars(self)[name] = attribute.check(value)
            except ValueError as problem:
                problems.append(f"attribute {attribute.xml!r} {problem}")
                clauses.append(self.cite(attribute.clause))
        if values:
            raise TypeError(f"{type(self).__name__} has no attribute {', '.join(values)}")
        raise_invalid(problems, clauses)
        self._verify()

    def _set(self, fields: Mapping[str, object]) -> Self:
        """Set attributes that are valid individually, then verify them together."""
        vars(self).update(fields)
        self._verify()
        return self

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def __repr__(self) -> str:
        fields = ", ".join(f"{n}={v!r}" for n, v in self.attributes().items())
        return f"{type(self).__name__}({fields})"

    @classmethod
    def versioned_name(cls) -> str:
        """Return the name with the version, as in the specification: ``ReduceL2-4``."""
        return f"{cls.name}-{cls.since}"

    @classmethod
    def cite(cls, clause: str) -> str:
        """Return a clause with its number, as cited in messages: ``ReduceL2-4 C5: axes is a scalar or 1-D``."""
        return cite(cls.versioned_name(), clause)

    @classmethod
    def decided(cls) -> tuple[str, ...]:
        """Return all decisions, those of base classes first; this order numbers them (``ReduceMax-1 D4``)."""
        listed = (decision for base in reversed(cls.__mro__) for decision in vars(base).get("decisions", ()))
        return tuple(dict.fromkeys(listed))

    @classmethod
    def schema(cls) -> Mapping[str, Attribute]:
        """Return the declared attributes by name, in the order of declaration."""
        if "_schema" not in vars(cls):
            cls._schema = read_schema(cls)
        return cls._schema

    @classmethod
    def parse(cls, data: Mapping[str, str], /, **payloads: object) -> Self:
        """Create an operation from the attributes of a ``<data>`` element; unknown names are ignored.

        Args:
            data: the text of each attribute.
            payloads: blobs and bodies.

        Raises:
            ValidationError: if attributes are missing or invalid; the error lists all of them.
        """
        fields: dict[str, object] = {}
        missing: list[str] = []
        problems: list[str] = []
        clauses: list[str] = []
        without: list[str] = []
        for name, attribute in cls.schema().items():
            text = None if attribute.external else data.get(attribute.xml)
            try:
                if text is not None:
                    fields[name] = attribute.parse(text)
                elif attribute.required and name not in payloads:
                    missing.append(f"attribute {attribute.xml!r} is missing; it {attribute.allows()}")
                    without.append(cls.cite(attribute.clause))
                else:
                    fields[name] = attribute.check(payloads.pop(name, attribute.default))
            except ValueError as problem:
                problems.append(f"attribute {attribute.xml!r} {problem}")
                clauses.append(cls.cite(attribute.clause))
        if payloads:
            raise TypeError(f"{cls.__name__} has no attribute {', '.join(payloads)}")
        raise_invalid((*problems, *missing), (*clauses, *without))
        return cls.__new__(cls)._set(fields)

    @classmethod
    def omitted_defaults(cls, data: Mapping[str, str]) -> dict[str, str]:
        """Return the texts that OpenVINO assumes for the required attributes that ``data`` omits."""
        return {xml: text for xml, text in _find_omitted_defaults(cls) if xml not in data}

    def replace(self, **changes: object) -> Self:
        """Return a copy of the operation with some attributes, blobs or bodies replaced."""
        return type(self).__new__(type(self))._set({**vars(self), **changes})

    def attributes(self) -> dict[str, Any]:
        """Return the attributes by name, without blobs and bodies."""
        return {n: vars(self)[n] for n, a in self.schema().items() if not a.external}

    def shown(self, inputs: Sequence[PartialShape], output: PartialShape) -> Mapping[str, object]:
        """Return the attributes that OpenVINO's API presents differently than files do, by name.

        OpenVINO computes some during shape inference, and spells others differently. Operations may override this
        method.

        Args:
            inputs: the input shapes.
            output: the shape of the first output.
        """
        return {}

    def verify(self) -> None:
        """Raise `ValueError` if attributes contradict each other. Operations may override this method."""

    def infer(self, *inputs: Any, **context: Any) -> Any:
        """Return the shape of each output, given a `Value` for each input.

        For an output whose element type does not follow from its declaration, return a `TensorType` instead. Raise
        `InferenceError` if the inputs contradict each other.
        """
        raise NotImplementedError

    def macs(self, operands: Operands) -> Count:
        """Return the number of multiply-accumulates. Operations may override this method."""
        return 0

    def flops(self, operands: Operands) -> Count:
        """Return the number of arithmetic operations; a multiply-accumulate counts as two.

        By default, computed from `macs`, `flops_per_element` and `flops_per_input`. An elementary function such as a
        logarithm counts as one. Operations may override this method.
        """
        counted = zip(self.inputs, operands.inputs, strict=False)
        read = (self.flops_per_input.get(port.name, 0) * size(lengths) for port, lengths in counted)
        return total([2 * self.macs(operands), self.flops_per_element * operands.result, *read])

    def audit(self, *inputs: Value) -> Iterator[str]:
        """Yield a warning for each suspicious use that inference accepts. Operations may override this method.

        Called after `infer`, with the same inputs.
        """
        yield from ()

    def evaluate(self, *inputs: Any, **context: Any) -> Any:
        """Compute the outputs with NumPy; this defines the semantics of the operation.

        Element types that are stored as codes share the dtype uint8. An operation that must distinguish them takes a
        keyword-only argument ``types``, the element type of each input.
        """
        raise NotImplementedError

    def refuses_lengths(self) -> bool:
        """Return whether `evaluate` itself refuses every length that `infer` refuses, given the inferred ranks.

        NumPy broadcasts where many operations require equal lengths, so operations with dynamic lengths are inferred
        again before each run. This check is skipped where it is redundant.
        """
        return False

    @classmethod
    def needs(cls, name: str) -> bool:
        """Return whether `evaluate` takes a keyword-only argument: ``types``, ``visit``, ``variables`` or ``advance``."""
        return name in cls._needs

    def bodies(self) -> tuple[Body, ...]:
        """Return the bodies of the layer."""
        return bodies_of(self)

    @classmethod
    def is_mixed(cls, types: Sequence[ElementType]) -> bool:
        """Return whether inputs that share a type variable have, or may have, different floating-point types.

        `evaluate` does not accept such inputs; `evaluator` does.
        """
        if not cls.has_mixed_inputs:
            return False
        return ElementType.dynamic in types or bool(promotions(cls.inputs, types))

    def evaluator(self, types: Sequence[ElementType]) -> Callable[..., Any]:
        """Return `evaluate`, bound to the element types of the inputs if it takes them.

        Mixed inputs are converted to the widest of their types, and results are rounded to the inferred type.
        """
        if self.is_mixed(types):
            return partial(self._evaluate_mixed, tuple(types))
        return partial(self.evaluate, types=tuple(types)) if self.needs("types") else self.evaluate

    def _evaluate_mixed(self, types: Types, *arrays: Any, **context: Any) -> Any:
        types = elements(arrays, types)
        wider = promotions(self.inputs, types)
        computed = [self._promote(index, element, wider) for index, element in enumerate(types)]
        # Arrays of intervals cannot be converted.
        converted = [
            a if a.dtype == object else a.astype(e.dtype, copy=False)
            for a, e in zip(arrays, computed, strict=True)
        ]
        output = type(self).evaluator(self, computed)(*converted, **context)
        bound = bind(self.inputs, types)
        results = output if isinstance(output, tuple) else (output,)
        rounded = tuple(
            a.astype(self._element(port, bound).dtype, copy=False) if _variable(port) in wider else a
            for a, port in zip(results, self._output_ports(len(results)), strict=False)
        )
        return rounded if isinstance(output, tuple) else rounded[0]

    @classmethod
    def _promote(cls, index: int, element: ElementType, wider: Mapping[str, ElementType]) -> ElementType:
        """Return the element type to which input ``index`` is converted before it is computed with."""
        port = cls.port_of(index)
        return element if port is None or element not in FLOATS else wider.get(port.element.name, element)

    def propagate(self, *inputs: Value) -> Propagated:
        """Return the contents of the outputs, given those of the inputs, or ``None`` if they are unknown.

        By default, run `evaluate` on the known contents of the inputs. Operations may override this method.
        """
        return propagate_contents(self, inputs)

    def infer_types(self, *inputs: Value, **context: Any) -> tuple[TensorType, ...]:
        """Check the inputs against the declaration, then infer the type of each output."""
        bound = bind(self.inputs, [value.type.element for value in inputs])
        result = self.infer(*inputs, **context)
        shapes = result if isinstance(result, tuple) else (result,)
        types = [
            s if isinstance(s, TensorType) else TensorType(self._element(p, bound), s)
            for s, p in zip(shapes, self._output_ports(len(shapes)), strict=False)
        ]
        return tuple(types)

    @classmethod
    def _output_ports(cls, count: int) -> tuple[Output, ...]:
        """Return the port of each of ``count`` outputs; a variadic port repeats. Includes unused declared ports."""
        declared = cls.outputs
        return declared if count <= len(declared) else declared + declared[-1:] * (count - len(declared))

    def infer_values(self, *inputs: Value, **context: Any) -> tuple[Value, ...]:
        """Infer the type of each output, and propagate the contents of small outputs."""
        types = self.infer_types(*inputs, **context)
        if any(map(is_large, types)):
            return tuple([Value(type) for type in types])
        follows = self.pure and inputs and all(v.data is not None for v in inputs)
        if follows and (empty := empty_results(types)) is not None:
            return tuple(map(Value, types, empty))
        with np.errstate(all="ignore"):
            propagated = self.propagate(*inputs)
        contents = propagated if isinstance(propagated, tuple) else (propagated,) * len(types)
        return tuple([to_value(t, c) for t, c in zip(types, contents, strict=True)])

    @classmethod
    def port_of(cls, index: int) -> Input | None:
        """Return the port of the input at ``index``; a variadic port repeats."""
        return port_at(cls.inputs, index)

    def _element(self, port: Output, bound: Mapping[str, ElementType]) -> ElementType:
        declared = port.element
        if isinstance(declared, Element):
            return bound.get(declared.name, ElementType.dynamic)
        if isinstance(declared, str):
            element: ElementType = vars(self)[declared]
            return element
        return declared

    def _verify(self) -> None:
        try:
            self.verify()
        except ValidationError as problem:
            raise_invalid([problem.message], [self.cite(problem.clause)])
        except ValueError as problem:
            raise_invalid([str(problem)])


def _variable(port: Output) -> str | None:
    """Return the name of the type variable of an output, or ``None`` if it has none."""
    return port.element.name if isinstance(port.element, Element) else None


@cached_by_class
def _find_omitted_defaults(cls: type[Op]) -> tuple[tuple[str, str], ...]:
    defaults = ((attribute.xml, attribute.default_with_warning) for attribute in cls.schema().values())
    return tuple((xml, text) for xml, text in defaults if text is not None)


def keywords_of(function: Callable[..., object]) -> frozenset[str]:
    """Return the names of the keyword-only parameters of a function."""
    code: CodeType | None = getattr(function, "__code__", None)
    if code is None or hasattr(function, "__wrapped__"):
        parameters = signature(function).parameters.values()
        return frozenset(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)
    return frozenset(code.co_varnames[code.co_argcount :][: code.co_kwonlyargcount])


def to_value(type: TensorType, contents: Array | Bounds | None) -> Value:
    """Return a value with an inferred type and propagated contents."""
    if contents is None:
        return Value(type)
    if isinstance(contents, Bounds):
        if not np.array_equal(contents.lower, contents.upper):
            return Value(TensorType(type.element, PartialShape(contents.lower.shape)), bounds=contents)
        contents = contents.lower
    if contents.dtype == object and type.element is not ElementType.string:
        return Value.bounded(type.element, _wrap(contents, type.element))
    return Value(TensorType(type.element, PartialShape(contents.shape)), contents)


def _wrap(numbers: Array, element: ElementType) -> Array:
    """Wrap integers to the range of their element type, and drop bounds out of that range."""
    return objects((fit(n, element) for n in numbers.flat), numbers.shape) if element.integral else numbers


# Only contents of small tensors are propagated, as in shape arithmetic; larger tensors are data.
MAX_PROPAGATED = 4096

Contents: TypeAlias = "Array | Bounds | None"
"""An array of numbers or intervals, or bounds of a floating-point tensor; ``None`` if unknown."""
Propagated: TypeAlias = "Contents | tuple[Contents, ...]"
"""The contents of each output; a single output needs no tuple."""


class _Evaluated(Protocol):
    """The part of an operation that computes outputs."""

    pure: ClassVar[bool]
    symbolic: ClassVar[bool]
    monotonicity: ClassVar[str]

    def evaluator(self, types: Sequence[ElementType]) -> Callable[..., Any]:
        """Return the function that computes the outputs."""
        ...


def is_large(type: TensorType) -> bool:
    """Return whether a tensor is too large for its contents to be propagated, or of unknown rank.

    The size of an empty tensor is the product of its other lengths.
    """
    if type.shape.is_static:
        return (math.prod(type.shape.static) or span_of(type.shape)) > MAX_PROPAGATED
    return type.shape.rank is None or Value(type).count.min > MAX_PROPAGATED


def _is_large_array(array: Array) -> bool:
    """Return whether an array is too large to propagate; see `is_large`."""
    return (array.size or math.prod([n or 1 for n in array.shape])) > MAX_PROPAGATED


def propagate_contents(op: _Evaluated, inputs: Sequence[Value]) -> Propagated:
    """Evaluate an operation on the known contents of its inputs; return ``None`` if the results are unknown.

    A ``TypeError`` on intervals means that their arithmetic is undefined, so the contents are unknown.
    """
    if any(v.bounds is not None for v in inputs):
        return _propagate_bounds(op, inputs) if op.pure else None
    if not op.pure or not inputs or any(v.data is None or _is_large_array(v.data) for v in inputs):
        return None
    intervals = any(v.known() is None for v in inputs)
    if intervals and not op.symbolic:
        return None
    try:
        contents: Propagated = op.evaluator([v.element for v in inputs])(*(v.data for v in inputs))
        return contents
    except TypeError:
        if not intervals:
            raise
        return None


def _propagate_bounds(op: _Evaluated, inputs: Sequence[Value]) -> tuple[Bounds | None, ...] | None:
    """Return bounds of the outputs of a monotonic operation, given bounds of its inputs."""
    how = op.monotonicity or ("increasing" if op.symbolic else "unknown")
    choices = [_ends(value) for value in inputs]
    if how == "unknown" or any(not choice for choice in choices):
        return None
    evaluate = op.evaluator([value.element for value in inputs])
    corners = zip(*choices, strict=True) if how == "increasing" else product(*choices)
    results = [
        result if isinstance(result, tuple) else (result,) for result in (evaluate(*c) for c in corners)
    ]
    return tuple(map(_hull, zip(*results, strict=True)))


def _ends(value: Value) -> tuple[Array, ...]:
    """Return the lower and the upper bounds of a value, equal if it is known; empty if nothing is known."""
    if value.bounds is not None:
        return value.bounds.lower, value.bounds.upper
    contents = value.known()
    return () if contents is None else (contents, contents)


def _hull(arrays: Iterable[Array]) -> Bounds | None:
    """Return elementwise bounds of several arrays, infinite where one has NaN, as from ``0 * inf``."""
    stack = np.stack(list(arrays))
    if not ElementType.from_dtype(stack.dtype).real:
        return None
    lower, upper = stack.min(0), stack.max(0)
    return Bounds(lower, upper).where(~(np.isnan(lower) | np.isnan(upper)))


class Version(Protocol):
    """The part of an operation version that the registry uses."""

    name: ClassVar[str]
    since: ClassVar[int]
    until: ClassVar[int | None]

    @classmethod
    def versioned_name(cls) -> str:
        """Return the name with the version, as in the specification."""
        ...


_VersionT = TypeVar("_VersionT", bound=type[Version])


class Registry(Generic[_VersionT]):
    """Operation versions by type and opset, imported on demand.

    Args:
        package: the package of the modules that define operations.
        modules: for each type in lower case, the modules that define it, separated by spaces.
    """

    def __init__(self, package: str = "", modules: Mapping[str, str] | None = None) -> None:
        self._versions: dict[str, dict[int, _VersionT]] = {}
        self._names: dict[str, str] = {}  # OpenVINO reads type names case-insensitively
        self._package = package
        self._modules = modules or {}
        self._imported: set[str] = set()
        self._complete = False
        self._resolved: dict[tuple[str, int | None], _VersionT] = {}

    def _import(self, type: str) -> None:
        """Import all versions of an operation."""
        key = type.lower()
        if key in self._imported or key not in self._modules:
            return
        for module in self._modules[key].split():
            import_module(f"{self._package}.{module}")
        self._imported.add(key)  # only after the import, for which other threads must wait

    def _import_all(self) -> None:
        if not self._complete:
            for type in self._modules:
                self._import(type)
            self._complete = True

    def add(self, cls: _VersionT, aliases: tuple[str, ...] = ()) -> None:
        """Register a version of an operation.

        Raises:
            ValueError: if the version is already registered.
        """
        if not self.is_own(cls):
            self._import(cls.name)
        versions = self._versions.setdefault(cls.name, {})
        if cls.since in versions:
            raise ValueError(f"{cls.versioned_name()} is defined twice")
        versions[cls.since] = cls
        self._resolved.clear()
        self._names |= {spelling.lower(): cls.name for spelling in (cls.name, *aliases)}

    def remove(self, cls: _VersionT) -> None:
        """Remove a version of an operation, such as one declared by a test."""
        versions = self._versions[cls.name]
        del versions[cls.since]
        self._resolved.clear()
        if not versions:
            del self._versions[cls.name]
            self._names = {k: v for k, v in self._names.items() if v != cls.name}

    def name(self, type: str) -> str | None:
        """Return the canonical name of an operation type spelled in any case, or ``None`` if it is unknown."""
        self._import(type)
        return self._names.get(type.lower())

    def versions(self, type: str) -> list[_VersionT]:
        """Return all versions of an operation, oldest first."""
        versions_by_opset = self._versions.get(self.name(type) or "", {})
        return [cls for _, cls in sorted(versions_by_opset.items())]

    def resolve(self, type: str, opset: int | None = None) -> _VersionT | None:
        """Return the newest version up to ``opset``, as OpenVINO does; ``None`` if unknown or removed by then."""
        if (resolved := self._resolved.get((type, opset))) is not None:
            return resolved
        candidates = [cls for cls in self.versions(type) if opset is None or cls.since <= opset]
        newest = candidates[-1] if candidates else None
        if newest is None or (opset is not None and opset > (newest.until or opset)):
            return None  # not cached, as a file may have any number of unknown types
        self._resolved[type, opset] = newest
        return newest

    def require(self, type: str, opset: int = 1) -> _VersionT:
        """Return the version of an operation in an opset.

        Raises:
            LookupError: if the opset does not contain the operation.
        """
        operation = self.resolve(type, opset)
        if operation is None:
            raise LookupError(f"opset{opset} has no operation {type!r}")
        return operation

    def is_own(self, cls: _VersionT) -> bool:
        """Return whether an operation belongs to this package, rather than to a third-party one."""
        return cls.__module__.startswith(f"{self._package}.")

    def near(self, type: str) -> str | None:
        """Return the operation name most similar to a misspelled ``type``, or ``None`` if none is similar."""
        self._import_all()
        similar = nearest(type.lower(), self._names)
        return None if similar is None else self._names[similar]

    def __iter__(self) -> Iterator[_VersionT]:
        self._import_all()
        for _, versions in sorted(self._versions.items()):
            yield from (cls for _, cls in sorted(versions.items()))

    def __len__(self) -> int:
        self._import_all()
        return sum(map(len, self._versions.values()))


registry: Registry[type[Op]] = Registry(__package__.rpartition(".")[0], MODULES)

_OpT = TypeVar("_OpT", bound=type[Op])


def op(
    versioned_name: str, *, spec: str = "", aliases: tuple[str, ...] = (), until: int | None = None
) -> Callable[[_OpT], _OpT]:
    """Register the decorated class as an operation version.

    Args:
        versioned_name: the type, and the first opset that contains this version: ``"ReduceL2-4"``.
        spec: the specification page, if it does not follow from the name.
        aliases: other spellings of the type in files.
        until: the last opset that contains the operation, if it was removed later.
    """
    name, _, since = versioned_name.rpartition("-")

    def register(cls: _OpT) -> _OpT:
        cls.name, cls.since, cls.until, cls.spec = name, int(since), until, spec
        registry.add(cls, aliases)
        return cls

    return register


# The clauses of operations: the requirements of their specification on a layer, each stated by the check that enforces
# it (``clause=...`` of the error). ``make index`` writes `_clauses.json` with the clauses that invalid layers of the
# tests violate, in the order of declaration, which numbers them.


def clauses(operation: str) -> Sequence[str]:
    """Return the clauses of an operation such as ``ReduceL2-4``, in the order of their numbers; empty for extensions."""
    return _load_clauses().get(operation, ())


def cite(operation: str, clause: str) -> str:
    """Return a clause, a requirement of the specification, with its number as in ``ReduceL2-4 C5: ...``.

    A clause that is not numbered is returned as is.

    >>> cite("ReduceL2-4", "no axis is named twice").partition(":")[2]
    ' no axis is named twice'
    >>> cite("MyOwn-1", "data is finite"), cite("MyOwn-1", "")
    ('data is finite', '')
    """
    numbered = clauses(operation)
    return f"{operation} C{numbered.index(clause) + 1}: {clause}" if clause in numbered else clause


@cache
def _load_clauses() -> Mapping[str, Sequence[str]]:
    text = files("ir_runtime.ops").joinpath("_clauses.json").read_text(encoding="utf-8")
    clauses_by_operation: Mapping[str, Sequence[str]] = json.loads(text)
    return clauses_by_operation
