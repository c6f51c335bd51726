"""The ``--shape`` option: parse new input shapes, and reshape the model."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from .helping import Command

if TYPE_CHECKING:
    from ..ir.shape import PartialShape
    from ..openvino.model import Model
    from ..openvino.node import Output

__all__ = [
    "FITTING",
    "hinting_at_shapes",
    "input_layouts",
    "reshape",
    "reshape_inputs",
    "shape_option",
    "shape_options",
    "shapes_of",
]

FITTING = "ir-runtime shapes lists the lengths that fit"

_HELP = "Reshape: data=[1..8,3,?,?], or 1,3,224,224."

# One item of a list of named shapes such as "ids[1,16], mask[?,16]".
_NAMED = re.compile(r"\s*([^\[\]=]*?)\s*=?\s*\[([^\[\]]*)\]\s*")


def shape_option(*names: str, into: str = "shapes", help: str = _HELP) -> Callable[[Command], Command]:
    """Return an option for input shapes; the command receives them as the argument ``into``."""
    return click.option(
        *names,
        into,
        multiple=True,
        metavar="[NAME=]SHAPE",
        help=help,
    )


def shape_options(command: Command) -> Command:
    """Add ``--shape`` to a command; `shapes_of` parses its arguments."""
    return shape_option("--shape")(command)


def shapes_of(texts: Iterable[str]) -> dict[str | int | None, PartialShape]:
    """Parse the arguments of ``--shape``; return shapes by input name, by index, or by ``None`` for the only input.

    Each text is a shape in OpenVINO's notation, ``[1..8,3,?,?]``, ``..8,-1`` or ``...``, optionally after a name,
    ``data=1,3``; or several named shapes in the notation of OpenVINO's tools, ``ids[1,16],mask[?,16]``.

    Raises:
        click.BadParameter: if a text has neither form.
    """
    return {name: shape for text in texts for name, shape in _shapes(text)}


def _layouts_of(text: str) -> Iterator[tuple[str | int | None, str]]:
    """Parse ``-layout``: one layout, with or without brackets, or a list such as ``a[NC],b[N]``.

    Yields layouts by input name, by index, or by ``None`` for the only input.

    Raises:
        click.BadParameter: if the text has neither form.
    """
    several = _several(text) or ([("", text)] if text and "[" not in text else [])
    if text and not several:
        raise click.BadParameter(
            f"{text!r} is not [NAME]LAYOUT, such as [NCHW] or a[NC],b[N]", param_hint="-layout"
        )
    for place, (name, layout) in enumerate(several):
        yield name or (place if len(several) > 1 else None), layout.strip().upper()


@contextmanager
def hinting_at_shapes() -> Iterator[None]:
    """Add a hint to the error for refused shapes: the command that lists the valid ones."""
    from ..errors import ValidationError

    try:
        yield
    except ValidationError as problem:
        if not problem.diagnostics:
            raise
        first, *others = problem.diagnostics
        hinting = first if first.hint else replace(first, hint=FITTING)
        raise ValidationError.of([hinting, *others], problem.more) from None


def reshape(net: Model, texts: Iterable[str]) -> None:
    """Reshape a model to the arguments of ``--shape``, if there are any."""
    if shapes := shapes_of(texts):
        with hinting_at_shapes():
            net.reshape(shapes)


def reshape_inputs(
    net: Model, shapes: Sequence[str], batch: int | None, layouts: Mapping[Output, str]
) -> list[tuple[str | int | None, str]]:
    """Reshape a model by ``--shape`` and batch size; return the new shapes as text, by input name or index."""
    new_shapes = shapes_of(shapes)
    reshape(net, shapes)
    if batch is None:
        return [(key, str(shape)) for key, shape in new_shapes.items()]
    axes = _batch_axes(net, layouts)
    net.reshape({port: port._type.shape.replace({axis: batch}) for port, axis in axes.items()})
    return [(index, str(port.partial_shape)) for index, port in enumerate(net.inputs)]


def input_layouts(net: Model, text: str | None) -> dict[Output, str]:
    """Return the layouts given for inputs by ``-layout``."""
    from ..openvino.names import find_port

    return {find_port(net.inputs, name, "input"): layout for name, layout in _layouts_of(text or "")}


def _batch_axes(net: Model, layouts: Mapping[Output, str]) -> dict[Output, int]:
    """Return the batch axis of each input that has one: N in its layout, or else the first axis."""
    axes = {port: 0 for port in net.inputs if port.partial_shape.rank.is_static and len(port.partial_shape)}
    for port, axis_names in layouts.items():
        if "N" in axis_names:
            axes[port] = axis_names.index("N")
        else:
            axes.pop(port, None)
    return axes


def _shapes(text: str) -> Iterator[tuple[str | int | None, PartialShape]]:
    several = _several(text)
    if len(several) > 1:
        for place, (name, shape) in enumerate(several):
            yield name or place, _shape(text, shape)
        return
    name, equals, shape = text.rpartition("=")
    if not equals and several:
        name, shape = several[0]
    yield name.strip() or None, _shape(text, shape)


def _several(text: str) -> list[tuple[str, str]]:
    """Parse a list such as ``ids[1,16],mask[?,16]`` into pairs of name and content; empty for any other form."""
    pairs, place = [], 0
    while match := _NAMED.match(text, place):
        pairs.append((match[1].lstrip(", "), match[2]))
        place = match.end()
    return pairs if place == len(text) else []


def _shape(text: str, shape: str) -> PartialShape:
    from ..ir.shape import PartialShape

    try:
        return PartialShape(shape)
    except ValueError as reason:
        what = f"{text!r} is not [NAME=]SHAPE, such as 1,3,224,224 or x=[?,3,1..8]: {reason}"
        raise click.BadParameter(what, param_hint="--shape") from None
