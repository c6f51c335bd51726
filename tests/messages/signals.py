"""Messages for invalid Fourier transforms."""

from __future__ import annotations

from typing import Any

from harness.refusals import Refusal, refusal


def framed(name: str, *inputs: Any) -> Refusal:
    return refusal(name, "STFT-15", *inputs, transpose_frames=False)


def joined(name: str, *inputs: Any) -> Refusal:
    return refusal(name, "ISTFT-16", *inputs, center=False, normalized=False)


REFUSALS = [
    refusal("no axis besides the parts", "DFT-7", "f32 2", [0]),
    refusal("no pairs", "DFT-7", "f32 4,3", [0]),
    refusal("real scalar", "RDFT-9", "f32", "i64 0"),
    refusal("axis of the parts", "DFT-7", "f32 4,2", [1]),
    refusal("axis named twice", "DFT-7", "f32 4,5,2", [1, -1]),
    refusal("more axes than there are", "DFT-7", "f32 4,5,2", "i64 3"),
    refusal("more axes than real ones", "RDFT-9", "f32 4,5", "i64 3"),
    refusal("axes that are no list", "DFT-7", "f32 4,2", 0),
    refusal("sizes that are no list", "DFT-7", "f32 4,2", [0], 4),
    refusal("as many sizes as axes", "DFT-7", "f32 4,5,2", [0, 1], [4]),
    refusal("size below -1", "IDFT-7", "f32 4,2", [0], [-2]),
    refusal("no axes of real data", "RDFT-9", "f32 4", "i64 0"),
    refusal("no axes to real data", "IRDFT-9", "f32 4,2", "i64 0"),
    framed("signal shorter than a frame", "f32 10", "f32 7", 11, 3),
    framed("window longer than a frame", "f32 56", "f32 12", 11, 3),
    framed("empty window", "f32 56", "f32 0", "i64", 3),
    framed("rank of the window", "f32 56", "f32 1,7", 11, 3),
    framed("frames of 0", "f32 56", "f32 7", 0, 3),
    framed("step below 0", "f32 56", "f32 7", 11, -3),
    framed("frame_size that is no scalar", "f32 56", "f32 7", [11], 3),
    framed("rank of the signal", "f32 1,3,56", "f32 7", 11, 3),
    joined("rank of the frames", "f32 16,2", "f32 7", 11, 3),
    joined("frames without pairs", "f32 6,16,3", "f32 7", 11, 3),
    joined("no frames", "f32 6,0,2", "f32 7", 11, 3),
    joined("frequencies", "f32 5,16,2", "f32 7", 11, 3),
    joined("frames before frequencies", "f32 16,6,2", "f32 7", 11, 3),
    joined("signal_length below 0", "f32 6,16,2", "f32 7", 11, 3, -1),
    joined("several lengths", "f32 6,16,2", "f32 7", 11, 3, [1, 2]),
]
