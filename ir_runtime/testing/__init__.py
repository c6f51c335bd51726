"""Tests of models: recorded outputs, judged by what rounding explains. The pytest plugin is `ir_runtime.testing.pytest_plugin`."""

from __future__ import annotations

from .golden import Golden, GoldenError, check, record

__all__ = ["Golden", "GoldenError", "check", "record"]
