"""NV12 and I420 to RGB, one vector of pixels of a row at a time, in f32 and with the reference's roundings."""

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
    """The job of `_colors`.

    Fields: row pairs of all images and of one image; pixels per row; bytes per number; bytes between images,
    for Y and for U and V; the offsets of U and V, and the bytes between numbers of one; the conversion;
    whether blue comes first.
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


def _spread(emit: Emit, address: Register, kind: ir.Type, step: int) -> Register:
    """Load numbers of a half-resolution plane as f32, each repeated for two pixels."""
    count = LANES // 2 * step - (step - 1)  # no number after the last one
    found = _load(emit, address, kind, count)
    picked = [lane // 2 * step for lane in range(LANES)]
    none = ir.Constant(found.type, ir.UNDEFINED)
    spread = emit.builder.shuffle_vector(found, none, ir.Constant(ir.VectorType(I32, LANES), picked))
    return _as_f32(emit, spread)


def _as_f32(emit: Emit, numbers: Register) -> Register:
    return numbers if numbers.type == VECTOR else emit.builder.uitofp(numbers, VECTOR)


def _bounded(emit: Emit, x: Register, kind: ir.Type) -> Register:
    """Clamp colours to 0 to 255; integers are rounded, ties upward."""
    limited = emit.minimum(emit.maximum(x, emit.constant(0)), emit.constant(255))
    if kind == F32:
        return limited
    return emit.builder.fptoui(emit.add(limited, emit.constant(0.5)), ir.VectorType(kind, LANES))


def _store_pixels(
    emit: Emit, first: Register, second: Register, third: Register, kind: ir.Type, out: Register
) -> None:
    """Interleave three colour vectors and store the pixels."""
    builder, wide = emit.builder, ir.VectorType(I32, 2 * LANES)
    both = builder.shuffle_vector(first, second, ir.Constant(wide, list(range(2 * LANES))))
    last = builder.shuffle_vector(third, third, ir.Constant(wide, list(range(2 * LANES))))
    order = [pixel + LANES * color for pixel in range(LANES) for color in range(3)]
    mixed = builder.shuffle_vector(both, last, ir.Constant(ir.VectorType(I32, 3 * LANES), order))
    emit.store(mixed, out, 1 if kind == BYTE else 4)


def _pixels(kind: ir.Type, step: int) -> Callable[..., None]:
    """Return the emitter of a pixel vector for a number type; half-resolution planes have a step of ``step`` numbers."""

    def write(emit: Emit, y: Register, u: Register, v: Register, out: Register, blue_first: Register) -> None:
        def times(factor: float, x: Register) -> Register:
            return emit.fence(emit.multiply(emit.constant(factor), x))

        light = times(1.164, emit.subtract(_as_f32(emit, _load(emit, y, kind, LANES)), emit.constant(16)))
        half = emit.constant(128)
        blue_part, red_part = (emit.subtract(_spread(emit, plane, kind, step), half) for plane in (u, v))
        red = emit.add(light, times(1.596, red_part))
        green = emit.subtract(emit.subtract(light, times(0.391, blue_part)), times(0.813, red_part))
        blue = emit.add(light, times(2.018, blue_part))
        red, green, blue = (_bounded(emit, each, kind) for each in (red, green, blue))
        is_blue = emit.builder.icmp_signed("!=", blue_first, emit.i64(0))
        first, third = emit.builder.select(is_blue, blue, red), emit.builder.select(is_blue, red, blue)
        _store_pixels(emit, first, green, third, kind, out)

    return write


def _load(emit: Emit, address: Register, kind: ir.Type, count: int) -> Register:
    return emit.load(address, ir.VectorType(kind, count), 1 if kind == BYTE else 4)


_WAYS = [_pixels(kind, step) for kind in (BYTE, F32) for step in (1, 2)]
"""The conversions: of u8 and f32, with separate U and V planes, and with one interleaved plane."""


@instruction(*[types.int64] * 6)
def _convert(emit: Emit, form: Register, *given: Register) -> None:
    """Compute a vector of pixels.

    Arguments: the conversion; the addresses of Y, U, V and the result; whether blue comes first.
    """
    emit.switch(form, {number: partial(way, emit, *given) for number, way in enumerate(_WAYS)})


@Task
def _colors(call: int, job: ColorJob, out: int, luma: int, u: int, v: int) -> None:
    """Convert Y, U and V planes to pixels; a unit is two rows that share U and V.

    The last vector of a row overlaps the previous one.
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
    """Support u8 and f32; images narrower than a vector are left to the reference."""
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
        given = [contiguous(array) for array in arrays]
        luma, u, v = given if len(given) == 3 else (given[0], given[-1], given[-1])
        job = _job(op, form, shape, out.itemsize, len(given))
        count = threads_for(steps=out.size // 4)
        parallel_for(_colors.address, job, out, luma, u, v, count)
        return out

    return Kernel(kernel, replay=replayed())


@lru_cache(maxsize=64)
def _job(op: _Conversion, form: int, shape: tuple[int, ...], size: int, inputs: int) -> Array:
    """Return the job for an image shape and number of planes; one plane holds all three components."""
    images, height, width, _ = shape
    luma, in_turns = height * width * size, isinstance(op, NV12ToRGBBase)
    half = luma // 4
    first = luma if inputs == 1 else 0
    apart = size if in_turns else (half if inputs == 1 else 0)
    return ColorJob.fill(
        pairs=images * height // 2, image_pairs=height // 2, width=width, size=size,
        image_bytes=luma + (2 * half if inputs == 1 else 0),
        half_image_bytes=luma + 2 * half if inputs == 1 else half * (1 + in_turns), u_offset=first,
        v_offset=first + apart, chroma_step=size * (1 + in_turns), form=form, blue_first=op.blue_first,
    )  # fmt: skip
