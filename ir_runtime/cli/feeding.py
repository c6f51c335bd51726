"""Read or generate the array for each input of a model."""

from __future__ import annotations

import os
import re
import shlex
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, TypeVar

import numpy as np

from .._util.array_files import SAVED, check_claims
from .._util.escaping import name_of_member, visible
from ..diagnostics import Location
from ..errors import ExecutionError, InputError, IRError, ValidationError
from ..ir.tensor import Array
from ..limits import current
from ..openvino.casting import RESHAPE, as_array, describe
from ..openvino.model import Model
from ..openvino.names import find_port
from ..openvino.node import Output
from ..openvino.random_feeds import random_feeds
from .image_options import image_options_given
from .pictures import Pictures, picture_files
from .shaping import FITTING
from .terminal import show

__all__ = ["Feed", "assign_feeds", "collect", "collect_sets", "split_input", "tracing_shapes"]

_Found = TypeVar("_Found")

_URL = re.compile(r"[a-z0-9]{2,}://")


@dataclass(frozen=True)
class Feed:
    """The array for an input, and its source for messages."""

    array: Array
    source: str


def collect(model: Model, files: Sequence[str], seed: int | None = None) -> dict[Output, Feed]:
    """Return an array for each input of a model.

    Args:
        model: the model to feed.
        files: ``.npy``, ``.npz`` and images, each as ``FILE`` or ``NAME=FILE``. Unnamed arrays go to the
        remaining inputs, in order.
        seed: the seed of random data for inputs without a file; ``None`` makes them an error.

    Raises:
        InputError: if a file cannot be read, or its arrays do not match the inputs.
    """
    feeds = (feed for text in files for feed in _read_feeds(text))
    return _complete(model, assign_feeds(model.inputs, feeds, lambda feed: feed.source), seed)


def _complete(model: Model, given: Mapping[Output, Feed | Pictures], seed: int | None) -> dict[Output, Feed]:
    """Add random data for the missing inputs, if there is a seed."""
    ports = model.inputs
    missing = [port for port in ports if port not in given]
    if missing and seed is None:
        count = "an input is" if len(missing) == 1 else f"{len(missing)} inputs are"
        hint = "-i NAME=FILE.npy gives an input its data, --random generates it"
        raise InputError(f"{count} missing: {'; '.join(map(describe, missing))}", hint=hint)
    feeds = {port: _fit_feed(model, port, _to_feed(model, port, feed)) for port, feed in given.items()}
    if missing:
        feeds |= _random(model, feeds, missing, seed or 0)
    return {port: feeds[port] for port in ports}


def collect_sets(model: Model, files: Sequence[str], seed: int | None = None) -> list[dict[Output, Feed]]:
    """Return one or more sets of inputs: the n-th file of an input belongs to the n-th set.

    An input with a single file has it in all sets. A folder stands for its ``.npy`` and ``.npz`` files, sorted by name.

    Args:
        model: the model to feed.
        files: as for `collect`.
        seed: as for `collect`.

    Raises:
        InputError: if a file cannot be read, its arrays do not match the inputs, or inputs have different numbers of files.
    """
    ports = model.inputs
    named: dict[Output, list[Feed | Pictures]] = {}
    unnamed: list[Feed | Pictures] = []
    for name, feed, is_key in (
        triple for text in files for path in _expand(text) for triple in _read_feeds(path)
    ):
        if name is None:
            unnamed.append(feed)
        else:
            port = _port_of_key(ports, name, feed.source) if is_key else find_port(ports, name, "input")
            named.setdefault(port, []).append(feed)
    free = [port for port in ports if port not in named]
    if unnamed and not free:
        raise InputError(f"{unnamed[0].source} is one input too many: all have names", hint=_inputs(ports))
    for place, feed in enumerate(unnamed):
        named.setdefault(free[place % len(free)], []).append(feed)
    count = max(map(len, named.values()), default=1)
    if any(len(arrays) not in (1, count) for arrays in named.values()):
        times = ", ".join(f"{port.label} {len(arrays)}" for port, arrays in named.items())
        raise InputError(
            f"inputs are given different numbers of times: {times}",
            hint="each set of inputs needs one array for each input; one that is given once is in all sets",
        )
    return [
        _complete(model, {port: arrays[number % len(arrays)] for port, arrays in named.items()}, seed)
        for number in range(count)
    ]


