"""The infrastructure of a model: parameters, constants, results, loops and variables."""
