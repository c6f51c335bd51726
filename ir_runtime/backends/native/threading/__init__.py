"""A thread pool whose workers wait in machine code."""
