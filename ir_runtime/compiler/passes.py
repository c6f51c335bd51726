"""A pass: one step of compiling, with a name. The passes of a compilation run in the order of a tuple."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from .._util.nearest import did_you_mean
from ..codes import Code
from ..errors import InputError

__all__ = ["Pass", "named"]

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Pass(Generic[S]):
    """A step of compiling that leaves a model's results alone.

    Args:
        name: how ``--print-after`` calls it.
        run: changes the state of a compilation.
    """

    name: str
    run: Callable[[S], None]

    @property
    def summary(self) -> str:
        """The first line of what documents it."""
        return (self.run.__doc__ or "").partition("\n")[0]


def named(name: str, names: Iterable[str]) -> str:
    """Return a name if there is a pass of that name.

    Raises:
        InputError: if there is none.
    """
    if name in (known := list(names)):
        return name
    raise InputError(
        f"unknown pass {name!r}",
        code=Code.BAD_REQUEST,
        hint=f"{did_you_mean(name, known, after=' ')}the passes are {', '.join(known)}",
    )
