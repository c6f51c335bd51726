"""Object detection: prior boxes, features of regions, and the final detections."""
