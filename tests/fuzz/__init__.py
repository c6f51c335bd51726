"""Whatever bytes arrive, the outcome is a model or an error of the package."""
