"""The interface between backends and the executor: kernels, fusion patterns, precision, replay and the number of threads."""
