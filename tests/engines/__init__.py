"""The behavior of OpenVINO and ONNX Runtime at the decisions of operations."""
