"""Signal processing: discrete Fourier transforms, and short-time Fourier transforms (STFT)."""

from __future__ import annotations

from functools import reduce
from typing import ClassVar, NamedTuple

import numpy as np

from ..errors import InferenceError
from ..ir.dimension import Dimension, Interval
from ..ir.formula import Count, log2, product, total
from ..ir.operation import Lengths, Operands
from ..ir.shape import PartialShape
from ..ir.tensor import Array, Value
from ._define.operation import T_FLOAT, T_INDEX_64, T_SHORT_FLOAT, Input, Op, Output, attr, op
from ._lengths import check_scalar, check_vector, common_count, length_of, normalize_axes
from .kernels.statistics import compute_dtype

# Complex numbers, stored as pairs along the last axis.

PAIRS = "the real and the imaginary part"


def floats(data: Array) -> Array:
    """Convert to the dtype of the transform: at least f32, as in OpenVINO's reference."""
    return data.astype(compute_dtype(data.dtype), copy=False)


def as_complex(pairs: Array) -> Array:
    """Convert ``pairs[..., 2]`` of real and imaginary parts to complex numbers ``[...]``."""
    wide = np.ascontiguousarray(floats(pairs))
    return np.asarray(wide.view(np.result_type(wide, np.complex64))[..., 0])


def as_pairs(numbers: Array) -> Array:
    """Convert complex numbers ``[...]`` to pairs ``[..., 2]`` of real and imaginary parts."""
    return np.ascontiguousarray(numbers)[..., None].view(numbers.real.dtype)


# Discrete Fourier transforms: DFT, IDFT, RDFT and IRDFT.

COMPLEX = f"complex numbers, {PAIRS} along the last axis"


