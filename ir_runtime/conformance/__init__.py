"""The conformance suite: cases with true outputs, a judge, and a runner for any runtime of OpenVINO IR."""
