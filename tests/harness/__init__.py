"""What the tests share: samples of operations, the IR files they become, and OpenVINO as the oracle."""
