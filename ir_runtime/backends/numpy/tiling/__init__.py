"""Tiling: layers that follow each other are computed tile by tile, so that tiles stay in the cache."""
