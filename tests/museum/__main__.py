"""Run the corpus, generated cases and the known differences on released wheels: ``make museum``."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from harness.conformance_cases import write_folder

from ir_runtime.conformance.case import Case
from ir_runtime.conformance.corpus import Corpus
from ir_runtime.conformance.generate import Generated
from ir_runtime.conformance.results import Run, read_run
from ir_runtime.releases.release import WHEELS
from museum.exhibits import exhibits, page, write
from museum.known import known_cases

RELEASES = ("2024.6", "2025.1", "2025.2", "2025.4", "2026.0", "2026.2", "2026.3", "2026.4")
"""Releases with a wheel for Python 3.11 that works with NumPy 2."""


def install(release: str, folder: Path) -> Path:
    """Install the wheel of a release for this Python into a folder; return the folder."""
    target = folder / WHEELS[release]
    if not (target / "installed").exists():
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--no-compile",
            "--target",
            target,
        ]
        subprocess.run([*command, f"openvino=={WHEELS[release]}"], check=True)
        (target / "installed").touch()
    return target


def run(release: str, wheel: Path, corpus: Path, folder: Path) -> Run:
    """Run a corpus on a release, reusing earlier results."""
    target = folder / f"{corpus.stem}-{release}.json"
    if not target.exists():
        path = os.pathsep.join(filter(None, [str(wheel), os.environ.get("PYTHONPATH", "")]))
        line = [
            "conformance",
            "run",
            corpus,
            "--against",
            "openvino",
            "--resume",
            target.with_suffix(".log"),
            "-o",
            target,
        ]
        done = subprocess.run(
            [sys.executable, "-m", "ir_runtime", *line],
            env={**os.environ, "PYTHONPATH": path},
            check=False,
            stdout=subprocess.DEVNULL,
        )
        if done.returncode not in (0, 1):
            sys.exit(f"OpenVINO {release} cannot be asked")
    return read_run(target)


def main() -> None:
    """Run all releases, and write bundles of the newest one's differences."""
    parser = argparse.ArgumentParser(prog="make museum", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--corpus", type=Path, help="a corpus that `make conformance` has built")
    parser.add_argument("--generate", type=int, default=300, metavar="N", help="how many cases are generated")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--releases", nargs="*", default=list(RELEASES), metavar="RELEASE", help="the oldest first"
    )
    options = parser.parse_args()
    folder: Path = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    sets = [write_folder(folder / "known", known_cases())]
    if options.generate:
        generated = Generated(options.generate, options.seed)
        cases = (Case.parse(generated.files(meta.id)) for meta in generated.cases)
        sets.append(write_folder(folder / f"generated-{options.generate}-{options.seed}", cases))
    sets += [options.corpus] if options.corpus else []
    wheels = {release: install(release, folder / "wheels") for release in options.releases}
    found = []
    for path in sets:
        corpus = Corpus(path)
        runs = {release: run(release, wheel, path, folder) for release, wheel in wheels.items()}
        found += exhibits(runs, lambda identity, corpus=corpus: Case.parse(corpus.files(identity)))  # type: ignore[misc]
    for exhibit in found:
        write(folder / "bundles", exhibit, options.releases)
    lines = page(found, options.releases)
    (folder / "divergences.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(found)} differences: {folder / 'divergences.md'}")


if __name__ == "__main__":
    main()
