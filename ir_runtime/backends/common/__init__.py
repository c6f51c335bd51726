"""Formats that backends share: memory layouts, packed and quantized numbers."""
