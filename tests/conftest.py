"""How tests run: on numpy where they do not say, properties with the same examples in every run.

``HYPOTHESIS_PROFILE=explore pytest tests/ops/test_soundness.py`` looks further than a usual run does.
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
    """Build the kernels; bound the memory and the open files of the process; make no tests that are not run, in the two runs that divide all of them."""
    if not hasattr(config, "workerinput"):
        build_kernels()
    config.pluginmanager.register(Bounded())
    wanted = {"oracle": True, "not oracle": False}.get(config.getoption("markexpr"))
    if wanted is not None:
        config.pluginmanager.register(Chosen("oracle", wanted))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the tests that take long, in both processes."""
    items[:] = long_ones_first(items)
