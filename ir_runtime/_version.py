"""The version of the package, and the version of OpenVINO whose API it implements."""

__version__ = "0.1.0"

OPENVINO_VERSION = "2026.4.1"

API_VERSION = f"{OPENVINO_VERSION}-0-ir_runtime-{__version__}"
"""The version in OpenVINO's format, for programs that require a minimum, followed by that of the package."""