def _expand(text: str) -> Iterator[str]:
    """Expand ``NAME=FOLDER`` to ``NAME=FILE`` for each array file in the folder; yield any other text unchanged."""
    name, path = split_input(text)
    folder = Path(path)
    arrays = (
        sorted(file for file in folder.iterdir() if file.suffix in (".npy", ".npz"))
        if folder.is_dir()
        else []
    )
    if not arrays:
        yield text
    for file in arrays:
        yield str(file) if name is None else f"{name}={file}"


def _random(
    model: Model, feeds: Mapping[Output, Feed], missing: Sequence[Output], seed: int
) -> dict[Output, Feed]:
    """Return random data for inputs; print its shapes and distributions to stderr."""
    feeds_drawn = random_feeds(model, {port: feed.array for port, feed in feeds.items()}, seed)
    choices = "; ".join([f"seed {seed}", *feeds_drawn.choices])
    show(f"random data: {visible(choices)}; -i, --shape and --seed change that", err=True)
    return {port: _fit_feed(model, port, Feed(feeds_drawn.arrays[port], "random")) for port in missing}


def _to_feed(model: Model, port: Output, source: Feed | Pictures) -> Feed:
    """Convert images to the array of an input, printing the conversion to stderr; return arrays unchanged."""
    if isinstance(source, Feed):
        return source
    array, note = source.laid_out(model, port, image_options_given())
    show(visible(note), err=True)
    return Feed(array, source.source)


def _fit_feed(model: Model, port: Output, feed: Feed) -> Feed:
    array = feed.array
    dtype = port.element_type.dtype
    if array.dtype.kind == "V" and array.dtype.names is None and array.dtype.itemsize == dtype.itemsize:
        array = array.view(dtype)  # as NumPy saves the types that it lacks
    try:
        return Feed(as_array(port, array, strict=True), feed.source)
    except InputError as problem:
        if problem.hint == RESHAPE:
            problem.hint = _hint_at_shape(model, port, array.shape)
        raise


def _hint_at_shape(model: Model, port: Output, lengths: tuple[int, ...]) -> str:
    """Return a hint that says whether reshaping the model to the shape of the given data would work.

    This reshapes the model, which must not be used afterwards.
    """
    shape = ",".join(map(str, lengths))
    option = f"--shape {shlex.quote(f'{port.label}[{shape}]')}"
    try:
        model.reshape({port: list(lengths)})
    except IRError as refusal:
        where = refusal.where
        layer = "" if where is None or where.layer is None else f"layer {where.layer!r} ({where.operation}): "
        return f"change the data: {option} would be refused: {layer}{refusal.message}"
    return f"change the data, or the model with {option}"


@contextmanager
def tracing_shapes(model: Model, arrays: Sequence[Array]) -> Iterator[None]:
    """Add the causes of a layer's failure to its error, if shape inference refuses the input shapes, too.

    This reshapes the model, which must not be used afterwards.
    """
    try:
        yield
    except ExecutionError as problem:
        shapes: dict[str | int | Output | None, Any] = {
            index: list(np.shape(array)) for index, array in enumerate(arrays)
        }
        try:
            model.reshape(shapes)
        except ValidationError as refusal:
            finding = refusal.diagnostics[0]
            if problem.where is not None and finding.layer == problem.where.layer:
                problem.causes = finding.causes
            problem.hint = problem.hint or FITTING
        raise


def assign_feeds(
    ports: Sequence[Output], feeds: Iterable[tuple[str | None, _Found, bool]], source: Callable[[_Found], str]
) -> dict[Output, _Found]:
    """Assign feeds to inputs, first by name, then in order.

    Args:
        ports: the inputs.
        feeds: triples of input name or ``None``, feed, and whether the name is a key of an ``.npz``.
        source: returns the source of a feed, for messages.

    Raises:
        InputError: if a name is unknown, an input is given twice, or there are too many feeds.
    """
    by_name: dict[Output, _Found] = {}
    unnamed: list[_Found] = []
    for name, feed, is_key in feeds:
        if name is None:
            unnamed.append(feed)
            continue
        port = _port_of_key(ports, name, source(feed)) if is_key else find_port(ports, name, "input")
        if port in by_name:
            raise InputError(f"input {port.label!r} is given twice: {source(by_name[port])}, {source(feed)}")
        by_name[port] = feed
    free = [port for port in ports if port not in by_name]
    if len(unnamed) > len(free):
        raise InputError(
            f"{source(unnamed[len(free)])} is one input too many: the model has {len(ports)}",
            hint=_inputs(ports),
        )
    return by_name | dict(zip(free, unnamed, strict=False))


