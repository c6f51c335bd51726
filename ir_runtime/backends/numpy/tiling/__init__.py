"""Depth-first tiling: chains of layers are computed tile by tile, so that intermediate results stay in the cache."""
