"""The conformance suite: cases with correct outputs, a judge, and a runner for any runtime of OpenVINO IR."""
