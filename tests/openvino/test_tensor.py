"""``Tensor`` on both packages, and its exchange with NumPy and DLPack."""

from __future__ import annotations

import copy
import ctypes
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from harness.dropin import assert_same, evaluate
from harness.nets import Net

import ir_runtime as ir
from ir_runtime import opset1

EXPRESSIONS = """
T(a) ; T(a).data ; T(array=a) ; T([1,2,3]) ; T([1.5,2]) ; T([[1,2],[3,4]]) ; T([True]) ; T(["a","b"]) ; T([]) ; T(np.array(3))
np.shares_memory(T(a, True).data, a) ; np.shares_memory(T(a, shared_memory=True).data, a) ; np.shares_memory(T(a).data, a)
T(Y.f32, S([2,3])).shape ; T(Y.f32, [2,3]).shape ; T(Y.i64, (2,)).element_type ; T(Y.f32, S()).shape ; T(Y.f32, [0]).shape
T(type=Y.f32, shape=[1]).shape ; T(np.float32, [2]).element_type ; T(np.dtype("int8"), [2]).element_type
T(float, [2]).element_type ; T(int,[2]).element_type ; T(Y.string, [2]) ; T(Y.u4,[3]).byte_size ; T(Y.u4,[3]).size
T(Y.bf16,[2]).byte_size ; T(Y.dynamic,[1]) ; T(Y.f32, [-1]) ; T(Y.string,[2]).str_data
T(a, S([3,2])) ; T(a, [3,2]).data ; T(a, [6], Y.f32).data ; T(a, [2,3], Y.i32).data.dtype ; T(a,[5])
np.shares_memory(T(a,[3,2]).data, a) ; np.shares_memory(T(a,[3,2],Y.i32).data, a) ; T(a,[3,2],Y.dynamic).element_type
T(np.zeros(2,np.uint8),[4],Y.u4) ; T(np.zeros(2,np.uint8),S([3]),Y.u4).size ; T(np.zeros(4,np.uint8),[2],Y.f16).data
T(np.float16([1,2]),[2],Y.bf16) ; T(a.T).data.shape ; T(a[:, ::2]).data ; T(a.astype(complex)) ; T(a.astype(object))
T(np.array(["a","bc"])) ; T(np.array([b"a"])) ; T(a.astype(">f4")) ; T(np.array([True])).element_type
T(np.arange(3,dtype=np.uint16)).element_type ; T(np.zeros((2,0),np.float32)).shape ; T(shape=[2])
T(T(a),[0,0],[1,2]).data ; T(T(a),[1,1],[2,3]).data ; T(T(a),[0,1],[2,3]).strides ; T(T(a),[0,1],[2,3]).is_continuous()
T(T(a),[0],[1]) ; T(T(a),[0,0],[5,5]) ; T(T(a),C([0,0]),C([1,2])).data ; T(T(a),[1,1],[1,2]) ; written(T(a)).data
T(a).shape ; T(a).get_shape() ; T(a).size ; T(a).get_size() ; T(a).byte_size ; T(a).get_byte_size() ; T(a).strides
T(a).get_strides() ; list(T(a).strides) ; T(a).strides==(12,4) ; T(a).is_continuous() ; T(a).element_type
T(a).get_element_type() ; repr(T(a)) ; str(T(a)) ; type(T(a).shape).__name__ ; type(T(a).strides).__name__
shaped(T(a),[3,2]).data ; shaped(T(a),S([6])).shape ; shaped(T(a),(7,7)).shape ; shaped(T(a),[1,2]).data
shaped(shaped(T(a),[1,2]),[2,3]).data ; shaped(T(a,True),[4,4]).shape ; shaped(T(a,True),[2,2]).data ; shaped(T(a),[]).shape
copied(T(Y.f32,[2,3]),T(a)).data ; copied(T(Y.f32,[6]),T(a)).shape ; copied(T(Y.i32,[2,3]),T(a)) ; given(T(a),T(Y.f32,[2,3])).data
given(T(a),T(Y.f32,[7])).shape ; given(T(a),T(Y.i32,[2,3])) ; copied(T(Y.string,[1]),T(["x"])).str_data
T(["a","bcd"]).str_data ; T(["a","bcd"]).bytes_data ; T(a).str_data ; T(["a","b"]).byte_size ; T(["a"]).strides
put(T(["a","b"]),"str_data",["xx","y"]).str_data ; put(T(["a","b"]),"bytes_data",[b"xx",b"y"]).str_data
put(T(["a","b"]),"str_data",np.array(["q","w"])).bytes_data ; put(T(["a","b"]),"str_data",["q"])
put(T(["a","b"]),"bytes_data",["q","z"]).str_data ; put(T(a),"str_data",["q"]) ; put(T(a),"data",a)
copy.copy(T(a)).data ; shared(copy.copy) ; shared(copy.deepcopy) ; len(T(a)) ; T(a)[0] ; T(a).data.flags.writeable
T(Y.u4,[3]).data.dtype ; T(Y.i4,[3]).data.dtype ; T(Y.u1,[9]).data.shape ; T(Y.u3,[2,3]).data.shape ; T(Y.u6,[]).data.shape
T(Y.u4,[3]).strides ; T(Y.i4,[3]).get_strides() ; T(Y.nf4,[3]).is_continuous() ; T(T(Y.u4,[4]),[0],[2]) ; T(T(Y.u1,[8]),[0],[8])
T(np.uint8([1,2]),[4],Y.u4).data ; T(np.int8([1,-2]),[4],Y.i4).data ; T(np.arange(2,dtype=np.uint64),[32],Y.u4).data
np.shares_memory(T(bytes_,[4],Y.u4).data, bytes_) ; shaped(T(bytes_,[4],Y.u4),[3]).data ; shaped(T(bytes_,[4],Y.u4),[9])
ones(T(Y.u4,[5])).data ; ones(T(Y.u2,[5])).data ; ones(T(Y.nf4,[2,2])).data ; ones(T(Y.f4e2m1,[2,2])).data ; ones(T(Y.u6,[5])).data
given(ones(T(Y.u4,[4])),T(Y.u4,[9])).data ; given(ones(T(Y.u4,[4])),T(Y.i4,[4])) ; copied(T(Y.u1,[8]),np.uint8([1]))
T(np.float16([1,2]),[2],Y.bf16).data ; ones(T(Y.bf16,[2])).data ; ones(T(Y.f8e4m3,[2])).data.dtype ; ones(T(Y.f8e8m0,[2])).data.dtype
T(np.arange(4,dtype=np.float32)[::2],[2],Y.f32)
C4.data ; C4.get_data() ; C4.get_data(dtype=np.float32) ; C4.get_data(dtype=np.uint8) ; C4.get_data(copy=True).flags.writeable ; C4.get_strides()
C4.data.flags.writeable ; C4.get_byte_size() ; C4.get_value_strings() ; C4.get_tensor_view().data ; C4.get_vector() ; NF.get_data(dtype=np.float32)
NF.data ; NF.get_data(dtype=np.int32) ; BF.data ; BF.get_data(dtype=np.float32) ; BF.get_data(dtype=np.float16)
V.Strides([1,2]) ; str(V.Strides([1,2])) ; V.Strides([1,2])==[1,2] ; V.Strides([1,2])==(1,2) ; V.Strides([1,2])[1]
V.Strides([1,2])==V.Strides([1,2]) ; list(V.Strides([1,2])) ; len(V.Strides([1,2])) ; V.Strides([-1]) ; V.Strides(3)
V.Strides() ; V.Strides("1,2") ; V.Strides(V.Strides([1])) ; V.Strides(np.array([1,2])) ; hash(V.Strides([1]))
V.CoordinateDiff([1,2]) ; str(V.CoordinateDiff([1,2])) ; V.CoordinateDiff([1,2])[1] ; list(V.CoordinateDiff([1,2]))
V.Coordinate([1,2])[1] ; list(V.Coordinate([1,2])) ; V.Coordinate([-1]) ; len(V.Coordinate([1]))
V.AxisVector([1,2]) ; str(V.AxisVector([1,2])) ; list(V.AxisVector([2,1,2])) ; V.AxisVector([-1]) ; V.AxisVector([1,2])[1]
repr(V.AxisSet({2,1})) ; repr(V.AxisSet([2,1,2])) ; str(V.AxisSet([1,2])) ; list(V.AxisSet([2,1,2])) ; len(V.AxisSet([2,1,2]))
2 in V.AxisSet([1,2]) ; repr(V.AxisSet(V.AxisSet([1]))) ; repr(V.AxisSet(np.array([1]))) ; V.AxisSet({-1}) ; V.AxisSet()
"""


