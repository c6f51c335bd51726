"""Object detection: boxes to start from, features of regions, and what is found in the end."""
