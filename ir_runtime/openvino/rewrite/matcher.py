"""Match a pattern at a node."""

from __future__ import annotations

from collections.abc import Sequence

from ..._util.wrong_arguments import checked
from ...errors import InputError
from ..node import Node, Output, as_output
from .patterns import AnyInput, Optional, Or, Pattern, WrapType
from .symbols import Symbols

__all__ = ["Matcher"]

# Commutative operations, whose operands may match in either order.
_COMMUTATIVE = frozenset(
    {
        *("Add", "Multiply", "Maximum", "Minimum", "SquaredDifference", "Equal", "NotEqual"),
        *("LogicalAnd", "LogicalOr", "LogicalXor", "Xor", "BitwiseAnd", "BitwiseOr", "BitwiseXor"),
    }
)


class _State:
    """The matches so far."""

    def __init__(self) -> None:
        self.values: dict[Node, Output] = {}
        self.order: list[Output] = []
        self.symbols: Symbols = {}

    def copy(self) -> _State:
        other = _State()
        other.values, other.order, other.symbols = dict(self.values), list(self.order), dict(self.symbols)
        return other

    def become(self, other: _State) -> bool:
        self.values, self.order, self.symbols = other.values, other.order, other.symbols
        return True


_NOTHING = _State()


class Matcher:
    """A pattern and its last match. As OpenVINO's ``Matcher``.

    Args:
        node: the pattern of the last node.
        name: a name for messages.
    """

    def __init__(self, node: Node | Output, name: str) -> None:
        self._pattern, self._name = as_output(checked(node, Node, Output)), name
        self._found = _NOTHING
        self._root: Output | None = None

    def get_name(self) -> str:
        """Return the name."""
        return self._name

    def match(self, node: Node | Output) -> bool:
        """Return whether the pattern matches at a node."""
        value = node if isinstance(node, Output) else Output(checked(node, Node), 0)
        self._found, self._root = _NOTHING, None
        pattern = self._pattern.node
        if type(pattern) is WrapType and not pattern.fits(value.node):  # as for most nodes of a model
            return False
        state = _State()
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
            InputError: if it has not matched.
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
        """Return the lengths of the names in shapes."""
        return dict(self._found.symbols)


def _match(pattern: Output, value: Output, state: _State) -> bool:
    """Match an output and add the match to the state; on failure, leave the state unchanged."""
    node = pattern.node
    previous = state.values.get(node)
    if previous is not None:
        return previous == value
    if isinstance(node, WrapType | Optional):
        return _match_type(node, value, state)
    if isinstance(node, Or):
        trial = state.copy()
        return any(_match(alternative, value, trial) for alternative in node.sources) and _keep(
            node, value, trial, state
        )
    if isinstance(node, AnyInput):
        trial = state.copy()
        return node._predicate(value, trial.symbols) and _take(node, value, trial, state)
    if isinstance(node, Pattern):
        return False
    is_same = type(node.layer.op) is type(value.node.layer.op) and pattern.index == value.index
    return is_same and _match_inputs(node, node.input_values(), value, state)


def _match_type(pattern: WrapType | Optional, value: Output, state: _State) -> bool:
    if pattern.fits(value.node):  # rare, so the state is seldom copied
        trial = state.copy()
        if pattern._predicate(value, trial.symbols) and _match_inputs(pattern, pattern.sources, value, trial):
            return state.become(trial)
    if isinstance(pattern, Optional):
        return not pattern.sources or _match(pattern.sources[0], value, state)
    return False


def _match_inputs(pattern: Node, sources: Sequence[Output], value: Output, state: _State) -> bool:
    """Match the operands, in either order if commutative; any operands if none are specified."""
    read = value.node.input_values()
    if sources and len(sources) != len(read):
        return False
    orders = [list(read)] if sources else [[]]
    if sources and len(read) == 2 and value.node.layer.type in _COMMUTATIVE:
        orders.append(read[::-1])
    for order in orders:
        trial = state.copy()
        trial.values[pattern] = value
        trial.order.append(value)
        if all(_match(source, operand, trial) for source, operand in zip(sources, order, strict=True)):
            return state.become(trial)
    return False


def _take(node: Node, value: Output, trial: _State, state: _State) -> bool:
    trial.order.append(value)
    return _keep(node, value, trial, state)


def _keep(node: Node, value: Output, trial: _State, state: _State) -> bool:
    trial.values[node] = value
    return state.become(trial)
