"""Signals and their spectra: Fourier transforms of whole axes, and of frames along one."""
