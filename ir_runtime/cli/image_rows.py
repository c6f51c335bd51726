"""A folder of images as a data set with one row per image, converted on reading."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ..dask.datasets import Dataset
from ..dask.model_source import ModelSource
from ..ir.tensor import Array
from ..openvino.model import Model
from .picture_files import SUFFIXES, picture_files
from .pictures import ImageOptions, Pictures

__all__ = ["open_images"]


@dataclass(frozen=True)
class _Images(Dataset):
    files: tuple[Path, ...]
    model: ModelSource
    label: str
    options: ImageOptions

    def read(self, start: int, stop: int) -> Array:
        return _rows(self.path, self.files[start:stop], self.model, self.label, self.options)


def open_images(path: str, label: str, model: ModelSource, options: ImageOptions) -> Dataset | None:
    """Return the data set of a folder or pattern of images; ``None`` if it is something else.

    Args:
        path: the folder or pattern.
        label: the name of the input.
        model: whose input it is.
        options: how images become inputs.

    Raises:
        InputError: if the first image cannot be read, or does not fit the input.
    """
    place = Path(path)
    if place.is_dir() and not any(file.suffix.lower() in SUFFIXES for file in place.iterdir()):
        return None
    files = tuple(file.absolute() for file in picture_files(path) or ())
    if not files:
        return None
    first = _rows(path, files[:1], model, label, options)
    return _Images(path, (len(files), *first.shape[1:]), first.dtype, files, model, label, options)


def _rows(path: str, files: tuple[Path, ...], model: ModelSource, label: str, options: ImageOptions) -> Array:
    net = _model(model)
    return Pictures(path, files).laid_out(net, net.input(label), options)[0]


@lru_cache(maxsize=4)
def _model(source: ModelSource) -> Model:
    return source.read()
