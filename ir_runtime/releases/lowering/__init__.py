"""Replace layers by older operations that give exactly the same results; one module for each group of operations."""
