"""Generation of random inputs for a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..analysis.random_inputs import random_inputs
from ..errors import InputError, IRError
from ..ir.shape import PartialShape
from ..ir.tensor import Array
from .model import Model
from .node import Output

__all__ = ["RandomFeeds", "random_feeds"]


@dataclass(frozen=True)
class RandomFeeds:
    """Random inputs, and the choices made in generating them.

    Args:
        arrays: the generated arrays, by input.
        choices: the choices as text, such as ``image=[1,3,64,96]`` or ``ids below 100``.
    """

    arrays: Mapping[Output, Array]
    choices: tuple[str, ...]


def random_feeds(model: Model, arrays: Mapping[Output, Array], seed: int = 0) -> RandomFeeds:
    """Generate valid random data for the inputs that are not in ``arrays``.

    Args:
        model: the model.
        arrays: the arrays of the other inputs, with which the generated lengths are consistent.
        seed: the seed of the generator.

    Raises:
        InputError: if the rank of an input to generate is unknown.
    """
    ids = {port: model._port(port).layer for port in model.inputs}
    for port in model.inputs:
        if port not in arrays and port.partial_shape.rank.is_dynamic:
            raise InputError(
                f"input {port.label!r} has no shape, which random data needs",
                hint=f"--shape {port.label}=1,3,8,8 gives it one",
            )
    with_lengths = _reshape(model, arrays)
    feeds = random_inputs(
        with_lengths._graph,
        with_lengths._values,
        with_lengths._parameter_types,
        {ids[port] for port in arrays},
        seed,
    )
    return RandomFeeds(
        {port: feeds.arrays[id] for port, id in ids.items() if id in feeds.arrays}, feeds.choices
    )


def _reshape(model: Model, arrays: Mapping[Output, Array]) -> Model:
    """Return a copy of the model reshaped to the data, or the model itself if their shapes are invalid."""
    if all(port.partial_shape.is_static for port in arrays):
        return model
    reshaped = model.clone()
    shapes = {
        index: PartialShape(arrays[port].shape) for index, port in enumerate(model.inputs) if port in arrays
    }
    try:
        reshaped.reshape(shapes)
    except IRError:
        return model
    return reshaped
