"""The machine code of kernels: the library cache, the loader, and background builds of all kernels."""
