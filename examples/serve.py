"""Serve a model over HTTP, with FastAPI: ``fastapi dev examples/serve.py``, then POST the numbers of a picture.

A compiled model can be called from all threads of the server: each call has memory of its own.
"""

from pathlib import Path
from typing import Any

import numpy as np
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

import ir_runtime as ov

limits = ov.Limits(memory=1 << 30, seconds=5)  # for each request
model = ov.read_model(Path(__file__).parent / "digits" / "digits.xml", limits=limits)
compiled = ov.compile_model(model, "CPU", {"INFERENCE_NUM_THREADS": 1})
app = FastAPI(title="Digits")


class Picture(BaseModel):
    """8 by 8 numbers from 0 to 1."""

    pixels: list[list[float]]


@app.post("/classify")
def classify(picture: Picture) -> dict[str, Any]:
    """Return the digit, and the score of each; what the model refuses is the client's mistake."""
    try:
        image = np.asarray(picture.pixels, np.float32)[None, None]
        scores = compiled({"image": image})["scores"][0]
    except (ov.IRError, ValueError) as reason:
        raise HTTPException(422, str(reason)) from None
    return {"digit": int(scores.argmax()), "scores": scores.tolist()}
