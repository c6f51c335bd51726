"""Generation: ranges, identity matrices, random numbers."""
