"""OpenVINO's Python API: models, nodes, compiled models and inference requests."""
