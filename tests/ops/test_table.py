"""The operations of OpenVINO's opsets, read from its headers, compared with ours."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import openvino
import pytest
from harness.files import model_of
from harness.oracle import plugin, read
from harness.sample import Sample, all_samples, is_sampled
from samples import variations

from ir_runtime.ir.tensor import Array
from ir_runtime.ops import Op, registry
from ir_runtime.ops._define.describe import SPECIFICATION, TESTED_AGAINST, group, link

ENTRY = re.compile(r"^_OPENVINO_OP_REG\((\w+), ov::op::(v\d+)\)", re.MULTILINE)

# Members of opset1 by their pages, and read as such; the tables of OpenVINO list them from opset2 on.
LISTED_LATE = {"MVN-2": "MVN-1", "ROIPooling-2": "ROIPooling-1", "ReorgYolo-2": "ReorgYolo-1"}

# Declared by OpenVINO, but implemented neither in its reference nor in the plugin: types and shapes are
# compared, values with a computation of the tests' own.
NOT_RUN_BY_OPENVINO = {"GroupedMatMul-17", "RGBtoNV12-17", "BGRtoNV12-17"}

# Rich in attributes, or in ways to read their inputs.
RICH = re.compile(
    r"(NonMaxSuppression|Pad|StridedSlice|Gather\w*|Scatter\w*|TopK|MVN|FakeQuantize|Broadcast|Interpolate|Einsum|I?R?DFT|I?STFT"
    r"|(LSTM|GRU|RNN)Sequence)-\d+"
)

ours = [cls for cls in registry if group(cls)]
versions = pytest.mark.parametrize("cls", ours, ids=lambda cls: cls.versioned_name())
sampled = pytest.mark.parametrize("cls", [*filter(is_sampled, ours)], ids=lambda cls: cls.versioned_name())


@cache
def table() -> dict[tuple[str, str], str]:
    """Return versioned names by C++ class and namespace; the version is the first opset that lists the class."""
    spec = find_spec("openvino")
    assert spec is not None
    assert spec.origin is not None
    folder = Path(spec.origin).parent / "include" / "openvino" / "opsets"
    found: dict[tuple[str, str], str] = {}
    for number in range(1, len(list(folder.glob("opset*_tbl.hpp"))) + 1):
        text = (folder / f"opset{number}_tbl.hpp").read_text(encoding="utf-8")
        for name, namespace in ENTRY.findall(text):
            found.setdefault((name, namespace), f"{name}-{number}")
    return {key: LISTED_LATE.get(name, name) for key, name in found.items()}


@cache
def samples() -> dict[str, list[Sample]]:
    found: dict[str, list[Sample]] = {}
    for sample in all_samples():
        found.setdefault(sample.op, []).append(sample)
    return found


def spelled_alike(names: set[str]) -> dict[str, str]:
    """Return names in lower case, as C++ and files differ in case (Relu and ReLU)."""
    return {name.lower(): name for name in names}


def test_the_table_has_every_version() -> None:
    assert len(table()) == len(set(table().values())) == 245


def test_every_version_is_there() -> None:
    wanted = spelled_alike(set(table().values()))
    found = spelled_alike({cls.versioned_name() for cls in ours})
    missing = {wanted[name] for name in wanted.keys() - found.keys()}
    assert missing == set(), "operations of the opsets are missing"


def test_nothing_is_there_that_openvino_does_not_have() -> None:
    wanted = spelled_alike(set(table().values()))
    more = [c.versioned_name() for c in ours if c.versioned_name().lower() not in wanted]
    assert [name for name in more if group(_named(name)) != "internal"] == []


def _named(name: str) -> type[Op]:
    return next(cls for cls in ours if cls.versioned_name() == name)


def test_all_but_ends_bodies_and_variables_are_sampled() -> None:
    others = {"Constant", "Parameter", "Result", "If", "Loop", "TensorIterator", "Assign", "ReadValue"}
    assert {cls.name for cls in ours if not is_sampled(cls)} == others


@sampled
def test_openvino_reads_it_as_the_same_version(cls: type[Op]) -> None:
    """A layer of this type and opset becomes the C++ class of the table."""
    name = cls.versioned_name()
    sample = samples()[name][0]
    nodes = read(*model_of(sample, range(len(sample.inputs)))).get_ordered_ops()
    (node,) = (n for n in nodes if n.get_type_name() not in ("Constant", "Parameter", "Result"))
    info = node.get_type_info()
    classes = {key: listed for key, listed in table().items() if listed.lower() == name.lower()}
    assert [key[0].lower() for key in classes] == [info.name.lower()]
    if name not in LISTED_LATE.values() and name != "LogicalXor-1":  # which says opset2, and is in opset1
        assert info.version_id == f"opset{cls.since}"


@versions
def test_has_a_page(cls: type[Op]) -> None:
    """The link leads to a page in specification_pages.txt, which lists those of the opsets."""
    pages = (Path(__file__).parent / "specification_pages.txt").read_text(encoding="utf-8").split()
    assert group(cls) == "internal" or (link(cls) or "").removeprefix(f"{SPECIFICATION}/") in {
        f"{page}.html" for page in pages
    }


@sampled
def test_is_compared_with_openvino(cls: type[Op]) -> None:
    """``ir-runtime ops`` shows the oracle of each operation; Constant and Parameter occur in every sample."""
    name = cls.versioned_name()
    compared = [s for s in samples().get(name, []) if s.oracle != "none" or name in NOT_RUN_BY_OPENVINO]
    assert len(compared) >= (20 if RICH.fullmatch(name) else 8)


@pytest.mark.parametrize("name", sorted(NOT_RUN_BY_OPENVINO))
def test_openvino_cannot_run_it(name: str) -> None:
    sample = samples()[name][0]
    with pytest.raises(RuntimeError):
        plugin(read(*model_of(sample)), sample.inputs)


def test_openvino_is_of_the_version_it_is_said_to_be() -> None:
    assert f"OpenVINO {openvino.__version__.partition('-')[0]}" == TESTED_AGAINST


@pytest.mark.parametrize(
    "cls",
    [
        cls
        for cls in ours
        if is_sampled(cls) and cls.inputs and cls.versioned_name() not in NOT_RUN_BY_OPENVINO
    ],
    ids=lambda cls: cls.versioned_name(),
)
def test_samples_come_in_every_usual_type(cls: type[Op]) -> None:
    """The types of the first input; ``samples/variations.py`` lists exceptions with reasons."""
    name = cls.versioned_name()
    seen = {variations.element(s.inputs[0]) for s in samples()[name] if s.inputs}
    wanted = {t for t in variations.TYPES if t in cls.inputs[0].element.allowed and t not in seen}
    assert {t.label for t in wanted if (name, t.label) not in variations.OUT} == set()


def test_samples_are_not_repeated() -> None:
    seen = Counter((str(s), s.constant, s.oracle, *map(_contents, s.inputs)) for s in all_samples())
    assert [name for (name, *_), count in seen.items() if count > 1] == []


def _contents(array: Array) -> object:
    return str(array.tolist()) if array.dtype == object else array.tobytes()
