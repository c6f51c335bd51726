"""Short-time Fourier transforms (STFT and ISTFT) of frames of a signal, which may overlap."""

from __future__ import annotations

import numpy as np

from ...errors import InferenceError
from ...ir.dimension import Dimension, Interval
from ...ir.formula import Count, log2, product
from ...ir.operands import Lengths, Operands
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from .._define.operation import T_FLOAT, T_INDEX_64, Input, Op, Output, attr, op
from .._lengths import check_scalar, check_vector, length_of
from ._complex import PAIRS, as_complex, as_pairs, floats

# Ports are ordered as in the class bodies, and these are not the first.
WINDOW = Input(T_FLOAT, "factors of a frame's elements, 1-D; at most as many as a frame has")
FRAME_SIZE = Input(T_INDEX_64, "length of a frame, a scalar")
FRAME_STEP = Input(T_INDEX_64, "distance from frame to frame, a scalar")


class STFTBase(Op):
    """Base of both directions: frames of equal length, at equal distances, under a window.

    A window shorter than a frame is padded with zeros on both sides, with an odd one at the end.
    """

    def windowed(self, window: Array, size: int) -> Array:
        """Return the window padded to a frame."""
        missing = size - len(window)
        return np.pad(floats(window), (missing // 2, missing - missing // 2))

    def check_window(self, window: Value, size: Dimension) -> None:
        """Require that a window fits into a frame."""
        check_vector(window, "window")
        if window.count == 0:
            raise InferenceError(
                "window is empty; at least one element is expected", clause="window is not empty"
            )
        if size.max is not None and window.count.min > size.max:
            raise InferenceError(
                f"window has {window.count} elements; at most frame_size, {size}, is expected",
                clause="window has at most frame_size elements",
            )

    def flops(self, operands: Operands) -> Count:
        """Return 5 n log2 n FLOPs for each frame of n complex numbers, half of it for real ones."""
        size = operands.content(2)
        length = operands.unknown("frame") if size is None else int(size.flat[0])
        return 5 * product(self._spectrum(operands)[:-1]) * log2(length)

    def _spectrum(self, operands: Operands) -> Lengths:
        """Return the lengths of the frequency tensor."""
        return operands.outputs[0]


@op("STFT-15")
class STFT(STFTBase):
    """The first half of the discrete Fourier transform of each frame of a real ``signal``.

    A rest that is too short for a frame is left out.
    """

    signal = Input(T_FLOAT, "one signal, 1-D, or a batch of them, 2-D")
    window = WINDOW
    frame_size = FRAME_SIZE
    frame_step = FRAME_STEP
    transformed = Output(
        T_FLOAT,
        "[batch, frames, frequencies, 2], the real and the imaginary part last; no batch for one signal",
    )

    transpose_frames: bool = attr(default_with_warning="false", doc="put the frequencies before the frames")

    def infer(self, signal: Value, window: Value, frame_size: Value, frame_step: Value) -> PartialShape:
        size, step = _positive(frame_size, "frame_size"), _positive(frame_step, "frame_step")
        self.check_window(window, size)
        if signal.shape.rank not in (None, 1, 2):
            raise InferenceError(
                f"signal must be [length] or [batch, length], found {signal.shape}",
                clause="signal is [length] or [batch, length]",
            )
        if signal.shape.rank is None:
            return PartialShape.dynamic()
        *batch, length = signal.shape
        if length.max is not None and length.max < size.min:
            raise InferenceError(
                f"frame_size is {size}, but signal {signal.shape} has length {length}, less than one frame",
                clause="signal has at least frame_size elements",
            )
        plane = [_frames(length, size, step), size.map(lambda n: n // 2 + 1)]
        return PartialShape([*batch, *(plane[::-1] if self.transpose_frames else plane), 2])

    def evaluate(self, signal: Array, window: Array, frame_size: Array, frame_step: Array) -> Array:
        self.infer(*map(Value.constant, (signal, window, frame_size, frame_step)))
        size, step = int(frame_size), int(frame_step)
        frames = np.lib.stride_tricks.sliding_window_view(floats(signal), size, -1)[..., ::step, :]
        pairs = as_pairs(np.fft.rfft(frames * self.windowed(window, size)))
        if self.transpose_frames:
            pairs = pairs.swapaxes(-2, -3)
        return pairs.astype(signal.dtype, copy=False)


@op("ISTFT-16")
class ISTFT(STFTBase):
    """Inverse of STFT: frames are added, and divided by the sum of squared windows.

    Where no window reaches, the signal is 0.
    """

    data = Input(
        T_FLOAT, "[batch, frequencies, frames, 2], the real and the imaginary part last, or without batch"
    )
    window = WINDOW
    frame_size = FRAME_SIZE
    frame_step = FRAME_STEP
    signal_length = Input(
        T_INDEX_64,
        "how long to make the signal, one number, by cutting or by adding zeros at the end; absent, all that "
        "frames cover, and if center is true less half a frame on both sides",
        optional=True,
    )
    signal = Output(T_FLOAT, "[batch, time], or [time]")

    center: bool = attr(
        default_with_warning="false",
        doc="leave out half a frame at the beginning, which was added for the transform",
    )
    normalized: bool = attr(
        default_with_warning="false",
        doc="multiply by the square root of frame_size, by which data was divided",
    )

    def infer(
        self,
        data: Value,
        window: Value,
        frame_size: Value,
        frame_step: Value,
        signal_length: Value | None = None,
    ) -> PartialShape:
        size, step = _positive(frame_size, "frame_size"), _positive(frame_step, "frame_step")
        self.check_window(window, size)
        requested = None if signal_length is None else length_of(signal_length, "signal_length")
        if data.shape.rank not in (None, 3, 4):
            raise InferenceError(
                f"data must be [frequencies, frames, 2], or with a batch in front, found {data.shape}",
                clause="data is [frequencies, frames, 2], or with a batch in front",
            )
        if data.shape.rank is None:
            return PartialShape.dynamic()
        *batch, bins, frames, pair = data.shape
        if not pair.contains(2):
            raise InferenceError(
                f"data must have 2 as its last dimension, as {PAIRS}, found {data.shape}",
                clause="the last axis of data has length 2",
            )
        if frames == 0:
            raise InferenceError(
                f"data {data.shape} holds no frames; at least one is expected",
                clause="data has at least one frame",
            )
        fitting = size.merge(_sizes(bins))
        if fitting is None:
            expected = size.map(lambda n: n // 2 + 1)
            raise InferenceError(
                f"data {data.shape} holds {bins} frequencies; frame_size // 2 + 1, {expected}, are expected for "
                f"frame_size {size}",
                hint="frequencies come before frames" if expected == frames else "",
                clause="data has frame_size // 2 + 1 frequencies",
            )
        before_last = Dimension.between(max(frames.min, 1), frames.max) - 1
        # For frames of odd length, the page has one element less than OpenVINO.
        rest = _odd(fitting) if self.center else fitting
        return PartialShape([*batch, requested or before_last * step + rest])

    def evaluate(
        self,
        data: Array,
        window: Array,
        frame_size: Array,
        frame_step: Array,
        signal_length: Array | None = None,
    ) -> Array:
        inputs = [data, window, frame_size, frame_step]
        inputs += [] if signal_length is None else [signal_length]
        *_, length = self.infer(*map(Value.constant, inputs)).static
        size, step = int(frame_size), int(frame_step)
        factors = self.windowed(window, size)
        frames = np.fft.irfft(as_complex(data), size, -2).swapaxes(-1, -2) * factors
        weight = np.broadcast_to(np.square(factors), frames.shape[-2:])
        total, weights = _overlap_add(frames, step), _overlap_add(weight, step)
        signal = np.divide(total, weights, where=weights != 0, out=np.zeros_like(total))
        if self.normalized:
            signal = signal * np.sqrt(signal.dtype.type(size))
        signal = signal[..., size // 2 if self.center else 0 :][..., :length]
        missing = [(0, 0)] * (signal.ndim - 1) + [(0, length - signal.shape[-1])]
        return np.pad(signal, missing).astype(data.dtype, copy=False)

    def _spectrum(self, operands: Operands) -> Lengths:
        return operands.inputs[0]


def _positive(value: Value, name: str) -> Dimension:
    """Return a scalar that is at least 1."""
    check_scalar(value, name)
    return length_of(value, name, least=1)


def _frames(length: Dimension, size: Dimension, step: Dimension) -> Dimension:
    """Return the number of frames in a signal of at least one frame."""
    low = 1
    if size.max is not None and step.max is not None:
        low = max((length.min - size.max) // step.max + 1, 1)
    return Dimension.between(low, None if length.max is None else (length.max - size.min) // step.min + 1)


def _sizes(bins: Dimension) -> Dimension:
    """Return the possible frame lengths for a number of frequencies."""
    return Dimension.between(max(2 * (bins.min - 1), 1), None if bins.max is None else 2 * bins.max - 1)


def _odd(size: Dimension) -> Interval:
    return Dimension(size.min % 2) if size.is_static else Dimension(0, 1)


def _overlap_add(frames: Array, step: int) -> Array:
    """Add up frames along the second-to-last axis, each shifted by ``step``."""
    *batch, count, size = frames.shape
    pieces = -(-size // step)
    cut = np.zeros((*batch, count, pieces * step), frames.dtype)
    cut[..., :size] = frames
    total = np.zeros((*batch, count + pieces - 1, step), frames.dtype)
    for i in range(pieces):
        total[..., i : i + count, :] += cut[..., i * step : (i + 1) * step]
    return total.reshape(*batch, (count + pieces - 1) * step)[..., : (count - 1) * step + size]