class FourierTransform(Op):
    """Base of discrete Fourier transforms. A subclass defines `transform`.

    Axes refer to the complex numbers, without the axis of their parts. OpenVINO's CPU plugin fails or gives garbage if
    there are no axes or an axis is truncated to length 0, and for real data if ``signal_size`` is -1 or exceeds the data;
    OpenVINO has no callable reference. It does not accept f64, whose support the specification leaves open.
    """

    data = Input(T_SHORT_FLOAT, COMPLEX)
    axes = Input(T_INDEX_64, "axes to transform, 1-D, in any order; negative ones count from the end")
    signal_size = Input(
        T_INDEX_64,
        "length of each of these axes, to which data is first truncated or padded with zeros at the end; -1 keeps the "
        "length; if absent, all lengths are kept",
        optional=True,
    )
    transformed = Output(T_SHORT_FLOAT, COMPLEX)

    parts: ClassVar[bool] = True
    """Whether the input is complex."""

    def infer(self, data: Value, axes: Value, signal_size: Value | None = None) -> PartialShape:
        count = common_count(axes=axes, signal_size=signal_size)
        sizes = None if signal_size is None else _signal_sizes(signal_size)
        rank = self._rank(data, axes)
        if rank is None:
            return PartialShape.dynamic()
        claims = _claims(_places(axes, rank), sizes, -1 if signal_size is None else Interval(), count)
        return self.output_shape(
            [self._transformed_length(axis, dim, claims) for axis, dim in enumerate(data.shape[:rank])]
        )

    def evaluate(self, data: Array, axes: Array, signal_size: Array | None = None) -> Array:
        inputs = (data, axes) if signal_size is None else (data, axes, signal_size)
        shape = self.infer(*map(Value.constant, inputs)).static
        if 0 in shape or 0 in data.shape:  # NumPy refuses to transform empty arrays
            return np.zeros(shape, data.dtype)
        rank = data.ndim - self.parts
        places = [int(a) % rank for a in axes]
        requested = [-1] * len(places) if signal_size is None else signal_size.tolist()
        sizes = [data.shape[p] if n == -1 else n for n, p in zip(requested, places, strict=True)]
        if places and requested[-1] == -1:
            sizes[-1] = self.signal_length(data.shape[places[-1]])
        return self.transform(data, sizes, places).astype(data.dtype, copy=False)

    def transform(self, data: Array, sizes: list[int], places: list[int]) -> Array:
        """Transform along the axes ``places``, after truncating or padding them to ``sizes``, none of which is 0."""
        raise NotImplementedError

    def output_shape(self, lengths: list[Dimension]) -> PartialShape:
        """Return the output shape, given the length of each axis of numbers."""
        return PartialShape([*lengths, 2])

    def signal_length(self, length: int) -> int:
        """Return the default length of the signal along the last transformed axis, given that of the data."""
        return length

    def output_length(self, length: Dimension) -> Dimension:
        """Return the length of the output along the last transformed axis, given that of the signal."""
        return length

    def _rank(self, data: Value, axes: Value) -> int | None:
        if data.shape.rank is None:
            return None
        if data.shape.rank < 1 + self.parts or (self.parts and not data.shape[-1].contains(2)):
            expected = (
                f"rank 2 or more, and 2 as its last dimension, {PAIRS}" if self.parts else "rank 1 or more"
            )
            raise InferenceError(
                f"data must have {expected}, found {data.shape}",
                clause="data has at least one axis to transform, and a last axis of length 2 if it is complex",
            )
        rank = data.shape.rank - self.parts
        if axes.count.min > rank:
            rest = ", without the last one" if self.parts else ""
            raise InferenceError(
                f"axes holds {axes.count} numbers, but data {data.shape} has {rank} axes to transform{rest}",
                clause="there are no more axes than data has to transform",
            )
        return rank

    def _transformed_length(self, axis: int, dim: Dimension, claims: list[TransformedAxis]) -> Dimension:
        """Return the output length of an axis, joined over all transformed axes that may be this one."""
        own = [claim for claim in claims if claim.place == axis]
        possible = [self._resize(dim, c) for c in own or claims if c.place in (axis, None)]
        return reduce(Dimension.join, possible if own else [dim, *possible])

    def _resize(self, dim: Dimension, claim: TransformedAxis) -> Dimension:
        whole = Dimension.of(dim.map(self.signal_length)) if claim.last else dim
        lowest = claim.size if isinstance(claim.size, int) else claim.size.min
        if claim.size == -1:
            length = whole
        elif lowest is None or lowest < 0:
            length = whole.join(Dimension.of(claim.size))
        else:
            length = Dimension.of(claim.size)
        return self.output_length(length) if claim.last else length

    def flops(self, operands: Operands) -> Count:
        """Return 5 n log2 n FLOPs for each transform of n complex numbers, and half of it for real numbers."""
        *points, _ = self._complex(operands)
        axes = operands.content(1)
        places = range(len(points)) if axes is None else [int(a) % len(points) for a in axes.flat]
        return 5 * product(points) * total(log2(points[axis]) for axis in places)

    def _complex(self, operands: Operands) -> Lengths:
        """Return the shape of the complex tensor, which determines the size of the transform."""
        return operands.outputs[0]


class TransformedAxis(NamedTuple):
    """An axis to transform: its position (``None`` if unknown), its signal size, and whether it is the last one."""

    place: int | None
    size: int | Interval
    last: bool


def _claims(
    places: list[int | None] | None,
    sizes: list[int | Interval] | None,
    size: int | Interval,
    count: int | None,
) -> list[TransformedAxis]:
    """Return the axes to transform; if their number is unknown, two that stand for the last one and all others.

    Args:
        places: the axes, ``None`` where unknown.
        sizes: the signal sizes, if known.
        size: the signal size of every axis if ``sizes`` is ``None``.
        count: the number of axes, if known.
    """
    if count is None:
        return [TransformedAxis(None, size, False), TransformedAxis(None, size, True)]
    pairs = zip(places or [None] * count, sizes or [size] * count, strict=True)
    return [TransformedAxis(place, size, i + 1 == count) for i, (place, size) in enumerate(pairs)]


def _places(axes: Value, rank: int) -> list[int | None] | None:
    """Return the nonnegative axes, each ``None`` if unknown; ``None`` if nothing is known of them."""
    numbers = axes.numbers()
    if numbers is None:
        return None
    normalized = iter(normalize_axes((n for n in numbers if isinstance(n, int)), rank))
    return [next(normalized) if isinstance(n, int) else None for n in numbers]


