"""What running a model costs: arithmetic, parameters, memory."""
