"""Read ``<pre-process>``: the means subtracted from an input."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ....codes import Code
from ....diagnostics import Location
from ....errors import ParseError
from ....ir.element import ElementType
from ....ir.graph import Layer
from ..document import Element, integer
from ..layers import LayerReader
from .building import Blob, Means

__all__ = ["read_means"]


def read_means(root: Element, layers: Mapping[int, Layer], reader: LayerReader) -> dict[int, Means]:
    """Return the means subtracted from inputs, by input id; report errors in them."""
    element = root.find("pre-process")
    if element is None or element.find("channel") is None:
        return {}
    try:
        layer = _input_of(element, layers, reader.file)
        channels = tuple(_channels(element, layer, reader.file))
    except ParseError as problem:
        reader.report.add(problem.diagnostic)
        return {}
    _note_scales(element, reader)
    return {layer.id: Means(channels)}


def _input_of(element: Element, layers: Mapping[int, Layer], file: str) -> Layer:
    """Return the named input, or else the first 4-D input by name, or else the first by name."""
    inputs = {
        layer.name: layer for layer in layers.values() if layer.type.lower() == "input" and layer.outputs
    }
    name = element.get("reference-layer-name", "").strip()
    if name in inputs:
        return inputs[name]
    if name or not inputs:
        names = ", ".join(inputs) or "none"
        raise _wrong(f"unknown input {name!r} of <pre-process>; the inputs are {names}", element, file)
    ordered = [inputs[name] for name in sorted(inputs)]
    images = [
        layer for layer in ordered if (type := layer.outputs[0].type) is not None and type.shape.rank == 4
    ]
    return (images or ordered)[0]


def _channels(element: Element, layer: Layer, file: str) -> list[float | Blob]:
    type = layer.outputs[0].type
    dims = type.shape.static if type is not None and type.shape.is_static else ()
    if len(dims) < 3:
        raise _wrong(
            f"<pre-process> is for an image, but input {layer.name!r} has {len(dims)} dims", element, file
        )
    precision = element.get("mean-precision", "FP32")
    try:
        stored = ElementType.of_port(precision)
    except ValueError:
        raise _wrong(
            f"'mean-precision' is {precision[:20]!r}, which is not an element type", element, file
        ) from None
    means: list[float | Blob] = [0.0] * dims[-3]
    number = -1
    for channel in element.iterfind("channel"):
        number = integer(channel, "id", file) if channel.get("id") is not None else number + 1
        if number >= len(means):
            raise _wrong(f"<channel> {number} of an input with {len(means)} channels", channel, file)
        mean = channel.find("mean")
        if mean is None:
            continue
        if mean.get("value") is not None:
            means[number] = _number(mean, file)
        else:
            offset, size = (integer(mean, name, file) for name in ("offset", "size"))
            means[number] = Blob(stored, offset, size, mean.sourceline)
    return means


def _note_scales(element: Element, reader: LayerReader) -> None:
    """Report scales other than 1 as ignored, as in the runtimes of that time."""
    for scale in element.iterfind("channel/scale"):
        if scale.get("value", "").strip() not in ("1", "1.0"):
            message = "<scale> of <pre-process> is left out, as runtimes of that time did not read it"
            reader.report.note(Code.UPGRADED, message, Location(reader.file, scale.sourceline))
            return


def _number(element: Element, file: str) -> float:
    text = element.get("value", "")
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise _wrong(f"'value' of <{element.tag}> must be a number, got {text[:40]!r}", element, file)
    return value


def _wrong(message: str, element: Element, file: str) -> ParseError:
    return ParseError(message, code=Code.BAD_ELEMENT, where=Location(file, element.sourceline))
