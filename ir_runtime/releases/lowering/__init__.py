"""Replace layers by older operations that compute exactly the same. Modules are groups of operations."""
