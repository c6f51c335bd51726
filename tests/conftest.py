"""Test configuration: the numpy backend by default, and reproducible examples of properties.

``HYPOTHESIS_PROFILE=explore pytest tests/ops/test_soundness.py`` explores more examples than a usual run.
"""

from __future__ import annotations

import os

import pytest
from harness.session import Bounded, Chosen, build_kernels, forget_settings, long_ones_first
from hypothesis import HealthCheck, settings

forget_settings()
# What a model runs on by default depends on the processor.
os.environ["IR_RUNTIME_BACKEND"] = "numpy"

settings.register_profile(
    "usual", derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck)
)
settings.register_profile("thorough", settings.get_profile("usual"))
settings.register_profile("explore", deadline=None, suppress_health_check=list(HealthCheck))
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "usual"))


def pytest_configure(config: pytest.Config) -> None:
    """Build the kernels, limit memory and open files, and skip generating deselected tests in the two complementary runs."""
    if not hasattr(config, "workerinput"):
        build_kernels()
    config.pluginmanager.register(Bounded())
    wanted = {"oracle": True, "not oracle": False}.get(config.getoption("markexpr"))
    if wanted is not None:
        config.pluginmanager.register(Chosen("oracle", wanted))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run slow tests first, in both processes."""
    items[:] = long_ones_first(items)
