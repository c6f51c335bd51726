"""``--max-memory`` and ``--timeout``; input files that claim more data than they hold."""

from __future__ import annotations

import io
import os
import signal
import struct
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from harness.nets import looping, passing, write, write_chain

import ir_runtime
from ir_runtime.cli import main as program
from ir_runtime.cli.options import parse_size

Invoke = Callable[[str], Result]

MAGIC = b"\x93NUMPY"


def header(shape: str, descr: str = "'<f4'", version: int = 1) -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    length = struct.pack("<H" if version == 1 else "<I", len(text))
    return MAGIC + bytes([version, 0]) + length + text


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("65536", 65536),
        ("1k", 1024),
        ("512M", 512 << 20),
        ("4G", 4 << 30),
        ("1.5GiB", 3 << 29),
        ("2 TB", 2 << 40),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "0", "-1", "4X", "G", "1e9", "1..5G", "9" * 30])
def test_what_is_no_size_is_a_usage_error(folder: Path, invoke: Invoke, text: str) -> None:
    write(folder, passing("f32", "2"))
    found = invoke(f"run net.xml --random --max-memory={text or ' '}")
    assert (found.exit_code, found.stdout) == (2, "")


@pytest.mark.parametrize("seconds", ["0", "-1", "x"])
def test_what_is_no_time_is_a_usage_error(folder: Path, invoke: Invoke, seconds: str) -> None:
    write(folder, passing("f32", "2"))
    assert invoke(f"run net.xml --random --timeout={seconds}").exit_code == 2


@pytest.mark.parametrize("backend", ["numpy", "reference"])
def test_memory_just_enough_and_just_too_little(folder: Path, invoke: Invoke, backend: str) -> None:
    write_chain(folder)
    line = f"run chain.xml --random --backend {backend} -o out.npz"
    # Fused, the two results are one; the reference has read the constant.
    enough = 88 if backend == "reference" else 48
    assert invoke(f"{line} --max-memory {enough}").exit_code == 0
    Path("out.npz").unlink()
    found = invoke(f"{line} --max-memory {enough - 1}")
    assert (found.exit_code, found.stdout) == (5, "")
    assert f"{enough} bytes of memory are needed at once; the limit is {enough - 1}" in found.stderr
    assert "--max-memory" in found.stderr
    assert not Path("out.npz").exists()


def endless(folder: Path) -> None:
    net = looping()
    (folder / "endless.xml").write_bytes(net.xml())
    (folder / "endless.bin").write_bytes(net.weights)
    np.savez("in.npz", trips=np.array(-1), x=np.ones(2, np.float32))


def test_a_run_without_end_ends(folder: Path, invoke: Invoke) -> None:
    endless(folder)
    found = invoke("run endless.xml -i in.npz -o out.npz --timeout 2")
    assert (found.exit_code, found.stdout) == (5, "")
    assert "it takes longer than 2 seconds, the limit" in found.stderr
    assert "layer 'loop" in found.stderr
    assert found.stderr.count("error") == 1
    assert sorted(os.listdir(folder)) == ["endless.bin", "endless.xml", "in.npz"]


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers")
@pytest.mark.parametrize(
    "command", ["run pipe.xml --random", "inspect pipe.xml", "validate pipe.xml", "diff pipe.xml pipe.xml"]
)
def test_the_timer_rings_while_the_program_waits(folder: Path, command: str) -> None:
    os.mkfifo("pipe.xml")
    env = {**os.environ, "PYTHONPATH": str(Path(ir_runtime.__file__).parents[1])}
    found = subprocess.run(
        [sys.executable, "-m", "ir_runtime", *command.split(), "--timeout", "1"],
        capture_output=True, encoding="utf-8", timeout=600, env=env, check=False,
    )  # fmt: skip
    assert found.returncode == (1 if command.startswith("validate") else 5)
    assert "it takes longer than 1 seconds" in found.stdout + found.stderr
    assert "Traceback" not in found.stderr


def test_the_time_limit_begins_with_the_program(folder: Path) -> None:
    write(folder, passing("f32", "2"))
    line = ["run", "net.xml", "--random", "--timeout", "30"]
    assert CliRunner().invoke(program, line, obj=time.monotonic()).exit_code == 0
    late = CliRunner().invoke(program, line, obj=time.monotonic() - 31)
    assert late.exit_code == 5
    assert "it takes longer than 30 seconds, the limit" in late.stderr


def test_bench_measures_within_limits(folder: Path, invoke: Invoke) -> None:
    write(folder, passing("f32", "1000"))
    found = invoke("bench net.xml -niter 1 --max-memory 100")
    assert found.exit_code == 5
    assert "bytes of memory are needed at once; the limit is 100" in found.stderr


def test_limits_do_not_stay_behind(folder: Path, invoke: Invoke) -> None:
    write(folder, passing("f32", "2"))
    before = signal.getsignal(signal.SIGALRM)
    assert invoke("run net.xml --random --timeout 30 --max-memory 1G").exit_code == 0
    assert signal.getsignal(signal.SIGALRM) == before
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


