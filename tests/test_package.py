"""The package as a whole: its public names, and the modules that importing it loads."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
import types
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from harness.missing import missing
from harness.sources import trees

import ir_runtime as ir
from ir_runtime import _version

HEAVY = ("networkx", "lxml", "click", "ml_dtypes", "numpy", "openvino")


DIGITS = Path(__file__).parents[1] / "examples" / "digits"


def modules_of(program: str) -> set[str]:
    """Return the modules that a fresh interpreter has loaded after a program."""
    code = f"{program}\nimport sys; print(*sys.modules)"
    run = [sys.executable, "-c", code]
    return set(subprocess.run(run, check=True, capture_output=True, text=True).stdout.split())


def loaded_by(program: str) -> set[str]:
    """Return the top-level modules among them."""
    return {name.partition(".")[0] for name in modules_of(program)}


def test_importing_loads_nothing_heavy() -> None:
    assert not loaded_by("import ir_runtime") & set(HEAVY)


CLI = {
    f"ir_runtime.{name}"
    for name in ("_version", "cli", "cli._index", "cli.exits", "cli.helping", "_util", "_util.interrupts")
}


@pytest.mark.parametrize(
    ("program", "modules"),
    [
        ("import ir_runtime", {"ir_runtime._version"}),
        *(
            (f"from ir_runtime.cli import main; main(['{word}'], standalone_mode=False)", CLI)
            for word in ("--help", "--version")
        ),
    ],
)
def test_no_more_modules_are_imported_than_needed(program: str, modules: set[str]) -> None:
    """``--help`` lists all commands without importing any."""
    code = f"{program}; import sys; print([name for name in sys.modules if name.startswith('ir_runtime')])"
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, check=True, capture_output=True, text=True)
    assert set(ast.literal_eval(done.stdout.splitlines()[-1])) == {"ir_runtime", *modules}


@pytest.mark.parametrize("name", ["IRError", "Location", "Limits", "__version__"])
def test_light_names_stay_light(name: str) -> None:
    assert not loaded_by(f"from ir_runtime import {name}") & set(HEAVY)


def test_hiding_a_package_keeps_what_is_imported_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    with missing("PIL"):
        with pytest.raises(ImportError):
            import_module("PIL")
        first = import_module("colorsys")
    assert import_module("colorsys") is first
    forgetful = [
        path.name
        for path in Path(__file__).parent.rglob("*.py")
        if re.search(r"patch\.dict\(\s*sys\.modules", path.read_text())
    ]
    assert forgetful == [], "harness.missing hides packages and keeps what is imported"


def test_running_does_not_load_what_it_does_not_need() -> None:
    found = loaded_by("import ir_runtime\nir_runtime.Core().read_model")
    assert "lxml" in found
    assert not found & {"click", "networkx", "openvino", "llvmlite", "scipy"}


RUN_DIGITS = f"""
import numpy as np, ir_runtime
images = np.load({str(DIGITS / "images.npy")!r})
compiled = ir_runtime.compile_model({str(DIGITS / "digits.xml")!r})
compiled(images)
"""


def test_the_first_answer_takes_no_module_that_it_does_not_need() -> None:
    """Kernels are imported for the layers that need them, recorders for second runs."""
    modules = modules_of(RUN_DIGITS)
    assert {"ir_runtime.ir.graph", "ir_runtime.backends.numpy"} <= modules
    unneeded = ("quantized_matmul", "sdpa", "gathered_matmul", "rotary", "recorder", "tape")
    assert [name for name in modules if name.rpartition(".")[2] in unneeded] == []


def test_importing_names_collects_no_garbage() -> None:
    """Modules are permanent, so hardly any of the visited objects would be garbage."""
    code = """
import gc, ir_runtime
ir_runtime.Limits
phases = []
gc.callbacks.append(lambda phase, info: phases.append(phase))
ir_runtime.compile_model
assert len(phases) <= 4, len(phases)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


# What the system and other programs have a name for.
STANDARD = {"COMP_LINE", "LOCALAPPDATA", "MALLOC_TRIM_THRESHOLD_", "NO_COLOR", "PYTHONPATH", "XDG_CACHE_HOME"}


def environment_reads(tree: ast.Module) -> Iterator[str]:
    """Return the environment variables that a module reads, as names or, unless literal, as expressions."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Attribute(attr="environ"), attr="get" | "pop"), args=args
            ):
                name = args[0]
            case ast.Call(func=ast.Attribute(attr="getenv") | ast.Name(id="getenv"), args=args):
                name = args[0]
            case ast.Subscript(value=ast.Attribute(attr="environ"), slice=key, ctx=ast.Load()):
                name = key
            case _:
                continue
        yield name.value if isinstance(name, ast.Constant) else ast.unparse(name)


def test_environment_variables_carry_the_name_of_the_package() -> None:
    """Variables that other programs set for themselves must not change the package's behavior."""
    found = {(name, file.name) for file, tree in trees().items() for name in environment_reads(tree)}
    assert ("IR_RUNTIME_BACKEND", "__init__.py") in found
    assert not {(n, file) for n, file in found if n not in STANDARD and not n.startswith("IR_RUNTIME_")}


