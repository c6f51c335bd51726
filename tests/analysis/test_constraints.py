"""The constraints of graphs on the dims of their inputs: found, checked, confirmed, and never wrong."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest
from harness.nets import End, Net
from hypothesis import assume, given
from hypothesis import strategies as st

import ir_runtime as ir
from ir_runtime.analysis.constraints.constraint import Constraints
from ir_runtime.analysis.constraints.lengths import Pattern, explore
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Array, Value
from ir_runtime.ops import Input, Op, Output, op, registry
from ir_runtime.ops._define.operation import T_FLOAT
from ir_runtime.ops.movement.gather import Gather


def found(net: Net, **how: int | float) -> Constraints:
    return ir.read_model(net.xml(), net.weights).constraints(**how)  # type: ignore[arg-type]


def said(net: Net, **how: int | float) -> list[str]:
    return [str(constraint) for constraint in found(net, **how)]


def pooled(net: Net, x: End, size: int) -> End:
    window = {"kernel": f"{size},{size}", "strides": f"{size},{size}"}
    return net.op("MaxPool", x, pads_begin="0,0", pads_end="0,0", rounding_type="floor", **window)


def enlarged(net: Net, x: End, times: float) -> End:
    scales, axes = net.constant([times, times], "f32"), net.constant([2, 3])
    how = {"mode": "nearest", "shape_calculation_mode": "scales", "nearest_mode": "floor"}
    return net.op("Interpolate", x, scales, axes, version="opset11", **how)


def u_net(shape: str = "?,3,?,?", depth: int = 5) -> Net:
    """A U-Net: downsampled and upsampled at each depth, with skip connections."""
    net = Net()
    levels = [net.parameter("image", shape)]
    for _ in range(depth):
        levels.append(pooled(net, levels[-1], 2))
    x = levels.pop()
    for skip in reversed(levels):
        x = net.op("Concat", enlarged(net, x, 2), skip, axis=1, name=f"join{len(net.layers)}")
    net.result(x)
    return net


def positions(rows: int = 512, gathered: bool = False) -> Net:
    """Embeddings of the positions 0, 1, 2, ... added to the input."""
    net = Net()
    x = net.parameter("ids", "?,?,4")
    shape = net.op("ShapeOf", x, version="opset3", output_type="i64")
    length = net.op("Gather", shape, net.constant([1]), net.constant(0), version="opset8")
    table = net.constant(np.zeros((rows, 4)), "f32", name="table")
    if gathered:
        one = net.op("Squeeze", length)
        steps = net.op("Range", net.constant(0), one, net.constant(1), version="opset4", output_type="i64")
        taken = net.op("Gather", table, steps, net.constant(0), version="opset8", name="taken")
    else:
        begin, stride = net.constant([0]), net.constant([1])
        taken = net.op("Slice", table, begin, length, stride, version="opset8")
    net.result(net.op("Add", x, taken, name="embedded"))
    return net


def window(shape: str = "?,1,?,?", size: int = 3) -> Net:
    net = Net()
    weights = net.constant(np.zeros((1, 1, size, size)), "f32")
    zero, one = "0,0", "1,1"
    how = {"strides": one, "dilations": one, "pads_begin": zero, "pads_end": zero}
    net.result(net.op("Convolution", net.parameter("x", shape), weights, name="conv", **how))
    return net


def attended(past: bool = True) -> Net:
    """A mask added to scores of cached and new tokens."""
    net = Net()
    cache, new = net.parameter("past_key", "?,6,?,8"), net.parameter("new_key", "?,6,?,8")
    mask = net.parameter("mask", "?,1,1,?")
    keys = net.op("Concat", cache, new, axis=2) if past else new
    order = net.constant([0, 1, 3, 2])
    net.result(net.op("Add", net.op("Transpose", keys, order), mask, name="masked"))
    return net


def decoder() -> Net:
    """A stateful decoder: tokens attend to a cache in a variable, reordered by beam search."""
    net = Net()
    ids, mask = net.parameter("ids", "?,?"), net.parameter("mask", "?,?")
    positions, beam = net.parameter("positions", "?,?"), net.parameter("beam_idx", "?", "i32")
    zero, one, two = (net.constant(n) for n in (0, 1, 2))
    x, at = net.op("Unsqueeze", ids, two), net.op("Unsqueeze", positions, two)
    queries = net.op("Add", x, at, name="embedded")
    sizes = net.op("ShapeOf", ids, version="opset3", output_type="i64")
    batch = net.op("Gather", sizes, net.constant([0]), zero, version="opset8")
    empty = net.op("Concat", batch, net.constant([0, 1]), axis=0)
    start = net.op("Broadcast", net.constant(0.0, "f32"), empty, version="opset3")
    about = {"variable_type": "f32", "variable_shape": "?,?,1", "variable_id": "keys"}
    past = net.op("ReadValue", start, version="opset6", out="FP32 -1 -1 1", **about)
    chosen = net.op("Gather", past, beam, zero, version="opset8")
    keys = net.op("Concat", chosen, x, axis=1, name="keys")
    net.layer("Assign", [keys], ["FP32 -1 -1 1"], version="opset6", variable_id="keys")
    scores = net.op("MatMul", queries, keys, transpose_b=True)
    net.result(net.op("Add", scores, net.op("Unsqueeze", mask, one), name="masked"))
    return net


def test_skips_of_a_u_net_want_multiples() -> None:
    assert said(u_net()) == ["height and width are multiples of 32"]


def test_of_less_depth_less_is_wanted() -> None:
    assert said(u_net("1,3,?,64", 2), confirm=False) == ["height is a multiple of 4"]


def test_bounds_of_the_input_are_kept_to() -> None:
    """Bounds of the Parameter are not constraints of the graph; 40..100 contains 64 and 96."""
    constraints = found(u_net("1,3,40..100,64"))
    assert [str(c) for c in constraints] == ["height is a multiple of 32"]
    lengths = [n for trial in constraints.accepted for n in trial.lengths.values()]
    assert set(lengths) == {64, 96}


@pytest.mark.parametrize("rows", [20, 512])
def test_positions_sliced_from_a_table(rows: int) -> None:
    (constraint,) = found(positions(rows))
    assert str(constraint) == f"seq ≤ {rows}"
    assert (constraint.kind, constraint.number, constraint.symbols) == ("at most", rows, ("seq",))
    assert (constraint.proved, constraint.confirmed, constraint.remark) == (True, True, "")
    assert constraint.reason is not None
    assert constraint.reason.layer == "embedded"


def out_of_range(op: Gather, data: Value, indices: Value, axis: Value) -> Iterator[str]:
    """An operation that refuses known values out of range."""
    numbers = indices.ints()
    if numbers and max(numbers) >= data.shape[0].min:
        yield f"index {max(numbers)} is behind the end"


def test_positions_gathered_from_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """No shape is refused; out-of-range indices are, and they are known for known lengths."""
    monkeypatch.setattr(Gather, "audit", out_of_range)
    (constraint,) = found(positions(300, gathered=True))
    assert str(constraint) == "seq ≤ 300"
    assert (constraint.confirmed, constraint.remark) == (
        None,
        "other lengths may run: index 300 is behind the end",
    )
    assert constraint.reason is not None
    assert (constraint.reason.layer, constraint.reason.severity) == ("taken", "warning")


def test_a_length_that_bounds_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of one input are selected by indices below the number of rows of another."""
    monkeypatch.setattr(Gather, "audit", out_of_range)
    net = Net()
    ids, table = net.parameter("ids", "?,4"), net.parameter("table", "?,8")
    shape = net.op("ShapeOf", ids, version="opset3", output_type="i64")
    rows = net.op("Gather", shape, net.constant(0), net.constant(0), version="opset8")
    start, step = net.constant(0), net.constant(1)
    steps = net.op("Range", start, rows, step, version="opset4", output_type="i64")
    net.result(net.op("Gather", table, steps, net.constant(0), version="opset8"))
    assert said(net) == ["batch ≤ table_batch"]


