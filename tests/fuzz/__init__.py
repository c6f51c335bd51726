"""Fuzzing: for any input bytes, the outcome must be a model or an error of the package."""
