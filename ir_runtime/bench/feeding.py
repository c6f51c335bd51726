"""Pass arrays to the tensors of a runtime and back, or to another process through a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..ir.array import Array
    from .interfaces import Element, Port, RawTensor, Request, RuntimeApi

__all__ = ["feed", "readable", "restore", "store"]


def feed(api: RuntimeApi, request: Request, inputs: Sequence[Array]) -> None:
    """Set the inputs of a request, sharing memory if the runtime can.

    Raises:
        InputError: if an input of OpenVINO has a sub-byte type.
    """
    for index, (port, array) in enumerate(zip(request.model_inputs, inputs, strict=True)):
        kind = port.get_element_type()
        tensor = _theirs(api, kind, array) if api.__name__ == "openvino" else _ours(api, kind, array)
        request.set_input_tensor(index, tensor)


def _ours(api: RuntimeApi, kind: Element, array: Array) -> RawTensor:
    if array.dtype.kind == "U":
        array = array.astype(object)
    elif array.dtype.kind == "V" and array.dtype.names is None:
        from ..ir.element import ElementType

        array = array.view(
            ElementType.parse(kind.to_string()).dtype
        )  # NumPy saves types of other packages as void
    return api.Tensor(array, shared_memory=True)


def _theirs(api: RuntimeApi, kind: Element, array: Array) -> RawTensor:
    import numpy as np

    if array.dtype.kind == "O":
        return api.Tensor(array.astype(str))
    if array.dtype.kind in "biufU":
        return api.Tensor(array, shared_memory=array.dtype.kind != "U")
    if kind.bitwidth < 8:
        from ..errors import InputError

        raise InputError(f"inputs of {kind.to_string()} cannot be passed to OpenVINO")
    tensor = api.Tensor(kind, array.shape)
    tensor.data.reshape(-1).view(np.uint8)[...] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return tensor


def readable(arrays: Sequence[Array], ports: Sequence[Port]) -> list[Array]:
    """Return copies of the outputs of a request, with the dtypes of this package."""
    import numpy as np

    from ..ir.element import ElementType

    elements = [ElementType.parse(port.get_element_type().to_string()) for port in ports]
    return [
        np.array(array.view(element.dtype) if element.bits >= 8 else array)
        for array, element in zip(arrays, elements, strict=True)
    ]


def store(inputs: Sequence[Array], folder: Path) -> Path:
    """Save arrays to a file in a folder, for `restore` in another process; return its path."""
    import numpy as np

    from .._util.files import create

    path = folder / "inputs.npz"
    plain = [array.astype(str) if array.dtype.kind == "O" else array for array in inputs]
    with create(path) as file:
        np.savez(file, *plain)
    return path


def restore(path: str) -> list[Array]:
    """Return the arrays that `store` saved."""
    import numpy as np

    with np.load(path, allow_pickle=False) as saved:
        return [saved[f"arr_{index}"] for index in range(len(saved.files))]
