"""A Python for emulated AArch64: Debian packages and wheels, unpacked into a folder; nothing is installed."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

__all__ = ["prepare", "requirements"]

# ruff: noqa: S607 - Debian's tools are where Debian puts them

ROOT = Path(__file__).parents[2]
# What Debian's own lists of sources are called; those of others lack AArch64, or are slow to say so.
_SOURCES = ("/etc/apt/sources.list", "/etc/apt/sources.list.d/debian.sources")
_PACKAGES = ("python3:arm64", "libstdc++6:arm64", "qemu-user-static")
# What tests of kernels import, of the group `test`.
_MODULES = frozenset({"hypothesis", "llvmlite", "openvino", "platformdirs", "pytest", "ziglang"})
# The C libraries that wheels are built for, up to that of the emulated machine.
_GLIBC = re.compile(r"libc6_2\.(\d+)-")
# LLVM reads there what the processor can do, and oneDNN which one it is.
_FILES = {
    "proc/cpuinfo": "processor\t: 0\nFeatures\t: fp asimd atomics asimddp\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n",
    "sys/devices/system/cpu/cpu0/regs/identification/midr_el1": "0x00000000413fd0c1\n",
}


def prepare(folder: Path) -> Path:
    """Create the environment in a folder unless it exists; return the path of its Python.

    Raises:
        SystemExit: if this machine has no Debian packages.
    """
    python = folder / "environment" / "bin" / "python"
    if not python.exists():
        if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
            raise SystemExit("a machine is emulated on Debian and its relatives only: apt-get is missing")
        _unpack(folder)
        version = next((folder / "root" / "usr" / "bin").glob("python3.*[0-9]")).name
        _install(folder, version)
        _write(python, _launcher(folder, version))
        python.chmod(0o755)
    return python


def _unpack(folder: Path) -> None:
    """Download packages with their dependencies and unpack them, ignoring the packages of this machine."""
    apt, root = folder / "apt", folder / "root"
    for name in ("lists/partial", "cache/archives/partial", "sources"):
        (apt / name).mkdir(parents=True, exist_ok=True)
    _write(apt / "status", "")
    for source in filter(os.path.exists, _SOURCES):
        shutil.copy(source, apt / "sources")
    _write(apt / "apt.conf", _settings(apt))
    environment = os.environ | {"APT_CONFIG": str(apt / "apt.conf"), "DEBIAN_FRONTEND": "noninteractive"}
    for command in ("update", "install -y --download-only --no-install-recommends"):
        packages = _PACKAGES if "install" in command else ()
        subprocess.run(["apt-get", "-q", *command.split(), *packages], check=True, env=environment)
    for package in (apt / "cache" / "archives").glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", package, root], check=True)
    for name, text in _FILES.items():
        _write(root / name, text)


def _settings(apt: Path) -> str:
    own = subprocess.run(["dpkg", "--print-architecture"], check=True, capture_output=True, text=True)
    return "\n".join(
        (
            f'APT::Architecture "{own.stdout.strip()}";',
            f'APT::Architectures {{ "{own.stdout.strip()}"; "arm64"; }};',
            f'APT::Sandbox::User "{_user()}";',
            f'Dir::State "{apt}";',
            f'Dir::State::Lists "{apt}/lists";',
            f'Dir::State::status "{apt}/status";',
            f'Dir::Cache "{apt}/cache";',
            f'Dir::Etc::sourcelist "{apt}/sources/sources.list";',
            f'Dir::Etc::sourceparts "{apt}/sources";',
        )
    )


def _user() -> str:
    import getpass

    return getpass.getuser()


def _install(folder: Path, version: str) -> None:
    """Install wheels for AArch64; linkers are programs, and therefore those of this machine."""
    libraries = folder / "environment" / "lib" / version / "site-packages"
    (package,) = (folder / "apt" / "cache" / "archives").glob("libc6_*_arm64.deb")
    newest = int(_GLIBC.match(package.name)[1])
    platforms = (
        "manylinux2014_aarch64",
        *(f"manylinux_2_{minor}_aarch64" for minor in range(17, newest + 1)),
    )
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--only-binary=:all:"]
    command += ["--target", str(libraries), "--python-version", version.removeprefix("python")]
    command += ["--implementation", "cp", *(word for name in platforms for word in ("--platform", name))]
    subprocess.run([*command, *requirements()], check=True)
    shutil.rmtree(libraries / "ziglang")
    spec = find_spec("ziglang")
    assert spec is not None
    assert spec.origin is not None
    (libraries / "ziglang").symlink_to(Path(spec.origin).parent)
    home = f"home = {folder}/root/usr/bin\ninclude-system-site-packages = false\n"
    _write(folder / "environment" / "pyvenv.cfg", home)


def requirements() -> list[str]:
    """Return the requirements of the package and of the kernel tests."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    wanted = _group(project["dependency-groups"], "test")
    return [
        *project["project"]["dependencies"],
        *(line for line in wanted if re.split(r"[^\w-]", line)[0] in _MODULES),
    ]


def _group(groups: dict[str, list[Any]], name: str) -> Iterator[str]:
    for entry in groups[name]:
        if isinstance(entry, str):
            yield entry
        else:
            yield from _group(groups, entry["include-group"])


def _launcher(folder: Path, version: str) -> str:
    """Return a shell script that runs Python in the emulator; child processes started by its name are emulated, too."""
    root = folder / "root"
    qemu, python = root / "usr" / "bin" / "qemu-aarch64-static", root / "usr" / "bin" / version
    return f'#!/bin/sh\nexec {shlex.quote(str(qemu))} -L {shlex.quote(str(root))} -0 "$0" {shlex.quote(str(python))} "$@"\n'


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
