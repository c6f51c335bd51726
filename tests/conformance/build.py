"""Build the conformance corpus: ``python -m conformance out/``, or ``make conformance``."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from harness.files import model_of
from harness.sample import Sample, all_samples

import ir_runtime as ov
from conformance.truth import Truth, Unstable, truth_of
from ir_runtime.conformance.case import Case, Tolerance
from ir_runtime.errors import IRError
from ir_runtime.ir.element import ElementType

__all__ = ["Built", "build", "cases", "cases_of"]

RANDOM = {"RandomUniform", "Multinomial"}
"""Operations whose outputs are not determined by their inputs."""


@dataclass
class Built:
    """What was built, and what was left out."""

    cases: int = 0
    left_out: Counter[str] = field(default_factory=Counter)


def cases(built: Built, samples: Iterable[Sample]) -> Iterator[Case]:
    """Yield the cases of samples; count what is left out."""
    numbers: Counter[str] = Counter()
    for sample in samples:
        numbers[sample.op] += 1
        name = f"{sample.op}/{numbers[sample.op]:04}"
        if sample.cls.name in RANDOM:
            built.left_out["random numbers"] += 1
            continue
        try:
            yield from cases_of(name, sample)
        except Unstable as reason:
            built.left_out[str(reason)] += 1


def cases_of(name: str, sample: Sample) -> Iterator[Case]:
    """Yield the cases of a sample; `Unstable` if it has none."""
    xml, weights = model_of(sample, sample.constant)
    feeds = [x for index, x in enumerate(sample.inputs) if index not in sample.constant]
    types = [value.element for index, value in enumerate(sample.values()) if index not in sample.constant]
    model = ov.read_model(xml, weights)
    truth = _truth(sample, model, feeds)
    yield Case(
        name, sample.op, "value", xml, weights, feeds, truth.outputs, types, truth.types, truth.tolerances,
        truth.source, sample.differs,
    )  # fmt: skip


def _truth(sample: Sample, model: ov.Model, feeds: list[object]) -> Truth:
    if sample.expect is None:
        return truth_of(model, feeds)
    types = [port.element_type for port in model.outputs]
    types = [
        ElementType.from_dtype(x.dtype) if t is ElementType.dynamic else t
        for t, x in zip(types, sample.expect, strict=True)
    ]
    tolerances = [Tolerance(ulp=4) if element.real else Tolerance() for element in types]
    return Truth(list(sample.expect), types, tolerances, "page")


def build(folder: Path, samples: Iterable[Sample]) -> Built:
    """Write the corpus; the same samples give the same bytes."""
    built = Built()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"ir-conformance-{ov.__version__.rpartition('-')[2]}.zip"
    lines = []
    with ZipFile(path, "w", ZIP_DEFLATED, compresslevel=9) as archive:
        for case in cases(built, samples):
            for name, contents in case.files():
                entry = ZipInfo(f"{case.id}/{name}")
                entry.compress_type = ZIP_DEFLATED
                archive.writestr(entry, contents)
                lines.append(f"{sha256(contents).hexdigest()}  {case.id}/{name}\n")
            built.cases += 1
        archive.writestr(ZipInfo("MANIFEST"), "".join(lines), ZIP_DEFLATED)
    return built


if __name__ == "__main__":
    try:
        done = build(Path(sys.argv[1]), all_samples())
    except IRError as problem:
        sys.exit(str(problem))
    print(f"{done.cases} cases; left out: {dict(done.left_out)}")
