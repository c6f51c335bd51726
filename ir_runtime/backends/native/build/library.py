"""Build libraries: all kernels, compiled for a target and linked for a system.

Object files are cached under a hash of all their dependencies, so only changed kernels are compiled again.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from pkgutil import iter_modules

import llvmlite.binding as llvm

from ...._util.child_process import process_pool
from ...._util.cores import parallelism
from ...._util.files import create, temporary_file
from ..codegen.language import ROUTINES, Routine
from ..codegen.targets import TARGETS, Target
from ..machine_code import family, fingerprint
from .systems import System, this_system

__all__ = ["build", "host_target", "is_current", "link_routines"]

_PACKAGE = __package__.rpartition(".")[0]
# Modules with routines that no kernel module imports.
_MODULES = "codegen.identification", "threading.tape"


def host_target() -> Target:
    """Return the best target of this processor.

    Raises:
        ValueError: if no target runs on it.
    """
    features = {name for name, has in llvm.get_host_cpu_features().items() if has}
    for target in TARGETS.values():
        if target.family == family() and target.features <= features | {"sse2"}:
            return target
    raise ValueError("there is no target for this processor")


def is_current(library: Path) -> bool:
    """Return whether a library was built from the current sources by the installed versions of the tools."""
    try:
        code = library.read_bytes()
    except FileNotFoundError:
        return False
    return fingerprint() in code and _tools() in code


def build(target: str, system: System, out: Path, objects: Path) -> None:
    """Build the library of a target for a system, with one process per core.

    Args:
        target: the target's name.
        system: the operating system and processor family.
        out: the library file, replaced when the build is complete.
        objects: the cache folder of object files; those that the library does not need are removed.

    Raises:
        CompileError: if a kernel cannot be compiled.
        LinkError: if the library cannot be linked.
    """
    objects.mkdir(parents=True, exist_ok=True)
    with _build_environment(target), process_pool(parallelism()) as pool:
        names = pool.submit(_routine_names).result()
        constants = {"ir_runtime_sources": fingerprint(), "ir_runtime_tools": _tools()}
        data = pool.submit(_data_object, system.triple, constants)
        files = list(pool.map(partial(_object, triple=system.triple, folder=objects), names))
    for old in set(objects.glob("*.o")) - set(files):
        old.unlink(missing_ok=True)  # another process may build the same library
    _link(files, data.result(), system, out)


def link_routines(routines: Iterable[Routine], out: Path) -> list[str]:
    """Link routines and their callees to the library file ``out`` for this process; return the names of all of them."""
    from ..codegen.target import TARGET
    from .compiler import compile_routine

    needed: dict[str, Routine] = {}
    left = list(routines)
    while left:
        routine = left.pop()
        if routine.name not in needed:
            needed[routine.name] = routine
            left += routine.dependencies()
    system = this_system(TARGET.family)
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for routine in needed.values():
            files.append(Path(folder, f"{routine.name}.o"))
            with create(files[-1]) as file:
                file.write(compile_routine(routine, TARGET, system.triple))
        _link(files, _data_object(system.triple, {}), system, out)
    return list(needed)


def _link(files: list[Path], data: bytes, system: System, out: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        table, linked = Path(folder, "data.o"), Path(folder, out.name)
        with create(table) as file:
            file.write(data)
        system.link([table, *files], linked)
        out.parent.mkdir(parents=True, exist_ok=True)
        with temporary_file(out, mode=0o644) as (fresh, target):
            target.write(linked.read_bytes())
            target.close()
            os.replace(fresh, out)


@contextmanager
def _build_environment(target: str) -> Iterator[None]:
    """Make child processes build for a target, by an environment variable."""
    os.environ["IR_RUNTIME_BUILDING"] = target
    try:
        yield
    finally:
        del os.environ["IR_RUNTIME_BUILDING"]


def _import_all() -> None:
    kernels = import_module(f"{_PACKAGE}.kernels")
    for module in iter_modules(kernels.__path__, f"{kernels.__name__}."):
        import_module(module.name)
    for name in _MODULES:
        import_module(f"{_PACKAGE}.{name}")


def _routine_names() -> list[str]:
    """Return the names of all routines."""
    _import_all()
    return sorted(ROUTINES)


def _object(name: str, triple: str, folder: Path) -> Path:
    """Return the object file of a routine, compiling it if it is not cached."""
    from ..codegen.target import TARGET
    from . import compiler

    _import_all()
    routine = ROUTINES[name]
    text = compiler.text_of(routine, TARGET)
    depends = (
        text, TARGET.cpu, sorted(TARGET.features), triple, Path(compiler.__file__).read_text("utf-8"),
        _tools(),
    )  # fmt: skip
    digest = hashlib.sha256(repr(depends).encode()).hexdigest()
    path = folder / f"{name}-{digest[:32]}.o"
    if not path.exists():
        with temporary_file(path, mode=0o644) as (fresh, file):
            file.write(compiler.compile_text(routine, text, TARGET, triple))
            file.close()
            os.replace(fresh, path)
    return path


def _data_object(triple: str, constants: dict[str, bytes]) -> bytes:
    """Return an object file with the host table and constants."""
    from ..codegen.target import TARGET
    from .compiler import compile_module, data_module

    return compile_module(data_module(constants), TARGET, triple)


def _tools() -> bytes:
    return f"llvmlite {version('llvmlite')}, ziglang {version('ziglang')}".encode()
