"""What operations are declared with: attributes, ports, types, bounds, and the registry that knows them all."""
