"""The test coverage of each operation version, counted from the samples: ``make table``."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

import click

from harness.sample import Sample, all_samples
from ir_runtime.cli.render import table
from ir_runtime.ir.element import ElementType
from ir_runtime.ops import Op, registry
from ir_runtime.ops._define.describe import TESTED_AGAINST, group, link

COLUMNS = ("operation", "group", "samples", "openvino", "plugin", "by hand", "ranks", "types", "page")


def rows() -> Iterator[list[str]]:
    """Yield a row for each version: the number of samples, their oracles, ranks and types."""
    found: dict[str, list[Sample]] = {}
    for sample in all_samples():
        found.setdefault(sample.op, []).append(sample)
    for cls in registry:
        yield _row(cls, found.get(cls.versioned_name(), []))


def _row(cls: type[Op], samples: list[Sample]) -> list[str]:
    counts = Counter(sample.oracle for sample in samples)
    arrays = [array for sample in samples for array in sample.inputs]
    return [
        cls.versioned_name(),
        group(cls),
        str(len(samples)),
        *(str(counts[oracle]) for oracle in ("reference", "plugin", "none")),
        _listed({array.ndim for array in arrays}),
        _listed({ElementType.from_dtype(array.dtype).label for array in arrays}),
        (link(cls) or "-").rpartition("/")[2].removesuffix(".html"),
    ]


def _listed(items: Iterable[object]) -> str:
    return " ".join(map(str, sorted(items, key=str)))


if __name__ == "__main__":
    title = f"What samples are compared with: {TESTED_AGAINST} (reference, else plugin), or results by hand"
    click.echo(table(title, COLUMNS, rows(), right=COLUMNS[2:6]))
