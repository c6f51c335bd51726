"""The programs of the guide: a suite with OpenVINO alone, and adapters of other runtimes of some forty lines each."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from harness.conformance_cases import relu, small_corpus, write_folder, write_zip
from harness.terminals import blocks

from conformance.build import readme
from ir_runtime.conformance.corpus import Corpus
from ir_runtime.conformance.runner import run
from ir_runtime.guides import guide

ALONE, OPENVINO, ONNXRUNTIME = (
    code for language, code in blocks(guide("conformance").text) if language == "py"
)


@pytest.mark.parametrize("code", [OPENVINO, ONNXRUNTIME], ids=["openvino", "onnxruntime"])
def test_adapters_take_less_than_forty_lines(code: str) -> None:
    assert len(code.splitlines()) < 40


def test_the_corpus_is_used_with_openvino_alone(tmp_path: Path) -> None:
    near = replace(relu(4), expected=[np.nextafter(relu().expected[0], np.float32(9))])
    path = write_zip(tmp_path / "corpus.zip", [*small_corpus(), near])
    done = subprocess.run([sys.executable, "-c", ALONE, path], capture_output=True, text=True)
    assert (done.returncode, done.stdout.split("\n")[0]) == (
        0,
        "2 cases pass; these do not: Relu-1/0002 Relu-1/0004",
    ), done.stderr
    assert "import ir_runtime" not in ALONE


def test_the_page_of_the_corpus_has_the_same_program() -> None:
    assert [code for language, code in blocks(readme()) if language == "py"] == [ALONE]


@pytest.mark.parametrize("code", [OPENVINO, ONNXRUNTIME], ids=["openvino", "onnxruntime"])
def test_adapters_run_cases(tmp_path: Path, code: str) -> None:
    (tmp_path / "device.py").write_text(code)
    corpus = Corpus(write_folder(tmp_path / "corpus", small_corpus()))
    cases = [case for case in corpus.cases if case.id != "Relu-1/0003"]
    finished = run(corpus, f"{sys.executable} {tmp_path / 'device.py'}", cases, seconds=600)
    assert [result.status for result in finished.results] == ["passed", "passed", "failed"]
