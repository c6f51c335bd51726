"""Conformance cases: a minimal model, its inputs, the expected outputs, and their tolerances.

A case is a folder with ``case.json``, ``model.xml``, ``model.bin`` if there are constants, ``input_0.npy`` and so on, and
``expected_0.npy`` and so on. `ir-runtime explain json conformance-case` prints the schema of ``case.json``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from .._util.array_files import MAGIC, check_claims
from .._util.files import create, replace_in_folder, write_npy
from .._util.records import Record
from ..codes import Code
from ..errors import InputError
from ..ir.array import Packed
from ..ir.element import ElementType
from ..ir.tensor import Array
from ..limits import DEFAULT, Limits

__all__ = [
    "SCHEMA",
    "SEVERAL",
    "Case",
    "Kind",
    "Meta",
    "Predicate",
    "Source",
    "Tolerance",
    "decode",
    "encode",
    "from_bytes",
    "load_arrays",
    "npy",
    "operation_of",
    "to_bytes",
]

SCHEMA = 1
"""The version of ``case.json``."""
SEVERAL = "several"
"""The ``operation`` of a case whose model has several operations."""

Kind: TypeAlias = Literal["value", "shape", "refusal", "state", "dynamic"]
"""The aspect that a case checks. ``value``: outputs; ``shape``: only types and shapes of outputs; ``refusal``: that the model
is refused; ``state``: outputs of several runs, between which variables keep their values; ``dynamic``: outputs of a model
with dynamic dimensions."""
Source: TypeAlias = Literal["exact", "f64", "page", "evaluate", "plugin"]
"""The source of expected outputs. ``exact``: computed without rounding; ``f64``: computed in f64 and rounded once; ``page``: an
example in the specification; ``evaluate``, ``plugin``: computed by OpenVINO's reference, or by its CPU plugin."""
Predicate: TypeAlias = Literal["", "shape", "any-where-nan", "any-order"]
"""A rule that changes the comparison of an output. ``shape``: any values are right; ``any-where-nan``: any value is right where
NaN is expected; ``any-order``: the elements may be in any order."""

_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*(/[A-Za-z0-9_][A-Za-z0-9_.+-]*)*")
_OPERATION = re.compile(r"(\w+)-(\d+)")
_MOST_TEXT = 4096
_MOST_ARRAYS = 4096


@dataclass(frozen=True)
class Tolerance:
    """The tolerance of an output.

    An element is right if it is equal to the expected element, or differs by at most ``ulp`` units in the last place plus
    ``absolute``. NaN must be NaN, and infinities must be equal.

    >>> Tolerance(ulp=1).record()
    {'ulp': 1, 'absolute': 0.0, 'predicate': ''}

    Args:
        ulp: units in the last place of the expected element, in the type of the output; 0 for integers.
        absolute: an absolute difference, for sums whose terms cancel.
        predicate: another rule of comparison, for outputs that the specification leaves open.
    """

    ulp: float = 0
    absolute: float = 0.0
    predicate: Predicate = ""

    def record(self) -> Record:
        """Return a dict for JSON."""
        return {"ulp": self.ulp, "absolute": self.absolute, "predicate": self.predicate}


