"""Options for image inputs, stored in click's context until the inputs are read."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from .helping import Command, SectionOption

if TYPE_CHECKING:
    from .pictures import ImageOptions

__all__ = ["image_layout", "image_options", "image_options_given"]

_KEY = "ir_runtime.images"
_SECTION = "Images"


def _keep(ctx: click.Context, option: click.Parameter, value: object) -> None:
    if value is not None and option.name is not None:
        ctx.meta.setdefault(_KEY, {})[option.name] = value


def _numbers(ctx: click.Context, option: click.Parameter, text: str | None) -> None:
    if text is None:
        return
    try:
        _keep(ctx, option, tuple(float(part) for part in text.split(",")))
    except ValueError:
        raise click.BadParameter(f"{text!r} is not numbers such as 123.7,116.3,103.5") from None


def image_options(command: Command) -> Command:
    """Add ``--mean``, ``--scale``, ``--resize`` and ``--color`` to a command, for image inputs."""
    stored_option = partial(
        click.option, cls=SectionOption, section=_SECTION, expose_value=False, callback=_keep
    )
    numbers = partial(
        click.option,
        cls=SectionOption,
        section=_SECTION,
        expose_value=False,
        callback=_numbers,
        metavar="NUMBERS",
    )
    for option in (
        stored_option("--color", type=click.Choice(["rgb", "bgr", "gray"]), help="Channel order."),
        stored_option(
            "--resize",
            type=click.Choice(["stretch", "letterbox", "crop", "none"]),
            metavar="HOW",
            help="Resizing: stretch, letterbox, crop or none.",
        ),
        numbers("--scale", help="Then divide by this: one value, or one per channel."),
        numbers("--mean", help="Subtract this: one value, or one per channel."),
    ):
        command = option(command)
    return command


def image_layout(command: Command) -> Command:
    """Add ``--layout`` to a command."""
    return click.option(
        "--layout",
        cls=SectionOption,
        section=_SECTION,
        metavar="LAYOUT",
        expose_value=False,
        callback=_keep,
        help="Layout of the input, such as NCHW.",
    )(command)


def image_options_given() -> ImageOptions:
    """Return the image options of the running command."""
    from .pictures import ImageOptions

    ctx = click.get_current_context(silent=True)
    return ImageOptions(**(ctx.meta.get(_KEY, {}) if ctx else {}))
