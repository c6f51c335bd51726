"""The program as a process: imports, streams, pipes, signals, terminals."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from harness.nets import passing, write, write_chain

import ir_runtime
from ir_runtime import _version
from ir_runtime.cli import progress as progress_module
from ir_runtime.cli.progress import progress

Process = Callable[..., "subprocess.CompletedProcess[str]"]

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX")
PATIENCE = 600
"""Seconds after which a process is taken for one that hangs."""
PROGRAM = [sys.executable, "-W", "error", "-m", "ir_runtime"]


@pytest.fixture
def environment(folder: Path) -> dict[str, str]:
    package = Path(ir_runtime.__file__).parents[1]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return {**kept, "PYTHONPATH": str(package), "PYTHONUTF8": "1"}


@pytest.fixture
def process(environment: dict[str, str]) -> Process:
    def run(*arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
        env = environment | more.pop("env", {})
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | more
        return subprocess.run(
            [*PROGRAM, *arguments], env=env, encoding="utf-8", timeout=PATIENCE, check=False, **streams
        )

    return run


@pytest.mark.parametrize("command", [[], ["run"], ["validate"], ["inspect"], ["bench"], ["ops"]])
def test_help_imports_nothing_heavy(environment: dict[str, str], command: list[str]) -> None:
    code = (
        "import sys; from ir_runtime.cli import main; "
        f"main({[*command, '--help']!r}, standalone_mode=False); "
        "print(sorted({'numpy', 'lxml', 'networkx', 'ml_dtypes', 'rich'} & {m.partition('.')[0] for m in sys.modules}))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, encoding="utf-8", check=True
    )
    assert found.stdout.startswith("Usage: ")
    assert found.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("option", ["profile --threads", "bench -nthreads"])
def test_the_number_of_threads_is_set_before_numpy_is_imported(
    environment: dict[str, str], option: str
) -> None:
    """OpenBLAS reads it once, while NumPy is imported."""
    command, name = option.split()
    code = (
        "import os, sys; from ir_runtime.cli import main\n"
        "class Finder:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'numpy': print(os.environ.get('OPENBLAS_NUM_THREADS'))\n"
        f"sys.meta_path.insert(0, Finder()); main({[command, 'none.xml', name, '1']!r})"
    )
    kept = {key: value for key, value in environment.items() if key != "OPENBLAS_NUM_THREADS"}
    found = subprocess.run(
        [sys.executable, "-c", code], env=kept, capture_output=True, encoding="utf-8", check=False
    )
    assert found.stdout == "1\n", found.stderr


def test_results_and_the_rest_have_their_streams(folder: Path, process: Process) -> None:
    write_chain(folder)
    np.save("x.npy", np.ones((2, 3), np.float32))
    found = process("run", "chain.xml", "-i", "x.npy", "-o", "out.npz")
    assert found.returncode == 0
    assert found.stdout.splitlines()[0] == "Outputs, numpy backend"
    assert found.stderr == "saved 1 tensor to out.npz\n"


def test_the_program_has_its_name(process: Process) -> None:
    assert process("--help").stdout.startswith("Usage: ir-runtime [OPTIONS] COMMAND")
    assert process("--version").stdout == f"ir-runtime {_version.__version__}\n"


@pytest.mark.parametrize(
    ("line", "code"), [("run none.xml", 3), ("validate none.xml", 1), ("ops ReduceL9", 2), ("ops", 0)]
)
def test_exit_codes_reach_the_shell(process: Process, line: str, code: int) -> None:
    found = process(*line.split())
    assert found.returncode == code
    assert "Traceback" not in found.stderr


def test_a_reader_that_stops_is_no_failure(environment: dict[str, str]) -> None:
    with subprocess.Popen(
        [*PROGRAM, "ops", "--json"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert running.stdout.read(1) == b"{"
        running.stdout.close()
        said = running.stderr.read()
        assert (running.wait(timeout=PATIENCE), said) == (141, b"")


@posix
def test_a_reader_that_never_was_is_no_failure(process: Process) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    found = process("ops", "ReduceL2", stdout=writer)
    os.close(writer)
    assert (found.returncode, found.stderr) == (141, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("line", ["ops", "ops ReduceL2", "--help"])
def test_a_full_disk_behind_stdout_is_one_message(process: Process, line: str) -> None:
    with open("/dev/full", "w") as full:
        found = process(*line.split(), stdout=full)
    assert (found.returncode, found.stderr) == (5, "error: No space left on device\n")


@posix
def test_a_closed_stdout_is_no_failure(environment: dict[str, str]) -> None:
    command = ["sh", "-c", 'exec "$@" >&-', "sh", *PROGRAM, "ops", "ReduceL2"]
    found = subprocess.run(command, env=environment, stderr=subprocess.PIPE, timeout=PATIENCE, check=False)
    assert (found.returncode, found.stderr) == (0, b"")


def test_an_encoding_without_the_characters_is_no_failure(folder: Path, process: Process) -> None:
    write(folder, passing("f32", "2", name="入"))
    western = {"PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"}
    assert "  \\u5165 " in process("run", "net.xml", "--random", env=western).stdout
    assert '"\\u5165"' in process("run", "net.xml", "--random", "--json", env=western).stdout


@posix
def test_an_interrupt_ends_with_130(folder: Path, environment: dict[str, str]) -> None:
    write(folder, passing("f32", "2"))
    os.mkfifo("pipe.npy")
    with subprocess.Popen(
        [sys.executable, "-m", "ir_runtime", "run", "net.xml", "-i", "pipe.npy", "-o", "out.npz"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=heed_interrupts,
    ) as running:
        writer = open_for_writing("pipe.npy")  # succeeds once the program waits for data
        try:
            running.send_signal(signal.SIGINT)
            said, complaints = running.communicate(timeout=PATIENCE)
        finally:
            running.kill()
            os.close(writer)
    assert (running.returncode, said, complaints) == (130, b"", b"interrupted\n")
    assert not (folder / "out.npz").exists()


def heed_interrupts() -> None:
    """Restore SIGINT, which background processes of a shell ignore and pass on to their children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def open_for_writing(path: str) -> int:
    for _ in range(600):
        try:
            return os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"nobody reads {path}")


