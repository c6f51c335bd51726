"""What backends share: memory layouts, epilogues and activations, interpolation, NMS, rounding, BLAS."""
