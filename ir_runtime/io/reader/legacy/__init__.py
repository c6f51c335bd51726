"""Upgrading of IR versions 2 to 7, the formats before operation sets, to current operations.

Each legacy layer type has one declaration in `layers`: its names, attributes, blobs and inputs, and a method that builds
equivalent operations.
"""
