"""Run a folder of IR files from any source in OpenVINO and on every backend."""
