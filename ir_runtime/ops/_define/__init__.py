"""The declarations of operations: attributes, ports, types, bounds, and the registry of all operations."""
