"""Code generation: the kernel language, vector instructions, memory instructions and descriptors."""
