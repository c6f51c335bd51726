"""Conformance cases: a minimal model, its inputs, the outputs that are right, and how far others may be from them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any, Literal, TypeAlias

import numpy as np

from ir_runtime._util.records import Record
from ir_runtime.codes import Code
from ir_runtime.errors import InputError
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.tensor import Array

__all__ = ["SCHEMA", "Case", "Kind", "Tolerance", "decode", "encode"]

SCHEMA = 1

Kind: TypeAlias = Literal["value", "dynamic", "refusal"]
"""``value``: outputs; ``dynamic``: outputs of a model whose dims are dynamic; ``refusal``: the model must be refused."""


@dataclass(frozen=True)
class Tolerance:
    """How far the elements of an output may be from the expected ones.

    An element is right if it is equal, or if it is within ``ulp`` units in the last place of the expected element plus
    ``absolute``. NaN must be NaN, and infinities must be equal.

    >>> Tolerance(ulp=1).record()
    {'ulp': 1, 'absolute': 0.0}

    Args:
        ulp: units in the last place of the element type of the output; 0 for integers.
        absolute: a distance, for sums whose terms cancel.
    """

    ulp: float = 0
    absolute: float = 0.0

    def record(self) -> Record:
        """For JSON."""
        return {"ulp": self.ulp, "absolute": self.absolute}


@dataclass(frozen=True)
class Case:
    """One case of a corpus.

    Args:
        id: operation, version and a number: ``ReduceL2-4/0007``.
        operation: the operation with its version.
        kind: what must come of it.
        xml: the model.
        weights: the ``.bin``; empty if it has no constants.
        inputs: an array for each input of the model, in order.
        expected: the right outputs, in order; none for a refusal.
        input_types: the element types of the inputs.
        output_types: the element types of the outputs.
        tolerances: one for each output.
        truth: where the expectation comes from: ``f64``, ``exact`` or ``page``.
        notes: what a reader should know.
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
    truth: str = "exact"
    notes: str = ""
    clauses: Sequence[str] = field(default=())

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Yield the files of the case: names and contents."""
        yield "model.xml", self.xml
        if self.weights:
            yield "model.bin", self.weights
        for name, arrays, types in (
            ("input", self.inputs, self.input_types),
            ("expected", self.expected, self.output_types),
        ):
            for index, (array, element) in enumerate(zip(arrays, types, strict=True)):
                yield f"{name}_{index}.npy", npy(encode(array, element))
        yield "case.json", (json.dumps(self.record(), indent=1) + "\n").encode()

    def record(self) -> Record:
        """Return what ``case.json`` has."""
        return {
            "schema": SCHEMA, "id": self.id, "operation": self.operation, "kind": self.kind,
            "inputs": [element.label for element in self.input_types],
            "outputs": [element.label for element in self.output_types],
            "tolerances": [tolerance.record() for tolerance in self.tolerances],
            "truth": self.truth, "clauses": list(self.clauses), "notes": self.notes,
        }  # fmt: skip

    @classmethod
    def parse(cls, files: Mapping[str, bytes]) -> Case:
        """Read a case from the contents of its files.

        Raises:
            InputError: if a file is missing, or is of another schema.
        """
        if "case.json" not in files or "model.xml" not in files:
            raise InputError("a case needs a case.json and a model.xml", code=Code.BAD_REQUEST)
        meta: dict[str, Any] = json.loads(files["case.json"])
        if meta["schema"] != SCHEMA:
            raise InputError(
                f"a case of schema {meta['schema']}, expected {SCHEMA}",
                code=Code.BAD_REQUEST,
                hint="use a corpus and a package of the same version",
            )
        types = {side: tuple(map(ElementType.parse, meta[side])) for side in ("inputs", "outputs")}

        def arrays(name: str, elements: Sequence[ElementType]) -> tuple[Array, ...]:
            return tuple(
                decode(np.load(BytesIO(files[f"{name}_{index}.npy"]), allow_pickle=False), element)
                for index, element in enumerate(elements)
            )

        return cls(
            meta["id"], meta["operation"], meta["kind"], files["model.xml"], files.get("model.bin", b""),
            arrays("input", types["inputs"]), arrays("expected", types["outputs"]), types["inputs"], types["outputs"],
            tuple(Tolerance(**tolerance) for tolerance in meta["tolerances"]), meta["truth"], meta["notes"],
            tuple(meta["clauses"]),
        )  # fmt: skip


def encode(array: Array, element: ElementType) -> Array:
    """Return an array as an ``.npy`` holds it.

    Types that NumPy lacks are stored as unsigned integers: bf16 and f8 as their bits, types of less than a byte as one
    byte for each element; strings as text.
    """
    if element is ElementType.string:
        return array.astype(np.str_)
    if array.dtype.isbuiltin == 1:
        return array
    return array.view(f"u{array.dtype.itemsize}")


def decode(array: Array, element: ElementType) -> Array:
    """Return the array that `encode` stored."""
    if element is ElementType.string:
        return array.astype(object)
    return array if array.dtype == element.dtype else array.view(element.dtype)


def npy(array: Array) -> bytes:
    """Return the bytes of an ``.npy``, which are the same for the same array."""
    file = BytesIO()
    np.lib.format.write_array(file, np.asarray(array, order="C"), version=(1, 0), allow_pickle=False)
    return file.getvalue()