def names(package: str) -> dict[str, Any]:
    api = pytest.importorskip(package)

    def written(tensor: Any) -> Any:
        api.Tensor(tensor, [0, 1], [2, 3]).data[:] = 9
        return tensor

    def shaped(tensor: Any, shape: Any) -> Any:
        if len(shape) == 2:
            tensor.shape = shape
        else:
            tensor.set_shape(shape)
        return tensor

    def copied(tensor: Any, source: Any) -> Any:
        tensor.copy_from(source)
        return tensor

    def given(tensor: Any, target: Any) -> Any:
        tensor.copy_to(target)
        return target

    def put(tensor: Any, name: str, value: Any) -> Any:
        setattr(tensor, name, value)
        return tensor

    def shared(how: Any) -> bool:
        tensor = api.Tensor(np.ones(2, np.float32))
        how(tensor).data[:] = 7
        return bool(tensor.data[0] == 7)

    def ones(tensor: Any) -> Any:
        tensor.data[:] = 1
        return tensor

    kinds = (("u4", [[1, 2, 15]]), ("nf4", [[3, 7]]), ("bf16", [1.5, -2]))
    nibbles, codes, halves = (
        api.op.Constant(getattr(api.Type, kind), api.Shape(np.shape(numbers)), np.ravel(numbers).tolist())
        for kind, numbers in kinds
    )
    constants = {"C4": nibbles, "NF": codes, "BF": halves, "bytes_": np.array([33, 67], np.uint8)}
    short = constants | {
        "T": api.Tensor,
        "Y": api.Type,
        "S": api.Shape,
        "C": api.Coordinate,
        "V": api,
        "copy": copy,
    }
    return short | {each.__name__: each for each in (written, shaped, copied, given, put, shared, ones)}  # type: ignore[attr-defined]


