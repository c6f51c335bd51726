"""OpenVINO in a subprocess: its crash is an error, and the next job gets a new process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from models.networks import NETWORKS, save

import ir_runtime as ir
from ir_runtime import debug
from ir_runtime.bench import openvino_process as process


@pytest.fixture
def job(tmp_path: Path) -> process.Job:
    return process.Job(str(save("plain_cnn", tmp_path)), {}, NETWORKS["plain_cnn"][1]())


def test_a_job_has_outputs_nodes_and_settings(job: process.Job) -> None:
    found = process.run(job)
    assert found.outputs[0].dtype == np.float32
    assert {node.type for node in found.nodes} >= {"Input", "Convolution"}
    assert found.settings.keys() >= {"INFERENCE_PRECISION_HINT", "DYNAMIC_QUANTIZATION_GROUP_SIZE"}
    assert found.seen == []


def test_jobs_share_a_process_until_it_ends(job: process.Job) -> None:
    process.run(job)
    first = process._WORKER._process
    process.run(job)
    assert process._WORKER._process is first
    assert first is not None
    first.kill()
    first.wait()
    process.run(job)
    assert process._WORKER._process is not first


def test_the_signal_that_ends_a_job_is_named(job: process.Job, monkeypatch: pytest.MonkeyPatch) -> None:
    process.run(job)
    send = process.send

    def send_and_kill(stream: Any, message: object) -> None:
        worker = process._WORKER._process
        assert worker is not None
        worker.send_signal(signal.SIGSTOP)  # before it can answer
        send(stream, message)
        worker.send_signal(signal.SIGFPE)
        worker.send_signal(signal.SIGCONT)

    with monkeypatch.context() as patch:
        patch.setattr(process, "send", send_and_kill)
        with pytest.raises(process.Died, match="SIGFPE"):
            process.run(job)
    assert process.run(job).outputs


def test_a_side_that_dies_is_an_error_of_one_comparison(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, inputs = ir.read_model(save("plain_cnn", tmp_path)), NETWORKS["plain_cnn"][1]()

    def died(_: process.Job) -> process.Answer:
        raise process.Died("SIGFPE")

    with monkeypatch.context() as patch:
        patch.setattr(process, "run", died)
        with pytest.raises(ir.InputError, match="OpenVINO's process ended with SIGFPE"):
            debug.compare(model, inputs, "openvino")
    assert debug.compare(model, inputs, "openvino").explained


def test_a_scalar_stays_one() -> None:
    x = ir.opset13.parameter([], np.float32, name="x")
    model = ir.Model([ir.opset13.exp(x)], [x])
    assert debug.compare(model, [np.float32(0.5)], "openvino").explained


def test_it_ends_with_the_process_that_started_it(job: process.Job, tmp_path: Path) -> None:
    program = (
        "import numpy as np\n"
        "from ir_runtime.bench import openvino_process as process\n"
        f"process.run(process.Job({job.path!r}, {{}}, [np.zeros({job.inputs[0].shape}, np.float32)]))\n"
        "print(process._WORKER._process.pid)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300
    )
    pid = int(done.stdout)
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        status = Path(f"/proc/{pid}/stat")
        if status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z":
            return  # it has ended; nobody has asked for its code
        import time

        time.sleep(0.1)
    raise AssertionError("it still runs")
