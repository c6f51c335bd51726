"""Preprocessing and postprocessing steps that are inserted into a model."""