@pytest.mark.parametrize("line", EXPRESSIONS.strip().splitlines(), ids=lambda line: line[:30])
def test_expressions(line: str) -> None:
    for expression in line.split(" ; "):
        ours, theirs = (
            evaluate(expression, package, a=np.arange(6, dtype=np.float32).reshape(2, 3), **names(package))
            for package in ("ir_runtime", "openvino")
        )
        assert_same(ours, theirs)


@pytest.mark.filterwarnings("ignore:Data of string type will be copied")
def test_the_data_of_strings_are_bytes() -> None:
    for package in ("ir_runtime", "openvino"):
        assert pytest.importorskip(package).Tensor(["a", "é"]).data.tolist() == [b"a", "é".encode()]


def ports(package: str) -> list[Any]:
    """Inputs of shapes [2,3] and [?,3], of a model and of a compiled model."""
    net = Net()
    x, y = net.parameter("x", "2,3", out="FP32 2 3"), net.parameter("y", "?,3", out="FP32 -1 3")
    net.result(x, "r")
    net.result(y, "q")
    api = pytest.importorskip(package)
    model = api.Core().read_model(net.xml())
    return [model.input(0), *api.Core().compile_model(model, "CPU").inputs]


def test_tensors_of_ports() -> None:
    given = np.arange(6, dtype=np.float32).reshape(2, 3)
    for package in ("ir_runtime", "openvino"):
        api = pytest.importorskip(package)
        for port in ports(package)[:2]:
            assert api.Tensor(port).shape == [2, 3]
            made = api.Tensor(port, given.reshape(3, 2))
            assert made.shape == [2, 3]
            assert np.shares_memory(made.data, given)
            with pytest.raises(RuntimeError):
                api.Tensor(port, given[:1])
    assert ir.Tensor(port=ports("ir_runtime")[0], array=given).shape == [2, 3]


def test_arrays_for_ports_of_another_size_or_type() -> None:
    for package in ("ir_runtime", "openvino"):
        api = pytest.importorskip(package)
        fixed, _, open_port = ports(package)
        with pytest.warns(RuntimeWarning):
            assert api.Tensor(fixed, np.ones((4, 4), np.float32)).shape == [2, 3]
        with pytest.raises(RuntimeError):
            api.Tensor(fixed, np.ones((2, 6), np.float32)[:, ::2])
        with pytest.warns(RuntimeWarning):
            assert api.Tensor(fixed, np.ones((2, 3), np.float64)).element_type == api.Type.f32
        assert api.Tensor(open_port).shape == [0]
    with pytest.warns(RuntimeWarning, match="an array of int32 is cast to f32"):
        cast = ir.Tensor(ports("ir_runtime")[0], np.arange(6, dtype=np.int32))
    assert cast.data.tolist() == [[0, 1, 2], [3, 4, 5]]  # OpenVINO takes the bytes for numbers of f32
    with pytest.warns(
        RuntimeWarning, match=r"a port of shape \[\.\.\.,3\] takes 0 elements|takes 0 elements"
    ):
        assert ir.Tensor(ports("ir_runtime")[2], np.ones((1, 3), np.float32)).shape == [0]


