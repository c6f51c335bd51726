"""The networks of the zoo: one function each, registered by the name of the file that it is saved as."""

from models.architectures import classifiers, detectors, int8, language, segmentation, speech
from models.architectures.registry import MODELS, Arrays, Entry

ZOO = tuple(MODELS)
"""The names of the zoo: other modules register networks for studies of their own."""

__all__ = [
    "MODELS",
    "ZOO",
    "Arrays",
    "Entry",
    "classifiers",
    "detectors",
    "int8",
    "language",
    "segmentation",
    "speech",
]
