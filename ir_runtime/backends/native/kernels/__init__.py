"""Kernels: Python functions of the kernel language, emitters of LLVM IR, and the code that calls them."""
