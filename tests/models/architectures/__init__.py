"""The networks of the zoo: one function each, registered by the name of the file that it is saved as."""

from models.architectures import classifiers, detectors, int8, language, segmentation, speech
from models.architectures.registry import MODELS, Arrays, Entry

__all__ = [
    "MODELS",
    "Arrays",
    "Entry",
    "classifiers",
    "detectors",
    "int8",
    "language",
    "segmentation",
    "speech",
]
