"""Which models each release of OpenVINO reads, and how to write models for older releases."""
