"""Sorting: the largest elements, search in sorted sequences, and non-maximum suppression."""
