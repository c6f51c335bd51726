"""Messages for invalid comparisons."""

from __future__ import annotations

from harness.refusals import refusal

REFUSALS = [
    refusal("broadcast", "Less-1", "f32 2,3", "f32 2,4"),
    refusal("no broadcast", "Less-1", "f32 2,3", "f32 1,3", auto_broadcast="none"),
    refusal("pdpd", "Less-1", "f32 2,3", "f32 2,4", auto_broadcast="pdpd"),
]
