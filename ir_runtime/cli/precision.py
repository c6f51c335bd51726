"""The type to compute in, as ``--precision`` of ``run`` and ``-infer_precision`` of ``bench`` have it."""

from __future__ import annotations

import click

__all__ = ["PRECISION"]


class _Precision(click.Choice[str]):
    """A type that kernels compute in, also as the ports of files have it (``FP16``); others are refused with what to do instead."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name of the type."""
        given = value.lower()
        if given == "bf16":
            message = (
                "bf16 cannot be computed in: f32 and f16 can. ir-runtime budget --to bf16 and trace-nan --as bf16 "
                "say what rounding to bf16 changes."
            )
            self.fail(message, param, ctx)
        return super().convert(given.replace("fp", "f"), param, ctx)


PRECISION = _Precision(["f32", "f16"], case_sensitive=False)
