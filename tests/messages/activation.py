"""Messages for invalid activations."""

from __future__ import annotations

from harness.refusals import refusal

REFUSALS = [
    refusal("SoftMax: axis", "SoftMax-8", "f32 2,3", axis=2),
    refusal("SoftMax: axis of a list", "SoftMax-8", "f32 5"),
    refusal("SoftMax: a negative axis", "SoftMax-1", "f32 2,3", axis=-1),
    refusal("LogSoftmax: axis of a scalar", "LogSoftmax-5", "f32"),
    refusal("Sigmoid: integers", "Sigmoid-1", "i32 2"),
    refusal("Swish: beta in a list", "Swish-4", "f32 2,3", "f32 1"),
    refusal("HardSigmoid: alpha in a list", "HardSigmoid-1", "f32 2,3", "f32 ?", "f32"),
    refusal("Selu: several numbers", "Selu-1", "f32 2,3", "f32 2", "f32 1"),
    refusal("Selu: rank", "Selu-1", "f32 2,3", "f32 1", "f32 1,1"),
    refusal("PReLU: slopes", "PReLU-1", "f32 2,3", "f32 2"),
    refusal("PReLU: slope beyond the data", "PReLU-1", "f32 2,1", "f32 2,3"),
    refusal("PReLU: rank of the slope", "PReLU-1", "f32 3", "f32 2,3"),
    refusal("Clamp: bounds", "Clamp-1", "f32 2", min=3, max=1),
    refusal("Clamp: no number", "Clamp-1", "f32 2", min="nan", max=1),
    refusal("Clamp: no upper bound", "Clamp-1", "f32 2", min=0),
    refusal("Elu: alpha", "Elu-1", "f32 2", alpha="x"),
    refusal("Gelu: mode", "Gelu-7", "f32 2", approximation_mode="tan"),
]
