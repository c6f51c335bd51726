"""The intermediate representation: dimensions, shapes, element types, values, layers, graphs."""
