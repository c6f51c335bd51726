"""The targets that kernel libraries are built for: instruction sets, with the vectors and GEMM tiles for each."""

from __future__ import annotations

from dataclasses import dataclass, replace

__all__ = ["TARGETS", "VECTORS", "Target", "Vectors", "target_named"]


@dataclass(frozen=True)
class Vectors:
    """A vector size, and the GEMM tiles that fill the registers.

    LLVM splits vectors wider than the registers, so each of these can be compiled for any processor.

    Args:
        name: the name of the instruction set.
        lanes: the number of f32 lanes of a vector.
        has_fma: whether there is a fused multiply-add instruction.
        wide: rows and vectors of the default tile; its accumulators, weights and a broadcast value fit in registers.
        tall: rows and vectors of the tile for few columns.
        has_masks: whether masked loads and stores are as fast as unmasked ones.
    """

    name: str
    lanes: int
    has_fma: bool
    wide: tuple[int, int]
    tall: tuple[int, int]
    has_masks: bool = False


VECTORS = {
    vectors.name: vectors
    for vectors in (
        Vectors("avx512", 16, True, (6, 4), (14, 2), has_masks=True),
        Vectors("avx2", 8, True, (6, 2), (12, 1)),
        Vectors("neon", 4, True, (6, 4), (12, 2)),
        Vectors("plain", 4, False, (4, 2), (8, 1)),
    )
}


@dataclass(frozen=True)
class Target:
    """An instruction set that a library of kernels is built for.

    Args:
        name: the name of the target and of its library.
        family: ``x86_64`` or ``aarch64``.
        cpu: LLVM's name of the baseline processor, to which ``features`` are added.
        features: LLVM's names of required processor features.
        tuning: LLVM's name of the processor to schedule instructions for.
        vectors: the vectors that kernels use.
    """

    name: str
    family: str
    cpu: str
    features: frozenset[str]
    tuning: str
    vectors: Vectors

    def has(self, feature: str) -> bool:
        """Return whether the target requires a processor feature, by LLVM's name."""
        return feature in self.features

    @property
    def is_x86(self) -> bool:
        """Whether the target is x86."""
        return self.family == "x86_64"

    @property
    def is_arm(self) -> bool:
        """Whether the target is AArch64."""
        return self.family == "aarch64"


_V3 = frozenset({"sse2", "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"})
_V4 = _V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
_V4_VNNI = _V4 | {"avx512vnni"}
# The features besides bf16, which Zen 4, Sapphire Rapids and later processors have, save LLVM some permutations.
_V4_BF16 = _V4_VNNI | {
    "avx512bf16", "avx512bitalg", "avx512ifma", "avx512vbmi", "avx512vbmi2", "avx512vpopcntdq",
}  # fmt: skip

TARGETS = {
    target.name: target
    for target in (
        Target("x86-64-v4-bf16", "x86_64", "x86-64-v4", _V4_BF16, "znver4", VECTORS["avx512"]),
        Target("x86-64-v4-vnni", "x86_64", "x86-64-v4", _V4_VNNI, "icelake-server", VECTORS["avx512"]),
        Target("x86-64-v4", "x86_64", "x86-64-v4", _V4, "skylake-avx512", VECTORS["avx512"]),
        Target("x86-64-v3-vnni", "x86_64", "x86-64-v3", _V3 | {"avxvnni"}, "alderlake", VECTORS["avx2"]),
        Target("x86-64-v3", "x86_64", "x86-64-v3", _V3, "haswell", VECTORS["avx2"]),
        Target(
            "aarch64-dotprod", "aarch64", "generic", frozenset({"neon", "dotprod", "lse"}), "neoverse-n1",
            VECTORS["neon"],
        ),
        Target("aarch64", "aarch64", "generic", frozenset({"neon"}), "cortex-a72", VECTORS["neon"]),
    )
}  # fmt: skip
"""All targets by name, within each family from the most to the least capable."""


def target_named(name: str) -> Target | None:
    """Return the target called ``name``, or ``None``; a suffix ``+vectors`` replaces its `VECTORS`, for tests.

    >>> target_named("x86-64-v3+plain").vectors.name
    'plain'
    """
    base, _, vectors = name.partition("+")
    target = TARGETS.get(base)
    if target is None or not vectors:
        return target
    return replace(target, name=name, vectors=VECTORS[vectors]) if vectors in VECTORS else None