def _signal_sizes(signal_size: Value) -> list[int | Interval] | None:
    """Return the requested lengths, intervals if unknown; ``None`` if nothing is known of them."""
    numbers = signal_size.numbers()
    for n in numbers or ():
        highest = n.max if isinstance(n, Interval) else n
        if highest is not None and highest < -1:
            raise InferenceError(
                f"signal_size holds {highest}; a length is expected, or -1 for that of the data",
                clause="each of signal_size is at least -1",
            )
    return None if numbers is None else list(numbers)


@op("DFT-7")
class DFT(FourierTransform):
    """Discrete Fourier transform of ``data`` along ``axes``."""

    def transform(self, data: Array, sizes: list[int], places: list[int]) -> Array:
        return as_pairs(np.fft.fftn(as_complex(data), sizes, places))


@op("IDFT-7")
class IDFT(FourierTransform):
    """Inverse discrete Fourier transform of ``data`` along ``axes``, divided by the number of elements."""

    def transform(self, data: Array, sizes: list[int], places: list[int]) -> Array:
        return as_pairs(np.fft.ifftn(as_complex(data), sizes, places))


class RealFourierTransform(FourierTransform):
    """Base of RDFT and IRDFT, between a real signal and half of its spectrum along the last of ``axes``."""

    def _rank(self, data: Value, axes: Value) -> int | None:
        rank = super()._rank(data, axes)
        if axes.count == 0:
            raise InferenceError("axes is empty; at least one axis is expected", clause="axes is not empty")
        return rank


