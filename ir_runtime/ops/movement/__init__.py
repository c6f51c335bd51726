"""Movement: elements rearranged, selected and repeated, none of them changed."""
