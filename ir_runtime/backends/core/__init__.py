"""What the executor knows of backends: kernels, patterns, lengths, threads, and which backend is the default."""
