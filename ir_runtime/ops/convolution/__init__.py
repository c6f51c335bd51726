"""Convolutions: plain, grouped, transposed, deformable and binary."""
