"""The thread pool, whose workers wait in machine code, and the recording and replay of its calls."""