def _inputs(ports: Sequence[Output]) -> str:
    return "its inputs are " + ", ".join(map(describe, ports)) if ports else ""


def _port_of_key(ports: Sequence[Output], key: str, source: str) -> Output:
    try:
        return find_port(ports, key, "input")
    except InputError as problem:
        names = ", ".join(port.label for port in ports) or "none"
        raise InputError(
            f"{source} has an array {key!r}, but the model has no such input",
            code=problem.code,
            hint=f"-i NAME={source} says which input it is for, where it is the only array; the inputs are {names}",
        ) from None


def _read_feeds(text: str) -> Iterator[tuple[str | None, Feed | Pictures, bool]]:
    """Yield input name, array, and whether the name is a key of an ``.npz``, for each array of one ``-i``.

    Images are only opened here: decoding them depends on the input they go to.
    """
    name, path = split_input(text)
    if (images := _images(path)) is not None:
        yield name, Pictures(path, images), False
        return
    arrays = _load(path)
    if not isinstance(arrays, Mapping):
        yield name, Feed(arrays, path), False
    elif name is None:
        yield from ((_name(key), Feed(array, path), True) for key, array in arrays.items())
    elif name in arrays or len(arrays) == 1:
        yield name, Feed(arrays.get(name, next(iter(arrays.values()))), path), False
    else:
        keys = ", ".join(list(arrays)[:10])
        raise InputError(f"{path} has {len(arrays)} arrays, none of them named {name!r}: {keys}")


def _images(path: str) -> list[Path] | None:
    try:
        return picture_files(path)
    except OSError as reason:
        raise InputError(f"{path} cannot be read: {reason.strerror or reason}") from None


def split_input(text: str) -> tuple[str | None, str]:
    """Split ``NAME=FILE``, or ``NAME:FILE`` as for benchmark_app, unless a file of that whole name exists."""
    if os.path.exists(text):
        return None, text
    name, equals, path = text.partition("=")
    if equals:
        return name, path
    name, colon, path = text.partition(":")
    return (name, path) if colon and os.path.isfile(path) else (None, text)


def _name(key: str) -> str | None:
    """Return the name of an array in an ``.npz``; ``None`` for NumPy's default names ``arr_0`` and so on."""
    return None if key.startswith("arr_") and key[4:].isdecimal() else key


def _load(path: str) -> Array | Mapping[str, Array]:
    if _URL.match(path):
        raise InputError(f"{path} is a URL, and nothing is downloaded", hint="download it, and name the file")
    try:
        with _copy_stdin() if path == "-" else open(path, "rb") as file:
            return _load_open(file, path)
    except OSError as reason:
        raise InputError(f"{path} cannot be read: {reason.strerror or reason}") from None
    except MemoryError:
        raise InputError(f"not enough memory for the contents of {path}") from None
    except (ValueError, SyntaxError, EOFError, zipfile.BadZipFile, zlib.error):
        raise InputError(f"{path} is damaged or cut off", hint=SAVED) from None


def _copy_stdin() -> IO[bytes]:
    """Copy stdin to a seekable temporary file.

    Raises:
        LimitError: if it is larger than the limits allow.
    """
    file, size = TemporaryFile(), 0  # noqa: SIM115 - by the caller
    while block := sys.stdin.buffer.read(1 << 20):
        size += len(block)
        current().check("memory", size, Location("stdin"))
        file.write(block)
    file.seek(0)
    return file


def _load_open(file: IO[bytes], path: str) -> Array | Mapping[str, Array]:
    start = file.read(6)
    if not start and path == "-":
        raise InputError("stdin is empty", hint="a command before the pipe writes arrays with -o -")
    if not start:
        raise InputError(f"{path} is empty", hint=SAVED)
    if not (start == b"\x93NUMPY" or start.startswith(b"PK")):
        raise InputError(f"{path} is neither .npy nor .npz", hint=SAVED)
    file.seek(0)
    check_claims(file, path, current())
    arrays = np.load(file, allow_pickle=False)
    if isinstance(arrays, np.ndarray):
        return arrays
    with arrays as archive:
        return {name_of_member(key): archive[key] for key in archive.files}
