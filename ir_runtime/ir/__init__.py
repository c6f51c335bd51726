"""What a model is made of: dimensions, shapes, element types, values, layers, graphs."""
