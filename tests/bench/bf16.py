"""How much of OpenVINO's own bf16 does `debug.compare` observe and reproduce, and does it accuse any of it?

    python tests/bench/bf16.py [--dir DIR] [--hint bf16] [--seed N] [--verbose] [MODEL...]

Figures are those of networks of the zoo, where the processor has AVX512-BF16 or AMX; elsewhere OpenVINO runs f32.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from harness.debugging import Figures, figures, runs_bf16
from models import zoo

import ir_runtime as ir

TRANSFORMERS = (
    "bert_base", "gpt2", "llama", "t5_encoder", "t5_decoder", "vit_b_16", "whisper_encoder", "whisper_decoder",
)  # fmt: skip
CONVOLUTIONS = ("resnet50", "mobilenet_v2")
HEAD = f"{'model':16} {'verdict':11} {'R':>6} {'local R':>8} {'observed':>9} {'compiles':>8} {'equal':>7} {'far':>4} {'CPU s':>6}"


def row(name: str, found: Figures) -> str:
    """Format the figures of a network."""
    report = found.report
    output, worst = max(each.excess for each in report.outputs), report.worst.excess if report.worst else 0.0
    seen = f"{report.boundaries - len(report.unobserved)}/{report.boundaries}"
    return (
        f"{name:16} {report.verdict:11} {output:6.2g} {worst:8.2g} {seen:>9} {found.compiles:8} "
        f"{found.reproduced:7.1%} {len(found.far):4} {found.seconds:6.0f}"
    )


def main() -> None:
    """Print a line for each network."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="MODEL", help="networks of the zoo")
    default = Path(os.environ.get("IR_RUNTIME_ZOO", zoo.CACHE))
    parser.add_argument("--dir", type=Path, default=default, help="where they are (default: %(default)s)")
    parser.add_argument(
        "--hint", default="bf16", help="the precision that is asked for (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the inputs (default: %(default)s)")
    parser.add_argument("--verbose", action="store_true", help="list the tensors that differ")
    options = parser.parse_args()
    if not runs_bf16():
        sys.exit("OpenVINO runs f32 on this processor, whatever is asked for")
    print(HEAD)
    for name in options.names or (*TRANSFORMERS, *CONVOLUTIONS):
        model = ir.read_model(zoo.ir_path(name, options.dir))
        found = figures(model, zoo.example_inputs(name, options.seed), options.hint)
        print(row(name, found), flush=True)
        if options.verbose:
            print(found.report)
            for unit in found.report.units:
                if unit.equal <= 0.99 or unit.name in found.far or not unit.explained:
                    off = found.beyond.get(unit.name, 0.0)
                    print(
                        f"  {unit.name} ({unit.operation}): {unit.equal:.2%} equal, {off:.2%} beyond, R {unit.excess:.2g}; {', '.join(unit.layers[-6:])}"
                    )


if __name__ == "__main__":
    main()
