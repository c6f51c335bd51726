"""Options for the inputs of a run."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from .command_types import Command
from .image_options import image_layout, image_options
from .shaping import reshape, shaped

if TYPE_CHECKING:
    from ..ir.tensor import Array
    from ..openvino.model import Model

__all__ = ["Feeding", "data_options", "fed", "feeds_of", "input_files"]


@dataclass(frozen=True)
class Feeding:
    """Reshapes a model, and returns an array for each input.

    Args:
        files: the values of ``--input``.
        shapes: the values of ``--shape``.
        seed: of random data; ``None`` for no random data.
    """

    files: Sequence[str]
    shapes: Sequence[str]
    seed: int | None

    def __call__(self, model: Model) -> list[Array]:
        return feeds_of(model, self.files, self.shapes, self.seed)

    def sets(self, model: Model) -> list[list[Array]]:
        """Return one or several sets of inputs."""
        from .feeding import collect_sets

        reshape(model, self.shapes)
        return [
            [found[port].array for port in model.inputs]
            for found in collect_sets(model, self.files, self.seed)
        ]


_files = click.option(
    "-i",
    "--input",
    "files",
    multiple=True,
    metavar="[NAME=]FILE",
    help=".npy, .npz, image, folder of images; - for stdin.",
)


def input_files(command: Command) -> Command:
    """Add ``--input`` to a command, and image options except ``--layout``."""
    return _files(image_options(command))


def data_options(command: Command) -> Command:
    """Add ``--input``, ``--random``, ``--seed``, ``--shape`` and image options to a command."""
    random = click.option("--random", is_flag=True, help="Random data for inputs without a file.")
    seed = click.option(
        "--seed", type=click.IntRange(min=0), metavar="N", default=0, show_default=True, help="For --random."
    )
    return input_files(image_layout(random(seed(shaped(command)))))


def fed(command: Command) -> Command:
    """Add the `data_options` to a command, which receives a `Feeding`."""

    @functools.wraps(command)
    def with_feeding(
        *args: object,
        files: Sequence[str],
        random: bool,
        seed: int,
        shapes: Sequence[str],
        **options: object,
    ) -> object:
        return command(*args, feeding=Feeding(files, shapes, seed if random else None), **options)

    return data_options(with_feeding)


def feeds_of(model: Model, files: Sequence[str], shapes: Sequence[str], seed: int | None) -> list[Array]:
    """Reshape a model and return an array for each input; random ones only with a seed."""
    from .feeding import collect

    reshape(model, shapes)
    found = collect(model, files, seed)
    return [found[port].array for port in model.inputs]
