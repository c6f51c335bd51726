"""Every failure gives one message on stderr and an exit code, never a traceback."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner, Result
from harness.nets import binary, net, parameter, passing, result, total, write, write_chain

from ir_runtime import _version, cli
from ir_runtime.cli import Exit, main
from ir_runtime.executor.plan import ExecutionPlan

Invoke = Callable[[str], Result]
Check = Callable[..., Result]


@pytest.mark.parametrize(
    "command",
    [
        "",
        "run",
        "validate",
        "shapes",
        "inspect",
        "bisect",
        "compare",
        "conformance",
        "oracle",
        "reduce",
        "budget",
        "cost",
        "profile",
        "graph",
        "trace-nan",
        "diff",
        "bench",
        "ops",
        "completion",
        "cache",
        "open",
    ],
)
def test_help_has_its_text(check: Check, command: str) -> None:
    found = check(f"help_{command or 'program'}", f"{command} --help".strip())
    assert found.exit_code == 0
    assert found.stderr == ""


def test_help_and_version_are_found_by_their_short_names(invoke: Invoke) -> None:

    assert invoke("-h").stdout == invoke("--help").stdout
    assert invoke("-V").stdout == f"ir-runtime {_version.__version__}\n" == invoke("--version").stdout


def test_a_command_that_does_not_exist_is_refused(invoke: Invoke) -> None:
    found = invoke("valdate")
    assert found.exit_code == 2
    assert "no such command 'valdate'; did you mean 'validate'?" in found.stderr
    assert found.stdout == ""
    assert invoke("xyz").stderr == (
        "error: no such command 'xyz'\n  hint: ir-runtime [OPTIONS] COMMAND [ARGS]...; --help says more\n"
    )


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("bench net.xml -nitr 3", "no such option '-nitr'; did you mean '-niter'?"),
        ("bench net.xml -zzzz", "no such option '-zzzz'\n"),
        ("trace-nan net.xml --precision f16", "no such option '--precision'; did you mean '--as'?"),
        ("budget net.xml --as bf16", "no such option '--as'; did you mean '--to'?"),
        ("run net.xml --to f16", "no such option '--to'; did you mean '--precision'?"),
        ("diff net.xml net.xml --as f16", "no such option '--as'\n"),
        (
            "bisect net.xml --random",
            "give either --against or --run: --against openvino, openvino:bf16, openvino:f16, openvino:default, a backend (reference, numpy",
        ),
        ("reduce net.xml --random -o bug", ") or the path of another IR, or --run 'python device.py'"),
        ("run net.xml --nan", "no such option '--nan'; did you mean '--nan-check'?"),
        ("run net.xml --sed 3", "no such option '--sed'; did you mean '--seed'?"),
    ],
)
def test_options_that_do_not_exist_are_refused(invoke: Invoke, line: str, said: str) -> None:
    found = invoke(line)
    assert found.exit_code == 2
    assert said in found.stderr


@pytest.mark.parametrize(
    ("name", "line", "code"),
    [
        ("missing", "run none.xml", Exit.MODEL),
        ("array", "run x.npy", Exit.MODEL),
        ("invalid", "run broken.xml --random", Exit.MODEL),
        ("unsupported", "run unknown.xml --random", Exit.UNSUPPORTED),
        ("reshape", "run total.xml --random --shape a=2,3,4 --shape b=5", Exit.MODEL),
        ("shape_of_what", "run total.xml --random --shape 4", Exit.USAGE),
        ("shape_of_unknown", "run total.xml --random --shape aa=4", Exit.USAGE),
        ("no_shape", "run total.xml --random --shape a=x,y", Exit.USAGE),
        ("negative_shape", "run total.xml --random --shape a=3..1", Exit.USAGE),
        ("backend", "run total.xml --random --backend nump", Exit.USAGE),
        ("layers", "run total.xml --random --layers 'pluss'", Exit.USAGE),
        ("example_of_model", "run total.xml --random --example 1", Exit.USAGE),
        ("value_of_model", "run total.xml --random --value 1=2", Exit.USAGE),
        ("no_value", "run total.xml --value 1=x", Exit.USAGE),
        ("value_of_unknown", "run page.txt --example 1 --value axis=1 --random", Exit.USAGE),
        ("several_examples", "run page.txt --random", Exit.USAGE),
        ("no_example", "run page.txt --random --example 3", Exit.USAGE),
        ("seed", "run total.xml --seed -1", Exit.USAGE),
        ("data", "run divide.xml -i a=a.npy -i b=b.npy", Exit.FAILED),
    ],
)
def test_failures_have_their_text_and_code(
    folder: Path, check: Check, monkeypatch: pytest.MonkeyPatch, name: str, line: str, code: Exit
) -> None:
    np.save("x.npy", np.ones(4))
    write(folder, total(), "total")
    write(folder, total().replace('type="Add"', 'type="Adder"'), "unknown")
    write(folder, total().replace("<dim>4</dim></port></input>", "<dim>5</dim></port></input>"), "plain")
    layers = [parameter(0, "a", "4"), parameter(1, "b", "5"), binary(2, "plus", "Add", "4", "5", "4")]
    write(folder, net([*layers, result(3, "4")], [(0, 0, 2, 0), (1, 0, 2, 1), (2, 2, 3, 0)]), "broken")
    open_layers = [parameter(0, "a", "?"), parameter(1, "b", "?"), binary(2, "plus", "Add", "?", "?", "?")]
    write(folder, net([*open_layers, result(3, "?")], [(0, 0, 2, 0), (1, 0, 2, 1), (2, 2, 3, 0)]), "divide")
    np.save("a.npy", np.ones(2, np.float32))
    np.save("b.npy", np.ones(3, np.float32))
    layer = (
        '<layer id="1" type="ReduceSum" ...><input><port id="0"><dim>6</dim></port><port id="1"/></input>'
        '<output><port id="2"/></output></layer>\n'
    )
    (folder / "page.txt").write_text(f"ReduceSum-1\n{layer} and \n{layer}")
    found = check(f"fails_{name}", line)
    assert found.exit_code == code
    assert found.stdout == ""


def failing(monkeypatch: pytest.MonkeyPatch, problem: BaseException) -> None:
    def run(self: ExecutionPlan, *args: object) -> None:
        raise problem

    monkeypatch.setattr(ExecutionPlan, "run", run)


@pytest.mark.parametrize(
    ("name", "problem", "code"),
    [
        ("too_large", MemoryError("Unable to allocate 3 TiB"), 5),
        ("no_memory", MemoryError(), 5),
        ("no_space", OSError(28, "No space left on device", "out.npz"), 5),
        ("interrupted", KeyboardInterrupt(), 130),
        ("broken_pipe", BrokenPipeError(32, "Broken pipe"), 141),
        ("mistake", KeyError("oh"), 5),
    ],
)
def test_whatever_happens_is_one_message(
    folder: Path, check: Check, monkeypatch: pytest.MonkeyPatch, name: str, problem: BaseException, code: int
) -> None:
    write(folder, passing("f32", "2"))
    failing(monkeypatch, problem)
    np.save("x.npy", np.ones(2, np.float32))
    found = check(f"ends_{name}", "run net.xml -i x.npy")
    assert (found.exit_code, found.stdout) == (code, "")
    assert found.stderr.count("\n") == (0 if name == "broken_pipe" else 1)


def test_tracebacks_are_shown_on_request(
    folder: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder, passing("f32", "2"))
    failing(monkeypatch, KeyError("oh"))
    monkeypatch.setenv("IR_RUNTIME_TRACEBACK", "1")
    np.save("x.npy", np.ones(2, np.float32))
    found = invoke("run net.xml -i x.npy")
    assert found.exit_code == 5
    assert found.stderr.startswith("Traceback (most recent call last):\n")
    assert "\nKeyError: 'oh'\nerror: this is a bug" in found.stderr


def coloured(line: str) -> Result:
    return CliRunner().invoke(main, line.split(), color=True)


def test_colour_is_for_terminals_and_no_color_turns_it_off(
    folder: Path, monkeypatch: pytest.MonkeyPatch, invoke: Invoke
) -> None:
    write_chain(folder)
    write(folder, total().replace('type="Add"', 'type="Adder"'))
    assert click.style("error", fg="red", bold=True) + "[IR201]" in coloured("validate net.xml").stdout
    assert click.style("Outputs, numpy backend", bold=True) in coloured("run chain.xml --random").stdout
    assert "\x1b" not in invoke("validate net.xml").stdout
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in coloured("validate net.xml").stdout
    assert "\x1b" not in coloured("run chain.xml --random").stdout


def test_only_the_word_error_in_its_place_is_coloured() -> None:
    from ir_runtime.cli.render import failure

    assert failure("net.xml:3: layer 'my error: x': error[IR301]: no error: at all") == (
        "net.xml:3: layer 'my error: x': "
        + click.style("error", fg="red", bold=True)
        + "[IR301]: no error: at all"
    )
    assert failure("  hint: an error: x") == "  hint: an error: x"


def test_the_names_of_the_package_say_what_it_has() -> None:
    assert cli.__all__ == ["Exit", "main"]