def test_all_is_what_there_is() -> None:
    assert len(set(ir.__all__)) == len(ir.__all__)
    for name in ir.__all__:
        assert getattr(ir, name) is not None
    assert set(ir.__all__) <= set(dir(ir))
    public = {
        name
        for name, thing in vars(ir).items()
        if not name.startswith("_") and not isinstance(thing, types.ModuleType)
    }
    assert public - {"annotations", "import_module", "Any", "TYPE_CHECKING"} <= set(ir.__all__)


@pytest.mark.parametrize("name", [n for n in ir.__all__ if isinstance(getattr(ir, n), types.ModuleType)])
def test_completion_shows_public_names_of_modules(name: str) -> None:
    module = getattr(ir, name)
    shown = {each for each in dir(module) if not each.startswith("_")}
    listed = {each for each in getattr(module, "__all__", ()) if not each.startswith("_")}
    if not name.startswith("opset"):
        assert shown == listed
    assert not [
        each for each in shown if isinstance(getattr(module, each), types.ModuleType) and each not in listed
    ]
    assert not shown & {"explain_absent", "annotations"}


def test_names_for_type_checkers_are_those_at_run_time() -> None:
    """The lazy table and the imports under TYPE_CHECKING agree."""
    source = inspect.getsource(ir)
    checked = source[source.index("if TYPE_CHECKING:") : source.index("# The module of each public name")]
    for name in set(ir.__all__) - {"__version__", "get_version", "shutdown"}:
        assert name in checked, name
        assert name in ir._WHERE, name
    assert set(ir._WHERE) <= set(ir.__all__)


def test_names_that_are_not_there() -> None:
    with pytest.raises(AttributeError, match="module 'ir_runtime' has no attribute 'read_modle'"):
        ir.read_modle  # noqa: B018


def public_members(thing: object) -> list[tuple[str, object]]:
    if not inspect.isclass(thing):
        return []
    own = [
        (name, member)
        for cls in thing.__mro__
        if cls.__module__.startswith("ir_runtime")
        for name, member in vars(cls).items()
    ]
    return [
        (name, member)
        for name, member in own
        if not name.startswith("_")
        and (callable(member) or isinstance(member, property | classmethod | staticmethod))
    ]


@pytest.mark.parametrize("name", [n for n in ir.__all__ if not n.startswith("__")])
def test_everything_public_has_a_docstring(name: str) -> None:
    thing = getattr(ir, name)
    assert inspect.getdoc(thing), name
    for member_name, member in public_members(thing):
        assert inspect.getdoc(member), f"{name}.{member_name}"


def test_the_version() -> None:
    from importlib.metadata import version

    assert _version.__version__ == version("ir_runtime")
    assert ir.__version__ == ir.get_version() == f"2026.4.1-0-ir_runtime-{_version.__version__}"
    found = ir.Core().get_versions("CPU")["CPU"]
    assert (found.major, found.minor, found.patch, found.build_number) == (2026, 4, 1, ir.__version__)


def test_programs_that_ask_for_a_least_version_of_openvino_find_one() -> None:
    for package in (ir, pytest.importorskip("openvino")):
        for said in (package.__version__, package.get_version()):
            assert tuple(int(part) for part in said.split("-")[0].split(".")) >= (2026, 4, 1)
            assert re.match(r"\d+\.\d+\.\d+-", said)


def lacks_body(function: ast.AST) -> bool:
    """Return whether a function with a return type has only a docstring, which type checkers accept if it may return ``None``."""
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) or function.decorator_list:
        return False
    returns = ast.unparse(function.returns) if function.returns else "None"
    return returns != "None" and all(
        isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant) for line in function.body
    )


def test_functions_that_return_something_have_a_body() -> None:
    """Protocols and functions only for type checkers are excluded."""
    found = []
    for path, tree in trees().items():
        declared = {
            id(function)
            for node in ast.walk(tree)
            if (
                isinstance(node, ast.ClassDef)
                and any(ast.unparse(base).startswith("Protocol") for base in node.bases)
            )
            or (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
            for function in ast.walk(node)
        }
        found += [
            f"{path.name}: {node.name}"
            for node in ast.walk(tree)
            if lacks_body(node) and id(node) not in declared and isinstance(node, ast.FunctionDef)
        ]
    assert found == []
