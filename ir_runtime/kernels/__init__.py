"""Numerical kernels that operations and backends share; nothing here knows the IR."""
