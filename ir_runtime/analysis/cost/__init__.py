"""The cost of running a model: arithmetic, parameters, memory."""
