"""The machine code of kernels: its cache, the loader, and the build of all kernels in the background."""
