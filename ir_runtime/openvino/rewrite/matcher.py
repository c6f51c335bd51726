"""`Matcher`, which matches a pattern at a node."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import repeat

from ..._util.wrong_arguments import checked
from ...errors import InputError
from ...ops import Op
from ..node import Node, Output, as_output
from .patterns import AnyInput, Optional, Or, Pattern, Predicate, Symbols, WrapType

__all__ = ["Matcher"]

# Commutative operations, whose operands may match in either order.
_COMMUTATIVE = frozenset(
    {
        *("Add", "Multiply", "Maximum", "Minimum", "SquaredDifference", "Equal", "NotEqual"),
        *("LogicalAnd", "LogicalOr", "LogicalXor", "Xor", "BitwiseAnd", "BitwiseOr", "BitwiseXor"),
    }
)


class _State:
    """The matches of a pattern so far, with backtracking."""

    def __init__(self) -> None:
        self.values: dict[Node, Output] = {}
        self.order: list[Output] = []
        self.symbols: Symbols = {}

    def mark(self) -> tuple[int, int, Symbols]:
        """Return a backtracking point for `undo`."""
        return len(self.values), len(self.order), self.symbols

    def undo(self, mark: tuple[int, int, Symbols]) -> None:
        """Undo the matches since ``mark``."""
        values, order, self.symbols = mark
        while len(self.values) > values:
            self.values.popitem()
        del self.order[order:]

    def holds(self, predicate: Predicate, value: Output) -> bool:
        """Return whether a predicate holds for an output, and keep the symbols that it adds until `undo`."""
        self.symbols = dict(self.symbols)
        return predicate(value, self.symbols)


_NOTHING = _State()


class Matcher:
    """A pattern and its last match. As OpenVINO's ``Matcher``.

    Args:
        node: the root of the pattern.
        name: a name for messages.
    """

    def __init__(self, node: Node | Output, name: str) -> None:
        self._pattern, self._name = as_output(checked(node, Node, Output)), name
        self._found = _NOTHING
        self._root: Output | None = None

    def get_name(self) -> str:
        """Return the name."""
        return self._name

    @property
    def root_types(self) -> Collection[type[Op]] | None:
        """The operation classes at which the pattern can match, None if not restricted."""
        pattern = self._pattern._node
        return pattern.types if type(pattern) is WrapType else None

    def match(self, node: Node | Output) -> bool:
        """Return whether the pattern matches at a node."""
        self._found, self._root = _NOTHING, None
        root = node._node if isinstance(node, Output) else checked(node, Node)
        pattern = self._pattern._node
        # Fast path: most nodes of a model do not match.
        if type(pattern) is WrapType and not pattern.fits(root):
            return False
        value, state = node if isinstance(node, Output) else Output(root, 0), _State()
        if not _match(self._pattern, value, state):
            return False
        self._found, self._root = state, value
        return True

    def get_match_root(self) -> Node:
        """Return the node where the pattern matched."""
        return self.get_match_value().node

    def get_match_value(self) -> Output:
        """Return the output where the pattern matched.

        Raises:
            InputError: if the pattern has not matched.
        """
        if self._root is None:
            raise InputError(f"matcher {self._name!r} has not matched")
        return self._root

    def get_match_nodes(self) -> list[Node]:
        """Return the matched nodes, consumers before producers."""
        return [value.node for value in self._found.order]

    def get_match_values(self) -> list[Output]:
        """Return the matched outputs, consumers before producers."""
        return list(self._found.order)

    def get_pattern_value_map(self) -> dict[Node, Output]:
        """Return the matched output of each pattern."""
        return dict(self._found.values)

    def get_symbols(self) -> Symbols:
        """Return the lengths that names in shapes stand for."""
        return dict(self._found.symbols)


def _match(pattern: Output, value: Output, state: _State) -> bool:
    """Match an output, and return whether it matches. The state records a match, and is unchanged otherwise."""
    previous = state.values.get(pattern._node)
    if previous is not None:
        return previous == value
    mark = state.mark()
    if _match_new(pattern, value, state):
        return True
    state.undo(mark)
    return False


def _match_new(pattern: Output, value: Output, state: _State) -> bool:
    """Match an output with a pattern that has not matched yet. If it fails, the caller must undo the state."""
    node = pattern._node
    if isinstance(node, WrapType | Optional):
        return _match_type(node, value, state)
    if isinstance(node, Or):
        if not any(_match(alternative, value, state) for alternative in node.sources):
            return False
        state.values[node] = value
        return True
    if isinstance(node, AnyInput):
        if not state.holds(node._predicate, value):
            return False
        state.values[node] = value
        state.order.append(value)
        return True
    if isinstance(node, Pattern):
        return False
    is_same = type(node.layer.op) is type(value._node.layer.op) and pattern._index == value._index
    return is_same and _match_inputs(node, node.input_values(), value, state)


def _match_type(pattern: WrapType | Optional, value: Output, state: _State) -> bool:
    mark = state.mark()
    fits = pattern.fits(value._node) and state.holds(pattern._predicate, value)
    if fits and _match_inputs(pattern, pattern.sources, value, state):
        return True
    if not isinstance(pattern, Optional):
        return False
    state.undo(mark)
    return not pattern.sources or _match(pattern.sources[0], value, state)


def _match_inputs(pattern: Node, sources: Sequence[Output], value: Output, state: _State) -> bool:
    """Match the operands, in either order if the operation is commutative. A pattern without operands matches any."""
    state.values[pattern] = value
    state.order.append(value)
    if not sources:
        return True
    operands = value._node.input_values()
    if len(sources) != len(operands):
        return False
    mark = state.mark()
    if all(map(_match, sources, operands, repeat(state))):
        return True
    state.undo(mark)
    is_commutative = len(operands) == 2 and value._node.layer.type in _COMMUTATIVE
    return is_commutative and all(map(_match, sources, operands[::-1], repeat(state)))
