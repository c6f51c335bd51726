"""Object detection: prior boxes, pooling of regions, proposals, and final detections."""
