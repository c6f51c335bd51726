"""Options that say what a model is fed with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from .shaping import shaped, shapes_of

if TYPE_CHECKING:
    from ..api.model import Model
    from ..ir.tensor import Array

__all__ = ["fed", "feeds_of"]

_Command = TypeVar("_Command", bound=Callable[..., Any])


def fed(command: _Command) -> _Command:
    """Give a command the options ``--input``, ``--random``, ``--seed`` and ``--shape``."""
    files = click.option(
        "-i",
        "--input",
        "files",
        multiple=True,
        metavar="[NAME=]FILE",
        help="An input: .npy, or .npz with inputs by name. Repeatable.",
    )
    random = click.option("--random", is_flag=True, help="Use random data for inputs without a file.")
    seed = click.option(
        "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="For --random."
    )
    return files(random(seed(shaped(command))))


def feeds_of(model: Model, files: Sequence[str], shapes: Sequence[str], seed: int | None) -> list[Array]:
    """Reshape a model as asked, and return an array for each of its inputs.

    Args:
        model: the model; it is reshaped.
        files: as given for ``--input``.
        shapes: as given for ``--shape``.
        seed: for random numbers; ``None`` for none.
    """
    from .feeding import collect

    if shapes:
        model.reshape(shapes_of(shapes))
    found = collect(model, files, seed)
    return [found[port].array for port in model.inputs]
