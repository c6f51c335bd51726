"""Golden-output tests of models, with tolerances derived from rounding. The pytest plugin is in `ir_runtime.testing.pytest_plugin`."""

from __future__ import annotations

from .golden import Golden, GoldenError, check, record

__all__ = ["Golden", "GoldenError", "check", "record"]
