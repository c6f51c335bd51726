"""Data movement: operations that rearrange, select or repeat elements."""