@pytest.mark.parametrize(
    "command",
    [
        "run net.xml --random",
        "inspect net.xml",
        "validate net.xml",
        "diff net.xml net.xml",
        "bench net.xml -niter 1",
    ],
)
def test_all_commands_that_read_models_have_both(folder: Path, invoke: Invoke, command: str) -> None:
    write(folder, passing("f32", "2"))
    assert invoke(f"{command} --timeout 30 --max-memory 1G").exit_code == 0


@pytest.mark.parametrize(
    ("content", "code", "says"),
    [
        (header("(1099511627776,)"), 2, "a tensor has 1099511627776 elements"),
        (header("(4294967296, 2147483648, 8)"), 2, "elements"),
        (header("(1000000,)"), 2, "4000000 bytes of memory are needed at once; the limit is 1048576"),
        (header("(1000,)"), 2, "declares 4000 bytes"),
        (header("(1000,)", version=2), 2, "declares 4000 bytes"),
        (header("(-1,)"), 2, "x.npy"),
        (header("(" * 5000 + ")" * 4000), 2, "x.npy"),
        (MAGIC + b"\2\0" + struct.pack("<I", 2**31), 2, "x.npy"),
        (MAGIC + b"\1\0\xff\xff", 2, "x.npy"),
        (MAGIC, 2, "x.npy"),
        (header("(2147483647,)", descr="'<U0'"), 2, "declares 2147483647 elements that take no bytes"),
        (header("(8,)", descr="'|V0'"), 2, "declares 8 elements that take no bytes"),
        (header(f"({2**70}, 0)"), 2, f"a tensor has {2**70} elements"),
        (header("(1073741824, 0)"), 2, "lengths of an array [1073741824, 0] come to 4294967296 bytes"),
        (header("(1,)", descr="'|O'"), 2, "holds Python objects"),
        (header("(1,)", descr="[('a', '<f4')]"), 2, "holds records"),
        (header("(1,)", descr="('<f4', (2147483647,))"), 2, "x.npy"),
    ],
    ids=[
        "elements",
        "overflow",
        "memory",
        "short",
        "version 2",
        "negative",
        "nested",
        "long",
        "cut",
        "bare",
        "strings without bytes",
        "no bytes",
        "length",
        "lengths",
        "objects",
        "records",
        "arrays of arrays",
    ],
)
def test_an_npy_that_claims_too_much(
    folder: Path, invoke: Invoke, content: bytes, code: int, says: str
) -> None:
    write(folder, passing("f32", "?"))
    Path("x.npy").write_bytes(content)
    found = invoke("run net.xml -i x.npy --max-memory 1M")
    assert found.exit_code == code
    assert says in found.stderr
    assert "mistake in ir_runtime" not in found.stderr


def zipped(path: str, **members: bytes) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)


def test_an_archive_that_grows_without_measure(folder: Path, invoke: Invoke) -> None:
    """Ten arrays of 300 kB of zeros in a 3 kB file; each fits the limit, all together do not."""
    write(folder, passing("f32", "?"))
    content = io.BytesIO()
    np.save(content, np.zeros(75_000, np.float32))
    zipped("x.npz", **{f"a{n}": content.getvalue() for n in range(10)})
    assert Path("x.npz").stat().st_size < 20_000
    found = invoke("run net.xml -i x.npz --max-memory 1M")
    assert found.exit_code == 2
    assert "x.npz: error[IR501]: 1200000 bytes of memory are needed at once" in found.stderr


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (header("(1099511627776,)"), "a tensor has 1099511627776 elements"),
        (header("(1000,)") + b"\0" * 10, "declares 4000 bytes, but has only"),
        (b"\0" * 5_000_000, "which is not an array"),
    ],
)
def test_a_member_that_claims_too_much(folder: Path, invoke: Invoke, content: bytes, says: str) -> None:
    write(folder, passing("f32", "?"))
    zipped("x.npz", x=content)
    found = invoke("run net.xml -i x.npz --max-memory 1M")
    assert found.exit_code == 2
    assert says in found.stderr


@pytest.mark.parametrize("file", ["x.npy", "x.npz"])
def test_python_objects_are_never_read(folder: Path, invoke: Invoke, file: str) -> None:
    write(folder, passing("f32", "?"))
    array = np.array([print, 1], object)
    if file == "x.npy":
        np.save(file, array, allow_pickle=True)
    else:
        np.savez(file, x=array)
    found = invoke(f"run net.xml -i {file}")
    assert found.exit_code == 2
    assert "Python objects, which are never read" in found.stderr


INTERRUPTED = """
import os, signal, sys, threading
from ir_runtime.cli import main
from ir_runtime.executor.plan import ExecutionPlan

run = ExecutionPlan.run

def interrupted(*args, **how):
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    return run(*args, **how)

ExecutionPlan.run = interrupted
main(sys.argv[1:])
"""
"""The command line, which is interrupted once the model runs."""


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX")
def test_an_interrupted_run_leaves_nothing_behind(folder: Path) -> None:
    endless(folder)
    env = {**os.environ, "PYTHONPATH": str(Path(ir_runtime.__file__).parents[1])}
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, "run", "endless.xml", "-i", "in.npz", "-o", "out/"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as running:  # fmt: skip
        said, complaints = running.communicate()
    assert (running.returncode, said, complaints) == (130, b"", b"interrupted\n")
    assert sorted(os.listdir(folder)) == ["endless.bin", "endless.xml", "in.npz"]