@pytest.mark.parametrize(
    ("element", "values"), [("u4", [[16]]), ("i4", [[-9]]), ("u1", [[2]]), ("nf4", [[16]]), ("u4", [1])]
)
def test_elements_that_do_not_fit_are_refused(element: str, values: list[Any]) -> None:
    tensor = ir.Tensor(getattr(ir.Type, element), [1, 1])
    with pytest.raises(ir.InputError):
        tensor.elements = values
    assert tensor.elements.tolist() == [[0]]


def test_elements_of_packed_types_cannot_be_written_to() -> None:
    with pytest.raises(ValueError, match="read-only"):
        ir.Tensor(ir.Type.u4, [2]).elements[:] = 1


def test_arrays_of_codes_are_not_taken_for_packed_bytes() -> None:
    with pytest.raises(ir.InputError, match=r"assign tensor\.elements"):
        ir.Tensor(ir.Type.u1, [8]).copy_from(np.ones(8, np.uint8))


@pytest.mark.parametrize("element", ["u1", "u3", "u4", "i4", "nf4", "f4e2m1"])
def test_packed_inputs_and_outputs_of_requests_are_the_caller_s(element: str) -> None:
    kind = getattr(ir.Type, element)
    x = opset1.parameter([5], kind, name="x")
    request = ir.compile_model(ir.Model([opset1.reshape(x, [5], special_zero=False)], [x]))
    run = request.create_infer_request()
    given, taken = ir.Tensor(kind, [5]), ir.Tensor(kind, [5])
    run.set_input_tensor(given)
    run.set_output_tensor(taken)
    for bits in (0, 0xA5):
        given.data.view(np.uint8)[:] = bits
        run.infer()
        assert taken.elements.tobytes() == given.elements.tobytes()