def test_what_an_operation_says_at_every_length_is_no_constraint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Gather, "audit", lambda *inputs: iter(["it is odd"]))
    assert said(positions(20)) == ["seq ≤ 20"]


def test_a_window_without_padding_wants_a_least_length() -> None:
    (constraint,) = found(window())
    assert str(constraint) == "height and width ≥ 3"
    assert (constraint.kind, constraint.number) == ("at least", 3)
    assert (constraint.proved, constraint.confirmed) == (True, True)


def test_a_batch_that_is_baked_in() -> None:
    net = Net()
    x = net.parameter("x", "?,3,4")
    net.result(net.op("Reshape", x, net.constant([2, 12]), special_zero=False, name="flat"))
    (constraint,) = found(net)
    assert str(constraint) == "batch = 2"
    assert (constraint.kind, constraint.number, constraint.confirmed) == ("fixed", 2, True)


def test_channels_are_what_the_filters_take() -> None:
    assert said(window("?,?,?,?")) == ["channels = 1", "height and width ≥ 3"]


def test_two_inputs_that_are_joined_have_equal_lengths() -> None:
    net = Net()
    one, other = net.parameter("left", "?,?,3"), net.parameter("right", "?,?,4")
    net.result(net.op("Concat", one, other, axis=2))
    constraints = found(net)
    assert [str(c) for c in constraints] == [
        "left[0] = right[0] = batch",
        "left[1] = right[1] = seq",
    ]
    assert set(constraints.symbols.values()) == {"batch", "seq"}


