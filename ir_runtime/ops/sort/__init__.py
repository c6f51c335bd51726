"""Sorting: the largest elements, places in sorted sequences, and what is left of overlapping boxes."""
