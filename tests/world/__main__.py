"""Run every IR of a folder in OpenVINO and here: ``python -m world FOLDER`` (make world FOLDER=...).

Each file runs on OpenVINO's CPU plugin (f32, without dynamic quantization) and on every backend with the same inputs, and is
validated, each in a process of its own. Inputs are random, or those of NAME.npz next to NAME.xml, by tensor name. The report
starts with the conclusion. No such files are kept in this repository: use public ones, or files converted by an OpenVINO
release.

A backend is reported if it differs from the plugin by more than rounding, unless the plugin differs from itself in a second
run, ``Model.evaluate`` or f64 agrees with the backend, or the difference of each layer from f64 is explained by rounding, so
that nearly equal values were ordered differently.
"""

from __future__ import annotations

import argparse
import functools
import json
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

from ir_runtime.backends import available

from . import sides
from .processes import attempt, prepare
from .table import report
from .verdict import Outcome, Row, difference

_VERSION = re.compile(rb"<net\b[^>]*\bversion\s*=\s*[\"'](\d+)[\"']")
_NET = re.compile(rb"<net\b")
START = 1 << 14
"""Bytes of a file in which its <net> is looked for."""


def collect(folder: Path) -> list[Path]:
    """List the IR files below a folder in order."""
    paths = [folder] if folder.is_file() else sorted(folder.rglob("*.xml"))
    return [path for path in paths if _NET.search(path.read_bytes()[:START])]


def examine(path: Path, name: str, backends: Sequence[str], seconds: float) -> Row:
    """Run a file everywhere, and compare."""
    text = path.read_bytes()
    match = _VERSION.search(text[:START])
    with tempfile.TemporaryDirectory(prefix="ir_runtime-world-") as folder:
        work = Path(folder)
        row = Row(name, match[1].decode() if match else "?", attempt(sides.openvino, path, work, seconds))
        for backend in backends:
            row.ours[backend] = attempt(functools.partial(sides.ours, backend=backend), path, work, seconds)
            if row.openvino.ran and row.ours[backend].ran:
                row.differences[backend] = difference(
                    sides.kept(work / backend), sides.kept(work / "openvino")
                )
        if row.differing:
            settle(row, path, work, seconds)
        row.validate = attempt(sides.validate, path, work, seconds)
    return row


def settle(row: Row, path: Path, work: Path, seconds: float) -> None:
    """Find the reasons why backends differ from OpenVINO's CPU plugin."""
    theirs = sides.kept(work / "openvino")
    if attempt(sides.repeat, path, work, seconds).ran and difference(sides.kept(work / "repeat"), theirs) > 1:
        row.reasons = dict.fromkeys(row.differing, "OpenVINO differs from itself in another run")
        return
    for action, name, reason in (
        (sides.evaluate, "evaluate", "OpenVINO's Model.evaluate gives the same"),
        (sides.compute_in_f64, "f64", "f64 gives the same"),
    ):
        if row.apart and attempt(action, path, work, seconds).ran:
            others = sides.kept(work / name)
            same = [backend for backend in row.apart if difference(sides.kept(work / backend), others) <= 1]
            row.reasons |= dict.fromkeys(same, reason)
    if not row.apart:
        return
    explains = {
        side: attempt(functools.partial(sides.explain, side=side), path, work, seconds).ran
        for side in (*row.apart, "openvino")
    }
    other = "and OpenVINO's" if explains.pop("openvino") else "not OpenVINO's"
    for backend, is_explained in explains.items():
        if is_explained:
            row.reasons[backend] = f"rounding explains our results, {other}, layer by layer"


def main(arguments: Sequence[str]) -> int:
    """Run a collection; return 1 if a file that OpenVINO runs is not as good here, or a process crashes."""
    parser = argparse.ArgumentParser(prog="python -m world", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="a folder with .xml and .bin files, or one .xml")
    parser.add_argument("--backend", action="append", help="by default, all that can run here")
    parser.add_argument(
        "--seconds", type=float, default=120.0, help="the most that one file may take on one side"
    )
    parser.add_argument("--jobs", type=int, default=1, help="files at once")
    parser.add_argument(
        "--log", type=Path, help="JSON lines, one for each file; those there are not run again"
    )
    given = parser.parse_args(arguments)
    backends = given.backend or available()
    prepare()
    rows = list(_rows(given.folder, backends, given))
    print(*report(rows, backends), sep="\n")
    return int(not all(row.good for row in rows))


def _rows(folder: Path, backends: Sequence[str], given: argparse.Namespace) -> Iterator[Row]:
    done = {row.name: row for row in _logged(given.log)}
    names = {str(path.relative_to(folder)) if path != folder else path.name: path for path in collect(folder)}
    yield from (done[name] for name in names if name in done)
    work = functools.partial(examine, backends=backends, seconds=given.seconds)
    rest = [name for name in names if name not in done]
    with ThreadPoolExecutor(given.jobs) as pool:
        for row in pool.map(lambda name: work(names[name], name), rest):
            if given.log:
                with given.log.open("a") as log:
                    log.write(json.dumps(asdict(row)) + "\n")
            yield row


def _logged(log: Path | None) -> Iterator[Row]:
    for line in log.read_text().splitlines() if log and log.exists() else ():
        fields = json.loads(line)
        fields["openvino"], fields["validate"] = Outcome(**fields["openvino"]), Outcome(**fields["validate"])
        fields["ours"] = {backend: Outcome(**outcome) for backend, outcome in fields["ours"].items()}
        yield Row(**fields)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
