"""Messages for invalid tensors, regions of tensors, and lists of numbers."""

from __future__ import annotations

import ctypes
import warnings

import numpy as np
from harness.refusals import Call

import ir_runtime as ir
from ir_runtime import helpers, opset1

FOLDER = "messages"

X = np.ones((2, 3), np.float32)


def renamed() -> None:
    tensor = ir.Tensor(np.array(["a", "b"]))
    tensor.str_data = ["c"]


class OnDevice:
    """An array on a GPU."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0

    def __dlpack__(self) -> object:
        raise AssertionError("its memory is not to be asked for")


class Complex:
    """An array of 32-bit complex numbers, which NumPy lacks."""

    array = np.zeros(2, np.uint32)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __dlpack__(self, **how: object) -> object:
        if how:
            raise BufferError
        capsule = self.array.__dlpack__()
        get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
        get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
        ctypes.c_uint8.from_address(get_pointer(capsule, b"dltensor") + 20).value = 5
        return capsule


def of_port(array: np.ndarray, element: str = "f32") -> str:
    port = opset1.parameter([2], element).output(0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ir.Tensor(port, array)
    return "\n".join(str(warning.message) for warning in caught)


def assigned(element: str, values: object) -> None:
    tensor = ir.Tensor(getattr(ir.Type, element), [2])
    tensor.elements = values


def array_of_another_type_for_a_port() -> str:
    return of_port(np.ones(2, np.int32))


def array_of_bits_for_a_port() -> str:
    return of_port(np.ones(2, np.float16), "bf16")


def array_of_another_size_for_a_port() -> str:
    return of_port(np.ones(3, np.float32))


REFUSALS = [
    array_of_another_type_for_a_port,
    array_of_bits_for_a_port,
    array_of_another_size_for_a_port,
    Call("tensor of another type", lambda: ir.Tensor(X).copy_from(ir.Tensor(np.ones(2)))),
    Call("codes or packed bytes", lambda: ir.Tensor(ir.Type.u1, [8]).copy_from(np.ones(8, np.uint8))),
    Call("elements of another shape", lambda: assigned("u4", [1])),
    Call("elements that do not fit", lambda: assigned("i4", [1, 9])),
    Call("strides of packed elements", lambda: ir.Tensor(ir.Type.u4, [2]).strides),
    Call("memory with gaps", lambda: ir.Tensor(X[:, ::2], [4])),
    Call("array on a GPU", lambda: ir.Tensor(OnDevice())),
    Call("array of a type that is not in the IR", lambda: ir.Tensor(Complex())),
    Call("region beyond a tensor", lambda: ir.Tensor(ir.Tensor(X), [0, 0], [1, 9])),
    Call("fewer strings", renamed),
    Call("shape beyond an array", lambda: ir.Tensor(X, shared_memory=True).set_shape([9, 9])),
    Call("nothing to make a tensor of", lambda: ir.Tensor(shape=[2]), (TypeError,)),
    Call("type that is not known", lambda: ir.Tensor(ir.Type.dynamic, [2])),
    Call("Python objects", lambda: ir.Tensor(np.array([None, 1]))),
    Call("array of too few elements", lambda: ir.Tensor(X, [3, 3])),
    Call("array of too few bytes", lambda: ir.Tensor(X, [2, 3], ir.Type.i64)),
    Call("stride below 0", lambda: ir.Strides([-1]), (TypeError,)),
    Call("axis below 0", lambda: ir.AxisSet([-1]), (TypeError,)),
    Call("fractions to pack", lambda: helpers.pack_data(np.array([1.5]), ir.Type.u4)),
    Call("bytes to unpack", lambda: helpers.unpack_data(np.zeros(1, np.uint8), ir.Type.u4, [3])),
    Call("type that is not packed", lambda: helpers.pack_data(X, ir.Type.f32)),
]
