"""The build of kernels: from Python functions to machine code. Nothing else needs LLVM's passes.

`source` finds the syntax tree of a function, `translate` turns it into LLVM IR with the operations of `numbers`, and `compiler`
lets LLVM optimise and compile that.
"""
