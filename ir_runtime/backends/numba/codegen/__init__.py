"""The language that kernels are written in, and the code that it stands for."""