def test_of_lengths_that_are_added_each_may_broadcast() -> None:
    net = Net()
    net.result(net.op("Add", net.parameter("a", "?,?"), net.parameter("b", "1,?")))
    assert said(net) == ["a[1] = b[1] = seq; each may be 1 instead"]


def test_a_sum_of_two_lengths() -> None:
    constraints = found(attended())
    texts = [str(c) for c in constraints]
    assert texts == [
        "past_key[0] = new_key[0] = mask[0] = batch; mask[0] may be 1 instead",
        "mask[3] = past + seq; mask[3] may be 1 instead",
    ]
    assert all(c.confirmed for c in constraints)


def test_lengths_of_a_stateful_decoder() -> None:
    """The search starts with all lengths 2, which can only change together; none of them is fixed."""
    constraints = found(decoder())
    assert [str(c) for c in constraints] == [
        "ids[0] = mask[0] = positions[0] = beam_idx[0] = batch; mask[0] and positions[0] may be 1 instead",
        "ids[1] = positions[1] = seq; each may be 1 instead",
        "seq ≤ mask_seq; mask_seq may be 1 instead",
    ]
    assert all(c.confirmed for c in constraints)
    (undecided,) = constraints.undecided
    assert undecided == (
        "which lengths run depends on the variables, too: with empty ones, batch = 311, seq = 16, mask_seq = 367 fails in "
        "layer 'masked'"
    )


def test_nothing_is_demanded() -> None:
    net = Net()
    net.result(net.op("ReLU", net.parameter("x", "?,?,?")))
    constraints = found(net)
    assert (list(constraints), constraints.undecided, constraints.error) == ([], (), None)


def test_a_static_model_is_not_asked() -> None:
    net = Net()
    net.result(net.op("ReLU", net.parameter("x", "2,3")))
    constraints = found(net)
    assert (len(constraints), constraints.questions, dict(constraints.symbols)) == (0, 0, {})


def contradictory() -> Net:
    net = Net()
    x = net.parameter("x", "?")
    for length in (3, 4):
        bias = net.constant(np.zeros(length), "f32")
        net.result(net.op("Add", x, bias, auto_broadcast="none", name=f"plus{length}"), f"result{length}")
    return net


def test_what_no_input_can_satisfy_is_an_error() -> None:
    constraints = found(contradictory())
    assert constraints.error is not None
    assert constraints.error.message.startswith("no input can satisfy the model")
    assert constraints.error.layer in ("plus3", "plus4")
    assert list(constraints) == []


