"""Generate cases from the declarations of operations, and shrink those that fail.

A case starts from the recorded example of an operation. Attributes, lengths, element types and elements are replaced at random
by other valid ones, including the extreme values of a type. Models that inference or the reference refuses are discarded.
Graphs grow layer by layer in the same way.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache

import numpy as np
from lxml import etree

from ..codes import Code
from ..errors import InputError
from ..ir.element import ElementType
from ..ir.tensor import Array
from ..ops import Op, registry
from ..ops._define.describe import group, recorded
from .case import Case, Meta
from .recipe import Feed, Recipe, Step, Unfit, operation_class

__all__ = ["Generated", "shrink"]

_TRIES = 60
"""The maximum number of recipes drawn for a case; most are valid."""
_GRAPHS = 3
"""One of this many cases is a graph of several layers."""
_MOST_LAYERS = 6
_LENGTHS = (1, 1, 2, 3, 4, 5, 8)
_MOST_ELEMENTS = 4096
_EDGES = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, 1e-3, 3.0, 100.0, np.inf, -np.inf, np.nan)
_SHRINKS = 60
"""The maximum number of simpler recipes that `shrink` tries."""


class Generated:
    """A set of generated cases, reproducible by its seed.

    Args:
        count: the number of cases.
        seed: the seed of the random generator.
        select: returns whether to use an operation; by default, all operations are used.
        show: called with the id of each case.

    Raises:
        InputError: if no selected operation has an example.
    """

    def __init__(
        self,
        count: int,
        seed: int,
        select: Callable[[str], bool] = lambda _: True,
        show: Callable[[str], None] = lambda _: None,
    ) -> None:
        names = [cls.versioned_name() for cls in registry if select(cls.versioned_name()) and _is_usable(cls)]
        if not names:
            raise InputError("no operation that is selected has an example", code=Code.NO_SUCH_NAME)
        self.name = f"generated, seed {seed}"
        """The name of the set."""
        self.recipes: dict[str, Recipe] = {}
        """The recipe of each case."""
        self.cases: list[Meta] = []
        """The descriptions of the cases."""
        self._files: dict[str, dict[str, bytes]] = {}
        for number in range(count):
            identity = f"generated/{seed}-{number:05}"
            recipe, case = _draw(np.random.default_rng([seed, number]), names, identity)
            self.recipes[identity], self._files[identity] = recipe, dict(case.files())
            self.cases.append(Meta.parse(self._files[identity]["case.json"]))
            show(identity)

    @property
    def digest(self) -> str:
        """A hash of all cases."""
        text = "\n".join(map(repr, self.cases))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def files(self, identity: str) -> dict[str, bytes]:
        """Return the files of a case by name."""
        return self._files[identity]


def shrink(recipe: Recipe, identity: str, fails: Callable[[Case], bool]) -> Case:
    """Simplify a failing case by trying up to `_SHRINKS` simpler recipes; return the simplest case that still fails.

    Args:
        recipe: the recipe of the failing case.
        identity: the id of the new case.
        fails: returns whether a case fails in the same way.
    """
    case, tried = recipe.case(identity), 0
    progress = True
    while progress and tried < _SHRINKS:
        progress = False
        for simpler in recipe.simpler():
            tried += 1
            try:
                smaller = simpler.case(identity)
            except (Unfit, IndexError):
                continue
            if fails(smaller):
                recipe, case, progress = simpler, smaller, True
                break
            if tried >= _SHRINKS:
                break
    return case


def _draw(rng: np.random.Generator, names: Sequence[str], identity: str) -> tuple[Recipe, Case]:
    """Draw recipes until one gives a valid case.

    Raises:
        InputError: if none of `_TRIES` recipes does.
    """
    for _ in range(_TRIES):
        try:
            recipe = _layer(rng, str(rng.choice(names)))
            if rng.integers(_GRAPHS) == 0:
                recipe = _graph(rng, recipe, names)
            return recipe, recipe.case(identity)
        except Unfit:
            continue
    raise InputError(
        f"none of {_TRIES} layers that were drawn for {identity} is valid",
        code=Code.BAD_REQUEST,
        hint="select more operations",
    )


@cache
def _example(operation: str) -> tuple[Mapping[str, str], Sequence[tuple[ElementType, Array]]]:
    """Return the attributes and the inputs of the recorded example of an operation."""
    record = recorded(operation)
    assert record is not None
    data = etree.fromstring(record.xml.encode()).find("data")
    attributes = {} if data is None else {str(name): str(text) for name, text in data.attrib.items()}
    return attributes, [_parse(tensor.type, tensor.shape, tensor.text) for tensor in record.inputs]


def _parse(label: str, shape: Sequence[int], text: str) -> tuple[ElementType, Array]:
    element = ElementType.parse(label)
    words = text.replace("nan", "0").replace("inf", "0").replace("...", "")
    try:
        array = np.array(ast.literal_eval(words), np.float64).reshape(tuple(shape))
    except (ValueError, SyntaxError):
        array = np.ones(tuple(shape))
    with np.errstate(all="ignore"):
        return element, array.astype(element.dtype)


def _is_usable(cls: type[Op]) -> bool:
    """Return whether an operation has an example without sub-byte or string tensors, and depends only on its inputs."""
    record = recorded(cls.versioned_name())
    if record is None or not record.inputs or not cls.pure or group(cls) == "infrastructure":
        return False
    types = [ElementType.parse(tensor.type) for tensor in (*record.inputs, *record.outputs)]
    return not any(
        element.is_packed or element is ElementType.string or not element.bits for element in types
    )


def _layer(rng: np.random.Generator, operation: str) -> Recipe:
    """Draw a recipe of a single layer, a variation of the example of its operation."""
    cls = operation_class(operation)
    attributes, inputs = _example(operation)
    attributes = _attributes(rng, cls, attributes)
    exchanged = _replace_lengths(rng, inputs)
    types = _types(rng, cls, [element for element, _ in inputs])
    has_edges = rng.integers(3) == 0
    feeds = []
    for index, (element, array) in enumerate(inputs):
        port = cls.port_of(index)
        if _is_index(element, array):
            feeds.append(Feed(array, element, constant=True))
            continue
        if port is None or element not in port.element.allowed:
            types[index] = element
        lengths = [array.shape[axis] for axis in range(array.ndim)]
        shape = tuple([exchanged.get(length, length) for length in lengths])
        feeds.append(Feed(_elements(rng, types[index], shape, has_edges), types[index]))
    if sum(feed.array.size for feed in feeds) > _MOST_ELEMENTS:
        raise Unfit("it is too large")
    return Recipe(feeds, [Step(operation, attributes, list(range(len(feeds))))])


def _is_index(element: ElementType, array: Array) -> bool:
    """Return whether an input of an example holds lengths, axes or indices, for which random values are rarely valid."""
    return element in (ElementType.i64, ElementType.i32) and array.ndim <= 1


def _attributes(rng: np.random.Generator, cls: type[Op], attributes: Mapping[str, str]) -> dict[str, str]:
    """Replace about a third of the attributes that are enumerations, flags or integers by random values of their types."""
    changed = dict(attributes)
    for attribute in cls.schema().values():
        if attribute.external or rng.integers(3):
            continue
        if attribute.choices and attribute.type is not ElementType:
            changed[attribute.xml] = str(rng.choice(list(map(str, attribute.choices))))
        elif attribute.type is bool:
            changed[attribute.xml] = str(rng.choice(["true", "false"]))
        elif attribute.type is int and attribute.xml in changed:
            changed[attribute.xml] = str(int(changed[attribute.xml]) + int(rng.integers(-1, 2)))
    return changed


def _replace_lengths(rng: np.random.Generator, inputs: Sequence[tuple[ElementType, Array]]) -> dict[int, int]:
    """Return a random replacement for some of the lengths that occur in inputs."""
    lengths = sorted({length for _, array in inputs for length in array.shape})
    return {length: int(rng.choice(_LENGTHS)) for length in lengths if rng.integers(3) == 0}


def _types(rng: np.random.Generator, cls: type[Op], elements: Sequence[ElementType]) -> list[ElementType]:
    """Draw an element type for each input, the same for ports that must have equal types; often keep the types of the example."""
    if rng.integers(3):
        return list(elements)
    chosen: dict[str, ElementType] = {}
    types = []
    for index, element in enumerate(elements):
        port = cls.port_of(index)
        if port is None:
            types.append(element)
            continue
        allowed = [e for e in port.element.allowed if e.bits >= 8 and e.dtype.isbuiltin == 1]
        drawn = allowed[int(rng.integers(len(allowed)))] if allowed else element
        types.append(chosen.setdefault(port.element.name, drawn))
    return types


def _elements(
    rng: np.random.Generator, element: ElementType, shape: tuple[int, ...], has_edges: bool
) -> Array:
    """Draw the elements of an input.

    Args:
        rng: the random generator.
        element: the element type.
        shape: the shape of the input.
        has_edges: replace about a third of the elements by extreme values of the type.
    """
    with np.errstate(all="ignore"):
        if element is ElementType.boolean:
            return np.asarray(rng.integers(0, 2, shape)).astype(bool)
        if not element.real:
            low = -8 if element.signed else 0
            values = np.asarray(rng.integers(low, 9, shape)).astype(element.dtype)
            info = np.iinfo(element.dtype)
            edges = np.array([info.min, info.max, info.max - 1, info.min + 1], element.dtype)
        else:
            values = np.asarray(rng.standard_normal(shape) * 2).astype(element.dtype)
            edges = np.array(_EDGES).astype(element.dtype)
        if has_edges:
            values = np.where(rng.integers(0, 3, shape) == 0, rng.choice(edges, shape), values)
        return np.asarray(values).astype(element.dtype)


def _graph(rng: np.random.Generator, recipe: Recipe, names: Sequence[str]) -> Recipe:
    """Append a few random layers to a recipe, each of which reads the previous one.

    Args:
        rng: the random generator.
        recipe: the recipe of a single layer.
        names: the operations to draw from.
    """
    for _ in range(int(rng.integers(1, _MOST_LAYERS))):
        for _ in range(8):
            longer = _append_layer(rng, recipe, str(rng.choice([*names, *_followers(tuple(names))])))
            try:
                longer.case("generated/probe")
            except Unfit:
                continue
            recipe = longer
            break
    return recipe


@cache
def _followers(names: tuple[str, ...]) -> Sequence[str]:
    """Return the operations that accept nearly any tensor, repeated so that most drawn layers are of these."""
    unary = [
        name
        for name in names
        if len(operation_class(name).inputs) == 1 or "auto_broadcast" in operation_class(name).schema()
    ]
    return unary * max(1, 3 * len(names) // max(len(unary), 1))


def _append_layer(rng: np.random.Generator, recipe: Recipe, operation: str) -> Recipe:
    """Append a layer that reads the last one, with constants as in the example of its operation for the other inputs."""
    cls = operation_class(operation)
    attributes, inputs = _example(operation)
    last = len(recipe.feeds) + len(recipe.steps) - 1
    feeds, sources = list(recipe.feeds), [last]
    for element, array in inputs[1:]:
        feed = Feed(array, element, constant=True)
        if element.real:
            shape: tuple[int, ...] = array.shape
            if "auto_broadcast" in cls.schema():
                shape = () if rng.integers(2) else (1,)
            feed = Feed(_elements(rng, element, shape, has_edges=False), element, constant=True)
        feeds.append(feed)
        sources.append(len(feeds) - 1)
    added = len(feeds) - len(recipe.feeds)

    def renumber(source: int) -> int:
        return source + added if source >= len(recipe.feeds) else source

    steps: Iterator[Step] = (
        Step(step.operation, step.attributes, [renumber(source) for source in step.sources])
        for step in recipe.steps
    )
    own = [last + added, *sources[1:]]
    return Recipe(feeds, [*steps, Step(operation, _attributes(rng, cls, attributes), own)])
