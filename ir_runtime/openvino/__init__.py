"""OpenVINO's Python API on top of the executor."""
