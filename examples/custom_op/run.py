"""Run a model that contains an operation of our own."""

from pathlib import Path

import hard_shrink  # noqa: F401  (registers the operation; not needed once the package is installed)
import numpy as np

import ir_runtime

compiled = ir_runtime.compile_model(Path(__file__).parent / "model.xml")
print(compiled(np.array([-3, -1, -0.5, 0, 0.5, 1, 3], np.float32))["y"])
