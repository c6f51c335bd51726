"""Sub-byte types, bit by bit against OpenVINO."""

from __future__ import annotations

import numpy as np
import openvino as ov
import pytest
from harness.files import Writer
from harness.oracle import read
from hypothesis import given
from hypothesis import strategies as st

from ir_runtime.ir.element import ElementType, pack, packed_size, unpack
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Array, TensorType

WHOLE = {1: "u1", 2: "u2", 3: "u3", 4: "u4", 6: "u6"}


def as_openvino_reads(raw: bytes, element: str, count: int) -> Array:
    """Return a packed constant as OpenVINO converts it to f32."""
    packed, f32 = (TensorType(ElementType.parse(e), PartialShape([count])) for e in (element, "f32"))
    writer = Writer()
    writer.weights = raw
    attributes = {"element_type": element, "shape": str(count), "offset": "0", "size": str(len(raw))}
    constant = writer.layer("Const", "opset1", attributes, outputs=[packed])
    convert = writer.layer("Convert", "opset1", {"destination_type": "f32"}, [(constant, 0)], [f32], [packed])
    writer.layer("Result", "opset1", {}, [(convert, 1)], inputs=[f32])
    out = ov.Tensor(ov.Type.f32, ov.Shape([count]))
    assert read(writer.xml(), raw).evaluate([out], [])
    return np.array(out.data)


@pytest.mark.parametrize("bits", WHOLE)
@given(data=st.data())
def test_reads_as_openvino_does(bits: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 30))
    size = packed_size(bits, count)
    raw = data.draw(st.binary(min_size=size, max_size=size))
    found = unpack(np.frombuffer(raw, np.uint8), bits, count)
    np.testing.assert_array_equal(found, as_openvino_reads(raw, WHOLE[bits], count))


@pytest.mark.parametrize("bits", WHOLE)
@given(data=st.data())
def test_packing_is_the_inverse(bits: int, data: st.DataObject) -> None:
    codes = np.array(data.draw(st.lists(st.integers(0, 2**bits - 1), max_size=40)), np.uint8)
    raw = pack(codes, bits)
    assert raw.size == packed_size(bits, codes.size)
    np.testing.assert_array_equal(unpack(raw, bits, codes.size), codes)


@pytest.mark.parametrize("bits", WHOLE)
@pytest.mark.parametrize("count", [1, 3, 8, 9])
def test_takes_the_room_that_openvino_takes(bits: int, count: int) -> None:
    assert ov.Tensor(getattr(ov.Type, WHOLE[bits]), ov.Shape([count])).byte_size == packed_size(bits, count)
