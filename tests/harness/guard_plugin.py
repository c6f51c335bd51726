"""Run tests with guard pages: ``IR_RUNTIME_TEST_EDGE=end pytest -p harness.guard_plugin``, with tests on PYTHONPATH."""

from __future__ import annotations

import os

from harness.memory import Edge, install


def pytest_configure() -> None:
    install(Edge(os.environ["IR_RUNTIME_TEST_EDGE"]))
