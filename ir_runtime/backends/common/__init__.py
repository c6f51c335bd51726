"""Code that backends share: memory layouts, epilogues and activations, interpolation, NMS, rounding, BLAS."""
