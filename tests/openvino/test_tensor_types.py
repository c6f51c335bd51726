"""``Type`` on both packages, and tensors of types that NumPy lacks."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ir_runtime as ir
from ir_runtime.openvino.dlpack import from_dlpack

NAMES = [element.label for element in ir.Type]
QUESTIONS = ("signed", "quantized", "integral_number", "integral", "real", "bitwidth", "size", "type_name")
CALLS = (
    "is_signed", "is_quantized", "is_integral_number", "is_integral", "is_real", "get_size", "get_bitwidth", "to_string",
    "get_type_name", "is_static", "is_dynamic",
)  # fmt: skip
# OpenVINO says integers are what is not real, and counts the size of its class for strings; nf4 it calls neither.
DIFFERENT = {
    "nf4": {"real", "integral"},
    "string": {"integral", "integral_number", "bitwidth", "size"},
    "dynamic": {"integral", "integral_number"},
}


def answers(element: Any, leave_out: set[str]) -> dict[str, Any]:
    found = {name: getattr(element, name) for name in QUESTIONS}
    found |= {name: getattr(element, name)() for name in CALLS}
    return {
        name: answer
        for name, answer in found.items()
        if name.removeprefix("is_").removeprefix("get_") not in leave_out
    }


@pytest.mark.parametrize("name", NAMES)
def test_types_answer_as_openvino_s(name: str) -> None:
    theirs, left_out = getattr(pytest.importorskip("openvino").Type, name), DIFFERENT.get(name, set())
    assert answers(getattr(ir.Type, name), left_out) == answers(theirs, left_out)
    assert repr(getattr(ir.Type, name)) == repr(theirs)


def test_merging() -> None:
    types = pytest.importorskip("openvino").Type
    for one in NAMES:
        for other in NAMES:
            ours = getattr(ir.Type, one).merge(getattr(ir.Type, other))
            assert repr(ours) == repr(getattr(types, one).merge(getattr(types, other)))


class Foreign:
    """An array of another library that only supports DLPack, in one of its two protocols."""

    def __init__(self, tensor: ir.Tensor, **how: object) -> None:
        self.tensor, self.how = tensor, how

    def __dlpack__(self, **how: object) -> object:
        return self.tensor.__dlpack__(**{**how, **self.how})

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.tensor.__dlpack_device__()


@pytest.mark.parametrize("how", [{}, {"max_version": (1, 0)}], ids=["former", "versioned"])
@pytest.mark.parametrize(
    "dtype", [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, np.float32]
)
def test_tensors_go_out_by_dlpack_without_a_copy(dtype: type, how: dict[str, object]) -> None:
    tensor = ir.Tensor(np.arange(6).reshape(2, 3).astype(dtype))
    found = from_dlpack(Foreign(tensor, **how))
    assert found.dtype == dtype
    assert np.may_share_memory(found, tensor.data)
    assert found.tolist() == tensor.elements.tolist()
