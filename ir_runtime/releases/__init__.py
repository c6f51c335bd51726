"""What each release of OpenVINO reads, and how models are written for older ones."""
