"""The pytest plugin: the fixture ``ir_golden`` records outputs of models, and checks later outputs against them."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ..openvino.model import Model

__all__ = ["ir_golden", "pytest_addoption"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option ``--ir-golden-update``."""
    group = parser.getgroup("ir_runtime")
    group.addoption("--ir-golden-update", action="store_true", help="record the outputs of ir_golden anew")


@pytest.fixture
def ir_golden(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Compare the outputs of a model with recorded ones: ``ir_golden("model.xml", {"x": array}, side="openvino")``.

    Files are in the folder ``goldens`` beside the test, one for each call. ``--ir-golden-update`` writes them.
    """
    calls = count(1)

    def golden(model: Model | str | Path, inputs: object, side: str = "openvino") -> None:
        from ..errors import IRError
        from .golden import GoldenError, check, record

        path = _path(request.path, request.node.name, next(calls))
        try:
            if request.config.getoption("--ir-golden-update"):
                record(path, model, inputs, side)
                return
            if not path.is_file():
                pytest.fail(
                    f"no outputs are recorded in {path}: run pytest --ir-golden-update", pytrace=False
                )
            check(path, model, inputs, side)
        except (GoldenError, IRError) as problem:
            pytest.fail(str(problem), pytrace=False)

    return golden


def _path(module: Path, test: str, call: int) -> Path:
    name = re.sub(r"[^\w.-]+", "_", f"{module.stem}-{test}")
    return module.parent / "goldens" / (f"{name}.npz" if call == 1 else f"{name}-{call}.npz")
