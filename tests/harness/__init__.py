"""Helpers shared by the tests: samples of operations, the IR files made of them, and OpenVINO as the oracle."""
