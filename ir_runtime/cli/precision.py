"""The precision to compute in: ``--precision`` of ``run``, ``-infer_precision`` of ``bench``."""

from __future__ import annotations

import click

__all__ = ["PRECISION"]


class _Precision(click.Choice[str]):
    """A type that kernels compute in, also as the ports of files have it (``FP16``)."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name of the type."""
        return super().convert(value.lower().replace("fp", "f"), param, ctx)


PRECISION = _Precision(["f32", "f16", "bf16"], case_sensitive=False)
