"""Operations are imported on demand."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ir_runtime.ops import Input, Op, Output, T, find_operation, op, registry

PACKAGE = "ir_runtime.ops"


def test_only_what_is_needed_is_imported() -> None:
    code = f"""
import sys
from {PACKAGE} import registry
assert registry.resolve("relu", 1).name == "ReLU", registry.resolve("relu", 1)
assert "{PACKAGE}.activation" in sys.modules
assert "{PACKAGE}.detection.proposals" not in sys.modules
assert len(registry) > 200
assert "{PACKAGE}.detection.proposals" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_versions_that_are_required_must_be_there() -> None:
    assert registry.require("Convert").versioned_name() == "Convert-1"
    with pytest.raises(LookupError, match="opset2 has no operation 'Eye'"):
        registry.require("Eye", 2)
    assert find_operation("Eye", 2) is None
    assert find_operation("relu") is registry.require("ReLU")


def test_what_is_defined_elsewhere_must_be_new() -> None:
    with pytest.raises(ValueError, match="Eye-9 is defined twice"):

        @op("Eye-9")
        class Eye(Op):
            """Redefines an operation whose module may not have been imported."""

            data = Input(T)
            result = Output(T)