def test_lengths_that_the_search_does_not_find_are_no_error() -> None:
    """The least multiple of 101 and of 103 is far from both: that no length tried was accepted proves nothing."""
    net = Net()
    x = net.parameter("x", "?")
    for length in (101, 103):
        rows = net.constant([-1, length])
        net.result(net.op("Reshape", x, rows, special_zero=False), f"of_{length}")
    model = ir.read_model(net.xml(), net.weights)
    constraints = model.constraints()
    assert (constraints.error, list(constraints), list(model.report)) == (None, [], [])
    (text,) = constraints.undecided
    assert text.startswith("everything: none of ")
    found = ir.compile_model(model)(np.zeros(101 * 103, np.float32)).to_tuple()
    assert [y.shape for y in found] == [(103, 101), (101, 103)]


def test_an_image_whose_area_counts() -> None:
    """Only the product of height and width matters, so no bound of either alone may be claimed."""
    net = Net()
    x = net.parameter("x", "1,1,?,?")
    net.result(net.op("Reshape", x, net.constant([36]), special_zero=False))
    constraints = found(net)
    assert list(constraints) == []
    (text,) = constraints.undecided
    assert text.startswith("height and width depend on each other")


def squared_plus(shape: str) -> Net:
    """The square of one length plus another must be a multiple of 14."""
    net = Net()
    a, b = net.parameter("a", shape), net.parameter("b", shape)
    column, row = (net.op("Unsqueeze", a, net.constant([axis])) for axis in (1, 0))
    square = net.op("MatMul", column, row, transpose_a=False, transpose_b=False)
    flat = net.op("Reshape", square, net.constant([-1]), special_zero=False)
    joined = net.op("Concat", flat, b, axis=0)
    net.result(net.op("Reshape", joined, net.constant([-1, 14]), special_zero=False))
    return net


def test_lengths_are_tried_together_before_anything_is_said_of_one() -> None:
    """One by one, only multiples of 14 are accepted; and 7 with 7."""
    constraints = found(squared_plus("?"))
    assert list(constraints) == []
    assert len(constraints.undecided) == 2
    assert all("a[0] = 7 and b[0] = 7 is accepted" in text for text in constraints.undecided)


def test_only_lengths_that_are_declared_are_tried_together() -> None:
    constraints = found(squared_plus("14..18"))
    assert [str(constraint) for constraint in constraints] == ["length = 14", "b_length = 14"]
    assert constraints.undecided == ()


def test_patches_with_an_offset() -> None:
    """A slice without the first element, split into patches of 4."""
    net = Net()
    x = net.parameter("x", "2,?")
    end, step = net.constant([1 << 40]), net.constant([1])
    rest = net.op("Slice", x, net.constant([1]), end, step, net.constant([1]), version="opset8")
    net.result(net.op("Reshape", rest, net.constant([2, 4, -1]), special_zero=False))
    assert said(net) == ["seq is a multiple of 4 plus 1"]


def test_a_rank_that_is_open_is_said() -> None:
    net = Net()
    net.result(net.op("Add", net.parameter("x", "..."), net.parameter("y", "?,3")))
    assert any("x: not even the number of its dimensions" in text for text in found(net).undecided)


@pytest.mark.parametrize(
    ("evaluations", "said"),
    [
        (0, "all lengths: the search ended before it found any that the model accepts"),
        (40, "all lengths: the search ended before it found which of them depend on each other"),
    ],
)
def test_a_budget_that_ends_is_said(evaluations: int, said: str) -> None:
    constraints = found(u_net(), evaluations=evaluations)
    assert list(constraints) == []
    assert constraints.undecided == (said,)


