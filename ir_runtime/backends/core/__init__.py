"""The interface of backends to the executor: kernels, patterns, lengths, threads, and which backend is the default."""
