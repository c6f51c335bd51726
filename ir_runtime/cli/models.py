"""Read the model that a command names, and options and helpers shared by several commands."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, TypeAlias, TypedDict

import click

from .._util.escaping import visible
from .helping import Command
from .render import failure, finding, rest
from .terminal import show

if TYPE_CHECKING:
    from ..limits import Limits
    from ..openvino.model import Model
    from ..openvino.node import Output

__all__ = [
    "as_json",
    "count_option",
    "note_missing",
    "parse_value",
    "port_record",
    "read",
    "example_options",
    "strictly",
    "weights",
]

PortKey: TypeAlias = str | int | tuple[int, int]
"""A port of an example: its name, its id, or the ids of its layer and its own."""


class PortRecord(TypedDict):
    """The JSON record of an input or output of a model."""

    name: str
    type: str
    shape: list[int | str] | None


as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
weights = click.option(
    "-w", "--weights", metavar="BIN", help="Weights; by default, the .bin beside the model."
)

count_option = functools.partial(click.option, type=click.IntRange(min=1), metavar="N")
"""An option for a positive number."""

strictly = click.option("--strict", is_flag=True, help="Refuse declared shapes that contradict inference.")


def example_options(command: Command) -> Command:
    """Add ``--example`` and ``--value`` to a command: the example of a specification page, and contents of its ports."""
    example = count_option("--example", help="Number of the example on a page, from 1.")
    value = click.option(
        "--value",
        "values",
        multiple=True,
        metavar="PORT=NUMBERS",
        help="Contents of an example's port: 1=2,3 or axes=-1.",
    )
    return example(value(command))


def read(
    path: str,
    weights: str | None,
    example: int | None = None,
    values: tuple[str, ...] = (),
    checked: bool = True,
    limits: Limits | None = None,
    strict: bool = False,
    lacking: bool = False,
) -> Model:
    """Read a model, or an example of a specification page.

    Args:
        path: the path of the model or the page.
        weights: the path of the weights, if they are not next to the model.
        example: the number of the example.
        values: contents of ports of the example, as `parse_value` takes them.
        checked: raise an exception if the model has errors, and print its warnings.
        limits: the limits of memory and time.
        strict: also raise an error for declared types and shapes that contradict the inferred ones.
        lacking: allow missing weights.
    """
    from ..codes import Code
    from ..diagnostics import fold
    from ..limits import DEFAULT
    from ..openvino.reading import check, contradiction, read_model

    port_values = dict(map(parse_value, values))
    model = read_model(
        path, weights, strict=False, example=example, values=port_values, limits=limits or DEFAULT
    )
    if checked:
        check(model, strict, frozenset({Code.WEIGHTS_MISSING} if lacking else ()))
        if message := contradiction(model, "--strict"):
            show(failure(message), err=True)
        for warning in fold(model.report.warnings):
            show(finding(warning), err=True)
        for more in model.report.more:
            show(rest(path, more), err=True)
    return model


def note_missing(model: Model, reshaped: bool) -> bool:
    """Return whether weights are missing; if so, print a note on stderr.

    Args:
        model: the model.
        reshaped: whether ``--shape`` was given, so that the shapes in the file do not help.
    """
    from ..codes import Code

    error_missing = next((error for error in model.report.errors if error.code == Code.WEIGHTS_MISSING), None)
    if error_missing is None:
        return False
    instead = "unknown, as --shape changes those in the file" if reshaped else "those that the file declares"
    show(f"{visible(error_missing.message)}; shapes that depend on them are {instead}", err=True)
    show(f"  hint: {visible(error_missing.hint)}", err=True)
    return True


def parse_value(text: str) -> tuple[PortKey, list[float]]:
    """Parse ``PORT=VALUES`` such as ``1=2,3``; ``4:1=2,3`` means port 1 of layer 4."""
    port, equals, numbers = text.rpartition("=")
    try:
        contents = [_number(part) for part in numbers.split(",") if part.strip()]
    except ValueError:
        equals = ""
    if not equals or not port:
        raise click.BadParameter(f"{text!r} is not PORT=NUMBERS, such as 1=2,3", param_hint="--value")
    return _port(port), contents


def _number(text: str) -> float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def _port(text: str) -> PortKey:
    parts = text.split(":")
    if len(parts) > 2 or not all(part.isdecimal() for part in parts):
        return text
    return int(text) if len(parts) == 1 else (int(parts[0]), int(parts[1]))


def port_record(port: Output) -> PortRecord:
    """Return the JSON record of an input or output."""
    from .render import shape_record

    return PortRecord(name=port.label, type=port.element_type.label, shape=shape_record(port._type.shape))
