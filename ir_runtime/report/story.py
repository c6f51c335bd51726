"""Write the first screen of a report: a description of the model, its costs, its problems, and advice."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias
from urllib.parse import quote

from .._util.escaping import quoted, shown
from .._util.markup import element
from .._util.text import bytes_text, format_prefixed
from ..analysis.shapes import Shapes
from ..diagnostics import Severity, fold
from ..io.reader.model import version_text
from .items import Scopes
from .memory import memory_of
from .records import Record, Records
from .source import Conclusion, Measures, OldModel, Source
from .summary import End, ends
from .text import count_text

__all__ = ["Link", "Sentence", "Story", "cost_text", "tell"]

_SEVERE = ("error", "warning")
SHARE = 0.8
"""The part of a total that the named layers make up."""
_NAMED = 3
"""The most layers, operations or findings that one sentence names."""
_NEARLY_ALL = 0.9
"""The share of a module from which on the modules in it are named instead."""
_UNKNOWN = 0.1
"""The part of the layers whose arithmetic may be unknown where its distribution is told."""
_LEAST = 0.005
"""The smallest share that is named."""


@dataclass(frozen=True)
class Link:
    """A link to a layer or a scope of the graph, or to a tab of the page.

    >>> str(Link("conv1", "node", 3))
    'conv1'

    Args:
        text: the link text.
        kind: ``node``, ``scope`` or ``tab``.
        target: the number of the layer or scope, or the name of the tab.
        layer: the name of the layer, for the fragment of the page's URL.
    """

    text: str
    kind: str
    target: int | str
    layer: str = ""

    @property
    def address(self) -> str:
        """The ``href`` of the link, for use without scripts or in a new tab."""
        return f"#layer={quote(self.layer)}" if self.layer else "#"

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Sentence:
    """A sentence of text and links, with a severity: ``error``, ``warning``, or empty for a plain fact.

    >>> str(Sentence(("Memory peaks at ", Link("'conv1'", "node", 3), ".")))
    "Memory peaks at 'conv1'."
    """

    parts: tuple[str | Link, ...]
    severity: str = ""

    @property
    def html(self) -> str:
        """The sentence as an HTML list item."""
        inside = [
            element("a", text=part.text, href=part.address, **{f"data_{part.kind}": part.target})
            if isinstance(part, Link)
            else element("span", text=part)
            for part in self.parts
        ]
        return element("li", *inside, class_=self.severity or None)

    def __str__(self) -> str:
        return "".join(map(str, self.parts))


@dataclass(frozen=True)
class Story:
    """The sentences of the first screen.

    >>> import ir_runtime
    >>> story = ir_runtime.read_model("examples/digits/digits.xml").report().story
    >>> print(story.about[1], story.ok, len(story.advice))
    Takes image f32 batch×1×8×8. True 2

    Args:
        about: a description of the model, its inputs and outputs.
        costs: totals, and the layers and modules with the largest shares.
        problems: the problems, or a sentence that there are none.
        advice: commands to try next.
        ok: whether the model passes: no errors in the file, no bad measurements, and no changes. Warnings
            about the file alone pass, as in `Diagnostics.ok`.
        is_timed: whether time was measured; costs then come before the description.
    """

    about: Sequence[Sentence]
    costs: Sequence[Sentence]
    problems: Sequence[Sentence]
    advice: Sequence[str] = ()
    ok: bool = True
    is_timed: bool = False

    @property
    def is_fine(self) -> bool:
        """Whether no sentence is an error or a warning."""
        return not any(sentence.severity in _SEVERE for sentence in self.problems)

    def __str__(self) -> str:
        return "\n".join(map(str, (*self.about, *self.costs, *self.problems)))

    @property
    def html(self) -> str:
        """The first screen as HTML."""
        about = _section("What it is", self.about)
        costs = _section("Where time and memory go", self.costs)
        parts = [
            _section("Is it all right?" if self.is_fine else "What is wrong", self.problems),
            *(costs, about)[:: 1 if self.is_timed else -1],
        ]
        if self.advice:
            commands = [element("li", element("code", _keep_words_whole(command))) for command in self.advice]
            parts.append(element("h2", text="Try") + element("ul", *commands, class_="plain"))
        return "".join(parts)


def _keep_words_whole(command: str) -> str:
    """Prevent line breaks within the words of a command, which browsers would make after hyphens."""
    return " ".join(element("span", text=word) for word in command.split(" "))


def _section(title: str, sentences: Iterable[Sentence]) -> str:
    items = [sentence.html for sentence in sentences]
    return element("h2", text=title) + element("ul", *items, class_="plain") if items else ""


def tell(
    source: Source,
    tree: Scopes,
    shapes: Shapes,
    records: Records,
    overlays: Sequence[Record],
    measures: Measures,
    old: OldModel | None = None,
) -> Story:
    """Write the story of a model.

    Args:
        source: the model.
        tree: its scopes.
        shapes: names for dynamic lengths.
        records: its layers, numbered as in the graph of the page.
        overlays: the values shown on the layers, one overlay per quantity.
        measures: the measurements.
        old: the older model compared with, if any.
    """
    teller = _Teller(
        source, tree, shapes, records, {overlay["key"]: overlay for overlay in overlays}, measures, old
    )
    return Story(
        list(teller.about()),
        list(teller.costs()),
        list(teller.problems()),
        list(teller.advice())[:_NAMED],
        teller.passes(),
        bool(measures.times),
    )


def cost_text(key: str, value: float) -> str:
    """Format the value of an additive overlay: ``time`` in ms, ``flops``, or bytes.

    >>> cost_text("time", 0.25), cost_text("flops", 2e9), cost_text("weights", 2048)
    ('250 µs', '2 GFLOP', '2 KiB')
    """
    if key == "time":
        return f"{value:.2f} ms" if value >= 1 else f"{1000 * value:.0f} µs"
    return format_prefixed(value, "FLOP") if key == "flops" else bytes_text(value)


_Parts: TypeAlias = "list[str | Link]"


@dataclass(frozen=True)
class _Teller:
    source: Source
    tree: Scopes
    shapes: Shapes
    records: Records
    overlays: dict[str, Record]
    measures: Measures
    old: OldModel | None

    def about(self) -> Iterator[Sentence]:
        """Yield the kind of model, its inputs and outputs, and the constraints on its inputs."""
        graph = self.source.graph
        counts = Counter(
            item.layer.type
            for item in self.records.items
            if not item.is_shape and item.layer.type not in ("Parameter", "Result")
        )
        parts: _Parts = [f"{count_text(sum(counts.values()), 'layer')}"]
        if self.source.version:
            parts.append(f", {version_text(self.source.version)}")
        if counts:
            parts.append(": " + ", ".join(f"{n:,} {shown(name)}" for name, n in counts.most_common(_NAMED)))
            parts.append(" and others." if len(counts) > _NAMED else ".")
        yield Sentence(tuple(parts))
        yield from self._ends("Takes", ends(self.source, self.shapes, "Parameter"))
        yield from self._ends("Gives", ends(self.source, self.shapes, "Result"))
        states = {
            shown(str(layer.attributes.get("variable_id", layer.name)))
            for layer in graph.everywhere()
            if layer.type in ("ReadValue", "Assign")
        }
        if states:
            yield Sentence((f"Keeps state in {count_text(len(states), 'variable')}.",))
        for constraint in list(self.source.constraints or ())[:_NAMED]:
            yield Sentence((f"Needs {constraint}.",))

    def _ends(self, verb: str, ends: Sequence[End]) -> Iterator[Sentence]:
        if not ends:
            return
        numbers = self.records.layers_by_id()
        parts: list[_Parts] = [
            [
                Link(shown(end.name), "node", numbers[end.layer.id], end.layer.name),
                f" {end.type} {end.shape}".rstrip(),
            ]
            for end in ends
        ]
        yield Sentence((f"{verb} ", *_join_items(parts)))

    def costs(self) -> Iterator[Sentence]:
        """Yield totals, and the layers and modules with most of the time, weights and memory."""
        totals = {
            key: sum(self.records.own_values(self.overlays[key]))
            for key in ("flops", "time")
            if key in self.overlays
        }
        unknown = self.overlays.get("flops", {}).get("unknown", 0)
        said = [
            f"{'at least ' if unknown and key == 'flops' else ''}{cost_text(key, total)}"
            for key, total in totals.items()
            if total
        ]
        numbers = sum(
            value.count.min
            for item, size in zip(self.records.constants.items, self.records.constants.sizes(), strict=True)
            if size and (value := item.value(0)) is not None
        )
        if numbers:
            size = bytes_text(sum(self.records.constants.sizes()))
            said.append(f"{format_prefixed(numbers)} parameters ({size})")
        if said:
            at = self.overlays.get("flops", {}).get("at")
            yield Sentence((f"One run: {', '.join(said)}{f', at {at}' if at else ''}.",))
        main = "time" if totals.get("time") else "flops"
        for key, subject in (
            (main, "the time is" if main == "time" else "the arithmetic is"),
            ("weights", "the weights are"),
        ):
            if key in self.overlays and not (key == "flops" and unknown > _UNKNOWN):
                yield from self._shares(key, subject)
        memory = memory_of(self.tree.listing, self.measures.memory)
        if memory is not None and max(memory.used):
            peak = max(memory.used)
            place = memory.layers[memory.used.index(peak)]
            yield Sentence(
                (f"Activations peak at {bytes_text(peak)} in ", self._layer(self.records.index[place]), ".")
            )

    def _shares(self, key: str, subject: str) -> Iterator[Sentence]:
        values = self.records.own_values(self.overlays[key])
        total = sum(values)
        sums = [(sum(values[k] for k in copies), copies) for copies in self.records.copies()]
        order = sorted((pair for pair in sums if pair[0]), key=lambda pair: -pair[0])
        if not order:
            return
        share, count = 0.0, 0
        while count < len(order) and share < SHARE * total:
            share += order[count][0]
            count += 1
        layers, all_layers = (sum(len(copies) for _, copies in some) for some in (order[:count], order))
        parts: _Parts = [
            f"{share / total:.0%} of {subject} in {layers:,} of {count_text(all_layers, 'layer')}: "
        ]
        for place, (value, copies) in enumerate(order[: min(count, _NAMED)]):
            parts += [", "] if place else []
            title = self.records.title_of_copies(copies)
            parts += [replace(self._layer(copies[0]), text=title), f" ({value / total:.0%})"]
        parts.append(", …" if count > _NAMED else ".")
        yield Sentence(tuple(parts))
        yield from self._modules(values, total)

    def _modules(self, values: Sequence[float], total: float) -> Iterator[Sentence]:
        """Yield a sentence with the shares of the child modules of the deepest module that has nearly all of the total."""
        scopes = self.tree.scopes
        shares = [0.0] * len(scopes)
        for item, value in zip(self.records.items, values, strict=True):
            scope = self.tree.of[item.index]
            while scope >= 0:
                shares[scope] += value / total
                scope = scopes[scope].parent
        inside = 0
        while large := [
            scope
            for scope in scopes[inside].scopes
            if shares[scope] > _NEARLY_ALL and not scopes[scope].copies
        ]:
            inside = large[0]
        modules = sorted(scopes[inside].scopes, key=lambda scope: -shares[scope])
        modules = [scope for scope in modules if shares[scope] >= _LEAST]
        if len(modules) < 2 and not any(scopes[scope].copies for scope in modules):
            return
        parts: list[_Parts] = [
            [Link(shown(scopes[scope].title), "scope", scope), f" {shares[scope]:.0%}"] for scope in modules
        ]
        for scope, part in zip(modules, parts, strict=True):
            if copies := scopes[scope].copies:
                part.append(f" ({shares[scope] / copies:.1%} each)")
        yield Sentence(("By module: ", *_join_items(parts)))

    def _layer(self, number: int) -> Link:
        return Link(self.records.title(number), "node", number, self.records.items[number].layer.name)

    def problems(self) -> Iterator[Sentence]:
        """Yield errors and warnings, conclusions from measurements, and changes."""
        names = self.records.all_layers_by_name()
        report = self.source.report
        findings = [finding for finding in fold(report) if finding.severity is not Severity.NOTE]
        findings.sort(key=lambda finding: finding.severity is not Severity.ERROR)
        for finding in findings[:_NAMED]:
            parts: _Parts = [f"{finding.severity}: "]
            if finding.layer is not None and finding.layer in names:
                parts += [self._layer(names[finding.layer]), ": "]
            yield Sentence((*parts, finding.message), str(finding.severity))
        if len(findings) > _NAMED:
            more = Link(f"{len(findings) - _NAMED} more findings", "tab", "findings")
            yield Sentence((more, "."), str(findings[_NAMED].severity))
        for conclusion in self.measures.conclusions:
            yield self._conclusion(conclusion)
        if self.old is not None:
            yield from self._changes(self.old)
        if not findings:
            unknown = [] if self.measures.against else ["values were not compared with another runtime"]
            unknown += [] if self.measures.times else ["time was not measured"]
            yield Sentence((f"The file is valid{'; ' * bool(unknown)}{' and '.join(unknown)}.",))

    def passes(self) -> bool:
        """Return whether the file has no errors, no measurements are bad, and nothing changed."""
        measured = not any(conclusion.severity in _SEVERE for conclusion in self.measures.conclusions)
        changed = self.old is not None and bool(self.old.changed or self.old.removed)
        return self.source.report.ok and measured and not changed

    def _conclusion(self, conclusion: Conclusion) -> Sentence:
        parts: _Parts = [conclusion.text]
        number = self.records.layers_by_name().get(conclusion.layer)
        if number is not None:
            parts += [" See ", self._layer(number), "."]
        return Sentence(tuple(parts), conclusion.severity)

    def _changes(self, old: OldModel) -> Iterator[Sentence]:
        name = shown(Path(old.source.file).name or "the older model")
        removed = [
            (shown(old.source.graph[id].name), text)
            for id, texts in old.removed.items()
            if id not in old.pairs
            for text in texts
        ]
        count = len(removed) + len(old.changed)
        if not count:
            yield Sentence((f"Nothing differs from {name} but the order of layers.",))
            return
        numbers = self.records.layers_by_id()
        ends: list[_Parts] = [[f"{quoted(layer)} was {text}"] for layer, text in removed]
        for id, texts in old.changed.items():
            text = f": {shown(texts[0])}"
            readers = [numbers[id]] if id in numbers else self.records.readers_of_constant(id)[:1]
            ends.append([*map(self._layer, readers), text])
        differ = f"{count_text(count, 'layer')} {'differs' if count == 1 else 'differ'} from {name}: "
        yield Sentence((differ, *_join_items(ends, "; ", "; and")), "warning")

    def advice(self) -> Iterator[str]:
        """Yield commands to try, most urgent first."""
        name = shown(Path(self.source.file).name)
        file = shlex.quote("model.xml" if not name or name.startswith("<") else name)
        for conclusion in self.measures.conclusions:
            if conclusion.command:
                yield conclusion.command.format(file=file)
        if not self.source.report.ok:
            yield f"ir-runtime validate {file}"
            return
        if not self.measures.times:
            yield f"ir-runtime report {file} --profile"
        if not self.measures.against:
            yield f"ir-runtime report {file} --compare openvino"


def _join_items(items: Sequence[_Parts], separator: str = ", ", more: str = " and") -> _Parts:
    """Join the first items by separators, followed by the number of further ones and a full stop."""
    parts: _Parts = []
    for place, item in enumerate(items[:_NAMED]):
        parts += [*([separator] if place else []), *item]
    rest = len(items) - _NAMED
    return [*parts, f"{more} {rest} more." if rest > 0 else "."]
