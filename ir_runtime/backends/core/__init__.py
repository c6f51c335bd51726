"""The interface between backends and the executor: kernels, patterns, lengths, threads, default."""
