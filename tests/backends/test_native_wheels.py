"""Wheels: platform wheels with kernels, and a pure-Python wheel; builds are reproducible."""

from __future__ import annotations

import re
from pathlib import Path
from zipfile import ZipFile

import pytest

pytest.importorskip("hatchling")

from ir_runtime.backends.native.build import wheels
from ir_runtime.backends.native.build.compiler import compile_module, data_module
from ir_runtime.backends.native.build.systems import SYSTEMS
from ir_runtime.backends.native.codegen.targets import TARGETS

FOLDER = "ir_runtime/backends/native"
# It calls the C library for the copy, and a probe of Windows for a frame of several pages.
COPY = """
define void @copy(ptr %to, ptr %from, i64 %size) {
  %frame = alloca [65536 x i8]
  call void @llvm.memcpy.p0.p0.i64(ptr %frame, ptr %from, i64 %size, i1 0)
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %frame, i64 %size, i1 0)
  ret void
}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""


def names_in(wheel: Path) -> list[str]:
    with ZipFile(wheel) as archive:
        return [name for name in archive.namelist() if name.startswith(FOLDER)]


def test_a_wheel_has_the_libraries_of_its_system(tmp_path: Path) -> None:
    libraries = tmp_path / "libraries"
    libraries.mkdir()
    (libraries / "x86-64-v3.so").write_bytes(b"machine code")
    variables = {"IR_RUNTIME_WHEEL_LIBRARIES": str(libraries), "IR_RUNTIME_WHEEL_TAG": "win_amd64"}
    first, second = (wheels._wheel(tmp_path / name, **variables) for name in ("one", "two"))
    assert first.name.endswith("-py3-none-win_amd64.whl")
    assert first.read_bytes() == second.read_bytes()
    names = names_in(first)
    assert [name for name in names if "/libraries/" in name] == [f"{FOLDER}/libraries/x86-64-v3.so"]
    assert f"{FOLDER}/kernels/pooling.py" in names
    assert not [name for name in names if name.startswith(f"{FOLDER}/build/")]


def test_the_usual_wheel_has_no_machine_code_and_runs_everywhere(tmp_path: Path) -> None:
    wheel = wheels._wheel(tmp_path)
    assert wheel.name.endswith("-py3-none-any.whl")
    assert not [name for name in names_in(wheel) if "/libraries/" in name or "/build/" in name]


@pytest.mark.parametrize("name", SYSTEMS)
def test_targets_of_wheels_are_of_the_family_of_their_system(name: str) -> None:
    """The lowest target has only instructions that nearly all processors of the family have."""
    targets = [TARGETS[target] for target in SYSTEMS[name].targets]
    assert {target.family for target in targets} == {name.partition("-")[2]}
    assert all(targets[-1].features <= target.features for target in targets)


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_library_is_the_same_wherever_it_is_linked(name: str, tmp_path: Path) -> None:
    """It depends only on libraries that every process of the system has loaded."""
    system = SYSTEMS[name]
    target = TARGETS[system.targets[-1]]
    data = compile_module(data_module({"constant": b"its bytes"}) + COPY, target, system.triple)
    linked = []
    for place in (tmp_path / "one", tmp_path / "two"):
        place.mkdir()
        (place / "data.o").write_bytes(data)
        out = place / f"library{system.suffix}"
        system.link([place / "data.o"], out)
        linked.append(out.read_bytes())
    first, second = linked
    assert first == second
    assert b"its bytes" in first
    assert str(tmp_path).encode() not in first
    needed = set(re.findall(rb"[\w.-]+\.(?:dll|DLL|dylib|so(?:\.\d+)?)\b", first)) - {out.name.encode()}
    assert needed == {"windows": {b"ntdll.dll"}, "macos": {b"libSystem.B.dylib"}}.get(
        name.partition("-")[0], set()
    )
