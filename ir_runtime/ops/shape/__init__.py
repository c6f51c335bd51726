"""Operations on shapes: ShapeOf, Reshape, Squeeze."""
