"""Small networks of kinds other than classifiers and language models, with random weights.

Each is just wide and deep enough to show where such a network spends its time.
"""

from models.kinds import decoders, encoders, pictures, sequences, tables
from models.kinds.registry import KINDS, inputs_of

__all__ = ["KINDS", "decoders", "encoders", "inputs_of", "pictures", "sequences", "tables"]
