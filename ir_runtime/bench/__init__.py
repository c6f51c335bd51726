"""Measure a model: load and run times, and memory, also in comparison with OpenVINO.

Runtimes are called through the API that `ir_runtime` and ``openvino`` share, so that the same code measures
both.
"""
