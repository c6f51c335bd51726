"""Upgrade IR versions 2 to 7, the formats before operation sets, to current operations.

Each type of layer is one declaration in `layers`: its names, attributes, blobs and inputs, and a function that builds the
operations that compute the same.
"""
