"""``ir-runtime run --batch``: data sets larger than memory, and interrupted runs."""

from __future__ import annotations

import json
import os
import random
import resource
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import zarr
from click.testing import CliRunner, Result

import ir_runtime as ov
from ir_runtime import opset13 as op
from ir_runtime.cli import main
from ir_runtime.dask import Runner

from . import kills
from .models import BATCH, COUNT, X, dense, rows, running_sum, two_inputs


def expected() -> tuple[np.ndarray, ...]:
    return Runner.of("dense.xml", batch=BATCH)(X)


def run(line: str, code: int = 0) -> Result:
    found = CliRunner().invoke(main, shlex.split(f"run {line}"))
    assert found.exit_code == code, found.output
    return found


def by_threads(line: str, code: int = 0) -> Result:
    return run(f"{line} --batch {BATCH} --scheduler threads", code)


def check_zarr(path: str = "out.zarr") -> None:
    found = zarr.open(path, mode="r")
    for name, array in zip(("scores", "total"), expected(), strict=True):
        assert np.array_equal(found[name][:], array)


def partial(output: str) -> Path:
    """Return the file or store that holds the rows of an unfinished run, as named in the manifest."""
    return Path(json.loads(Path(f"{output}.manifest.jsonl").read_text().splitlines()[0])["partial"])


def unfinished(output: str, chunks: int, rest: str = "") -> list[str]:
    """Turn a result into that of a run killed after some chunks; return the removed lines of the manifest."""
    manifest = Path(f"{output}.manifest.jsonl")
    header, *lines = manifest.read_text().splitlines()
    done = [line for line in lines if '"done"' in line]
    manifest.write_text("\n".join([header, *done[:chunks], rest]))
    os.rename(output, partial(output))
    return done[chunks:]


def _zarr() -> str:
    zarr.create_array(store="x.zarr", data=X, chunks=(5, 6))
    return "x.zarr"


def _npz() -> str:
    np.savez("x.npz", other=np.zeros(3), x=X)
    return "x.npz"


def _zarr_group() -> str:
    group = zarr.open_group("x.zarr", mode="w")
    group.require_group("train").create_array("x", data=X, chunks=(5, 6))
    group.require_group("test").create_array("y", data=X[:3], chunks=(3, 6))
    return "x.zarr"


def _hdf5() -> str:
    h5py = pytest.importorskip("h5py", reason="h5py reads HDF5 files where it is installed")
    with h5py.File("x.h5", "w") as file:
        file["group/x"] = X
    return "x.h5"


def _files() -> str:
    os.mkdir("folder")
    for index, row in enumerate(X):
        np.save(f"folder/{index:04}.npy", row)
    return "folder"


@pytest.mark.parametrize("make", [lambda: "x.npy", _npz, _zarr, _zarr_group, _hdf5, _files])
def test_data_sets_of_each_kind(folder: Path, make: Callable[[], str]) -> None:
    found = json.loads(by_threads(f"dense.xml -i {make()} -o out.zarr --json").stdout)
    assert (found["rows"], found["total"], found["done"], found["failed"]) == (COUNT, COUNT, 11, [])
    check_zarr()


def test_hdf5_files_are_read_by_rows_without_being_asked(folder: Path) -> None:
    run(f"dense.xml -i {_hdf5()} -o out.zarr --scheduler threads --chunk {BATCH}")
    assert "need a place: -o" in run("dense.xml -i x.h5", 2).stderr


def test_folders_of_images(folder: Path) -> None:
    from PIL import Image

    x = op.parameter([-1, 3, 4, 4], np.float32, name="x")
    ov.save_model(ov.Model([op.result(op.relu(x))], [x], "relu"), "relu.xml")
    os.mkdir("images")
    pixels = np.random.default_rng(3).integers(0, 256, (5, 4, 4, 3)).astype(np.uint8)
    for index, image in enumerate(pixels):
        Image.fromarray(image).save(f"images/{index}.png")
    by_threads("relu.xml -i images -o out.npy --mean 100")
    assert np.array_equal(np.load("out.npy"), np.maximum(pixels.transpose(0, 3, 1, 2) - np.float32(100), 0))