def test_what_is_found_does_not_depend_on_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate a machine so busy that an hour passes between any two readings of the clock."""
    model = ir.read_model(u_net().xml(), u_net().weights, limits=ir.Limits(seconds=1e12))
    hours = itertools.count(step=3600)
    for clock in ("time", "monotonic", "perf_counter"):
        monkeypatch.setattr(time, clock, lambda: float(next(hours)))
    (constraint,) = model.constraints()
    assert (str(constraint), constraint.confirmed) == ("height and width are multiples of 32", True)


def test_records_are_plain_data() -> None:
    record = found(positions(20)).record()
    assert record["symbols"] == {"ids[0]": "batch", "ids[1]": "seq"}
    (constraint,) = record["constraints"]  # type: ignore[misc]
    assert constraint["text"] == "seq ≤ 20"
    assert constraint["refused_by"]["layer"] == "embedded"


@pytest.fixture
def fragile() -> Iterator[None]:
    """An operation whose kernel fails on more than two rows, which inference does not know."""

    @op("ProbeFragile-1")
    class Fragile(Op):
        """Return the input, or raise an error for more than two rows."""

        data = Input(T_FLOAT, "any")
        output = Output(T_FLOAT, "the same")

        def infer(self, data: Value) -> PartialShape:
            return data.shape

        def evaluate(self, data: Array) -> Array:
            if data.shape[0] > 2:
                raise ValueError("too many rows")
            return data

    yield
    registry.remove(Fragile)


@pytest.mark.usefixtures("fragile")
def test_where_running_differs_it_is_said() -> None:
    net = Net()
    net.result(net.op("ProbeFragile", net.parameter("x", "?,4"), name="weak"))
    constraints = found(net)
    assert list(constraints) == []
    assert constraints.undecided
    assert "but running fails in layer 'weak': " in constraints.undecided[-1]


def test_layouts_give_names() -> None:
    net = Net()
    x = net.parameter("x", "?,?,?,3")
    net.layers[0] = net.layers[0].replace("<data ", '<data layout="[H,N,W,C]" ')
    net.result(net.op("ReLU", x))
    model = ir.read_model(net.xml(), strict=False)
    assert list(model.constraints(confirm=False).symbols.values()) == ["height", "batch", "width"]


def test_gaps_are_no_bounds() -> None:
    """39, 40, 63 and 64 are accepted, and nothing between."""
    net = Net()
    image = net.parameter("image", "2,1,64,32..64")
    weights = net.constant(np.zeros((4, 1, 3, 3)), "f32")
    how = {"strides": "2,2", "dilations": "1,1", "pads_begin": "1,1", "pads_end": "1,1"}
    halved = net.op("Convolution", image, weights, **how)
    net.result(net.op("SpaceToDepth", halved, mode="blocks_first", block_size=4))
    assert said(net) == ["width leaves 0 or 7 when divided by 8"]


NETS: list[Callable[[], Net]] = [
    u_net,
    positions,
    window,
    attended,
    lambda: u_net("?,3,40..100,64", 3),
    decoder,
]


@pytest.mark.parametrize("number", range(len(NETS)))
def test_claims_agree_with_reshaping(number: int) -> None:
    """Each claim agrees with an ordinary reshape to representative lengths."""
    net = NETS[number]()
    model = ir.read_model(net.xml(), net.weights)
    constraints = model.constraints(confirm=False)
    assert constraints.undecided == ()
    for trial in constraints.accepted:
        reshape(model, trial.lengths)
    for constraint, trial in ((c, t) for c in constraints for t in c.trials):
        if trial.accepted:
            reshape(model, trial.lengths)
            continue
        with pytest.raises(ir.ValidationError):
            reshape(model, trial.lengths)
        assert constraint.reason is not None


def reshape(model: ir.Model, lengths: object) -> None:
    given = dict(lengths)  # type: ignore[call-overload]
    shapes = {
        i: [given.get((model._port(port).layer, axis), d) for axis, d in enumerate(port.partial_shape)]
        for i, port in enumerate(model.inputs)
    }
    model.clone().reshape(shapes)


@pytest.mark.parametrize(
    ("accepts", "start", "expected"),
    [
        (lambda n: True, 16, "1.."),
        (lambda n: n <= 512, 16, "1..512"),
        (lambda n: n >= 29, 64, "29.."),
        (lambda n: n % 32 == 0 and n >= 64, 96, "64.., (0,) mod 32"),
        (lambda n: n % 14 == 0 and n <= 1000, 224, "1..994, (0,) mod 14"),
        (lambda n: n % 32 in (0, 31), 64, "1.., (0, 31) mod 32"),
        (lambda n: n % 4 in (0, 1), 64, "1.., (0, 1) mod 4"),
        (lambda n: n == 7, 7, "7..7"),
        (lambda n: 224 <= n < 240, 224, "224..239"),
    ],
)  # fmt: skip
def test_patterns(accepts: Callable[[int], bool], start: int, expected: str) -> None:
    pattern = explore(accepts, start)
    assert (str(pattern), pattern.regular) == (expected, True)
    assert all(pattern.contains(n) == accepts(n) for n in range(1, 1200))


@given(data=st.data())
def test_no_pattern_is_wrong(data: st.DataObject) -> None:
    """For any period, residues and bounds, the pattern found is correct or marked as unconfirmed."""
    step = data.draw(st.sampled_from([1, 2, 3, 4, 6, 8, 14, 16, 32]))
    residues = data.draw(st.sets(st.integers(0, step - 1), min_size=1, max_size=3))
    low, length = data.draw(st.integers(1, 300)), data.draw(st.integers(0, 700))

    def accepts(n: int) -> bool:
        return low <= n <= low + length and n % step in residues

    accepted = [n for n in range(1, 1100) if accepts(n)]
    assume(accepted)
    pattern = explore(accepts, data.draw(st.sampled_from(accepted)))
    assert not pattern.regular or all(pattern.contains(n) == accepts(n) for n in range(1, 1100))


def test_periods_within_bounds() -> None:
    """Lengths near 56, 112, 168 and 224 are accepted, but not near 0 or 280."""
    pattern = explore(lambda n: 56 <= n < 228 and n % 56 < 4, 224)
    assert (str(pattern), pattern.regular) == ("56..227, (0, 1, 2, 3) mod 56", True)


def test_lengths_that_are_proved_to_be_refused_are_not_tried() -> None:
    asked: list[int] = []

    def accepts(length: int) -> bool:
        asked.append(length)
        return 8 <= length <= 512

    plain = explore(accepts, 16)
    tried = len(asked)
    asked.clear()
    assert explore(accepts, 16, refuses=lambda low, high: low > 512 or (high or 9) < 8) == plain
    assert len(asked) < tried - 65


def test_few_queries_find_the_lengths_of_a_decoder() -> None:
    """Inference refuses whole ranges of lengths at once."""
    assert found(decoder(), confirm=False).questions < 500


@pytest.mark.parametrize("start", [39, 40, 63, 64])
def test_patterns_between_bounds(start: int) -> None:
    """A search bound is not mistaken for a limit of the accepted lengths, nor a gap for a bound."""
    pattern = explore(lambda n: n % 8 in (0, 7), start, 32, 64)
    assert (str(pattern), pattern.refused_below, pattern.refused_above) == (
        "32..64, (0, 7) mod 8",
        None,
        None,
    )


def test_what_has_no_pattern_is_not_claimed() -> None:
    assert not explore(lambda n: all(n % d for d in range(2, n)), 7).regular


def test_where_nothing_can_be_told_nothing_is_claimed() -> None:
    pattern = explore(lambda n: True if n <= 4096 else None, 16)
    assert (pattern.high, pattern.refused_above, pattern.regular) == (None, None, True)


@pytest.mark.parametrize("bounds", list(itertools.product((1, 8), (40, 64))))
def test_bounds_are_not_left(bounds: Sequence[int]) -> None:
    asked: list[int] = []

    def accepts(length: int) -> bool:
        asked.append(length)
        return length % 8 == 0

    pattern = explore(accepts, 16, *bounds)
    assert (pattern.step, pattern.refused_above, pattern.refused_below) == (8, None, None)
    assert bounds[0] <= min(asked)
    assert max(asked) <= bounds[1]


def test_nearest_lengths_fit() -> None:
    pattern = Pattern(3, 90, 8, (0, 1))
    assert [pattern.nearest(n) for n in (0, 4, 44, 200)] == [8, 8, 41, 89]