class Foreign:
    """An array of another library that only supports DLPack."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **how: Any) -> Any:
        return self.array.__dlpack__(**how)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


def relu(element: str = "f32") -> ir.CompiledModel:
    net = Net()
    says = {"f32": "FP32", "bf16": "BF16"}[element]
    x = net.parameter("x", "2,3", element, out=f"{says} 2 3")
    net.result(net.op("ReLU", x, out=f"{says} 2 3"))
    return ir.compile_model(ir.read_model(net.xml()))


def test_dlpack_goes_in_without_a_copy() -> None:
    array = np.float32([[-1, 2, -3], [4, -5, 6]])
    assert np.shares_memory(ir.Tensor(Foreign(array), shared_memory=True).data, array)
    assert not np.shares_memory(ir.Tensor(Foreign(array)).data, array)
    model = relu()
    for given in (Foreign(array), [Foreign(array)], {"x": Foreign(array)}):
        np.testing.assert_array_equal(model(given)[0], array.clip(0))
    request = model.create_infer_request()
    request.set_input_tensor(ir.Tensor(Foreign(array), shared_memory=True))
    array[:] = 5
    np.testing.assert_array_equal(request.infer()[0], array)
    target = ir.Tensor(ir.Type.f32, [2, 3])
    target.copy_from(Foreign(array))
    np.testing.assert_array_equal(target.data, array)


def test_tensors_and_results_go_out_without_a_copy() -> None:
    tensor = ir.Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    assert np.shares_memory(np.from_dlpack(tensor), tensor.data)
    assert np.shares_memory(np.asarray(tensor), tensor.data)
    assert not np.shares_memory(np.array(tensor), tensor.data)
    assert np.asarray(tensor, np.float64).dtype == np.float64
    assert tensor.__array_interface__["data"] == tensor.data.__array_interface__["data"]
    assert tensor.__dlpack_device__() == (1, 0)
    result = relu()(tensor)[0]
    assert np.shares_memory(np.from_dlpack(result), result)


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.0.0", reason="NumPy 2 has the keyword copy")
def test_copying_as_numpy_2_has_it() -> None:
    tensor = ir.Tensor(np.ones(2, np.float32))
    assert np.shares_memory(np.asarray(tensor, copy=False), tensor.data)
    assert not np.shares_memory(np.asarray(tensor, copy=True), tensor.data)
    with pytest.raises(ValueError, match="copy"):
        np.asarray(tensor, np.float64, copy=False)


def test_torch_tensors_go_in_and_out_without_a_copy() -> None:
    torch = pytest.importorskip("torch")
    given = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    tensor = ir.Tensor(given, shared_memory=True)
    given[0, 0] = 9
    assert tensor.data[0, 0] == 9
    torch.from_dlpack(tensor)[1, 1] = 7
    assert given[1, 1] == 7
    np.testing.assert_array_equal(relu()([given])[0], given.numpy())
    narrow = given.to(torch.bfloat16)
    assert ir.Tensor(narrow, shared_memory=True).element_type == ir.Type.bf16
    assert relu("bf16")([narrow])[0].astype(np.float32).tolist() == narrow.float().tolist()


class Narrow(Foreign):
    """An array of a type that NumPy lacks, as in torch: its bits, and its DLPack type."""

    def __init__(self, array: np.ndarray, code: int) -> None:
        super().__init__(array)
        self.code = code

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise TypeError("Got unsupported ScalarType")

    def __dlpack__(self, **how: Any) -> Any:
        if how:
            raise BufferError("only the first version of DLPack")
        capsule = self.array.__dlpack__()
        get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
        get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
        ctypes.c_uint8.from_address(get_pointer(capsule, b"dltensor") + 20).value = self.code
        return capsule


@pytest.mark.parametrize(
    ("code", "dtype"), [(4, ml_dtypes.bfloat16), (10, ml_dtypes.float8_e4m3fn), (12, ml_dtypes.float8_e5m2)]
)
def test_types_that_numpy_lacks_come_by_dlpack(code: int, dtype: Any) -> None:
    array = np.array([[-1, 2, -3], [4, -5, 6]]).astype(dtype)
    bits = array.view(f"u{array.itemsize}")
    for given in (bits, bits[:, ::2], bits.T):
        found = ir.Tensor(Narrow(given, code), shared_memory=True).elements
        assert found.dtype == dtype
        assert np.shares_memory(found, bits)
        np.testing.assert_array_equal(found.view(given.dtype), given)
    assert ir.Tensor(Narrow(bits[:0], code)).shape == [0, 3]


def test_bf16_of_another_library_is_an_input() -> None:
    array = np.array([[-1, 2, -3], [4, -5, 6]]).astype(ml_dtypes.bfloat16)
    found = relu("bf16")([Narrow(array.view(np.uint16), 4)])[0]
    np.testing.assert_array_equal(found.astype(np.float32), array.astype(np.float32).clip(0))


def test_arrays_of_ml_dtypes_and_memory_maps_are_shared(tmp_path: Path) -> None:
    narrow = np.ones((2, 3), ml_dtypes.bfloat16)
    assert np.shares_memory(ir.Tensor(narrow, shared_memory=True).data, narrow)
    assert relu("bf16")(narrow)[0].dtype == ml_dtypes.bfloat16
    np.save(tmp_path / "x.npy", np.full((2, 3), 2, np.float32))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    tensor = ir.Tensor(mapped, shared_memory=True)
    assert np.shares_memory(tensor.data, mapped)
    for given in (mapped, tensor):
        assert relu()(given)[0].tolist() == [[2, 2, 2], [2, 2, 2]]


def test_a_tensor_given_to_a_request_is_read_when_it_runs() -> None:
    request, array = relu().create_infer_request(), np.ones((2, 3), np.float32)
    request.infer([array], share_inputs=True)
    array[:] = 4
    assert request.infer()[0].max() == 4
    request.infer([array.copy()])
    array[:] = 9
    assert request.infer()[0].max() == 4


def test_strings_of_a_request_are_kept() -> None:
    net = Net()
    net.result(net.parameter("x", "2", "string", out="STRING 2"))
    request = ir.compile_model(ir.read_model(net.xml())).create_infer_request()
    request.infer([np.array(["a", "é"])])
    assert request.infer()[0].tolist() == ["a", "é"]
    assert request.get_input_tensor().str_data.tolist() == ["a", "é"]


def test_numbers_are_packed_as_tensors_have_them() -> None:
    """OpenVINO's helpers pack 2 and 4 bits in another order than its tensors, which lose the last element of an odd number."""
    from ir_runtime import helpers

    for name in ("u1", "u2", "u3", "u4", "u6", "i4", "nf4"):
        element = getattr(ir.Type, name)
        low, high = (-8, 8) if name == "i4" else (0, 1 << element.bits)
        for count in (1, 2, 8, 13):
            numbers = np.random.default_rng(count).integers(low, high, count)
            packed = helpers.pack_data(numbers, element)
            assert packed.size == element.nbytes(count)
            assert helpers.unpack_data(packed, element, [count]).tolist() == numbers.tolist()
            tensor = ir.Tensor(packed, [count], element)
            assert tensor.elements.astype(np.int64).tolist() == numbers.tolist()
            assert tensor.data.view(np.uint8).tolist() == packed.tolist()
            tensor.elements = numbers[::-1]
            assert tensor.elements.astype(np.int64).tolist() == numbers[::-1].tolist()
    tensor = ir.Tensor(np.array([1, -2, 3], ml_dtypes.int4))
    assert helpers.unpack_data(tensor.data, tensor.element_type, tensor.shape).tolist() == [1, -2, 3]
