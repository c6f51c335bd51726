"""Every operation declares its FLOPs; for dynamic dims, the formula agrees with the number."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from harness.sample import Sample, all_samples, case

from ir_runtime.ir.formula import Formula
from ir_runtime.ir.operation import Lengths, Operands
from ir_runtime.ir.tensor import Array
from ir_runtime.ops import Op, registry

SAMPLES: dict[str, list[Sample]] = {}
for _sample in all_samples():
    SAMPLES.setdefault(_sample.op, []).append(_sample)
DECLARING = ("flops_per_element", "flops_per_input", "flops", "macs")


def operands(sample: Sample) -> Operands:
    values = sample.values()
    outputs = sample.layer().infer_types(*values)
    return Operands(
        tuple(value.shape.static for value in values),
        tuple(tuple(dim.min for dim in type.shape) for type in outputs),
        tuple(value.known() for value in values),
    )


def opened(found: Operands) -> tuple[Operands, dict[str, Any]]:
    """Replace dims other than 1 by symbols, equal ones by the same; return them with the values of the symbols."""
    lengths = {f"n{length}": length for tensor in (*found.inputs, *found.outputs) for length in tensor}

    def symbols(tensor: Lengths) -> Lengths:
        return tuple(1 if length == 1 else Formula.symbol(f"n{length}") for length in tensor)

    inputs, outputs = (tuple(map(symbols, tensors)) for tensors in (found.inputs, found.outputs))
    return replace(found, inputs=inputs, outputs=outputs), lengths


@pytest.mark.parametrize("cls", list(registry), ids=lambda cls: cls.versioned_name())
def test_every_operation_declares_its_arithmetic(cls: type[Op]) -> None:
    bases = cls.__mro__[: cls.__mro__.index(Op)]
    assert any(name in vars(base) for base in bases for name in DECLARING)


@pytest.mark.parametrize("op", SAMPLES)
def test_counts_are_numbers_and_formulas_agree_with_them(op: str) -> None:
    for sample in SAMPLES[op]:
        layer = sample.layer()
        if layer.bodies():
            continue  # tests of whole models count loops and branches
        known = operands(sample)
        formulas, lengths = opened(known)
        for count in (layer.flops, layer.macs):
            number = count(known)
            assert isinstance(number, int)
            assert number >= 0
            other = count(formulas)
            assert (other if isinstance(other, int) else other.at(lengths)) == number


MOVING = """
    Concat Split VariadicSplit Slice StridedSlice SliceScatter Pad Tile Broadcast Select Identity Eye OneHot Unique
    Reshape Squeeze Unsqueeze Transpose ShapeOf Reverse ReverseSequence Roll ShuffleChannels
    DepthToSpace SpaceToDepth BatchToSpace SpaceToBatch ExtractImagePatches ReorgYolo
    Gather GatherElements GatherND GatherTree ScatterUpdate SparseFillEmptyRows
    Convert ConvertLike ConvertPromoteTypes StringTensorPack StringTensorUnpack
"""


@pytest.mark.parametrize("name", MOVING.split())
def test_what_moves_data_computes_nothing(name: str) -> None:
    samples = [s for cls in registry.versions(name) for s in SAMPLES.get(cls.versioned_name(), ())]
    assert samples
    assert {sample.layer().flops(operands(sample)) for sample in samples} == {0}


def zeros(*shape: int) -> Array:
    return np.zeros(shape, np.float32)


CONV = {"strides": (1, 1), "pads_begin": (0, 0), "pads_end": (0, 0), "dilations": (1, 1)}
KNOWN = [
    (case("Convolution-1", zeros(2, 3, 8, 8), zeros(5, 3, 3, 3), **CONV), 2 * 5 * 36 * 27),
    (case("GroupConvolution-1", zeros(1, 4, 8, 8), zeros(4, 1, 1, 3, 3), **CONV), 4 * 36 * 9),
    (case("ConvolutionBackpropData-1", zeros(1, 3, 8, 8), zeros(3, 5, 3, 3), **CONV), 3 * 64 * 5 * 9),
    (case("MatMul-1", zeros(2, 3, 4), zeros(4, 5)), 2 * 3 * 4 * 5),
    (case("MatMul-1", zeros(4, 3), zeros(5, 4), transpose_a=True, transpose_b=True), 3 * 4 * 5),
    (case("MatMul-1", zeros(4), zeros(4)), 4),
    (case("Einsum-7", zeros(2, 3, 4), zeros(4, 5), equation="bij,jk->bik"), 2 * 3 * 4 * 5),
    (case("Einsum-7", zeros(2, 3, 4), zeros(2, 4, 5), equation="...ij,...jk->...ik"), 2 * 3 * 4 * 5),
    (
        case(
            "ScaledDotProductAttention-13",
            zeros(1, 2, 3, 4),
            zeros(1, 2, 5, 4),
            zeros(1, 2, 5, 6),
            causal=False,
        ),
        2 * 3 * 5 * (4 + 6),
    ),
]


@pytest.mark.parametrize(("sample", "macs"), KNOWN, ids=lambda value: str(value)[:40])
def test_known_numbers_of_multiplications(sample: Sample, macs: int) -> None:
    assert sample.layer().macs(operands(sample)) == macs
    assert sample.layer().flops(operands(sample)) >= 2 * macs
