"""Read, validate and run OpenVINO IR models exactly, with NumPy."""

__version__ = "0.1.0"
