"""Matrix operations: products, Einsum, inverses."""
