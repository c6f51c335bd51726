"""Conversion of NV12 and I420 to RGB and BGR, one vector of pixels at a time, in f32 with the reference's roundings."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import TypeAlias

from ....ir.element import ElementType
from ....ir.shape import PartialShape
from ....ir.tensor import Array, TensorType, Value
from ....ops.image import I420toBGR, I420toRGB, I420ToRGBBase, NV12toBGR, NV12toRGB, NV12ToRGBBase
from ... import Kernel
from ...common.kept_memory import empty
from .._backend import backend
from ..codegen import ir
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import instruction, types
from ..codegen.vectors import F32, I32, LANES, VECTOR, Emit
from ..codegen.vectors import Value as Register
from ..threading.capture import replayed
from ..threading.parallel import parallel_for, threads_for
from ..threading.task import Task, each_unit
from ._copy import contiguous

__all__: list[str] = []

BYTE = ir.I8
_TYPES = {ElementType.u8: 0, ElementType.f32: 1}


_Conversion: TypeAlias = NV12ToRGBBase | I420ToRGBBase


class ColorJob(Descriptor):
    """Parameters of `_colors`.

    ``pairs`` and ``image_pairs`` are the pairs of rows of all images and of one image, ``width`` is the pixels of a row,
    and ``size`` the bytes of an element. ``image_bytes`` and ``half_image_bytes`` are the bytes between images of Y and
    of U and V; ``u_offset`` and ``v_offset`` are the offsets of U and V, and ``chroma_step`` is the bytes between two
    elements of U or V. ``form`` is the kernel variant.
    """

    pairs: i64
    image_pairs: i64
    width: i64
    size: i64
    image_bytes: i64
    half_image_bytes: i64
    u_offset: i64
    v_offset: i64
    chroma_step: i64
    form: i64
    blue_first: i64


def _load_chroma(emit: Emit, address: Register, kind: ir.Type, step: int) -> Register:
    """Load elements of U or V, ``step`` elements apart, as f32, each repeated for two pixels."""
    count = LANES // 2 * step - (step - 1)  # read nothing past the last element
    loaded = _load(emit, address, kind, count)
    picked = [lane // 2 * step for lane in range(LANES)]
    none = ir.Constant(loaded.type, ir.UNDEFINED)
    spread = emit.builder.shuffle_vector(loaded, none, ir.Constant(ir.VectorType(I32, LANES), picked))
    return _as_f32(emit, spread)


def _as_f32(emit: Emit, numbers: Register) -> Register:
    return numbers if numbers.type == VECTOR else emit.builder.uitofp(numbers, VECTOR)


def _clamp(emit: Emit, x: Register, kind: ir.Type) -> Register:
    """Clamp colours to 0 to 255 and convert them to ``kind``; u8 is rounded, ties upward."""
    clamped = emit.minimum(emit.maximum(x, emit.constant(0)), emit.constant(255))
    if kind == F32:
        return clamped
    return emit.builder.fptoui(emit.add(clamped, emit.constant(0.5)), ir.VectorType(kind, LANES))


def _store_pixels(
    emit: Emit, first: Register, second: Register, third: Register, kind: ir.Type, out: Register
) -> None:
    """Interleave the vectors of three colours, and store them as pixels of three elements."""
    builder, wide = emit.builder, ir.VectorType(I32, 2 * LANES)
    pairs = builder.shuffle_vector(first, second, ir.Constant(wide, list(range(2 * LANES))))
    last = builder.shuffle_vector(third, third, ir.Constant(wide, list(range(2 * LANES))))
    order = [pixel + LANES * color for pixel in range(LANES) for color in range(3)]
    mixed = builder.shuffle_vector(pairs, last, ir.Constant(ir.VectorType(I32, 3 * LANES), order))
    emit.store(mixed, out, 1 if kind == BYTE else 4)


def _variant(kind: ir.Type, step: int) -> Callable[..., None]:
    """Return an emitter that converts one vector of YUV pixels of type ``kind`` to RGB or BGR; U and V are ``step`` elements apart."""

    def write(emit: Emit, y: Register, u: Register, v: Register, out: Register, blue_first: Register) -> None:
        def times(factor: float, x: Register) -> Register:
            return emit.fence(emit.multiply(emit.constant(factor), x))

        light = times(1.164, emit.subtract(_as_f32(emit, _load(emit, y, kind, LANES)), emit.constant(16)))
        half = emit.constant(128)
        blue_part, red_part = (emit.subtract(_load_chroma(emit, plane, kind, step), half) for plane in (u, v))
        red = emit.add(light, times(1.596, red_part))
        green = emit.subtract(emit.subtract(light, times(0.391, blue_part)), times(0.813, red_part))
        blue = emit.add(light, times(2.018, blue_part))
        red, green, blue = (_clamp(emit, color, kind) for color in (red, green, blue))
        is_blue = emit.builder.icmp_signed("!=", blue_first, emit.i64(0))
        first, third = emit.builder.select(is_blue, blue, red), emit.builder.select(is_blue, red, blue)
        _store_pixels(emit, first, green, third, kind, out)

    return write


def _load(emit: Emit, address: Register, kind: ir.Type, count: int) -> Register:
    return emit.load(address, ir.VectorType(kind, count), 1 if kind == BYTE else 4)


_VARIANTS = [_variant(kind, step) for kind in (BYTE, F32) for step in (1, 2)]
"""The kernel variants: u8, then f32, each with separate planes of U and V (I420), then with an interleaved one (NV12)."""


@instruction(*[types.int64] * 6)
def _convert(emit: Emit, form: Register, *arguments: Register) -> None:
    """Compute a vector of pixels by kernel variant ``form``.

    The arguments are the addresses of Y, U, V and the result, and whether blue comes first.
    """
    emit.switch(
        form, {number: partial(variant, emit, *arguments) for number, variant in enumerate(_VARIANTS)}
    )


@Task
def _colors(call: int, job: ColorJob, out: int, luma: int, u: int, v: int) -> None:
    """Convert Y, U and V to pixels; a unit of work is two rows, which share U and V.

    The last vector of a row may overlap the previous one.
    """
    pairs, width, size = job.pairs, job.width, job.size
    step, form = job.chroma_step, job.form
    blue_first, of_image = job.blue_first, job.image_pairs
    u, v = u + job.u_offset, v + job.v_offset
    for pair in each_unit(call, pairs):
        image = pair // of_image
        line = pair - image * of_image
        half = image * job.half_image_bytes + line * (width // 2) * step
        source = luma + image * job.image_bytes + 2 * line * width * size
        target = out + 6 * pair * width * size
        for row in range(2):
            for place in range(0, width, LANES):
                at = min(place, width - LANES)
                beside, pixels = half + at // 2 * step, (row * width + at) * size
                _convert(form, source + pixels, u + beside, v + beside, target + 3 * pixels, blue_first)


@backend.accelerates(NV12toRGB, NV12toBGR, I420toRGB, I420toBGR)
def to_colors(op: _Conversion, *planes: Value) -> Kernel | None:
    """Return a colour conversion kernel for planes of u8 or f32, else ``None``.

    The kernel leaves images narrower than a vector to the reference.
    """
    if any(plane.element is not planes[0].element for plane in planes) or planes[0].element not in _TYPES:
        return None
    _colors.prepare()
    form = 2 * _TYPES[planes[0].element] + isinstance(op, NV12ToRGBBase)

    element = planes[0].element

    @lru_cache(maxsize=64)
    def result(*shapes: tuple[int, ...]) -> tuple[int, ...]:
        return op.infer(*(Value(TensorType(element, PartialShape(shape))) for shape in shapes)).static

    def kernel(*arrays: Array) -> Array:
        shape = result(*(array.shape for array in arrays))
        if shape[2] < LANES or not shape[0] * shape[1]:
            return op.evaluate(*arrays)
        out = empty(shape, element.dtype)
        sources = [contiguous(array) for array in arrays]
        luma, u, v = sources if len(sources) == 3 else (sources[0], sources[-1], sources[-1])
        job = _job(op, form, shape, out.itemsize, len(sources))
        count = threads_for(steps=out.size // 4)
        parallel_for(_colors.address, job, out, luma, u, v, count)
        return out

    return Kernel(kernel, replay=replayed())


@lru_cache(maxsize=64)
def _job(op: _Conversion, form: int, shape: tuple[int, ...], size: int, inputs: int) -> Array:
    """Return the `ColorJob` for results of ``shape``, read from ``inputs`` arrays; a single array holds Y, U and V."""
    images, height, width, _ = shape
    luma, is_interleaved = height * width * size, isinstance(op, NV12ToRGBBase)
    half = luma // 4
    first = luma if inputs == 1 else 0
    apart = size if is_interleaved else (half if inputs == 1 else 0)
    return ColorJob.fill(
        pairs=images * height // 2, image_pairs=height // 2, width=width, size=size,
        image_bytes=luma + (2 * half if inputs == 1 else 0),
        half_image_bytes=luma + 2 * half if inputs == 1 else half * (1 + is_interleaved), u_offset=first,
        v_offset=first + apart, chroma_step=size * (1 + is_interleaved), form=form, blue_first=op.blue_first,
    )  # fmt: skip
