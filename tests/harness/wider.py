"""Where OpenVINO infers more than we do, or accepts other shapes, and why: ``python tests/harness/wider.py``."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

import click

from harness.sample import all_samples
from ir_runtime.cli.render import table

AXES_WRITTEN = (
    "when it reads a model, OpenVINO adds the axes that are absent, as follows from the shapes of that time; "
    "they stay whatever shapes come later"
)

SAMPLES: Mapping[tuple[str, str], str] = {
    **{
        (
            f"GatherND-{version}",
            pattern,
        ): "axes of the batch may broadcast, says the page; OpenVINO takes them for equal"
        for version in (5, 8)
        for pattern in ("any length", "bounded", "any batch")
    },
    **{("Slice-8", pattern): AXES_WRITTEN for pattern in ("bounded", "any batch", "any last length")},
    ("RandomUniform-8", "bounded"): "OpenVINO takes the most lengths that a list can have for their number",
    ("Reshape-1", "any rank"): "of a tensor without elements, -1 is 0; OpenVINO says it is at least 1",
    ("Transpose-1", "any rank"): "an empty order reverses the axes; OpenVINO concludes that there are none",
}
"""Why inferred shapes may be wider, by operation and what was done to the shapes of its inputs."""

MODELS: Mapping[tuple[str, str], str] = {
    **{
        ("ScaledDotProductAttention", pattern): (
            "a mask of more axes than the query gives the result more axes; OpenVINO forgets it where its rank is unknown"
        )
        for pattern in ("any rank", "mixed")
    },
    **{
        ("TensorIterator", pattern): (
            "the body gives parts as long as the batch; OpenVINO believes part_size, which says 1"
        )
        for pattern in ("batch of 2", "batch of 3", "mixed")
    },
    **{
        ("Loop", pattern): "what goes round grows; OpenVINO takes it for what it is in the first iteration"
        for pattern in ("bounded", "batch of 2", "batch of 3", "mixed")
    },
    ("Reshape", "any rank"): SAMPLES["Reshape-1", "any rank"],
    **{
        ("Reshape", pattern): SAMPLES["Reshape-1", "any rank"]
        for pattern in ("any length", "any last length", "any batch", "bounded", "mixed")
    },
    **{
        ("Pad", pattern): (
            "pads up to a multiple of 7 are a remainder, which does not grow with the length; OpenVINO computes "
            "with the lengths at both ends alone"
        )
        for pattern in ("bounded", "mixed")
    },
}
"""The same for layers of whole models; layers behind them follow."""

PARTIAL: Mapping[str, str] = {
    **{
        f"NonMaxSuppression-{version}": "as many rows as boxes are left; OpenVINO infers a number of rows, "
        "which it takes for an upper bound itself when it compiles, and which is too low in versions 1 and 3"
        for version in (1, 3, 4)
    },
    **{
        f"GatherND-{version}": "axes of the batch may broadcast, says the page; OpenVINO takes them for equal"
        for version in (5, 8)
    },
    "Einsum-7": "lengths of 1 broadcast; OpenVINO, too, computes so, but leaves it out where a rank is not known",
    "RandomUniform-8": "OpenVINO draws numbers when it infers, and others when it runs",
    "ScaledDotProductAttention-13": "a key, value or mask of more axes than the query gives the result more axes, as "
    "OpenVINO infers when it is told their ranks; where it is not, it takes the query's",
    "ScatterElementsUpdate-12": "the axis may be another; OpenVINO computes with the numbers at both ends alone",
}
"""The same for samples whose inputs are known in part, by operation, where OpenVINO does not contradict itself."""

STRICTER: Mapping[str, str] = {
    "PReLU": "the slope does not fit the data",
    "GatherElements": "constant indices lie beyond the axis, when that is shorter",
    "GatherND": "constant indices lie beyond the axis, when that is shorter",
    "ScatterUpdate": "constant indices lie beyond the axis, when that is shorter",
    "ReverseSequence": "constant lengths are more than the axis has, when that is shorter",
    "PriorBox": "output_size is to hold two numbers",
    "PriorBoxClustered": "output_size is to hold two numbers",
    "ExperimentalDetectronGenerateProposalsSingleImage": "deltas are to be four for each score",
    "Interpolate": "there is to be a size for each axis",
    "MatMul": "columns and rows differ, whatever is chosen within the bounds",
    "SpaceToBatch": "there is to be a number for each axis",
    "Broadcast": "the data have more axes than the target, or axes_mapping names others",
    "VariadicSplit": "the parts are longer than the whole",
    "Pad": "there is to be a number for each axis",
    "ScatterNDUpdate": "updates are not of the shape that data and indices ask for",
    "ScatterElementsUpdate": "axis is to be one number",
    "FakeQuantize": "limits have more axes than the data",
    "LSTMCell": "OpenVINO stretches constant states to the batch when it reshapes; we leave constants alone",
    **{
        f"Reduce{kind}": "there are more axes to reduce than the data have"
        for kind in ("Sum", "Mean", "Prod", "Min", "Max", "L1", "L2", "LogicalAnd", "LogicalOr")
    },
    "Reshape": "OpenVINO makes a constant target of one number -1 when it reshapes; we leave constants alone",
    "STFT": "the frames are longer than the signal",
    "TopK": "there are fewer elements than k",
    **{
        f"Embedding{kind}": "constant indices lie outside the table"
        for kind in ("BagOffsets", "BagOffsetsSum", "BagPacked", "BagPackedSum", "SegmentsSum")
    },
    "If": "a condition is one boolean",
    "Loop": "an execution condition is one boolean",
    "ScaledDotProductAttention": "there are fewer keys than the mask has columns",
}
"""Operations that refuse shapes that OpenVINO lets pass, and fails on when it runs, but where it is said."""

LAXER: Mapping[str, str] = {
    "GatherND": "axes of the batch may broadcast, says the page",
    "read_value": "OpenVINO wants the shape of a variable to extend that of its first value, whose rank is open",
    "ReverseSequence": "a negative axis needs no rank before the model runs",
    "Slice": AXES_WRITTEN,
    "StridedSlice": AXES_WRITTEN.replace("axes", "strides"),
    "Reshape": "whether data without elements can be reshaped is known when it is known that there are none",
    "SparseFillEmptyRows": "OpenVINO looks for dims where the rank is not known",
}
"""Operations that accept shapes that OpenVINO refuses."""


def rows() -> Iterator[list[str]]:
    """What is listed: the kind, the operation, where, and the reason."""
    of_samples = {sample.op: sample.wider for sample in all_samples() if sample.wider}
    yield from (["wider", op, "as written", reason] for op, reason in of_samples.items())
    yield from (["wider", op, pattern, reason] for (op, pattern), reason in {**SAMPLES, **MODELS}.items())
    yield from (["wider", op, "known in part", reason] for op, reason in PARTIAL.items())
    yield from (["refuses more", op, "reshaped", reason] for op, reason in STRICTER.items())
    yield from (["refuses less", op, "reshaped", reason] for op, reason in LAXER.items())


if __name__ == "__main__":
    click.echo(table("Where OpenVINO infers otherwise", ("kind", "operation", "where", "reason"), rows()))
