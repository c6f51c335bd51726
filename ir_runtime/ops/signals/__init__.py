"""Signal processing: Fourier transforms of whole axes, and short-time Fourier transforms (STFT)."""
