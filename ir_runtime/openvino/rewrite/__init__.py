"""Pattern matching, and passes that rewrite models."""
