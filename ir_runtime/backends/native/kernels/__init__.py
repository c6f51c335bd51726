"""Kernels: Python functions in the kernel language, emitters of LLVM IR, and the code that calls them."""
