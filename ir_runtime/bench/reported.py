"""Add a profile to the report of a model."""

from __future__ import annotations

from dataclasses import replace

from .._util.escaping import visible
from ..report import Measures
from .peaks import Peaks
from .profiled import ProfileReport
from .timed import StepTime

__all__ = ["with_profile"]


def with_profile(measures: Measures, report: ProfileReport) -> Measures:
    """Add the times of a profile to measurements, and compare them with the machine's peaks."""
    inner = {(step.within, step.name): step.seconds * 1e3 for step in report.steps if step.within}
    rates = {step.name: text for step in report.outermost if (text := _rate(step, report.peaks))}
    return replace(
        measures,
        times={step.name: step.seconds * 1e3 for step in report.outermost},
        inner=inner,
        rates=rates,
        fused={layer: step.name for step in report.outermost for layer in step.layers if layer != step.name},
    )


def _rate(step: StepTime, peaks: Peaks) -> str:
    """Describe the speed of a step in a sentence; empty if it computes nothing."""
    reached = step.efficiency(peaks)
    if not step.flops or reached is None:
        return ""
    with_others = (
        f" with {visible(step.pattern or ', '.join(layer for layer in step.layers if layer != step.name))}"
        if len(step.layers) > 1
        else ""
    )
    return (
        f"{step.gflops:.3g} GFLOP/s and {step.gbytes:.3g} GB/s{with_others}: "
        f"{100 * reached:.0f} % of the roofline, bound by {step.bound(peaks)}"
    )
