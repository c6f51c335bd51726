"""Properties of OpenVINO's CPU plugin. Only the flush of denormals to zero has an effect here."""

from __future__ import annotations

from .kinds import Choice, Property, choice, flag, real

__all__ = [
    "TbbPartitioner",
    "denormals_optimization",
    "sparse_weights_decompression_rate",
    "tbb_partitioner",
]


class TbbPartitioner(Choice):
    """How oneTBB divides loops among threads.

    >>> from ir_runtime.properties import intel_cpu
    >>> intel_cpu.tbb_partitioner("AUTO")[1] is intel_cpu.TbbPartitioner.AUTO
    True
    """

    STATIC = 1
    AUTO = 2


denormals_optimization: Property = Property("CPU_DENORMALS_OPTIMIZATION", flag)
sparse_weights_decompression_rate: Property = Property("CPU_SPARSE_WEIGHTS_DECOMPRESSION_RATE", real)
tbb_partitioner: Property = Property("TBB_PARTITIONER", choice(TbbPartitioner))
