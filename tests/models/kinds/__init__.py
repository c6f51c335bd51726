"""Small networks of the kinds that people bring beside classifiers and transformers, with random weights.

Each is as wide and deep as it takes to show what such a network spends its time on.
"""

from models.kinds import decoders, encoders, pictures, sequences, tables
from models.kinds.registry import KINDS, inputs_of

__all__ = ["KINDS", "decoders", "encoders", "inputs_of", "pictures", "sequences", "tables"]
