"""A `Side` that runs a user's command on a device, exchanging model, inputs and results in a folder."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np

from .._util.child_process import describe_exit, run_command
from .._util.command_folder import Entry, list_entries
from .._util.escaping import one_line, quoted, shown
from .._util.files import create, write_npy
from ..codes import Code
from ..errors import InputError
from ..ir.graph import Port
from ..ir.tensor import Array, TensorType
from ..openvino.saving import save_model
from .observation import Observation
from .recorded_side import Recorded, read_array
from .reference import Reference
from .tensors import name_of

if TYPE_CHECKING:
    from ..openvino.model import Model

__all__ = ["Command"]


@dataclass(frozen=True)
class Command:
    """A side that runs a command, which takes a folder, runs its model on a device, and writes the results there.

    The folder has ``model.xml`` and ``model.bin``, an array for each input as ``inputs/0.npy`` and so on, and
    ``names.json``, which lists inputs, outputs and intermediate tensors with their files, names, types and shapes. The
    command writes every output, ``outputs/0.npy`` and so on, and any intermediate tensors, ``tensors/0.npy`` and so on.

    >>> from ir_runtime import debug
    >>> debug.Command("python device.py --fast").words
    ('python', 'device.py', '--fast')

    Args:
        command: the command as a shell command line, or as a list of words; the path of the folder is appended.

    Raises:
        InputError: if the command is empty, or has an unclosed quote.
    """

    command: str | Sequence[str]

    def __post_init__(self) -> None:
        if not self.words:
            raise InputError("the command is empty", code=Code.BAD_REQUEST, hint="such as 'python device.py'")

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the command line."""
        if not isinstance(self.command, str):
            return tuple(self.command)
        try:
            return tuple(shlex.split(self.command))
        except ValueError as reason:
            message = f"{self.command!r} is not a command: {str(reason).lower()}"
            raise InputError(message, code=Code.BAD_REQUEST) from None

    @property
    def name(self) -> str:
        """The command as one line of text."""
        return shlex.join(self.words)

    def observe(
        self, model: Model, reference: Reference, feeds: Sequence[Array], ports: Sequence[Port]
    ) -> Observation:
        """Run the command on the model, and read its results.

        Args:
            model: the model.
            reference: the reference of the model, which has the graph.
            feeds: an array for each input.
            ports: the tensors to observe.

        Raises:
            InputError: if the command cannot be started, fails, or does not write the required arrays.
            LimitError: when the time is up.
        """
        with TemporaryDirectory() as path:
            folder = Path(path)
            entries = _entries(reference, feeds, ports)
            _write(folder, model, feeds, entries)
            last_line = self._run(folder)
            arrays: dict[int | str, Array] = {}
            for index, output in enumerate(entries["outputs"]):
                arrays |= _results(folder, output, index, last_line, self.name)
            for tensor in entries["tensors"]:
                if (folder / tensor.file).exists():
                    arrays |= _results(folder, tensor, tensor.name, last_line, self.name)
        return Recorded(self.name, arrays).observe(model, reference, feeds, ports)

    def _run(self, folder: Path) -> str:
        """Run the command, and return the last line that it printed, for messages."""
        try:
            code, printed = run_command([*self.words, str(folder)])
        except OSError as reason:
            message = f"cannot start {quoted(self.words[0])}: {reason.strerror}"
            raise InputError(message, code=Code.BAD_REQUEST) from None
        last = next(iter(printed.strip().splitlines()[-1:]), "")
        last_line = f"it printed last: {shown(one_line(last, 200))}" if last else "it printed nothing"
        if code:
            message = f"{quoted(self.name)} ended with {describe_exit(code)}"
            raise InputError(message, code=Code.BAD_REQUEST, hint=last_line)
        return last_line


def _entries(reference: Reference, feeds: Sequence[Array], ports: Sequence[Port]) -> dict[str, list[Entry]]:
    """Return the contents of ``names.json``: entries for inputs, outputs and intermediate tensors."""
    graph, types = reference.graph, reference.with_shapes(feeds).types
    return {
        "inputs": [
            Entry.of("inputs", index, port.label, port.names, port.element_type.label, feed.shape)
            for index, (port, feed) in enumerate(zip(reference.inputs, feeds, strict=True))
        ],
        "outputs": [
            _entry("outputs", index, port.label, port.names, types[port._port].type)
            for index, port in enumerate(reference.outputs)
        ],
        "tensors": [
            _entry(
                "tensors",
                index,
                name_of(graph, port),
                graph[port.layer].outputs[port.number].names,
                types[port].type,
            )
            for index, port in enumerate(ports)
        ],
    }


def _entry(kind: str, index: int, name: str, names: Iterable[str], type: TensorType) -> Entry:
    shape = type.shape.static if type.shape.is_static else None
    return Entry.of(kind, index, name, names, type.element.label, shape)


def _write(
    folder: Path, model: Model, feeds: Sequence[Array], entries: Mapping[str, Sequence[Entry]]
) -> None:
    save_model(model, folder / "model.xml", compress_to_fp16=False)
    list_entries(folder, entries)
    for entry, feed in zip(entries["inputs"], feeds, strict=True):
        with create(folder / entry.file) as file:
            write_npy(file, feed.astype(str) if feed.dtype == object else feed)


def _results(
    folder: Path, entry: Entry, key: int | str, last_line: str, command: str
) -> dict[int | str, Array]:
    """Return the arrays that a command wrote for a tensor: its values under ``key``, and any scale and zero point.

    Args:
        folder: the folder of the command.
        entry: the entry of the tensor in ``names.json``.
        key: the number or the name of the tensor; ``.scale`` and ``.zero_point`` are appended to it.
        last_line: the last line that the command printed, as a hint.
        command: the command, for messages.

    Raises:
        InputError: if the file is missing, or a file does not contain an array.
    """
    path = folder / entry.file
    if not path.is_file():
        raise InputError(
            f"{quoted(command)} wrote no {entry.file}, the output {quoted(entry.name)}",
            code=Code.BAD_REQUEST,
            hint=last_line,
        )
    arrays: dict[int | str, Array] = {}
    for end in ("", ".scale", ".zero_point"):
        file = path.with_suffix(f"{end}.npy")
        if not end or file.is_file():
            try:
                arrays[f"{key}{end}" if end else key] = np.asarray(read_array(str(file)))
            except InputError as reason:
                message = f"{quoted(command)} wrote {entry.file}: {reason.message.replace(f'{folder}/', '')}"
                raise InputError(message, code=reason.code, hint=reason.hint or last_line) from None
    return arrays
