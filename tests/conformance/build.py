"""Build the conformance corpus: ``python -m conformance.build out/``, or ``make conformance``."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import chain
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from harness.sample import Sample
from harness.terminals import blocks

import ir_runtime as ov
from conformance.coverage import Coverage
from conformance.fulfilled import with_fulfilled
from conformance.refusals import refusal_cases
from conformance.values import dynamic_cases, samples, value_cases
from conformance.whole_models import body_cases, state_cases
from ir_runtime.conformance.case import Case
from ir_runtime.errors import IRError
from ir_runtime.guides import guide
from ir_runtime.ops import registry
from ir_runtime.ops._define.describe import group

__all__ = ["REFERENCE", "Built", "all_cases", "build", "readme"]

_HERE = Path(__file__).parent
REFERENCE = _HERE / "openvino_reference.xfail"
"""Cases that ``Model.evaluate`` fails, and why."""


@dataclass
class Built:
    """A built corpus, its coverage, and the omitted samples.

    Args:
        path: the file.
        coverage: of operations, types, kinds and clauses.
        left_out: samples that are not cases, with the reasons.
    """

    path: Path
    coverage: Coverage = field(default_factory=Coverage)
    left_out: Counter[str] = field(default_factory=Counter)


def all_cases(left_out: Counter[str], every: Mapping[str, Sequence[Sample]] | None = None) -> Iterator[Case]:
    """Yield the cases of a corpus, ordered by operation.

    Args:
        left_out: counts omitted samples by reason.
        every: the samples, by operation; by default all, and networks.
    """
    chosen = samples() if every is None else every
    yield from value_cases(left_out, chosen)
    yield from dynamic_cases(left_out, chosen)
    if every is None:
        yield from refusal_cases(cls.versioned_name() for cls in registry if group(cls))
        yield from map(with_fulfilled, body_cases(left_out))
        yield from map(with_fulfilled, state_cases())
    else:
        yield from refusal_cases(chosen)


def build(folder: Path, every: Mapping[str, Sequence[Sample]] | None = None) -> Built:
    """Write a corpus; equal samples give equal bytes.

    Args:
        folder: the target, created if necessary.
        every: as for `all_cases`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    built = Built(folder / f"ir-conformance-{ov.__version__.rpartition('-')[2]}.zip")
    hashes = []
    with ZipFile(built.path, "w") as archive:
        files = chain(_files(built, all_cases(built.left_out, every)), _pages())
        for name, contents in files:
            _add(archive, name, contents)
            hashes.append(f"{sha256(contents).hexdigest()}  {name}\n")
        _add(archive, "MANIFEST", "".join(hashes).encode())
    return built


def _files(built: Built, every: Iterable[Case]) -> Iterator[tuple[str, bytes]]:
    for case in every:
        built.coverage.add(case)
        for name, contents in case.files():
            yield f"{case.id}/{name}", contents


def _pages() -> Iterator[tuple[str, bytes]]:
    """Return the page that explains the corpus, the known failures of OpenVINO's reference, and the licence."""
    yield "README.md", readme().encode()
    yield REFERENCE.name, REFERENCE.read_bytes()
    yield "LICENSE", (_HERE.parents[1] / "LICENSE").read_bytes()


def readme() -> str:
    """Return the page of the corpus, with the guide's first program: a suite without this package."""
    programs = [code for language, code in blocks(guide("conformance").text) if language == "py"]
    return (_HERE / "corpus.md").read_text(encoding="utf-8").replace("PROGRAM\n", programs[0])


def _add(archive: ZipFile, name: str, contents: bytes) -> None:
    entry = ZipInfo(name)  # of 1980, on any day
    entry.compress_type = ZIP_DEFLATED
    archive.writestr(entry, contents, compresslevel=9)


if __name__ == "__main__":
    try:
        done = build(Path(sys.argv[1]))
    except IRError as problem:
        sys.exit(str(problem))
    print(done.coverage.text())
    print(f"left out: {dict(done.left_out)}")
    print(f"{done.path}: {done.path.stat().st_size / 1e6:.1f} MB")