@dataclass(frozen=True)
class Case:
    """A conformance case.

    Args:
        id: operation, version and a number, such as ``ReduceL2-4/0007``.
        operation: the operation with its version, or `SEVERAL`.
        kind: the aspect that is checked.
        xml: the model.
        weights: the ``.bin``; empty if the model has no constants.
        inputs: an array for each input of the model, in order, step after step.
        expected: the expected outputs, in order, step after step; empty for a refusal.
        input_types: the element types of the inputs.
        output_types: the element types of the outputs.
        tolerances: the tolerance of each output.
        source: the source of the expected outputs.
        notes: remarks for the reader.
        clauses: the clause of the specification that a refused model violates, or the decisions that the case shows, such as
            ``ReduceL2-4 C2: ...``.
        alternatives: other complete sets of correct outputs, where the specification leaves a choice.
        steps: the number of runs; more than one for models with variables.
        fulfils: the numbers of the clauses that a runtime which passes the case fulfils, such as ``C2``.
    """

    id: str
    operation: str
    kind: Kind
    xml: bytes
    weights: bytes
    inputs: Sequence[Array]
    expected: Sequence[Array]
    input_types: Sequence[ElementType]
    output_types: Sequence[ElementType]
    tolerances: Sequence[Tolerance]
    source: Source = "exact"
    notes: str = ""
    clauses: Sequence[str] = ()
    alternatives: Sequence[Sequence[Array]] = ()
    steps: int = 1
    fulfils: Sequence[str] = ()

    @property
    def answers(self) -> Sequence[Sequence[Array]]:
        """All sets of correct outputs: ``expected`` and ``alternatives``."""
        return [self.expected, *self.alternatives]

    @property
    def feeds(self) -> list[Sequence[Array]]:
        """The inputs of each step."""
        count = len(self.inputs) // self.steps
        return [self.inputs[step * count : (step + 1) * count] for step in range(self.steps)]

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Yield the name and the contents of each file of the case."""
        yield "model.xml", self.xml
        if self.weights:
            yield "model.bin", self.weights
        for prefix, arrays, types in self._arrays():
            for index, (array, element) in enumerate(zip(arrays, types, strict=True)):
                yield _array_name(prefix, index), npy(encode(array, element))
        yield "case.json", (json.dumps(self.record(), indent=1) + "\n").encode()

    def save(self, folder: Path) -> None:
        """Write the files of the case into a folder atomically; the folder is created if needed."""
        folder.parent.mkdir(parents=True, exist_ok=True)
        with replace_in_folder(folder) as stage:
            for name, contents in self.files():
                with create(stage / name) as file:
                    file.write(contents)

    def _arrays(self) -> Iterator[tuple[str, Sequence[Array], Sequence[ElementType]]]:
        yield "input", self.inputs, self.input_types
        for answer, arrays in enumerate(self.answers):
            yield _answer_prefix(answer), arrays, self.output_types

    def record(self) -> Record:
        """Return the contents of ``case.json``."""
        name, version = operation_of(self.operation)
        outputs: list[Record] = [
            {"type": element.label, **tolerance.record()}
            for element, tolerance in zip(self.output_types, self.tolerances, strict=True)
        ]
        return {
            "schema": SCHEMA, "id": self.id, "operation": name, "version": version, "clauses": list(self.clauses),
            "fulfils": list(self.fulfils), "kind": self.kind, "steps": self.steps,
            "inputs": [element.label for element in self.input_types], "outputs": outputs, "alternatives": len(self.alternatives), "source": self.source, "notes": self.notes,
        }  # fmt: skip

    @classmethod
    def parse(cls, files: Mapping[str, bytes], limits: Limits = DEFAULT) -> Case:
        """Read a case from the contents of its files.

        Raises:
            InputError: if a file is missing or damaged, has another schema, or exceeds the limits.
        """
        if "case.json" not in files or "model.xml" not in files:
            raise InputError("a case needs a case.json and a model.xml", code=Code.BAD_REQUEST)
        meta = Meta.parse(files["case.json"])
        expected, *alternatives = (
            load_arrays(files, _answer_prefix(answer), meta.outputs, limits)
            for answer in range(meta.alternatives + 1)
        )

        return cls(
            meta.id, meta.operation, meta.kind, files["model.xml"], files.get("model.bin", b""),
            load_arrays(files, "input", meta.inputs, limits), expected, meta.inputs, meta.outputs, meta.tolerances,
            meta.source, meta.notes, meta.clauses, alternatives, meta.steps, meta.fulfils,
        )  # fmt: skip


@dataclass(frozen=True)
class Meta:
    """The validated contents of a ``case.json``; see `Case`.

    Args:
        id: the id of the case.
        operation: the operation with its version, or `SEVERAL`.
        kind: the aspect that is checked.
        inputs: the element types of the inputs.
        outputs: the element types of the outputs.
        tolerances: the tolerance of each output.
        source: the source of the expected outputs.
        notes: remarks for the reader.
        clauses: the clauses and decisions that the case is about.
        alternatives: the number of alternative sets of outputs.
        steps: the number of runs.
        fulfils: the numbers of the clauses that a runtime which passes the case fulfils.
    """

    id: str
    operation: str
    kind: Kind
    inputs: tuple[ElementType, ...]
    outputs: tuple[ElementType, ...]
    tolerances: tuple[Tolerance, ...]
    source: Source
    notes: str
    clauses: tuple[str, ...]
    alternatives: int
    steps: int
    fulfils: tuple[str, ...]

    @classmethod
    def parse(cls, raw: bytes) -> Meta:
        """Parse a ``case.json``.

        Raises:
            InputError: if it is damaged, or has another schema.
        """
        try:
            meta = json.loads(raw)
            schema = meta["schema"]
        except (ValueError, KeyError, TypeError, RecursionError) as reason:
            raise _damage_error(reason) from None
        if schema != SCHEMA:
            raise InputError(
                f"a case of schema {str(schema)[:20]}, expected {SCHEMA}",
                code=Code.BAD_REQUEST,
                hint="use a corpus and a package of the same version",
            )
        try:
            return cls._parse(meta)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as reason:
            raise _damage_error(reason) from None

    @classmethod
    def _parse(cls, meta: Mapping[str, Any]) -> Meta:
        identity, name, version = str(meta["id"]), str(meta["operation"]), meta["version"]
        if not _ID.fullmatch(identity) or len(identity) > _MOST_TEXT:
            raise ValueError(f"the id {identity[:60]!r} is not of words with slashes between them")
        operation = name if version is None else f"{name}-{int(version)}"
        if operation != SEVERAL and not _OPERATION.fullmatch(operation):
            raise ValueError(f"the operation is {operation[:60]!r}")
        kind, source, steps = meta["kind"], meta["source"], int(meta["steps"])
        _check_choice("kind", kind, get_args(Kind))
        _check_choice("source", source, get_args(Source))
        inputs, outputs = list(meta["inputs"]), list(meta["outputs"])
        alternatives = int(meta["alternatives"])
        if max(len(inputs), len(outputs) * (alternatives + 1), steps) > _MOST_ARRAYS or alternatives < 0:
            raise ValueError(f"more than {_MOST_ARRAYS} arrays")
        if steps < 1 or len(inputs) % steps or len(outputs) % steps:
            raise ValueError(f"{len(inputs)} inputs and {len(outputs)} outputs of {steps} steps")
        return cls(
            identity, operation, kind, tuple(map(_element, inputs)), tuple(_element(of["type"]) for of in outputs),
            tuple(map(_tolerance, outputs)), source, str(meta["notes"])[:_MOST_TEXT],
            _texts(meta["clauses"]), alternatives, steps, _texts(meta.get("fulfils", ())),
        )  # fmt: skip


def operation_of(operation: str) -> tuple[str, int | None]:
    """Split an operation into its name and its version, which is ``None`` for `SEVERAL`.

    >>> operation_of("ReduceL2-4")
    ('ReduceL2', 4)
    """
    name, _, version = operation.rpartition("-")
    return (name, int(version)) if name else (operation, None)


def _texts(listed: Iterable[object]) -> tuple[str, ...]:
    return tuple(str(text)[:_MOST_TEXT] for text in listed)


def _element(label: str) -> ElementType:
    element = ElementType.parse(label)
    if element is ElementType.dynamic:
        raise ValueError("arrays have no type 'dynamic'")
    return element


def _tolerance(output: Mapping[str, Any]) -> Tolerance:
    ulp, absolute, predicate = float(output["ulp"]), float(output["absolute"]), output["predicate"]
    if not (ulp >= 0 and absolute >= 0):
        raise ValueError(f"a tolerance of {ulp} ulp and {absolute}")
    _check_choice("predicate", predicate, get_args(Predicate))
    return Tolerance(ulp, absolute, predicate)


def _check_choice(name: str, text: object, choices: Sequence[str]) -> None:
    if text not in choices:
        expected = ", ".join(map(repr, choices))
        raise ValueError(f"the {name} is {str(text)[:60]!r}, expected {expected}")


def _damage_error(reason: Exception) -> InputError:
    text = str(reason) if isinstance(reason, ValueError) else f"{type(reason).__name__}: {reason}"
    return InputError(
        f"case.json cannot be read: {text}",
        code=Code.BAD_REQUEST,
        hint="'ir-runtime explain json conformance-case' prints its schema",
    )


def _array_name(prefix: str, index: int) -> str:
    return f"{prefix}_{index}.npy" if prefix else f"{index}.npy"


def _answer_prefix(answer: int) -> str:
    return f"or_{answer}" if answer else "expected"


def load_arrays(
    files: Mapping[str, bytes], prefix: str, elements: Sequence[ElementType], limits: Limits = DEFAULT
) -> tuple[Array, ...]:
    """Read an array for each element type, from ``prefix_0.npy`` and so on, or ``0.npy`` and so on without a prefix.

    Raises:
        InputError: if a file is missing, contains another type, or exceeds the limits.
    """
    return tuple(
        _load(files, _array_name(prefix, index), element, limits) for index, element in enumerate(elements)
    )


def _load(files: Mapping[str, bytes], name: str, element: ElementType, limits: Limits) -> Array:
    if name not in files:
        raise InputError(f"the case lacks {name}", code=Code.BAD_REQUEST)
    file = BytesIO(files[name])
    try:
        if not files[name].startswith(MAGIC):
            raise ValueError("it is not an .npy")
        check_claims(file, name, limits)
        return decode(np.lib.format.read_array(file, allow_pickle=False), element)
    except (ValueError, TypeError, EOFError, OSError) as reason:
        raise InputError(f"{name} cannot be read: {reason}", code=Code.BAD_REQUEST) from None


def encode(array: Array, element: ElementType) -> Array:
    """Convert an array to a dtype that an ``.npy`` can store.

    Types that NumPy lacks are stored as unsigned integers: bf16 and f8 as their bits, sub-byte types as one byte per element.
    Strings are stored as Unicode text.
    """
    if element is ElementType.string:
        return array.astype(np.str_)
    if array.dtype.isbuiltin == 1:
        return array
    return array.view(f"u{array.dtype.itemsize}")


def decode(array: Array, element: ElementType) -> Array:
    """Convert an array from the dtype in which `encode` stored it.

    Raises:
        ValueError: if the dtype is not that of ``element``.
    """
    if element is ElementType.string:
        if array.dtype.kind != "U":
            raise ValueError(f"expected strings, got {array.dtype}")
        return array.astype(object)
    if array.dtype == element.dtype:
        return array
    if array.dtype != np.dtype(f"u{element.dtype.itemsize}") or element.dtype.isbuiltin == 1:
        raise ValueError(f"expected {element.label}, got {array.dtype}")
    return array.view(element.dtype)


def npy(array: Array) -> bytes:
    """Return an array as the bytes of an ``.npy`` file; equal arrays give equal bytes."""
    file = BytesIO()
    write_npy(file, np.asarray(array, order="C"))
    return file.getvalue()


def to_bytes(array: Array, element: ElementType) -> bytes:
    """Return the bytes of a tensor in OpenVINO's memory layout, with sub-byte types packed; strings are not supported."""
    if element.is_packed:
        return Packed.of(array, element).raw.tobytes()
    return np.asarray(array, element.dtype, order="C").tobytes()


def from_bytes(raw: Array, element: ElementType, shape: Sequence[int]) -> Array:
    """Return the array whose `to_bytes` are ``raw``."""
    if element.is_packed:
        return Packed(raw, element, tuple(shape)).unpack()
    return np.array(raw.view(element.dtype).reshape(tuple(shape)))