def test_one_output_is_an_array(folder: Path) -> None:
    ov.save_model(two_inputs(), "two.xml", compress_to_fp16=False)
    np.save("y.npy", 2 * X)
    by_threads("two.xml -i y=y.npy -i x.npy -o out.npy")
    run("two.xml -i y=y.npy -i x.npy -o out.zarr --chunk 8 --workers 1 --scheduler threads")
    assert np.array_equal(np.load("out.npy"), X + 2 * X)
    assert np.array_equal(zarr.open("out.zarr")[:], X + 2 * X)


def test_sequences_do_not_share_their_state(folder: Path) -> None:
    ov.save_model(running_sum(), "sum.xml", compress_to_fp16=False)
    x = np.random.default_rng(2).integers(0, 9, (10, 4, 3)).astype(np.float32)
    np.save("steps.npy", x)
    by_threads("sum.xml -i steps.npy -o out.npy --sequence-axis 1")
    assert np.array_equal(np.load("out.npy"), np.cumsum(x, 1))


def test_resumes_what_is_not_done(folder: Path) -> None:
    by_threads("dense.xml -i x.npy -o out.zarr")
    lines = unfinished("out.zarr", 7, '{"don')  # killed while it wrote the eighth
    found = zarr.open(partial("out.zarr"), mode="r+")
    undone = {json.loads(line)["done"] for line in lines}
    for chunk in undone:
        found["scores"][chunk * BATCH : (chunk + 1) * BATCH] = 7
    again = json.loads(by_threads("dense.xml -i x.npy -o out.zarr --resume --json").stdout)
    assert again["rows"] == len(undone) * BATCH
    check_zarr()
    assert json.loads(by_threads("dense.xml -i x.npy -o out.zarr --resume --json").stdout)["rows"] == 0


def test_refuses_to_resume_something_else(folder: Path) -> None:
    by_threads("dense.xml -i x.npy -o out.zarr")
    assert "exists" in by_threads("dense.xml -i x.npy -o out.zarr", 2).stderr
    assert (
        "another chunk: 4, expected 8"
        in by_threads("dense.xml -i x.npy -o out.zarr --resume --chunk 8", 2).stderr
    )
    ov.save_model(dense(width=6), "dense.xml")  # with weights of f16
    assert "another model" in by_threads("dense.xml -i x.npy -o out.zarr --resume", 2).stderr
    assert "cannot be read" in by_threads("dense.xml -i x.npy -o new.zarr --resume", 2).stderr
    Path("out.zarr.manifest.jsonl").write_text("{")
    assert "is damaged" in by_threads("dense.xml -i x.npy -o out.zarr --resume", 2).stderr


def test_what_does_not_fit_is_refused_before_anything_is_written(folder: Path) -> None:
    np.save("narrow.npy", X[:, :5])
    np.save("scalar.npy", np.float32(1))
    cases = {
        "dense.xml -i narrow.npy -o out.zarr": "must have the shape",
        "dense.xml -i x.npy -o out.txt": "cannot be written by rows",
        "dense.xml -i x.npy -o out.npy": "can hold one output",
        "dense.xml -i x.npy": "need a place",
        "dense.xml -i x.npy -o out.zarr --backend natve": "unknown backend 'natve'",
        "dense.xml -i x.npy -o none/out.zarr": "does not exist",
        "dense.xml -i y=x.npy -o out.zarr": "unknown input 'y'",
        "dense.xml -i scalar.npy -o out.zarr": "no rows",
        "dense.xml -i dense.xml -o out.zarr": "is not a data set",
        "dense.xml -i none.npy -o out.zarr": "cannot be read",
        "dense.xml -o out.zarr": "inputs are missing: 'x'",
    }
    for line, message in cases.items():
        assert message in by_threads(line, 2).stderr
    assert not Path("out.zarr").exists()
    assert "unknown scheduler 'treads'" in run("dense.xml -i x.npy -o out.zarr --scheduler treads", 2).stderr


