"""Coverage of a corpus: versions, element types, kinds and clauses, with and without a case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from ir_runtime.conformance.case import Case
from ir_runtime.ir.element import ElementType
from ir_runtime.ops import Op, registry
from ir_runtime.ops._define.describe import group
from ir_runtime.ops._define.operation import clauses

__all__ = ["Coverage"]

_ENDS = {"Parameter", "Constant", "Result"}
"""Operations that every model has, and that have no cases for themselves."""


class Coverage:
    """Counts of cases by operation and property."""

    def __init__(self) -> None:
        self.cases: Counter[tuple[str, str]] = Counter()
        """Cases by operation and kind."""
        self.types: set[tuple[str, str]] = set()
        """Operations and the element types of their inputs and outputs."""
        self.features: Counter[str] = Counter()
        """Operations by a feature of tensors: ``empty``, ``scalar``, ``NaN``, ``infinite``, ``limits``."""
        self.cited: set[str] = set()
        """The clauses with a refused case, and the decisions with a case, as they are cited."""
        self.fulfilled: set[tuple[str, str]] = set()
        """Operations and the numbers of the clauses that a passing case fulfils."""
        self._seen: set[tuple[str, str]] = set()

    def add(self, case: Case) -> None:
        """Count a case."""
        self.cases[case.operation, case.kind] += 1
        self.cited |= set(case.clauses)
        if case.kind == "refusal":
            return
        self.fulfilled |= {(case.operation, number) for number in case.fulfils}
        self.types |= {(case.operation, element.label) for element in (*case.input_types, *case.output_types)}
        new = {(case.operation, feature) for feature in _features(case)} - self._seen
        self._seen |= new
        self.features.update(feature for _, feature in new)

    def missing(self) -> Iterator[str]:
        """Yield each version, element type and clause without a case."""
        for cls in (cls for cls in registry if group(cls) and cls.name not in _ENDS):
            name = cls.versioned_name()
            for kind in ("value or shape or state", "dynamic", "refusal"):
                if not any(self.cases[name, one] for one in kind.split(" or ")):
                    yield f"{name}: no {kind} case"
            yield from (
                f"{name}: no case in {label}" for label in _types(cls) if (name, label) not in self.types
            )
            for number, clause in enumerate(clauses(name), 1):
                if f"{name} C{number}: {clause}" not in self.cited:
                    yield f"{name} C{number}: no refused case"
                if (name, f"C{number}") not in self.fulfilled:
                    yield f"{name} C{number}: no passing case"
            for number, decision in enumerate(cls.decided(), 1):
                if f"{name} D{number}: {decision}" not in self.cited and " is refused" not in decision:
                    yield f"{name} D{number}: no case"

    def text(self) -> str:
        """Return the coverage as lines of text."""
        kinds: Counter[str] = Counter()
        for (_, kind), count in self.cases.items():
            kinds[kind] += count
        versions = len({name for name, _ in self.cases})
        cited = Counter(clause.partition(":")[0].split()[1][0] for clause in self.cited)
        lines = [
            *self.missing(),
            f"{sum(kinds.values())} cases of {versions} versions: {', '.join(f'{n} {kind}' for kind, n in sorted(kinds.items()))}",
            f"{cited['C']} clauses with a refused case, {len(self.fulfilled)} with a passing one; {cited['D']} decisions with a case",
            f"{len(self.types)} pairs of a version and a type",
            f"versions with {', '.join(f'{feature} tensors: {n}' for feature, n in sorted(self.features.items()))}",
        ]
        return "\n".join(lines)


def _types(cls: type[Op]) -> list[str]:
    """Return the element types that inputs may have."""
    return sorted({element.label for port in cls.inputs for element in port.element.allowed})


def _features(case: Case) -> Iterator[str]:
    yield from (("several inputs",) if len(case.inputs) > 1 else ())
    for array, element in zip(case.inputs, case.input_types, strict=True):
        if not array.size:
            yield "empty"
            continue
        if not array.ndim:
            yield "scalar"
        if element.real:
            numbers = array.astype(np.float64)
            if np.isnan(numbers).any():
                yield "NaN"
            if np.isinf(numbers).any():
                yield "infinite"
        elif element.integral and element is not ElementType.boolean and element.bits >= 8:
            limits = np.iinfo(element.dtype)
            if (array == limits.max).any() or (limits.min < 0 and (array == limits.min).any()):
                yield "limits"
