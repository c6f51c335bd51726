"""Numerical kernels that operations and backends share; nothing here depends on the IR."""
