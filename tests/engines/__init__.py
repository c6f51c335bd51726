"""What OpenVINO and ONNX Runtime do where a decision of an operation is taken."""
