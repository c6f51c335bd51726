"""Base classes of passes, and the `Manager` that runs them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain
from typing import TypeVar

from ..._util.wrong_arguments import checked
from ...codes import Code
from ...errors import InputError
from ..build.bodies import HasBodies
from ..build.derive import topological
from ..callbacks import call_back
from ..model import Model
from ..node import Node
from .matcher import Matcher

__all__ = [
    "BackwardGraphRewrite",
    "GraphRewrite",
    "Manager",
    "MatcherPass",
    "ModelPass",
    "PassBase",
    "bodies_of",
]


class PassBase:
    """Base class of passes, which transform or inspect a model.

    >>> from ir_runtime import passes
    >>> step = passes.ConstantFolding()
    >>> step.set_name("fold")
    >>> step.get_name()
    'fold'
    """

    _name: str | None = None

    def get_name(self) -> str:
        """Return the name, by default that of the class."""
        return self._name or type(self).__name__

    def set_name(self, name: str) -> None:
        """Rename the pass."""
        self._name = name

    def _run(self, model: Model) -> bool:
        raise InputError(f"{self.get_name()!r} is not a pass that can run", code=Code.BAD_REQUEST)


class ModelPass(PassBase):
    """Base class of passes over a whole model, which define ``run_on_model``.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import opset1, passes
    >>> class Rename(passes.ModelPass):
    ...     def run_on_model(self, model):
    ...         for node in model.get_ordered_ops():
    ...             node.set_friendly_name(node.friendly_name.lower())
    ...         return False
    >>> x = opset1.parameter([2], np.float32, name="X")
    >>> model = ov.Model([opset1.relu(x)], [x])
    >>> Rename().run_on_model(model), x.friendly_name
    (False, 'x')
    >>> manager = passes.Manager()
    >>> manager.set_per_pass_validation(False)
    >>> manager.register_pass(Rename()).get_name()
    'Rename'
    """

    @abstractmethod
    def run_on_model(self, model: Model) -> bool:
        """Transform a model, and return whether it was changed."""
        raise NotImplementedError(f"{self.get_name()} must define run_on_model(self, model)")

    def _run(self, model: Model) -> bool:
        return bool(self.run_on_model(model))


class MatcherPass(PassBase):
    """A pass that calls a function at every match of a pattern.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import opset13, passes
    >>> class AbsOfRelu(passes.MatcherPass):
    ...     def __init__(self):
    ...         super().__init__()
    ...         pattern = passes.WrapType("opset13.Abs", passes.WrapType("opset13.Relu"))
    ...         self.register_matcher(passes.Matcher(pattern, "AbsOfRelu"), self.remove)
    ...     def remove(self, matcher):
    ...         found = matcher.get_match_root()
    ...         self.register_new_node(found.input_value(0).get_node())
    ...         found.output(0).replace(found.input_value(0))
    ...         return True
    >>> x = opset13.parameter([2], np.float32, name="x")
    >>> last = opset13.abs(opset13.relu(x))
    >>> model = ov.Model([opset13.exp(last)], [x])
    >>> AbsOfRelu().apply(last), [node.get_type_name() for node in model.get_ordered_ops()]
    (True, ['Parameter', 'Relu', 'Exp', 'Result'])

    Args:
        matcher: the pattern.
        callback: a function of the matcher after a match, which returns whether it changed the model.
    """

    def __init__(
        self, matcher: Matcher | None = None, callback: Callable[[Matcher], object] | None = None
    ) -> None:
        self._matcher: Matcher | None = None
        self._new_nodes: list[Node] = []
        if matcher is not None and callback is not None:
            self.register_matcher(matcher, callback)

    def register_matcher(self, matcher: Matcher, callback: Callable[[Matcher], object]) -> None:
        """Set the pattern and its callback, which takes the matcher and returns whether it changed the model."""
        self._matcher, self._callback = matcher, callback
        self._name = self._name or matcher.get_name()

    def register_new_node(self, node: Node) -> Node:
        """Schedule a new node, so that the pass visits it too."""
        self._new_nodes.append(node)
        return node

    def apply(self, node: Node) -> bool:
        """Match the pattern at a node, call the callback if it matches, and return whether the model was changed.

        Raises:
            InputError: if no matcher is registered.
            RuntimeError: if the callback raises an exception, which becomes the ``__cause__``.
        """
        if self._matcher is None:
            raise InputError(
                f"{self.get_name()} has no matcher: call register_matcher", code=Code.BAD_REQUEST
            )
        if not self._matcher.match(node):
            return False
        return bool(call_back(f"pass {self.get_name()!r}", self._callback, self._matcher))

    def _run(self, model: Model) -> bool:
        return _rewrite(model, [self], backward=False)


class GraphRewrite(ModelPass):
    """A pass that tries several patterns in turn at each node.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import opset13, passes
    >>> x = opset13.parameter([2], np.float32, name="x")
    >>> model = ov.Model([opset13.exp(opset13.abs(x))], [x])
    >>> names = []
    >>> rewrite = passes.GraphRewrite()
    >>> for type in ("Abs", "Exp"):
    ...     matcher = passes.Matcher(passes.WrapType(f"opset13.{type}"), type)
    ...     _ = rewrite.add_matcher(passes.MatcherPass(matcher, lambda found: names.append(found.get_match_root().type)))
    >>> rewrite.run_on_model(model), names
    (False, ['Abs', 'Exp'])
    """

    _backward = False

    def __init__(self) -> None:
        self.passes_list: list[MatcherPass] = []

    def add_matcher(self, transformation: MatcherPass) -> MatcherPass:
        """Add a matcher pass."""
        self.passes_list.append(transformation)
        return transformation

    def run_on_model(self, model: Model) -> bool:
        """Try the patterns at each node, and return whether the model was changed."""
        return _rewrite(model, self.passes_list, self._backward)


class BackwardGraphRewrite(GraphRewrite):
    """Like `GraphRewrite`, but visits nodes in reverse topological order.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import opset13, passes
    >>> x = opset13.parameter([2], np.float32, name="x")
    >>> model = ov.Model([opset13.exp(opset13.abs(x))], [x])
    >>> types = []
    >>> seen = passes.MatcherPass(passes.Matcher(passes.AnyInput(), "any"), lambda at: types.append(at.get_match_root().type))
    >>> rewrite = passes.BackwardGraphRewrite()
    >>> rewrite.add_matcher(seen) is seen, rewrite.run_on_model(model), types
    (True, False, ['Result', 'Exp', 'Abs', 'Parameter'])
    """

    _backward = True


def _rewrite(model: Model, passes: list[MatcherPass], backward: bool) -> bool:
    """Try patterns at each node in topological or reverse order, including bodies and registered new nodes."""
    nodes = model._list_nodes(topological, _root_types(passes))
    queue = nodes if backward else nodes[::-1]
    changed = False
    while queue:
        node = queue.pop()
        if isinstance(node, HasBodies):
            for body in bodies_of(node):
                changed |= _rewrite(body, passes, backward)
        for matcher_pass in passes:
            done = matcher_pass.apply(node)
            if matcher_pass._new_nodes:
                queue += reversed(matcher_pass._new_nodes)
                matcher_pass._new_nodes.clear()
            if done:
                changed = True
                break
    return changed


def _root_types(passes: Iterable[MatcherPass]) -> Collection[type] | None:
    """Return the operation classes at which some pattern can match, None if not restricted."""
    matchers = [matcher_pass._matcher for matcher_pass in passes]
    types = [None if matcher is None else matcher.root_types for matcher in matchers]
    restricted = [classes for classes in types if classes is not None]
    return set(chain(*restricted)) if len(restricted) == len(types) else None


def bodies_of(node: object) -> Iterator[Model]:
    """Yield the models of the bodies of a node."""
    if isinstance(node, HasBodies):
        yield from (branch.model for branch in node._bodies.branches.values())


_Pass = TypeVar("_Pass", bound=PassBase)


class Manager:
    """Runs passes in the order in which they are registered.

    >>> manager = Manager()
    >>> manager.set_per_pass_validation(False)
    >>> manager.passes_list
    []
    """

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
        """Set whether types are inferred again after each pass that changed the model."""
        self._validates = new_state

    def run_passes(self, model: Model) -> None:
        """Run the passes on a model.

        Raises:
            ValidationError: if a pass makes the model invalid.
            ArgumentTypeError: if ``model`` is not a model.
        """
        checked(model, Model)
        for registered in self.passes_list:
            if registered._run(model) and self._validates:
                model.validate_nodes_and_infer_types()
