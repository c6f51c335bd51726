"""Data movement: elements are rearranged, selected and repeated, but not changed."""
