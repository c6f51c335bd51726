"""The build of kernels: from Python functions to libraries of machine code.

Only this package needs LLVM and a linker.

`source` finds the syntax tree of a function, `translate` turns it into LLVM IR with the operations of
`numbers`, `compiler` lets LLVM optimise and compile it for a target, and `library` links all kernels. Wheels
with prebuilt kernels omit this package.
"""
