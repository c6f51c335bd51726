"""Branches, loops and variables for random graphs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from harness.sample import text

from models.random_graphs import Graph, Layer, Pair, Part, Tensor, UnsafeError
from models.random_layers import RECIPES, TYPES, Builder, Recipe, boolean, f32, i64

DEEPEST = 2


def _inside(b: Builder) -> Builder:
    if b.depth == DEEPEST:
        raise UnsafeError
    return Builder(b.draw, Graph(open=b.graph.open), b.depth + 1)


def _fed(body: Builder, pair: Pair, exact: bool) -> Tensor:
    """An input of a body; its Parameter may be declared as dynamic."""
    layer = Layer("Parameter", 1, [], lambda pairs: [pair])
    if body.graph.open or body.flag():
        layer.shape = ",".join("?" for _ in pair.value.shape)
    body.graph.sinks.append(layer)
    return body.graph.add(layer, exact)[0]


def _fill(body: Builder, most: int) -> None:
    for _ in range(body.number(1, most)):
        body.step([*RECIPES, *CONTROL])


def branch(b: Builder) -> None:
    condition = b.pick(boolean, shape=b.choose([(), (1,)]))
    inputs = [b.pick(*TYPES, least=1) for _ in range(b.number(1, 2))]
    parts, wanted = [], []
    for tag in ("then_body", "else_body"):
        body, ports = _inside(b), []
        for place, tensor in enumerate(inputs):
            if place == 0 or b.flag():
                ports.append((1 + place, _fed(body, tensor.pair, tensor.exact).layer, {}))
        _fill(body, 3)
        if not wanted:
            given = [body.pick(*TYPES, least=1) for _ in range(b.number(1, 2))]
            wanted = [(t.value.dtype, t.shape) for t in given]
        else:
            given = [body.pick(dtype, least=1) for dtype, _ in wanted]
            # Of other lengths, if that is what comes; not of another rank, which files cannot say.
            given = [
                t if len(t.shape) == len(shape) and t.value.size else body.reshaped(t, shape)
                for t, (_, shape) in zip(given, wanted, strict=True)
            ]
        if any(t.layer.type == "Parameter" for t in given):
            raise UnsafeError  # what goes in comes out as it is: the plugin loses it, or ends the process
        outputs = [(1 + len(inputs) + i, body.graph.result(t), {}) for i, t in enumerate(given)]
        parts.append(Part(tag, body.graph, ports, outputs))

    def run(pairs: list[Pair]) -> list[Pair]:
        part = parts[0] if pairs[0].value.item() else parts[1]
        found = part.graph.replay({layer: pairs[port] for port, layer, _ in part.inputs})
        return [found[layer][0] for _, layer, _ in part.outputs]

    exact = all(layer.sources[0].exact for part in parts for _, layer, _ in part.outputs)
    b.graph.add(Layer("If", 8, [condition, *inputs], run, parts=parts), exact)


def _slice(array: np.ndarray, axis: int, part: int, place: int) -> np.ndarray:
    return np.take(array, range(place * part, (place + 1) * part), axis)


def _ways(axis: int, part: int, backward: bool) -> dict[str, str]:
    start, end, stride = (-1, 0, -part) if backward else (0, -1, part)
    said = {"axis": axis, "start": start, "end": end, "stride": stride, "part_size": part}
    return {k: text(v) for k, v in said.items()}


def loop(b: Builder) -> None:
    _iterate(b, counted=True)


def iterator(b: Builder) -> None:
    if b.depth:
        raise UnsafeError  # OpenVINO does not read one inside another
    _iterate(b, counted=False)


def _iterate(b: Builder, counted: bool) -> None:
    body = _inside(b)
    sources: list[Tensor] = []
    inputs: list[tuple[int, Layer, dict[str, str]]] = []
    first = 2 if counted else 0
    # What is taken in parts decides how often a TensorIterator runs, and how often a Loop may.
    trips, axis, part, backward = b.number(1, 3), 0, 1, False
    taking: Tensor | None = None
    sliced = not counted or b.flag()
    if sliced:
        data = b.pick(f32, i64, least=1, most=4)
        axis = b.number(0, len(data.shape) - 1)
        if not counted:  # of a Loop, OpenVINO takes and joins parts of length 1 only, and forward
            part, backward = b.choose([n for n in (1, 2) if data.shape[axis] % n == 0]), b.flag()
        trips = data.shape[axis] // part
        piece = Pair(*(_slice(x, axis, part, trips - 1 if backward else 0) for x in data.pair))
        taking = _fed(body, piece, data.exact)
        inputs.append((first, taking.layer, _ways(axis, part, backward)))
        sources.append(data)
    # One value goes round only: the plugin overwrites one of two before the other is computed from it.
    start = b.pick(f32, i64) if taking is None else b.pick(taking.value.dtype)
    carried = _fed(body, start.pair, False)
    inputs.append((first + len(sources), carried.layer, {}))
    place = first + len(sources)
    sources.append(start)
    if b.flag():
        fixed = b.pick(*TYPES)
        inputs.append((first + len(sources), _fed(body, fixed.pair, fixed.exact).layer, {}))
        sources.append(fixed)
    if len(set(map(id, sources))) < len(sources):
        raise UnsafeError  # of one tensor that goes in twice, the plugin overwrites both as it goes round
    counter: Tensor | None = None
    if counted and b.flag():
        zero = np.zeros(b.choose([(), (1,)]), np.int64)
        counter = _fed(body, Pair(zero, zero), True)
        counter.layer.shape = None  # left open, OpenVINO's reference gives nothing at all
        inputs.append((-1, counter.layer, {"purpose": "current_iteration"}))
    _fill(body, 4)
    outputs: list[tuple[int, Layer, dict[str, str]]] = []
    taken = first + len(sources)
    new = body.reshaped(body.pick(carried.value.dtype), carried.shape)
    if taking is not None:
        # The plugin drops an input that the body does not use, and with it what it says of the
        # number of iterations.
        new = body.op("Add-1", [new, body.reshaped(taking, carried.shape)])
    new = body.op("Add-1", [carried, new])
    if carried.value.dtype == f32:
        new = body.op("Multiply-1", [new, body.constant(f32.type(0.5))])
    last = body.graph.result(new)
    outputs.append((taken, last, {}))
    taken += 1
    others = [
        (tensor, axis)
        for tensor in body.graph.tensors
        for axis, length in enumerate(tensor.shape)
        if tensor.layer.type != "Parameter" and (length == 1 or not counted)
    ]
    joins = bool(others) and b.flag()
    if joins:
        joined, along = b.choose(others)
        how = _ways(along, joined.shape[along], backward and b.flag())
        outputs.append((taken, body.graph.result(joined), how))
        taken += 1
    going: Layer | None = None
    if counted:
        truth = body.constant(np.array(True))
        if counter is not None and not joins and b.flag():
            limit = body.constant(np.array(b.number(1, 3)))
            truth = body.op("Less-1", [counter, limit], auto_broadcast="numpy")
        going = body.graph.result(truth)
        outputs.append((-1, going, {"purpose": "execution_condition"}))

    def run(pairs: list[Pair]) -> list[Pair]:
        held = pairs[place]
        collected: dict[Layer, list[Pair]] = {layer: [] for _, layer, _ in outputs}
        for step in range(trips):
            fed = {}
            for port, layer, how in inputs:
                if layer is carried.layer:
                    fed[layer] = held
                elif how.get("purpose"):
                    now = np.full(layer.outputs[0].shape, step, np.int64)
                    fed[layer] = Pair(now, now)
                elif how:
                    at = trips - 1 - step if backward else step
                    fed[layer] = Pair(*(_slice(x, axis, part, at) for x in pairs[port]))
                else:
                    fed[layer] = pairs[port]
            found = body.graph.replay(fed)
            held = found[last][0]
            for layer, steps in collected.items():
                steps.append(found[layer][0])
            if going is not None and not found[going][0].value.item():
                break
        given = []
        for port, layer, how in outputs:
            steps = collected[layer][:: -1 if how.get("start") == "-1" else 1]
            if how.get("axis"):
                shapes = zip(*steps, strict=True)
                given.append(Pair(*(np.concatenate(x, int(how["axis"])) for x in shapes)))
            elif port >= 0:
                given.append(steps[-1])
        return given

    if counted:
        most = b.given(np.full(b.choose([(), (1,)]), trips, np.int64))
        # What it joins has as many parts as the trip count says, to OpenVINO's inference, though a
        # condition of which nothing is known may end it before.
        going_in = np.array(True)
        sources = [most, b.constant(going_in) if joins else b.given(going_in), *sources]
    name, version = ("Loop", 5) if counted else ("TensorIterator", 1)
    part_of = Part("body", body.graph, inputs, outputs, [(last, carried.layer)])
    b.graph.add(Layer(name, version, sources, run, parts=[part_of]), False)


def variable(b: Builder) -> None:
    """A variable that accumulates its input with decay 0.5."""
    shape = tuple(b.number(1, 3) for _ in range(b.number(0, 3)))
    start = b.fresh(f32, shape)
    about = {
        "variable_id": f"variable{len(b.graph.layers)}",
        "variable_type": "f32",
        "variable_shape": text(tuple("?" for _ in shape) if b.graph.open else shape),
    }
    held = b.graph.add(Layer("ReadValue", 6, [start], lambda pairs: pairs, about), False)[0]
    total = b.op("Add-1", [held, b.reshaped(b.pick(), shape)])
    new = b.op("Multiply-1", [total, b.constant(f32.type(0.5))])
    new.safe = False  # what else reads it finds the memory of the variable, in the plugin, of the next run
    sink = Layer("Assign", 6, [new], lambda pairs: pairs, {"variable_id": about["variable_id"]})
    b.graph.add(sink, False)
    b.graph.sinks.append(sink)


CONTROL: Sequence[Recipe] = (branch, loop, iterator)
STATE: Sequence[Recipe] = (variable,)
