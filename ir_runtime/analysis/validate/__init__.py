"""What a model can be checked for beyond the shapes of its layers."""
