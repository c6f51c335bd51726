"""Sorting: TopK, SearchSorted, and non-maximum suppression (NMS)."""