@op("RDFT-9")
class RDFT(RealFourierTransform):
    """Discrete Fourier transform of real ``data`` along ``axes``.

    Along the last of ``axes``, only the first n // 2 + 1 of n elements are returned; the others follow by symmetry.
    """

    data = Input(T_SHORT_FLOAT, "real numbers")

    parts = False

    def output_length(self, length: Dimension) -> Dimension:
        return Dimension.of(length.map(lambda n: n // 2 + 1 if n else 0))

    def transform(self, data: Array, sizes: list[int], places: list[int]) -> Array:
        return as_pairs(np.fft.rfftn(floats(data), sizes, places))


@op("IRDFT-9")
class IRDFT(RealFourierTransform):
    """Inverse of RDFT: the real signal whose transform along ``axes`` is ``data``.

    Unless ``signal_size`` determines the length of the signal along the last of ``axes``, the length is even.
    """

    transformed = Output(T_SHORT_FLOAT, "real numbers")

    def output_shape(self, lengths: list[Dimension]) -> PartialShape:
        return PartialShape(lengths)

    def signal_length(self, length: int) -> int:
        return max(2 * (length - 1), 0)

    def transform(self, data: Array, sizes: list[int], places: list[int]) -> Array:
        return np.fft.irfftn(as_complex(data), sizes, places)

    def _complex(self, operands: Operands) -> Lengths:
        return operands.inputs[0]


# Short-time Fourier transforms (STFT and ISTFT), of overlapping frames of a signal.

# Ports that both operations share. They are not declared in a base class, as they would then precede the first port.
WINDOW = Input(T_FLOAT, "factors of the elements of a frame, 1-D; at most as long as a frame")
FRAME_SIZE = Input(T_INDEX_64, "length of a frame, a scalar")
FRAME_STEP = Input(T_INDEX_64, "distance between frames, a scalar")


class STFTBase(Op):
    """Base of STFT and ISTFT.

    A window shorter than a frame is padded with zeros on both sides; an odd number of zeros has the extra one at the end.
    """

    def pad_window(self, window: Array, size: int) -> Array:
        """Return the window, padded to the length of a frame."""
        missing = size - len(window)
        return np.pad(floats(window), (missing // 2, missing - missing // 2))

    def check_window(self, window: Value, size: Dimension) -> None:
        """Require a nonempty window that is not longer than a frame."""
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
        """Return 5 n log2 n FLOPs for each frame of n complex numbers, and half of it for real numbers."""
        size = operands.content(2)
        length = operands.unknown("frame") if size is None else int(size.flat[0])
        return 5 * product(self._spectrum(operands)[:-1]) * log2(length)

    def _spectrum(self, operands: Operands) -> Lengths:
        """Return the shape of the tensor of frequencies."""
        return operands.outputs[0]


@op("STFT-15")
class STFT(STFTBase):
    """Discrete Fourier transform of each frame of a real ``signal``, of which the first half is returned.

    Elements after the last whole frame are ignored.
    """

    signal = Input(T_FLOAT, "a signal, [length], or a batch of signals, [batch, length]")
    window = WINDOW
    frame_size = FRAME_SIZE
    frame_step = FRAME_STEP
    transformed = Output(
        T_FLOAT,
        "[batch, frames, frequencies, 2], the real and the imaginary part last; without batch for a 1-D signal",
    )

    transpose_frames: bool = attr(
        default_with_warning="false", doc="whether to return frequencies before frames"
    )

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
        pairs = as_pairs(np.fft.rfft(frames * self.pad_window(window, size)))
        if self.transpose_frames:
            pairs = pairs.swapaxes(-2, -3)
        return pairs.astype(signal.dtype, copy=False)


@op("ISTFT-16")
class ISTFT(STFTBase):
    """Inverse of STFT: frames are overlapped, added, and divided by the sum of squared windows.

    The signal is 0 where that sum is 0.
    """

    data = Input(
        T_FLOAT,
        "[batch, frequencies, frames, 2], the real and the imaginary part last; the batch axis is optional",
    )
    window = WINDOW
    frame_size = FRAME_SIZE
    frame_step = FRAME_STEP
    signal_length = Input(
        T_INDEX_64,
        "length of the signal, one number, to which it is truncated or padded with zeros at the end; if absent, all that "
        "frames cover, without half a frame at both ends if center is true",
        optional=True,
    )
    signal = Output(T_FLOAT, "[batch, time], or [time] if data has no batch")

    center: bool = attr(
        default_with_warning="false",
        doc="whether to drop half a frame at the start, by which the signal was padded for the transform",
    )
    normalized: bool = attr(
        default_with_warning="false",
        doc="whether to multiply by the square root of frame_size, by which data was divided",
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
        fitting = size.merge(_frame_sizes(bins))
        if fitting is None:
            expected = size.map(lambda n: n // 2 + 1)
            raise InferenceError(
                f"data {data.shape} holds {bins} frequencies; frame_size // 2 + 1, {expected}, are expected for "
                f"frame_size {size}",
                hint="frequencies come before frames" if expected == frames else "",
                clause="data has frame_size // 2 + 1 frequencies",
            )
        before_last = Dimension.between(max(frames.min, 1), frames.max) - 1
        # For frames of odd length, the specification has one element less than OpenVINO.
        rest = _parity(fitting) if self.center else fitting
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
        factors = self.pad_window(window, size)
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
    """Return the length that a scalar input holds; raise if it is less than 1."""
    check_scalar(value, name)
    return length_of(value, name, least=1)


def _frames(length: Dimension, size: Dimension, step: Dimension) -> Dimension:
    """Return the number of frames in a signal that is at least one frame long."""
    low = 1
    if size.max is not None and step.max is not None:
        low = max((length.min - size.max) // step.max + 1, 1)
    return Dimension.between(low, None if length.max is None else (length.max - size.min) // step.min + 1)


def _frame_sizes(bins: Dimension) -> Dimension:
    """Return the possible frame lengths for ``bins`` frequencies."""
    return Dimension.between(max(2 * (bins.min - 1), 1), None if bins.max is None else 2 * bins.max - 1)


def _parity(size: Dimension) -> Interval:
    return Dimension(size.min % 2) if size.is_static else Dimension(0, 1)


def _overlap_add(frames: Array, step: int) -> Array:
    """Add frames ``[..., frames, size]``, each shifted by ``step`` against the one before; return ``[..., time]``."""
    *batch, count, size = frames.shape
    pieces = -(-size // step)
    cut = np.zeros((*batch, count, pieces * step), frames.dtype)
    cut[..., :size] = frames
    total = np.zeros((*batch, count + pieces - 1, step), frames.dtype)
    for i in range(pieces):
        total[..., i : i + count, :] += cut[..., i * step : (i + 1) * step]
    return total.reshape(*batch, (count + pieces - 1) * step)[..., : (count - 1) * step + size]
