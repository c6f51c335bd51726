"""Write graphs as XML and weights: the inverse of ``reader``."""
