"""Data sets read only their own files, and run no code: neither pickled objects nor plugins."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from random import Random

import h5py
import numpy as np
import pytest
import zarr
from fuzz import raw

import ir_runtime as ov
from ir_runtime.dask.datasets import open_dataset

DATA = np.arange(8, dtype=np.float32).reshape(4, 2)


class Code:
    """An object whose unpickling creates a file."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, ("executed",)


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("secret").write_bytes(DATA.tobytes())


def refusal(path: str) -> str:
    """Return the error of a data set that is refused when opened or read."""
    with pytest.raises(ov.InputError) as caught:
        open_dataset(path, "x").read(0, 4)
    assert path in caught.value.message
    assert not Path("executed").exists()
    return caught.value.message


def of_version_2(**changes: object) -> str:
    """A store whose only chunk is a pickle."""
    os.mkdir("x.zarr")
    metadata = {
        "zarr_format": 2, "shape": [4, 2], "chunks": [4, 2], "dtype": "<f4", "compressor": None, "fill_value": 0,
        "order": "C", "filters": None, "dimension_separator": ".",
    }  # fmt: skip
    Path("x.zarr/.zarray").write_text(json.dumps(metadata | changes))
    Path("x.zarr/0.0").write_bytes(pickle.dumps([Code(), "|O", (4, 2)]))
    return "x.zarr"


@pytest.mark.parametrize("dtype", ["<f4", "|O"])
@pytest.mark.parametrize("place", ["filters", "compressor", "second filter"])
def test_pickles_in_zarr(dtype: str, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Old versions of numcodecs unpickle on request of the store; new ones only if a setting allows it."""
    monkeypatch.setattr("numcodecs.pickles.ALLOW_UNSAFE_PICKLE_DECODE", True, raising=False)
    codec = {"id": "pickle", "protocol": 5}
    changes = {
        "filters": {"filters": [codec]},
        "compressor": {"compressor": codec, "filters": [{"id": "vlen-utf8"}] if dtype == "|O" else None},
        "second filter": {"filters": [{"id": "vlen-utf8"}, codec]},
    }
    refusal(of_version_2(dtype=dtype, **changes[place]))


def test_a_path_that_looks_like_a_url_is_a_path() -> None:
    os.makedirs("http:/127.0.0.1:1")
    zarr.create_array(store=zarr.storage.LocalStore("http:/127.0.0.1:1/x.zarr"), data=DATA)
    assert np.array_equal(open_dataset("http://127.0.0.1:1/x.zarr", "x").read(0, 4), DATA)


def external(file: h5py.File) -> None:
    file.create_dataset("x", DATA.shape, DATA.dtype, external=[("secret", 0, DATA.nbytes)])


def virtual(file: h5py.File) -> None:
    with h5py.File("other.h5", "w") as other:
        other["x"] = DATA
    layout = h5py.VirtualLayout(DATA.shape, DATA.dtype)
    layout[:] = h5py.VirtualSource("other.h5", "x", DATA.shape)
    file.create_virtual_dataset("x", layout)


def linked(file: h5py.File) -> None:
    with h5py.File("other.h5", "w") as other:
        other["x"] = DATA
    file["x"] = h5py.ExternalLink("other.h5", "x")


def filtered(file: h5py.File) -> None:
    created = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    created.set_chunk(DATA.shape)
    created.set_filter(32001, h5py.h5z.FLAG_OPTIONAL)  # blosc
    space = h5py.h5s.create_simple(DATA.shape)
    h5py.h5d.create(file.id, b"x", h5py.h5t.IEEE_F32LE, space, created)


def objects(file: h5py.File) -> None:
    file["y"] = DATA
    file.create_dataset("x", data=np.array([file["y"].ref] * 4, h5py.ref_dtype))


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (external, "has its data in another file, 'secret'"),
        (virtual, "has its data in another file, 'other.h5'"),
        (linked, "has no arrays"),
        (filtered, "needs the filter 32001, a plugin"),
        (objects, "holds objects, not numbers"),
    ],
)
def test_hdf5_files_that_need_something_else(write: Callable[[h5py.File], None], message: str) -> None:
    with h5py.File("x.h5", "w") as file:
        write(file)
    assert message in refusal("x.h5")


def test_hdf5_files_that_need_nothing_else() -> None:
    with h5py.File("x.h5", "w") as file:
        file.create_dataset("x", data=DATA, compression="gzip", shuffle=True, fletcher32=True)
        file.create_dataset("y", data=DATA, compression="lzf")
        file.create_dataset("z", data=DATA.astype("i4"), scaleoffset=0, chunks=(2, 2))
        layout = h5py.VirtualLayout(DATA.shape, DATA.dtype)
        layout[:] = h5py.VirtualSource(file["x"])
        file.create_virtual_dataset("v", layout)
        file["s"] = ["a", "b", "c", "d"]
    for name in "xyzv":
        assert np.array_equal(open_dataset("x.h5", name).read(0, 4), DATA)
    assert open_dataset("x.h5", "s").read(1, 2).tolist() == [b"b"]


def test_arrays_of_objects_are_not_unpickled() -> None:
    array = np.array([Code()] * 4, object)
    np.save("x.npy", array, allow_pickle=True)
    np.savez("x.npz", x=array)
    os.mkdir("folder")
    np.save("folder/0.npy", array, allow_pickle=True)
    for path in ("x.npy", "x.npz", "folder"):
        refusal(path)


def test_elements_without_bytes() -> None:
    np.save("x.npy", np.zeros((4, 2), "S1"))
    Path("x.npy").write_bytes(Path("x.npy").read_bytes()[:-8].replace(b"|S1", b"|S0"))
    assert "take no bytes" in refusal("x.npy")


def damage(path: str, seed: int) -> None:
    """Change bytes of a file, or of one in a folder."""
    rng = Random(seed)
    place = Path(path)
    files = [file for file in sorted(place.rglob("*")) if file.is_file()] if place.is_dir() else [place]
    file = rng.choice(files)
    file.write_bytes(raw.change(file.read_bytes(), b"", rng)[:100_000])


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".zarr", ".v2.zarr", ".h5"])
def test_damaged_data_sets_are_read_or_refused(suffix: str) -> None:
    for seed in range(40):
        path = f"{seed}{suffix}"
        if suffix == ".h5":
            with h5py.File(path, "w") as file:
                file["x"] = DATA
        elif suffix.endswith(".zarr"):
            zarr.create_array(store=path, data=DATA, zarr_format=2 if "v2" in suffix else 3)
        else:
            (np.save if suffix == ".npy" else np.savez)(path, DATA)
        damage(path, seed)
        try:
            open_dataset(path, "x").read(0, 4)
        except (ov.IRError, OSError, MemoryError):
            continue
