"""Measure the load time, run time and memory of a model, also in comparison with OpenVINO.

Runtimes are called through the API that `ir_runtime` and ``openvino`` share, so that the same code measures both.
"""
