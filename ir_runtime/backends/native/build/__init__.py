"""The build of kernels: compiles Python functions to libraries of machine code.

`source` finds the syntax tree of a function, `translate` turns it into LLVM IR, `compiler` lets LLVM optimise and compile
that for a target, and `library` links all kernels. Only this package needs LLVM and a linker; wheels with prebuilt kernels
omit it.
"""
