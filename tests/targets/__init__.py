"""Run networks on the kernels of each target, those of AArch64 in an emulator, and compare the results."""
