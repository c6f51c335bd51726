"""Messages for data sets and Dask arrays that do not fit a model."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Callable
from contextlib import chdir
from functools import cache
from pathlib import Path
from unittest import mock

import dask.array as da
import numpy as np
from click.testing import CliRunner
from harness.missing import missing
from harness.refusals import Call

import ir_runtime as ir
from ir_runtime import opset13 as op
from ir_runtime.cli import main
from ir_runtime.dask import Runner, map_blocks, map_partitions
from ir_runtime.dask.cluster import connect
from ir_runtime.dask.datasets import open_dataset
from ir_runtime.dask.job import run_job
from ir_runtime.dask.manifest import LARGEST, encode_line
from ir_runtime.dask.model_source import ModelSource

FOLDER = "messages"


def parameter(shape: list[int], name: str = "x") -> ir.Node:
    found = op.parameter(shape, np.float32, name=name)
    found.output(0).set_names({name})
    return found


def doubled(shape: list[int]) -> ir.Model:
    y = op.add(x := parameter(shape), x)
    y.output(0).set_names({"y"})
    return ir.Model([op.result(y)], [x], "doubled")


def added() -> ir.Model:
    x, y = parameter([-1, 2]), parameter([-1, 2], "y")
    return ir.Model([op.result(op.add(x, y)), op.result(op.subtract(x, y))], [x, y], "added")


def of(build: Callable[[ir.Node], ir.Node], *shape: int) -> ir.Model:
    """A model with one input."""
    y = build(x := parameter(list(shape) or [-1, 2]))
    y.output(0).set_names({"y"})
    return ir.Model([op.result(y)], [x], "model")


def blocks(name: str, model: Callable[[], ir.Model], array: object, **how: object) -> Call:
    return Call(name, lambda: map_blocks(model(), {"x": array}, **how))


def axes(*numbers: int) -> ir.Node:
    return op.constant(np.array(numbers))


def products() -> ir.Model:
    """Products of all pairs of rows: ``[N, N]``."""
    return of(lambda x: op.matmul(x, x, False, True))


def pairs() -> ir.Model:
    """A model that takes rows in pairs."""
    return of(lambda x: op.reshape(op.reshape(x, axes(-1, 2, 2), False), axes(-1, 2), False))


def files() -> None:
    """The files that the commands below read."""
    ir.save_model(doubled([-1, 2]), "net.xml")
    ir.save_model(added(), "two.xml")
    ir.save_model(of(lambda x: op.convert(x, "i32")), "integers.xml")
    ir.save_model(of(lambda x: op.convert(x, "bf16")), "bf16.xml")
    np.save("x.npy", np.zeros((4, 2), np.float32))
    np.save("wide.npy", np.zeros((4, 3), np.float32))
    np.save("long.npy", np.zeros((5, 2), np.float32))
    np.save("scalar.npy", np.float32(1))
    np.save("fortran.npy", np.zeros((4, 2), np.float32, order="F"))
    np.savez("parts.npz", left=np.zeros(2), right=np.zeros(2))
    Path("cut.npy").write_bytes(Path("x.npy").read_bytes()[:-4])
    Path("notes.txt").write_text("notes")
    Path("x.h5").write_bytes(b"")
    np.savez("none.npz")
    os.mkdir("empty")
    os.mkdir("rows")
    np.save("rows/0.npy", np.zeros(2, np.float32))
    np.save("rows/1.npy", np.zeros(3, np.float32))


def run(line: str) -> str:
    return CliRunner().invoke(main, shlex.split(f"run {line} --scheduler threads --workers 1")).stderr


def without_names(text: str) -> str:
    """Mask what varies between runs: the folder, and the name of a partial result."""
    return re.sub("[0-9a-f]{16}", "0123456789abcdef", text.replace(f"{os.getcwd()}/", ""))


def command(line: str, after: Callable[[], None] = lambda: None, before: str = "", absent: str = "") -> Call:
    """Return the output of a run by rows in a temporary folder."""

    def call() -> str:
        with tempfile.TemporaryDirectory() as folder, chdir(folder), missing(*absent.split()):
            files()
            if before:
                run(before)
                after()
            return without_names(run(line))

    call.__name__ = f"run {line}"
    return call  # type: ignore[return-value]


def removed() -> None:
    Path("out.npy.manifest.jsonl").unlink()


def damaged() -> None:
    Path("out.npy.manifest.jsonl").write_text("{")


MANIFEST = Path("out.npy.manifest.jsonl")


def locked() -> None:
    """Another run that writes the same result, and ends with this process."""
    fcntl.flock(os.open(MANIFEST, os.O_RDONLY), fcntl.LOCK_EX)


def another_result() -> None:
    """A result written by another program."""
    Path("out.npy").unlink()
    np.save("out.npy", np.zeros((4, 2), np.float32))


def unfinished(output: str = "out.npy") -> Path:
    """A run killed before its first chunk was recorded; return the partial result."""
    manifest = Path(f"{output}.manifest.jsonl")
    header = manifest.read_text().splitlines()[0]
    manifest.write_text(f"{header}\n")
    return Path(output).rename(json.loads(header)["partial"])


def longer() -> None:
    os.truncate(unfinished(), 1000)


def second_name() -> None:
    os.link(unfinished(), "another.npy")


def a_folder() -> None:
    unfinished().unlink()
    MANIFEST.rename("elsewhere")
    MANIFEST.mkdir()


def without_metadata() -> None:
    (unfinished("out.zarr") / "zarr.json").unlink()


def name_taken() -> None:
    unfinished()
    Path("out.npy").touch()


def manifest_elsewhere() -> None:
    MANIFEST.rename("elsewhere")
    MANIFEST.symlink_to("elsewhere")


def write_lines(*changes: dict[str, object]) -> None:
    """Write a manifest with valid checksums but forged contents."""
    header = json.loads(MANIFEST.read_text().splitlines()[0])
    del header["crc32"]
    MANIFEST.write_bytes(b"".join(map(encode_line, (header | changes[0], *changes[1:]))))


def chunk_beyond() -> None:
    write_lines({}, {"done": 7})


def result_removed() -> None:
    Path("out.npy").unlink()


def named_otherwise() -> None:
    write_lines({"partial": "../../etc/passwd"})


def larger() -> None:
    os.truncate(MANIFEST, LARGEST + 1)


@cache
def finished(output: str) -> tempfile.TemporaryDirectory[str]:
    """A folder with the files, and a result with its manifest."""
    folder = tempfile.TemporaryDirectory()
    with chdir(folder.name):
        files()
        run(f"net.xml -i x.npy -o {output} --batch 2")
    return folder


def again(after: Callable[[], None], output: str = "out.npy") -> Call:
    """Return the output of a run that resumes with a modified partial result."""

    def call() -> str:
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(finished(output).name, folder, dirs_exist_ok=True)
            with chdir(folder):
                after()
                return without_names(run(f"net.xml -i x.npy -o {output} --batch 2 --resume"))

    call.__name__ = f"--resume: {after.__name__.replace('_', ' ')}"
    return call  # type: ignore[return-value]


def in_folder(call: Callable[[], object]) -> Callable[[], None]:
    """Call a function in a folder with the files; the folder is masked in messages."""

    def run() -> None:
        with tempfile.TemporaryDirectory() as folder, chdir(folder):
            files()
            try:
                call()
            except ir.InputError as reason:
                message = reason.message.replace(f"{os.getcwd()}/", "")
                raise ir.InputError(message, code=reason.code, hint=reason.hint) from None

    return run


def hdf5(name: str) -> Callable[[], None]:
    """An HDF5 file whose arrays need other files or plugins, or are not numeric."""

    def run() -> None:
        import h5py

        created = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        created.set_chunk((4, 2))
        created.set_filter(32001, h5py.h5z.FLAG_OPTIONAL)
        with h5py.File("data.h5", "w") as file:
            file.create_dataset("external", (4, 2), "f4", external=[("/etc/passwd", 0, 32)])
            h5py.h5d.create(
                file.id, b"blosc", h5py.h5t.IEEE_F32LE, h5py.h5s.create_simple((4, 2)), created
            ).close()
            file["references"] = np.array([file["external"].ref], h5py.ref_dtype)
        open_dataset("data.h5", name)

    return run


def pickled() -> None:
    """A zarr array with a codec that executes code."""
    os.mkdir("x.zarr")
    codec = {"id": "pickle", "protocol": 5}
    found = {"zarr_format": 2, "shape": [4], "chunks": [4], "dtype": "|O", "fill_value": 0, "order": "C"}
    found |= {"filters": [{"id": "vlen-utf8"}], "compressor": codec}
    Path("x.zarr/.zarray").write_text(json.dumps(found))
    open_dataset("x.zarr", "x")


def damaged_chunk() -> None:
    import zarr

    zarr.create_array(store="x.zarr", data=np.ones((4, 2), np.float32))
    Path("x.zarr/c/0/0").write_bytes(b"damaged")
    open_dataset("x.zarr", "x").read(0, 4)


def without_bytes() -> None:
    np.save("s.npy", np.zeros(4, "S1"))
    Path("s.npy").write_bytes(Path("s.npy").read_bytes()[:-4].replace(b"S1", b"S0"))
    open_dataset("s.npy", "x")


def cut_off() -> None:
    """Rows of a file that was truncated after it was opened."""
    found = open_dataset("x.npy", "x")
    os.truncate("x.npy", 140)
    found.read(0, 4)


def replaced(text: str | None) -> Callable[[], None]:
    """A worker whose file differs from the planned one."""

    def run() -> None:
        source = ModelSource.of("net.xml")
        Path("net.xml").write_text(text) if text else Path("net.xml").unlink()
        source.read()

    return run


def lost(which: str) -> None:
    """A scheduler, or workers, lost while a job runs."""
    import distributed

    errors = {
        "workers": distributed.scheduler.KilledWorker("task", mock.Mock(address="tcp://127.0.0.1:1"), 4),
        "scheduler": TimeoutError("no heartbeat"),
    }
    future = mock.Mock(status="error", result=mock.Mock(side_effect=errors[which]))
    scheduler = mock.Mock(address="tcp://127.0.0.1:8786")
    client = mock.Mock(scheduler=scheduler, nthreads=dict, gather=list, map=mock.Mock(return_value=[future]))
    job = mock.Mock(chunks=1, on_error="stop")
    running = mock.Mock(futures=set(), count=lambda: 0, batches=lambda: iter([[future]]))
    with mock.patch.object(distributed, "as_completed", return_value=running):
        run_job(client, job, mock.Mock(done=set()))


def without(package: str, call: Callable[[], object]) -> Callable[[], None]:
    def run() -> None:
        with missing(package):
            call()

    return run


def address(text: str) -> None:
    with connect(text):
        pass


def without_workers() -> None:
    import distributed

    with mock.patch.object(distributed, "LocalCluster", side_effect=RuntimeError("Nanny failed to start.")):
        address("local")


def frame(columns: list[str], model: ir.Model) -> None:
    table = mock.Mock(columns=["a", "b"])
    map_partitions(model, table, {"x": columns})


class Table:
    """A partition."""

    def __init__(self) -> None:
        self.index = None


def cubes() -> None:
    frame(["a", "b"], of(lambda x: op.unsqueeze(x, axes(2))))


X = da.zeros((4, 2), dtype=np.float32)

REFUSALS = [
    Call("output of a result", lambda: map_blocks(doubled([-1, 2]), X)["z"], (KeyError,)),
    Call("output of a result, nearly", lambda: map_blocks(doubled([-1, 2]), X, ["y"])["yy"], (KeyError,)),
    blocks("array of NumPy", lambda: doubled([-1, 2]), np.zeros((4, 2))),
    blocks("unknown lengths", lambda: doubled([-1, 2]), X[X[:, 0] < 1]),
    blocks("cut along columns", lambda: doubled([-1, 2]), da.zeros((4, 2), chunks=(4, 1))),
    blocks("scalar", lambda: doubled([-1, 2]), da.zeros(())),
    Call("cut differently", lambda: map_blocks(added(), {"x": X, "y": X.rechunk((2, 2))})),
    Call("different lengths", lambda: map_blocks(added(), {"x": X, "y": X[:3]})),
    blocks("missing input", added, X),
    blocks("other columns", lambda: doubled([-1, 2]), da.zeros((4, 3))),
    blocks("fixed batch", lambda: doubled([3, 2]), X),
    blocks("another batch", lambda: doubled([2, 2]), X, batch=4),
    blocks("axis of steps", lambda: doubled([-1, 2]), X, sequence_axis=2),
    blocks("no rows", lambda: of(lambda x: op.reduce_max(x, axes(0))), X),
    blocks("rows that depend on rows", products, da.zeros((4, 2), chunks=(3, 2))),
    blocks("shape of the data", lambda: of(lambda x: op.non_zero(x, "i64")), X),
    blocks("model that refuses", lambda: of(lambda x: op.reshape(x, axes(3, -1), False)), X),
    blocks("rows in multiples", pairs, X.rechunk((3, 2))),
    Call("rows that differ", lambda: Runner.of(added())(np.zeros((2, 2)), np.zeros((3, 2)))),
    Call(
        "steps that differ", lambda: Runner.of(added(), sequence_axis=1)(np.zeros((2, 0)), np.zeros((2, 2)))
    ),
    Call("batch of 0", lambda: Runner.of(doubled([-1, 2]), batch=0)),
    Call("too many inputs", lambda: Runner.of(doubled([-1, 2]))(np.zeros((2, 2)), np.zeros((2, 2)))),
    Call("an input twice", lambda: Runner.of(doubled([-1, 2]))(np.zeros((2, 2)), x=np.zeros((2, 2)))),
    Call("a table of pandas", lambda: map_partitions(doubled([-1, 2]), [1], {"x": ["a"]})),
    Call("other rows than inferred", lambda: Runner.of(doubled([-1, 2])).check_rows((np.zeros((3, 2)),), 4)),
    Call("unknown scheduler", lambda: address("treads")),
    Call("address without a host", lambda: address("tcp://")),
    Call("workers that do not start", without_workers),
    Call("unknown column", lambda: frame(["a", "c"], doubled([-1, 2]))),
    Call("pandas missing", without("pandas", lambda: frame(["a", "b"], doubled([-1, 2])))),
    Call("dask missing", without("dask", lambda: map_blocks(doubled([-1, 2]), X))),
    Call("three axes in a table", cubes),
    Call("workers lost", lambda: lost("workers")),
    Call("scheduler lost", lambda: lost("scheduler")),
    Call("file cut off", in_folder(cut_off)),
    Call("array in another file", in_folder(hdf5("external"))),
    Call("array that needs a plugin", in_folder(hdf5("blosc"))),
    Call("array of references", in_folder(hdf5("references"))),
    Call("pickled array", in_folder(pickled)),
    Call("chunk that is damaged", in_folder(damaged_chunk)),
    Call("elements without bytes", in_folder(without_bytes)),
    Call("file that a worker lacks", in_folder(replaced(None))),
    Call("file that has changed", in_folder(replaced("<net/>"))),
    command("net.xml -i x.npy --batch 2"),
    command("net.xml --random -o out.npy --batch 2"),
    command("net.xml -i x.npy -o out.txt --batch 2"),
    command("net.xml -i x.npy -o out.npy --batch 2 --backend natve"),
    command("net.xml -i none.npy -o out.npy --batch 2"),
    command("net.xml -i wide.npy -o out.npy --batch 2"),
    command("net.xml -i scalar.npy -o out.npy --batch 2"),
    command("net.xml -i notes.txt -o out.npy --batch 2"),
    command("net.xml -i fortran.npy -o out.npy --batch 2"),
    command("net.xml -i cut.npy -o out.npy --batch 2"),
    command("net.xml -i parts.npz -o out.npy --batch 2"),
    command("net.xml -i none.npz -o out.npy --batch 2"),
    command("net.xml -i x.h5 -o out.npy --batch 2", absent="h5py"),
    command("net.xml -i x.npy -o out.npy --batch 2", absent="distributed"),
    command("net.xml -i x.npy -o out.zarr --batch 2", absent="zarr"),
    command("net.xml -i empty -o out.npy --batch 2"),
    command("net.xml -i rows -o out.npy --batch 2"),
    command("net.xml -i x=x.npy -i x=long.npy -o out.npy --batch 2"),
    command("net.xml -i x.npy -i long.npy -o out.npy --batch 2"),
    command("two.xml -i x.npy -o out.zarr --batch 2"),
    command("two.xml -i x.npy -i y=long.npy -o out.zarr --batch 2"),
    command("two.xml -i x.npy -i y=x.npy -o out.npy --batch 2"),
    command("integers.xml -i x.npy -o out.npy --on-error nan"),
    command("bf16.xml -i x.npy -o out.npy --batch 2"),
    command("net.xml -i x.npy -o out.npy --batch 4", before="net.xml -i x.npy -o out.npy --batch 4"),
    command("net.xml -i x.npy -o out.npy --batch 2 --resume", before="net.xml -i x.npy -o out.npy --batch 4"),
    command(
        "net.xml -i x.npy -o out.npy --batch 4 --resume", removed, "net.xml -i x.npy -o out.npy --batch 4"
    ),
    command(
        "net.xml -i x.npy -o out.npy --batch 4  --resume", damaged, "net.xml -i x.npy -o out.npy --batch 4"
    ),
    again(chunk_beyond),
    *map(again, (named_otherwise, larger, locked, another_result, longer, second_name, a_folder)),
    *map(again, (name_taken, manifest_elsewhere, result_removed)),
    again(without_metadata, "out.zarr"),
]
