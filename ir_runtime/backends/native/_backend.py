"""The `Backend` object of the native backend, with which its kernel modules register."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module

from ...ir.tensor import Array
from .. import Backend, Precision
from ..common.dynamic_quantization import GROUP_SIZES
from ..common.kept_weights import budget
from ..core.backend import CacheKernels
from ._index import MODULES, PACKED, PATTERNS
from .packed_memory import one_compilation
from .threading.denormals import FLUSHING_BITS, flushing
from .threading.parallel import running

__all__ = ["backend"]


@contextmanager
def _compilation() -> Iterator[None]:
    with budget(), one_compilation():
        yield


def _fastest() -> Precision:
    from .codegen.bf16 import HAS_BF16, IS_FASTER
    from .codegen.levels import IS_FAST

    return Precision(
        "bf16" if IS_FASTER else "f32", GROUP_SIZES[0] if IS_FAST else 0, "u8", "bf16" if HAS_BF16 else "f32",
        bool(FLUSHING_BITS),
    )  # fmt: skip


def _quantized_cache() -> CacheKernels:
    """Return the kernels of 8-bit key/value caches, imported on first use."""
    kernels: CacheKernels = import_module(f"{__package__}.kernels.quantized_cache").KERNELS
    return kernels


def _contiguous() -> Callable[[Array], Array]:
    """Return the kernel that copies an array to C order, imported on first use."""
    copy: Callable[[Array], Array] = import_module(f"{__package__}.kernels._copy").contiguous
    return copy


def _copy() -> Callable[[Array, Array], bool]:
    """Return the function that copies one array into another in recorded runs, and tells whether it did; imported on first use."""
    copy: Callable[[Array, Array], bool] = import_module(f"{__package__}.kernels._copy").copy_if_recording
    return copy


backend = Backend(
    "native", around=running, compiling=_compilation, kernel_modules=MODULES, pattern_modules=PATTERNS,
    packed_modules=PACKED, products=("f32", "bf16"), dynamic_groups=(0, *GROUP_SIZES), fastest=_fastest, quantized_cache=_quantized_cache,
    contiguous=_contiguous, copy=_copy, flushing=flushing if FLUSHING_BITS else None,
)  # fmt: skip
