"""rapidocr: find and read lines of text in an image, with the weights in its package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["make", "text_of_pictures"]

Arrays = dict[str, np.ndarray[Any, Any]]
PARTS = {"Det": "_det_", "Cls": "_cls_", "Rec": "_rec_"}


def make(folder: Path) -> None:
    """Convert the package's ONNX models with OpenVINO."""
    import openvino
    import rapidocr

    shipped = Path(rapidocr.__file__).parent / "models"
    for part, mark in PARTS.items():
        if not _path(folder, part).exists():
            (source,) = shipped.glob(f"*{mark}*.onnx")
            model = openvino.Core().read_model(source)
            openvino.save_model(model, _path(folder, part), compress_to_fp16=False)


def _path(folder: Path, part: str) -> Path:
    return folder / "ocr" / f"{part}.xml"


def text_of_pictures(models: Path) -> Arrays:
    """Read an image with three lines, one of them upside down."""
    from PIL import Image, ImageDraw, ImageFont
    from rapidocr import EngineType, RapidOCR

    picture = Image.new("RGB", (480, 220), "white")
    font = ImageFont.load_default(size=36)
    ImageDraw.Draw(picture).text((20, 10), "Interpreter 2026", fill="black", font=font)
    ImageDraw.Draw(picture).text((20, 80), "reads a line", fill="blue", font=font)
    turned = Image.new("RGB", (480, 70), "white")
    ImageDraw.Draw(turned).text((20, 10), "upside down", fill="black", font=font)
    picture.paste(turned.rotate(180), (0, 150))
    settings: dict[str, Any] = {"Global.text_score": 0.1}
    for part in PARTS:
        settings[f"{part}.engine_type"] = EngineType.OPENVINO
        settings[f"{part}.model_path"] = str(_path(models, part))
    found = RapidOCR(params=settings)(np.asarray(picture)[:, :, ::-1])
    assert "Interpreter" in found.txts[0], found.txts
    return {
        "boxes": np.asarray(found.boxes),
        "letters": np.array([ord(letter) for text in found.txts for letter in text]),
        "scores": np.asarray(found.scores),
    }
