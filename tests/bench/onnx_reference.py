"""Print the milliseconds that onnx.reference takes for a model: ``onnx_reference.py MODEL.onnx INPUTS.npz``."""

from __future__ import annotations

import sys
import time

import numpy as np
from onnx.reference import ReferenceEvaluator

if __name__ == "__main__":
    evaluator = ReferenceEvaluator(sys.argv[1])
    with np.load(sys.argv[2]) as saved:
        inputs = {name: saved[name] for name in evaluator.input_names}
    start = time.perf_counter()
    evaluator.run(None, inputs)
    print((time.perf_counter() - start) * 1e3)
