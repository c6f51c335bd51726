"""Passes that change a model, and the manager that runs them. As OpenVINO's ``passes``."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from enum import Enum
from typing import TypeVar

from ...codes import Code
from ...errors import InputError
from ..building.bodies import BodyNode
from ..building.ends import Constant
from ..building.state import Pairs, make_stateful
from ..evaluating import evaluated
from ..model import Model
from ..nodes import Node
from ..saving import PathLike, serialize
from .matcher import Matcher

__all__ = [
    "BackwardGraphRewrite",
    "ConstantFolding",
    "GraphRewrite",
    "MakeStateful",
    "Manager",
    "MatcherPass",
    "ModelPass",
    "PassBase",
    "Serialize",
    "Version",
    "bodies_of",
]


class PassBase:
    """What changes a model, or looks at it."""

    _name: str | None = None

    def get_name(self) -> str:
        """The name: by default, that of the class."""
        return self._name or type(self).__name__

    def set_name(self, name: str) -> None:
        """Give the pass another name."""
        self._name = name

    def _run(self, model: Model) -> bool:
        raise InputError(f"{self.get_name()!r} is not a pass that can run", code=Code.BAD_REQUEST)


class ModelPass(PassBase):
    """A pass over a whole model: a subclass defines ``run_on_model``."""

    @abstractmethod
    def run_on_model(self, model: Model) -> bool:
        """Change a model, and return whether it was changed."""
        raise NotImplementedError(f"{self.get_name()} must define run_on_model(self, model)")

    def _run(self, model: Model) -> bool:
        return bool(self.run_on_model(model))


class MatcherPass(PassBase):
    """A pattern, and what to do where it matches.

    Args:
        matcher: the pattern.
        callback: takes the matcher where it has matched, and returns whether it changed something.
    """

    def __init__(
        self, matcher: Matcher | None = None, callback: Callable[[Matcher], object] | None = None
    ) -> None:
        self._matcher: Matcher | None = None
        self._new_nodes: list[Node] = []
        if matcher is not None and callback is not None:
            self.register_matcher(matcher, callback)

    def register_matcher(self, matcher: Matcher, callback: Callable[[Matcher], object]) -> None:
        """Say what to do where a pattern matches."""
        self._matcher, self._callback = matcher, callback
        self._name = self._name or matcher.get_name()

    def register_new_node(self, node: Node) -> Node:
        """Have the pass look at a new node, too."""
        self._new_nodes.append(node)
        return node

    def apply(self, node: Node) -> bool:
        """Match the pattern at a node, and do what is to be done; return whether something was changed."""
        if self._matcher is None:
            raise InputError(
                f"{self.get_name()} has no matcher: call register_matcher", code=Code.BAD_REQUEST
            )
        return self._matcher.match(node) and bool(self._callback(self._matcher))

    def _run(self, model: Model) -> bool:
        return _rewrite(model, [self], backward=False)


class GraphRewrite(ModelPass):
    """Several patterns, tried at each node in turn."""

    _backward = False

    def __init__(self) -> None:
        self.passes_list: list[MatcherPass] = []

    def add_matcher(self, transformation: MatcherPass) -> MatcherPass:
        """Add a pattern with what to do where it matches."""
        self.passes_list.append(transformation)
        return transformation

    def run_on_model(self, model: Model) -> bool:
        """Try the patterns at each node."""
        return _rewrite(model, self.passes_list, self._backward)


class BackwardGraphRewrite(GraphRewrite):
    """As `GraphRewrite`, from the last node to the first."""

    _backward = True


def _rewrite(model: Model, passes: list[MatcherPass], backward: bool) -> bool:
    """Try patterns at each node in topological order, also in bodies; and at the nodes that they create."""
    nodes = model.get_ordered_ops()
    queue = nodes if backward else nodes[::-1]
    changed = False
    while queue:
        node = queue.pop()
        for body in bodies_of(node):
            changed |= _rewrite(body, passes, backward)
        for each in passes:
            done = each.apply(node)
            if each._new_nodes:
                queue += reversed(each._new_nodes)
                each._new_nodes.clear()
            if done:
                changed = True
                break
    return changed


def bodies_of(node: Node) -> Iterator[Model]:
    """Yield the models of the bodies of a node."""
    if isinstance(node, BodyNode):
        yield from (branch.model for branch in node._branches.values() if isinstance(branch.model, Model))


class Version(Enum):
    """Versions of files that `Serialize` takes."""

    UNSPECIFIED = 0
    IR_V10 = 10
    IR_V11 = 11


class Serialize(ModelPass):
    """Saves the model as it is.

    Args:
        path_to_xml: path of the ``.xml``.
        path_to_bin: path of the ``.bin``.
        version: ``IR_V11``, which is the default.
    """

    def __init__(
        self, path_to_xml: PathLike, path_to_bin: PathLike | None = None, version: Version | str | None = None
    ) -> None:
        self._paths = path_to_xml, path_to_bin or None
        self._version = version.name if isinstance(version, Version) else version or Version.UNSPECIFIED.name

    def run_on_model(self, model: Model) -> bool:
        """Save the model."""
        serialize(model, *self._paths, self._version)
        return False


class MakeStateful(ModelPass):
    """Lets inputs be variables that hold what outputs gave in the run before."""

    def __init__(self, pairs_to_replace: Pairs) -> None:
        self._pairs = pairs_to_replace

    def run_on_model(self, model: Model) -> bool:
        """Replace the inputs and outputs."""
        make_stateful(model, self._pairs)
        return True


class ConstantFolding(ModelPass):
    """Replaces what follows from constants by constants; what unpacks compressed weights stays."""

    def run_on_model(self, model: Model) -> bool:
        """Replace the nodes."""
        changed = False
        for node in model.get_ordered_ops():
            if _can_fold(node):
                _fold(node)
                changed = True
        return changed


def _can_fold(node: Node) -> bool:
    op, sources = node.layer.op, node._sources
    if op is None or not op.pure or node.layer.bodies() or "decompression" in node.layer.rt_info:
        return False
    constant = all(source is not None and source.node.type == "Constant" for source in sources)
    return bool(sources) and constant and node.type != "Result"


def _fold(node: Node) -> None:
    sources = node.input_values()
    found = evaluated(node.layer, [s.node.get_data() for s in sources], [s.element_type for s in sources])
    for output, array in zip(node.outputs(), found or (), strict=False):
        folded = Constant(output.element_type, array.shape, array)
        folded.set_friendly_name(node.friendly_name)
        output.replace(folded.output(0))


_Pass = TypeVar("_Pass", bound=PassBase)


class Manager:
    """Runs passes in the order in which they are registered."""

    def __init__(self) -> None:
        self.passes_list: list[PassBase] = []
        self._validates = True

    def register_pass(self, transformation: _Pass) -> _Pass:
        """Add a pass, and return it."""
        if not isinstance(transformation, PassBase):
            raise TypeError(f"expected a pass, got {type(transformation).__name__}")
        self.passes_list.append(transformation)
        return transformation

    def set_per_pass_validation(self, new_state: bool) -> None:
        """Say whether types are inferred again after each pass that changed something."""
        self._validates = new_state

    def run_passes(self, model: Model) -> None:
        """Run the passes on a model.

        Raises:
            ValidationError: if a pass makes the model invalid.
        """
        for each in self.passes_list:
            if each._run(model) and self._validates:
                model.validate_nodes_and_infer_types()
