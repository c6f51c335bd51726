"""Compatibility of models with releases of OpenVINO, and lowering of models to older releases."""
