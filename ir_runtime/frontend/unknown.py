"""What to say of operations and names that there are not."""

from __future__ import annotations

import difflib
from collections.abc import Collection

from ..ops import registry

__all__ = ["meant", "unknown_operation"]


def unknown_operation(type: str, version: str, suggest: bool) -> tuple[str, str]:
    """Message and hint for an operation that there is not."""
    versions = registry.versions(type)
    if versions:
        oldest = versions[0]
        return f"{version} has no {oldest.name}; it starts with opset{oldest.since}", ""
    near = registry.near(type) if suggest else None
    hint = f"did you mean {near}? Otherwise " if near else ""
    hint += "declare an operation of your own with ir_runtime.ops.op; see examples/custom_op"
    if version and not version.startswith("opset"):
        return f"{type!r} is an operation of {version!r}, which is outside OpenVINO's opsets", hint
    opset = f" ({version})" if version else ""
    return f"there is no operation {type!r}{opset}", hint


def meant(name: str, names: Collection[str]) -> str:
    """A hint at the name that is nearest, or nothing."""
    near = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {near[0]!r}?" if near else ""