@posix
def test_a_short_run_shows_no_bar_on_a_terminal(folder: Path, environment: dict[str, str]) -> None:
    write(folder, passing("f32", "2"))
    np.save("x.npy", np.ones(2, np.float32))
    master, terminal = os.openpty()
    # However long it takes here, it is a short one.
    program = (
        "import sys; from ir_runtime.cli import main, progress; progress.DELAY = 600; main(sys.argv[1:])"
    )
    line = ["run", "net.xml", "-i", "x.npy", "-o", "out.npz"]
    found = subprocess.run(
        [sys.executable, "-c", program, *line], env=environment, stderr=terminal, check=False
    )
    os.close(terminal)
    said = os.read(master, 10_000)
    os.close(master)
    assert found.returncode == 0
    assert said == b"saved 1 tensor to out.npz\r\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def steps(*names: str) -> list[Any]:
    return [SimpleNamespace(layer=SimpleNamespace(name=name)) for name in names]


def watch(found: list[Any], run: list[Any]) -> None:
    for step in run:
        for observer in found:
            observer.before(step, [])
            observer.after(step, [], 0.0)


def test_a_long_run_shows_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress_module, "DELAY", 0)
    monkeypatch.setattr(progress_module, "PAUSE", 0)
    with progress(4) as found:
        watch(found, steps("one", "two\x9b", "three", "four"))
    said = terminal.getvalue()
    assert "running" in said
    assert "50%" in said
    assert "three" in said
    assert "two\\x9b" in said
    assert "100%" in said


def test_a_bar_is_erased_when_the_run_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress_module, "DELAY", 0)

    def run() -> None:
        with progress(4) as found:
            watch(found, steps("one"))
            raise ValueError("oh")

    with pytest.raises(ValueError, match="oh"):
        run()
    assert terminal.getvalue().endswith("\x1b[2K")


def test_a_run_in_a_pipe_has_no_observer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress(4) as found:
        assert found == []


def test_the_bar_watches_a_real_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = ir_runtime.compile_model(write_chain(folder))
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress_module, "DELAY", 0)
    monkeypatch.setattr(progress_module, "PAUSE", 0)
    with progress(len(compiled._plan.steps)) as found:
        compiled._run(np.ones((2, 3), np.float32), {}, found)
    assert "100%" in terminal.getvalue()
