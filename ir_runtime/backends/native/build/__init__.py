"""The build of kernels: from Python functions to libraries of machine code. Nothing else needs LLVM or a linker.

`source` finds the syntax tree of a function, `translate` turns it into LLVM IR with the operations of `numbers`, `compiler` lets
LLVM optimise and compile that for a target, and `library` links all kernels. Installed packages lack this one.
"""
