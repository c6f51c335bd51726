"""Sorting: TopK, search in sorted sequences, and non-maximum suppression (NMS)."""
