"""The behavior of runtimes at the decisions of operations, from the cases that exercise them."""

from __future__ import annotations

import datetime
import json
import re
import shlex
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import ir_runtime.ops
from ir_runtime.conformance.case import Case, Meta
from ir_runtime.conformance.results import Result
from ir_runtime.conformance.runner import Cases, run
from ir_runtime.ops import registry

__all__ = ["PATH", "ask", "cited", "outcome", "runtimes", "text"]

PATH = Path(ir_runtime.ops.__file__).with_name("_engines.json")
_ONNX = shlex.join([sys.executable, "-m", "engines.onnx_command"])
_CITATION = re.compile(r"([\w-]+-\d+) D\d+: (.*)", re.DOTALL)
_DIFFERENCE = re.compile(r"expected (.+?), got (.+)")
_MOST = 90
SAME = "as here"


class _Strict:
    """The cases of a corpus that exercise decisions, without alternative outputs that the specification allows."""

    def __init__(self, corpus: Cases, metas: Sequence[Meta]) -> None:
        self.name, self.digest = corpus.name, f"{corpus.digest} strict"
        self._corpus = corpus
        self.cases = [meta for meta in metas if any(map(_CITATION.fullmatch, meta.clauses))]

    def files(self, identity: str) -> Mapping[str, bytes]:
        """Return the files of a case with a single accepted output."""
        case = Case.parse(self._corpus.files(identity))
        exact = [replace(t, predicate="" if t.predicate != "shape" else "shape") for t in case.tolerances]
        return dict(replace(case, alternatives=(), tolerances=exact).files())


def ask(corpus: Cases, metas: Sequence[Meta]) -> dict[str, list[Result]]:
    """Return the results of each runtime on the cases that exercise decisions.

    Args:
        corpus: the corpus.
        metas: its cases.
    """
    strict = _Strict(corpus, metas)
    results = {}
    for against, name in runtimes().items():
        finished = run(strict, against, strict.cases)
        results[name] = list(finished.results)
    return results


def runtimes() -> Mapping[str, str]:
    """Return the runtimes, and their names with versions."""
    openvino = f"OpenVINO {version('openvino')}"
    return {
        "openvino": f"{openvino}, CPU plugin",
        "openvino:reference": f"{openvino}, Model.evaluate",
        _ONNX: f"ONNX Runtime {version('onnxruntime')}",
    }


def cited(result: Result) -> Iterator[tuple[str, str]]:
    """Yield the decisions that a case exercises: operation and text."""
    for clause in result.clauses:
        match = _CITATION.fullmatch(clause)
        if match is not None:
            yield match[1], match[2]


def outcome(results: Sequence[Result]) -> str:
    """Return what a runtime does in the cases of a decision, in words.

    >>> case = Result("ReduceMax-1/D4", "ReduceMax-1", "value", ["f32"], (), "failed", "first at [1]: expected 2.0, got nan")
    >>> outcome([case])
    'nan in place of 2.0'
    """
    counting = [result for result in results if result.counts] or results
    counts = Counter(map(_words, counting))
    others = [words for words in counts if words != SAME]
    if SAME in counts and others:
        return f"{SAME} in {counts[SAME]} of {counts.total()} cases; {'; '.join(others)}"
    return "; ".join(counts)


def _words(result: Result) -> str:
    if result.passed:
        return SAME
    if result.status == "failed":
        match = _DIFFERENCE.search(result.message)
        if result.kind == "refusal":
            return "is not refused"
        return result.message if match is None else f"{match[2]} in place of {match[1]}"
    message = result.message.removeprefix("the command fails: ")
    said = message if len(message) <= _MOST else f"{message[:_MOST]}…"
    words = {"refused": f"an error: {said}", "crashed": f"the process dies: {said}", "hung": "no answer"}
    return words.get(result.status, said)


def text(corpus: Cases, metas: Sequence[Meta], day: datetime.date) -> str:
    """Return the contents of the record: the outcome of each runtime for each decision of each operation.

    Decisions without a case have no outcomes.
    """
    by_runtime = ask(corpus, metas)
    shown: dict[tuple[str, str], dict[str, list[Result]]] = {}
    for runtime, results in by_runtime.items():
        for result in results:
            for decision in cited(result):
                shown.setdefault(decision, {}).setdefault(runtime, []).append(result)
    operations = {}
    for cls in sorted(registry, key=lambda cls: cls.versioned_name()):
        name = cls.versioned_name()
        if registry.is_own(cls) and cls.decided():
            operations[name] = {
                decision: [outcome(results) for results in shown.get((name, decision), {}).values()]
                for decision in cls.decided()
            }
    head = json.dumps({"day": day.isoformat(), "runtimes": list(by_runtime)}, ensure_ascii=False, indent=1)
    lines = [
        f"  {json.dumps(name)}: {json.dumps(listed, ensure_ascii=False)}"
        for name, listed in operations.items()
    ]
    return head.removesuffix("\n}") + ',\n "decisions": {\n' + ",\n".join(lines) + "\n }\n}\n"
