"""The systems that libraries are linked for: LLVM's triples, linkers, and the tags of wheels."""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from ...._util.child_process import run_program
from ...._util.files import save_text
from ..machine_code import FOLDER

__all__ = ["SYSTEMS", "LinkError", "System", "this_system"]


class LinkError(Exception):
    """A library cannot be linked."""


@dataclass(frozen=True)
class System:
    """An operating system on processors of one family.

    Args:
        name: the system's name.
        triple: its LLVM triple.
        suffix: the suffix of library files.
        linker: the arguments with which Zig links a library, before the object files; ``{out}`` is replaced by its path, and
            ``{name}`` by its file name.
        tag: the platform tag of wheels.
        targets: the targets whose libraries a wheel contains.
        imports: the definition of an import library, for linkers that must know which library exports each function.
    """

    name: str
    triple: str
    suffix: str
    linker: tuple[str, ...]
    tag: str
    targets: tuple[str, ...]
    imports: str = ""

    def link(self, objects: Sequence[Path], out: Path) -> None:
        """Link object files to a library.

        Raises:
            LinkError: if linking fails; the message contains that of the linker.
        """
        options = [option.format(out=out, name=out.name) for option in self.linker]
        files = [*objects]
        if self.imports:
            definition, library = out.with_suffix(".def"), out.with_suffix(".lib")
            save_text(definition, self.imports)
            _run_zig(out, ["dlltool", "-m", "i386:x86-64", "-d", str(definition), "-l", str(library)])
            files.append(library)
        _run_zig(out, [*options, *map(str, files)])


def _run_zig(out: Path, arguments: Sequence[str]) -> None:
    cache = {"ZIG_GLOBAL_CACHE_DIR": str(_CACHE), "ZIG_LOCAL_CACHE_DIR": str(_CACHE)}
    done = run_program(_zig(), arguments, **cache)
    if done.returncode:
        raise LinkError(f"{out.name} cannot be linked:\n{done.stderr}")


_CACHE = FOLDER.parents[3] / "out" / "zig"
# Only the linker, no C library: kernels call only functions that every process has.
_ELF = "ld.lld", "-shared", "--strip-all", "-Bsymbolic", "-z", "noexecstack", "-o", "{out}"
# A macOS library contains its install name, by default the path where it is linked.
_MACHO = "-shared", "-s", "-Wl,-install_name,@rpath/{name}", "-o", "{out}"
# Every Windows process has ntdll.dll; -lldmingw exports all functions.
_PE = "lld-link", "-dll", "-noentry", "-lldmingw", "-machine:x64", "-timestamp:0", "-out:{out}"
_NTDLL = """LIBRARY ntdll.dll
EXPORTS
memcpy
memmove
memset
___chkstk_ms == __chkstk
"""
_MANYLINUX = "manylinux_2_17_{0}.manylinux2014_{0}.musllinux_1_1_{0}"


# Three libraries keep a wheel below 3 MB; a processor between two of these targets uses the lower one.
_X86_TARGETS = "x86-64-v4-bf16", "x86-64-v4-vnni", "x86-64-v3"


SYSTEMS = {
    system.name: system
    for system in (
        System(
            "linux-x86_64", "x86_64-unknown-linux-gnu", ".so", _ELF, _MANYLINUX.format("x86_64"), _X86_TARGETS
        ),
        System(
            "linux-aarch64", "aarch64-unknown-linux-gnu", ".so", _ELF, _MANYLINUX.format("aarch64"),
            ("aarch64-dotprod", "aarch64"),
        ),
        System(
            "macos-aarch64", "arm64-apple-macosx11.0.0", ".dylib",
            ("cc", "-target", "aarch64-macos.11.0", *_MACHO), "macosx_11_0_arm64", ("aarch64-dotprod",),
        ),
        # Few Macs have AVX-512, and macOS saves its registers only once a thread has used them.
        System(
            "macos-x86_64", "x86_64-apple-macosx11.0.0", ".dylib",
            ("cc", "-target", "x86_64-macos.11.0", *_MACHO), "macosx_11_0_x86_64", ("x86-64-v3",),
        ),
        System(
            "windows-x86_64", "x86_64-w64-windows-gnu", ".dll", _PE, "win_amd64", _X86_TARGETS, _NTDLL,
        ),
    )
}  # fmt: skip
"""All systems by name."""


def this_system(family: str) -> System:
    """Return the system of this process for a processor family.

    Raises:
        LinkError: if kernels cannot be built for it.
    """
    name = {"win32": "windows", "darwin": "macos"}.get(sys.platform, sys.platform)
    system = SYSTEMS.get(f"{name}-{family}")
    if system is None:
        raise LinkError(f"kernels cannot be built for {name} on {platform.machine()}")
    return system


def _zig() -> Path:
    """Return the path of Zig, which contains linkers for all systems."""
    spec = find_spec("ziglang")
    if spec is None or spec.origin is None:
        raise LinkError("kernels are linked by ziglang, which is not installed: pip install ziglang")
    return Path(spec.origin).with_name("zig.exe" if sys.platform == "win32" else "zig")
