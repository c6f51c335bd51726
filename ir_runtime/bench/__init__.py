"""Measuring a model: how long it takes to load and to run, and how much memory, also beside OpenVINO.

Everything here calls a runtime through the API that `ir_runtime` and ``openvino`` share, so that both
are measured by the same lines.
"""
