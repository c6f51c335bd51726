"""Conversions between all element types, compared with OpenVINO."""

from __future__ import annotations

import numpy as np
import pytest
from harness.files import model_of
from harness.nets import Net
from harness.oracle import Ours, answer, read
from harness.sample import Sample
from samples.type import CODES, CORNERS, FEW_BITS, FLOATS, LARGE

from ir_runtime.ir.element import ElementType as E
from ir_runtime.ir.tensor import Array, Value
from ir_runtime.ops.conversion import NF4

NUMERIC = tuple(e for e in E if e not in (E.string, E.dynamic))

# Halfway between two numbers of a type, just beside, the largest and the smallest ones.
HALFWAY = (
    *(0.25, 1.25, 1.75, 3.5, 5, 7, 2.0**-10, 2.0**-10 * 1.01, 2.0**-17, 2.0**-127, 1e-40, -1e-40, 5e9, -3e9),
    *(447.9, 448, 464, 464.1, 480, 57344, 61439, 61440, 65519, 65520, -470, -65520, 1e30, -1e30, 3.4e38),
    *(
        -0.84,
        -0.85,
        0.0398,
        0.04,
        0.861,
        0.8615,
        -0.0455,
        -0.0456,
        240.5,
        2.0**-149,
        1 + 2.0**-9,
        1 + 2.0**-8,
    ),
)


def numbers(element: E) -> Array:
    """Return all values of a small type; of a large one, those that other types may not represent."""
    if element is E.boolean:
        return np.array([False, True])
    if element.bits <= 8:
        return np.arange(1 << element.bits, dtype=np.uint8).view(element.dtype)
    with np.errstate(all="ignore"):
        if element.real:
            return np.array(FLOATS + LARGE + HALFWAY).astype(element.dtype)
    limits = np.iinfo(element.dtype)
    return np.array([n for n in CORNERS if limits.min <= n <= limits.max], element.dtype)


def conversion(data: Array, source: E, target: E) -> Sample:
    return Sample("Convert-1", (data,), {"destination_type": target}, types={0: source})


def ours(data: Array, source: E, target: E) -> Array:
    net = Ours(*model_of(conversion(data, source, target)))
    assert list(net.report) == []
    (found,) = net.run([data])
    return found


def theirs(data: Array, source: E, target: E) -> Array:
    """Return OpenVINO's conversion; through f32 if neither its reference nor its plugin converts directly."""
    model = read(*model_of(conversion(data, source, target)))
    try:
        return answer(model, [data])[0]
    except RuntimeError:
        assert E.f32 not in (source, target)
        return theirs(theirs(data, source, E.f32), E.f32, target)


def bits(array: Array) -> Array:
    """Return a comparable form in which signed zeros differ and all NaNs are equal."""
    if array.dtype.kind not in "biu":
        with np.errstate(all="ignore"):
            array = array.astype(np.float64)
        return np.where(np.isnan(array), np.uint64(1), array.view(np.uint64))
    return array


@pytest.mark.parametrize("source", NUMERIC, ids=str)
def test_as_openvino_converts(source: E) -> None:
    for target in NUMERIC:
        data = numbers(source)
        if target is E.u32 and source.real and not source.is_encoded:
            # Where u32 has no such number, the reference's answer depends on the length of the tensor.
            wide = data.astype(np.float64)
            data = data[(wide > -(2.0**31)) & (wide < 2.0**32)]
        found, wanted = ours(data, source, target), theirs(data, source, target)
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        if target is E.bf16 and source is not E.bf16:
            assert_bf16(found, wanted, data, source)
        else:
            np.testing.assert_array_equal(
                bits(found), bits(wanted), err_msg=f"{source.label} to {target.label}"
            )


def test_numbers_halfway_between_those_of_nf4() -> None:
    """Midpoints and their two f32 neighbours; which one rounds up follows OpenVINO's literals."""
    middle = (NF4[1:] + NF4[:-1]) / 2
    below, above = (np.nextafter(middle, np.float32(side)) for side in (-2, 2))
    data = np.concatenate(
        [middle, below, above, np.nextafter(below, np.float32(-2)), np.nextafter(above, np.float32(2))]
    )
    np.testing.assert_array_equal(ours(data, E.f32, E.nf4), theirs(data, E.f32, E.nf4))


def assert_bf16(found: Array, wanted: Array, data: Array, source: E) -> None:
    """Compare bf16: OpenVINO's reference rounds down whenever the truncated mantissa is even; we round to nearest, as its plugin does."""
    with np.errstate(all="ignore"):
        exact = data if source is E.f64 else theirs(data, source, E.f64)
        f, w = found.astype(np.float64), wanted.astype(np.float64)
        same = (f == w) | (np.isnan(f) & np.isnan(w))
        assert np.all(same | (abs(f - exact) < abs(w - exact)))


@pytest.mark.parametrize("source", FEW_BITS + CODES, ids=str)
def test_constants_fold_to_the_same(source: E) -> None:
    """Running, folding and inference decode sub-byte types alike."""
    data = np.tile(numbers(source), 4096 // (1 << source.bits) + 1)
    assert data.size > 4096
    sample = conversion(data, source, E.f32)
    run = ours(data, source, E.f32)
    net = Ours(*model_of(sample, constant=[0]))
    np.testing.assert_array_equal(bits(run), bits(sample.evaluate()[0]))
    for backend in ("reference", "numpy"):
        np.testing.assert_array_equal(bits(net.run([], backend)[0]), bits(run))
    (inferred,) = sample.layer().infer_values(Value.constant(numbers(source), source))
    np.testing.assert_array_equal(bits(inferred.data), bits(run[: 1 << source.bits]))


@pytest.mark.parametrize("backend", ["reference", "numpy"])
@pytest.mark.parametrize("source", [E.nf4, E.u1, E.i4, E.f4e2m1], ids=str)
def test_codes_that_other_operations_move(source: E, backend: str) -> None:
    """The operand of a Convert need not be a model input: its type is the inferred one."""
    data = numbers(source)
    net = Net()
    x = net.parameter("x", "?", source.label, out=f"{source.label} -1")
    column = net.op("Reshape", x, net.constant([-1, 1]), out=f"{source.label} -1 1", special_zero=False)
    few = net.op(
        "Gather", column, net.constant([1, 0]), net.constant(0), out=f"{source.label} 2 1", version="opset8"
    )
    net.result(net.op("Convert", few, out="f32 2 1", destination_type="f32"))
    model = Ours(net.xml(), net.weights)
    assert list(model.report) == []
    (found,) = model.run([data], backend)
    assert found.tolist() == theirs(data, source, E.f32)[[1, 0], None].tolist()
