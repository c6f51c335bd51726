"""The time of `import ir_runtime`, in total and beyond NumPy; and of the first model after it.

    python tests/bench/import_time.py [RUNS]

Each figure is the best of several fresh interpreters, minus the time of an empty program.
"""

from __future__ import annotations

import subprocess
import sys
import time

PROGRAMS = {
    "numpy": "import numpy",
    "ir_runtime": "import ir_runtime",
    "numpy, then ir_runtime": "import numpy, ir_runtime",
    "numpy, then ir_runtime.read_model": "import numpy, ir_runtime; ir_runtime.read_model",
    "numpy, then ir_runtime.compile_model": "import numpy, ir_runtime; ir_runtime.compile_model",
    "lxml, networkx, ml_dtypes and numpy": "import numpy, lxml.etree, networkx, ml_dtypes",
}


def milliseconds(program: str, runs: int) -> float:
    """Return the best time of a program in several fresh interpreters."""
    best = float("inf")
    for _ in range(runs):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", program], check=True)
        best = min(best, time.perf_counter() - start)
    return best * 1e3


def main() -> None:
    """Print the figures."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    nothing = milliseconds("pass", runs)
    numpy = milliseconds(PROGRAMS["numpy"], runs) - nothing
    print(f"{'':40}{'ms':>8}{'beyond NumPy':>14}")
    for name, program in PROGRAMS.items():
        taken = milliseconds(program, runs) - nothing
        beyond = f"{taken - numpy:14.1f}" if program.startswith("import numpy,") else ""
        print(f"{name:40}{taken:8.1f}{beyond}")


if __name__ == "__main__":
    main()
