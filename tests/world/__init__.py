"""Runs a folder of IR files, from wherever they come, in OpenVINO and on every backend."""
