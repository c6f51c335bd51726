"""The executor dressed as OpenVINO's Python API: the names scripts know, without the traps."""
