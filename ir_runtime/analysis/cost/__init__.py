"""The cost of running a model: arithmetic, parameters and memory."""
