"""Variations of the first samples: more element types, mixed types, and NaN."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from itertools import cycle
from pathlib import Path

import numpy as np
from harness.sample import Sample

from ir_runtime.ir.element import ElementType
from ir_runtime.ir.signature import Input
from ir_runtime.ir.tensor import Array

TYPES = tuple(map(ElementType.parse, ("f64", "f32", "f16", "bf16", "i64", "i32", "i8", "u8", "boolean")))

# What is left out, and why.
LEFT_OUT = {
    "NaN has no place in an order; where OpenVINO's sort puts it depends on what is around it": {
        *((name, "NaN") for name in ("TopK-1", "TopK-3", "TopK-11", "Unique-10")),
        *((name, "NaN") for name in ("Proposal-1", "Proposal-4", "GenerateProposals-9")),
        ("ExperimentalDetectronGenerateProposalsSingleImage-6", "NaN"),
    },
    "what a coordinate of NaN is clipped to depends on the order of arguments of C++'s max": {
        ("ExperimentalDetectronDetectionOutput-6", "NaN"),
    },
    "the reference has none of this type; the plugin goes through f32, and rounds and saturates": {
        *((name, "u8") for name in ("Cos-1", "Cosh-1", "Log-1", "Sin-1", "Sinh-1", "Tan-1")),
        *(("Log-1", "i8"), ("Sin-1", "i8"), ("GroupConvolution-1", "u8")),
    },
    "OpenVINO infers it, but has neither a reference nor a kernel of this type": {
        ("MatrixNms-8", "bf16"),
        *((f"NonMaxSuppression-{version}", "f64") for version in (1, 3, 4)),
        *(("Negative-1", "u8"), ("GatherTree-1", "bf16"), ("GatherTree-1", "i8"), ("GatherTree-1", "u8")),
        *((name, type) for name in ("OneHot-1", "OneHot-16") for type in ("i8", "u8")),
    },
}
OUT = {pair for pairs in LEFT_OUT.values() for pair in pairs}

# Operations that go through the first axis of their first input entry by entry.
# Not pooling, of which OpenVINO refuses an empty batch, nor Unique, which then writes where it must not.
BY_BATCH = {
    *("BatchToSpace-2", "SpaceToBatch-2", "DepthToSpace-1", "SpaceToDepth-1", "ExtractImagePatches-3"),
    *("LRN-1", "TopK-1", "TopK-3", "TopK-11"),
}


MIXES = (("f16", "f32"), ("f32", "f16"), ("bf16", "f32"))
MIXES_OF_SEVERAL = (*MIXES, ("f16", "f32", "f16"), ("f32", "f16", "bf16"))
"""The type of the data, and those of the inputs that may have others, in turn."""
# Of which the plugin has no kernel for bf16 beside another type, reads it as f16, or crashes.
WITHOUT_BF16 = {"FakeQuantize-1", "GroupNormalization-12", "GRUCell-3"}


def others() -> dict[str, list[Sample]]:
    """Return the samples of the other files, by versioned name."""
    found: dict[str, list[Sample]] = {}
    for file in sorted(Path(__file__).parent.glob("[a-z]*.py")):
        if file.stem != Path(__file__).stem:
            for sample in import_module(f"samples.{file.stem}").SAMPLES:
                found.setdefault(sample.op, []).append(sample)
    return found


def element(array: Array) -> ElementType:
    return ElementType.from_dtype(array.dtype)


def has_nan(sample: Sample) -> bool:
    return any(element(x).real and np.isnan(x.astype(np.float64)).any() for x in sample.inputs)


def of_type(sample: Sample, wanted: ElementType) -> Sample:
    """Return the sample with its first input, and those sharing its type variable, in another type."""
    ports = [sample.cls.port_of(i) for i in range(len(sample.inputs))]
    first = ports[0].element.name if ports[0] else ""
    inputs = (
        cast(x, wanted) if port and port.element.name == first and port.element.shared else x
        for x, port in zip(sample.inputs, ports, strict=True)
    )
    # The plugin computes f64 in f32, and of these there is no reference.
    in_f32 = wanted is ElementType.f64 and sample.op.startswith(("Embedding", "GenerateProposals"))
    rtol = 1e-6 if in_f32 else sample.rtol
    return replace(sample, inputs=tuple(inputs), rtol=rtol)


def cast(array: Array, wanted: ElementType) -> Array:
    """Return values representable in the type, in that type."""
    least = 0 if wanted.label.startswith("u") else -100
    return np.asarray(np.nan_to_num(array, nan=0).clip(least, 100)).astype(wanted.dtype)


def is_mixable(sample: Sample) -> bool:
    """Return whether the inputs that may be mixed are all f32, and stay finite in 16 bits."""
    ports = [sample.cls.port_of(i) for i in range(len(sample.inputs))]
    if not any(port and port.mixed for port in ports):
        return False
    mixable = [x for x, port in zip(sample.inputs, ports, strict=True) if port and shares_mixed(sample, port)]
    return all(x.dtype == np.float32 and x.size and (abs(x) < 1e4).all() for x in mixable)


def shares_mixed(sample: Sample, port: Input) -> bool:
    return port.element in {p.element for p in sample.cls.inputs if p.mixed}


def mixed(sample: Sample, data: str, others: Sequence[str]) -> Sample:
    """Return variants with mixed types: ``data`` if the first input determines the type, ``others`` in turn if OpenVINO accepts any."""
    of_data, of_others = ElementType.parse(data).dtype, cycle(ElementType.parse(t).dtype for t in others)
    ports = [sample.cls.port_of(i) for i in range(len(sample.inputs))]
    inputs = (
        x
        if not (port and shares_mixed(sample, port))
        else x.astype(next(of_others) if port.mixed else of_data)
        for x, port in zip(sample.inputs, ports, strict=True)
    )
    # The reference refuses most of these; the plugin computes all of them in f32.
    return replace(sample, inputs=tuple(inputs), oracle="plugin", rtol=None, atol=None)


def with_nan(sample: Sample) -> Sample:
    """Return the sample with a NaN in the middle of the first input."""
    first = sample.inputs[0].copy()
    first.flat[first.size // 2] = np.nan
    return replace(sample, inputs=(first, *sample.inputs[1:]))


def emptied(sample: Sample) -> Sample:
    """Return the sample with an empty batch."""
    return replace(sample, inputs=(sample.inputs[0][:0], *sample.inputs[1:]))


def vary(op: str, samples: list[Sample]) -> Iterator[Sample]:
    agreed = [s for s in samples if s.oracle != "none" and s.inputs and s.inputs[0].size]
    if not agreed:
        return
    port = agreed[0].cls.port_of(0)
    assert port is not None
    seen = {element(s.inputs[0]) for s in samples if s.inputs}
    for wanted in TYPES:
        if wanted in port.element.allowed and wanted not in seen and (op, wanted.label) not in OUT:
            yield of_type(agreed[0], wanted)
    if mixable := [s for s in agreed if is_mixable(s)]:
        # The plugin takes cells with other functions apart, and then refuses the parts.
        usual = mixable[0].attributes.get("activations")
        like_first = [s for s in mixable if s.attributes.get("activations") == usual]
        largest = max(like_first, key=lambda s: (len(s.inputs), sum(x.size for x in s.inputs)))
        several = sum(port.mixed for port in largest.cls.inputs) > 1
        for data, *types in MIXES_OF_SEVERAL if several else MIXES:
            if op not in WITHOUT_BF16 or "bf16" not in (data, *types):
                yield mixed(largest, data, types)
    real = [s for s in agreed if element(s.inputs[0]).real and s.inputs[0].size > 1]
    if real and not any(map(has_nan, samples)) and (op, "NaN") not in OUT:
        yield with_nan(real[0])
    if op in BY_BATCH and not any(0 in x.shape for s in samples for x in s.inputs):
        yield emptied(next(s for s in agreed if s.inputs[0].ndim > 1))


SAMPLES = [sample for op, samples in others().items() for sample in vary(op, samples)]