def test_rows_that_fail_are_skipped_or_nan(folder: Path) -> None:
    _files()
    np.save("folder/0009.npy", X[9, :5])
    assert (
        "0009.npy has float32 [5], expected float32 [6]"
        in by_threads("dense.xml -i folder -o a.zarr", 2).stderr
    )
    skipped = by_threads("dense.xml -i folder -o b.zarr --on-error skip --json", 5)
    [failed] = json.loads(skipped.stdout)["failed"]
    assert (failed["chunk"], failed["rows"]) == (2, [8, 12])
    assert "rows 8 to 11 failed" in skipped.stderr
    by_threads("dense.xml -i folder -o c.zarr --on-error nan", 5)
    scores, kept = zarr.open("c.zarr")["scores"][:], np.r_[0:8, 12:COUNT]
    assert np.isnan(scores[8:12]).all()
    assert np.array_equal(scores[kept], expected()[0][kept])
    np.save("folder/0009.npy", X[9])
    by_threads("dense.xml -i folder -o b.zarr --on-error skip --resume")
    check_zarr("b.zarr")


HURT = """
import os, signal, sys
import psutil
from ir_runtime.cli import main
from ir_runtime.dask import job
from ir_runtime.dask.manifest import Manifest

{setting}
add_done = Manifest.add_done

def hurt(self, chunk):
    add_done(self, chunk)
    if len(self.done) == {after}:
        {what}

Manifest.add_done = hurt
main(sys.argv[1:])
"""
"""The command line, to which something happens after some chunks."""


def heed_interrupts() -> None:
    """Restore SIGINT, which background processes of a shell ignore."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def start(
    line: str,
    what: str = "pass",
    prepare: Callable[[], None] = heed_interrupts,
    *,
    after: int = 5,
    setting: str = "",
) -> tuple[int, str, str]:
    """Run by rows in another process; return its exit code, stdout and stderr."""
    code = HURT.format(what=what, after=after, setting=setting)
    command = [sys.executable, "-c", code, "run", *shlex.split(line), "--batch", str(BATCH)]
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=prepare)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.oracle  # Dask may take half a minute to see that a worker is gone
def test_a_worker_that_is_killed_loses_nothing(folder: Path) -> None:
    find = 'worker = next(p for p in psutil.Process().children(recursive=True) if "spawn_main" in str(p.cmdline()))'
    kill = f"{find}; print(sorted(worker.environ()), file=sys.stderr); worker.kill()"
    code, said, problems = start("dense.xml -i x.npy -o out.zarr --workers 2 --json", kill)
    assert code == 0, problems
    assert (
        "OMP_NUM_THREADS" in problems
    )  # Dask's environment, but for the setting that has glibc keep nothing
    assert "MALLOC_TRIM_THRESHOLD_" not in problems
    assert json.loads(said)["done"] == 11
    check_zarr()


def test_a_run_that_is_killed_goes_on(folder: Path) -> None:
    code, *_ = start(
        "dense.xml -i x.npy -o out.zarr --scheduler threads", "os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert code == -signal.SIGKILL
    again = json.loads(by_threads("dense.xml -i x.npy -o out.zarr --resume --json").stdout)
    assert again["rows"] == COUNT - 5 * BATCH
    assert again["done"] == 11
    check_zarr()


def test_a_run_that_is_interrupted_says_how_far_it_came(folder: Path) -> None:
    line = "dense.xml -i x.npy -o out.zarr --scheduler threads"
    code, _, problems = start(line, "os.kill(os.getpid(), signal.SIGINT)")
    assert code == 130
    assert "5 of 11 chunks are done; --resume continues" in problems
    assert "Traceback" not in problems


def test_a_full_disk_is_an_error_of_the_run(folder: Path) -> None:
    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    np.save("x.npy", rows(COUNT, 4000))
    x = op.parameter([-1, 4000], np.float32, name="x")
    ov.save_model(ov.Model([op.result(op.relu(x))], [x], "relu"), "relu.xml")
    code, _, problems = start(
        "relu.xml -i x.npy -o out.zarr --scheduler threads --on-error skip", prepare=limit
    )
    assert code == 5, problems
    assert "File too large" in problems
    assert "--resume continues" in problems


@pytest.mark.oracle
@pytest.mark.parametrize("kind", kills.KINDS)
def test_kills_at_random_times(tmp_path: Path, kind: str) -> None:
    kills.prepare(tmp_path)
    found = kills.undisturbed(tmp_path)
    for seed in range(2):
        kills.KINDS[kind](tmp_path, random.Random(seed))
        assert np.array_equal(kills.result(tmp_path), found)
