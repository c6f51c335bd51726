"""Mutation testing: change one place of the package, and see whether a test fails."""
