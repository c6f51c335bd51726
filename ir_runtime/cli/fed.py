"""Options for the inputs of a run."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import click

from .command_types import Command
from .image_options import image_layout, image_options
from .shaping import shaped, shapes_of

if TYPE_CHECKING:
    from ..ir.tensor import Array
    from ..openvino.model import Model

__all__ = ["Feeding", "data_options", "fed", "feeds_of", "input_files"]

Feeding: TypeAlias = "Callable[[Model], list[Array]]"
"""Reshapes a model as asked, and returns an array for each of its inputs."""

_files = click.option(
    "-i",
    "--input",
    "files",
    multiple=True,
    metavar="[NAME=]FILE",
    help=".npy, .npz, image, folder of images; - for stdin.",
)


def input_files(command: Command) -> Command:
    """Give a command ``--input``, and the options for inputs that are images but ``--layout``."""
    return _files(image_options(command))


def data_options(command: Command) -> Command:
    """Give a command ``--input``, ``--random``, ``--seed`` and ``--shape``, and the options for images."""
    random = click.option("--random", is_flag=True, help="Random data for inputs without a file.")
    seed = click.option(
        "--seed", type=click.IntRange(min=0), metavar="N", default=0, show_default=True, help="For --random."
    )
    return input_files(image_layout(random(seed(shaped(command)))))


def fed(command: Command) -> Command:
    """Give a command the `data_options`. It is called with a `Feeding`."""

    @functools.wraps(command)
    def with_feeding(
        *args: object,
        files: Sequence[str],
        random: bool,
        seed: int,
        shapes: Sequence[str],
        **options: object,
    ) -> object:
        def feeding(model: Model) -> list[Array]:
            return feeds_of(model, files, shapes, seed if random else None)

        return command(*args, feeding=feeding, **options)

    return data_options(with_feeding)


def feeds_of(model: Model, files: Sequence[str], shapes: Sequence[str], seed: int | None) -> list[Array]:
    """Reshape a model as asked, and return an array for each of its inputs; without a seed, none is random."""
    from .feeding import collect

    if shapes:
        model.reshape(shapes_of(shapes))
    found = collect(model, files, seed)
    return [found[port].array for port in model.inputs]
