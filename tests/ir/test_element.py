"""Element types: names, dtypes, sizes."""

from __future__ import annotations

import numpy as np
import pytest

from ir_runtime.ir.element import ElementType


@pytest.mark.parametrize("element", list(ElementType), ids=str)
def test_names_and_back(element: ElementType) -> None:
    assert ElementType.parse(element.label) is element
    assert element.to_string() == element.get_type_name() == element.label


@pytest.mark.parametrize("element", [e for e in ElementType if not e.is_encoded and e.bits], ids=str)
def test_dtypes_and_back(element: ElementType) -> None:
    assert ElementType.from_dtype(element.to_dtype()) is element
    assert ElementType(element.dtype) is element


@pytest.mark.parametrize(
    ("given", "label"),
    [(np.float32, "f32"), (bool, "boolean"), (float, "f64"), ("int8", "i8"), (np.dtype(">f4"), "f32"), (str, "string"),
     (np.dtype("S3"), "string"), (object, "string")],
)  # fmt: skip
def test_what_numpy_has(given: object, label: str) -> None:
    assert ElementType.from_dtype(given) is ElementType.parse(label)


@pytest.mark.parametrize("given", ["complex64", "datetime64[s]"])
def test_what_has_no_element_type(given: str) -> None:
    with pytest.raises(ValueError, match="has no element type"):
        ElementType.from_dtype(given)


@pytest.mark.parametrize("text", ["", "F32", "fp32", "float", "F64", "x" * 50])
def test_unknown_names(text: str) -> None:
    with pytest.raises(ValueError, match="is not an element type"):
        ElementType.parse(text)


def test_merge() -> None:
    f32, f16, dynamic = (ElementType.parse(t) for t in ("f32", "f16", "dynamic"))
    assert f32.merge(f32) is f32
    assert f32.merge(dynamic) is dynamic.merge(f32) is f32
    assert f32.merge(f16) is None
    assert f32.compatible(dynamic)
    assert not f32.compatible(f16)


def test_bytes_of_packed_types() -> None:
    assert [ElementType.parse(t).nbytes(5) for t in ("u1", "i4", "u8", "f16", "f64")] == [1, 3, 5, 10, 40]
