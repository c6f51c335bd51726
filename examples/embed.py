"""Embedding in ten lines: read a model, compile it, ask it."""

from pathlib import Path

import numpy as np

import ir_runtime as ov

digits = Path(__file__).parent / "digits"
model = ov.Core().read_model(digits / "digits.xml")
compiled = ov.compile_model(model, "CPU")
images = np.load(digits / "images.npy")
scores = compiled({"image": images[:5]})["scores"]
print("answers:", scores.argmax(axis=1).tolist(), "truth:", np.load(digits / "labels.npy")[:5].tolist())
