"""Properties of OpenVINO's NPU plugin, as names only: the device is not available here."""

from __future__ import annotations

from .kinds import Choice, Property, choice, flag, number, text

__all__ = [
    "CompilerType",
    "bypass_umd_caching",
    "compilation_mode_params",
    "compiler_dynamic_quantization",
    "compiler_type",
    "compiler_version",
    "defer_weights_load",
    "device_alloc_mem_size",
    "device_total_mem_size",
    "disable_idle_memory_prunning",
    "driver_version",
    "enable_strides_for",
    "max_tiles",
    "platform",
    "qdq_optimization",
    "qdq_optimization_aggressive",
    "run_inferences_sequentially",
    "tiles",
    "turbo",
]


class CompilerType(Choice):
    """The compiler for the NPU: that of the plugin or of the driver.

    >>> CompilerType.DRIVER.value
    1
    """

    PLUGIN = 0
    DRIVER = 1
    PREFER_PLUGIN = 2


bypass_umd_caching: Property = Property("NPU_BYPASS_UMD_CACHING", flag)
compilation_mode_params: Property = Property("NPU_COMPILATION_MODE_PARAMS", text)
compiler_dynamic_quantization: Property = Property("NPU_COMPILER_DYNAMIC_QUANTIZATION", flag)
compiler_type: Property = Property("NPU_COMPILER_TYPE", choice(CompilerType))
compiler_version: Property = Property("NPU_COMPILER_VERSION")
defer_weights_load: Property = Property("NPU_DEFER_WEIGHTS_LOAD", flag)
device_alloc_mem_size: Property = Property("NPU_DEVICE_ALLOC_MEM_SIZE")
device_total_mem_size: Property = Property("NPU_DEVICE_TOTAL_MEM_SIZE")
disable_idle_memory_prunning: Property = Property("NPU_DISABLE_IDLE_MEMORY_PRUNING", flag)
driver_version: Property = Property("NPU_DRIVER_VERSION")
enable_strides_for: Property = Property("NPU_ENABLE_STRIDES_FOR", text)
max_tiles: Property = Property("NPU_MAX_TILES")
platform: Property = Property("NPU_PLATFORM", text)
qdq_optimization: Property = Property("NPU_QDQ_OPTIMIZATION", flag)
qdq_optimization_aggressive: Property = Property("NPU_QDQ_OPTIMIZATION_AGGRESSIVE", flag)
run_inferences_sequentially: Property = Property("NPU_RUN_INFERENCES_SEQUENTIALLY", flag)
tiles: Property = Property("NPU_TILES", number)
turbo: Property = Property("NPU_TURBO", flag)
