"""Nets with a loop, written by hand."""

from __future__ import annotations

from harness.nets import End, Net


def body_of(inner: Net) -> str:
    """A net as the body of a layer."""
    edges = "".join(
        f'<edge from-layer="{a}" from-port="{b}" to-layer="{c}" to-port="{d}"/>' for a, b, c, d in inner.edges
    )
    return f"<body><layers>{''.join(inner.layers)}</layers><edges>{edges}</edges></body>"


def looping(length: str = "2", *, joined: bool = False, part_size: int = 1, count: int | None = None) -> Net:
    """``trips`` (i64) times ``x = x + x`` on ``x`` (f32) of one axis; as long as nothing says otherwise.

    Args:
        length: of ``x``, and of what goes round.
        joined: give the parts of all iterations, not the last one.
        part_size: how long the port map says a part is.
        count: how many iterations; without it, that is an input.
    """
    net, inner = Net(), Net()
    dims = "-1" if length == "?" else length
    round = inner.parameter("round", length, out=f"FP32 {dims}")
    twice = inner.op("Add", round, round, name="twice", out=f"FP32 {dims}")
    inner.result(twice, name="given")
    on = inner.op("Const", name="on", element_type="boolean", shape="", offset=0, size=1, out="BOOL")
    inner.result(on, name="goes_on")
    net.weights = b"\x01"
    trips = net.parameter("trips", "", "i64", out="I64") if count is None else net.constant(count)
    start = net.op("Const", name="start", element_type="boolean", shape="", offset=0, size=1, out="BOOL")
    x = net.parameter("x", length, out=f"FP32 {dims}")
    cut = f' axis="0" start="0" end="-1" stride="{part_size}" part_size="{part_size}"' if joined else ""
    inside = (
        '<port_map><input external_port_id="2" internal_layer_id="0"/>'
        f'<output external_port_id="3" internal_layer_id="2"{cut}/>'
        '<output external_port_id="-1" internal_layer_id="4" purpose="execution_condition"/></port_map>'
        '<back_edges><edge from-layer="2" to-layer="0"/></back_edges>'
    )
    out: list[End] = net.layer(
        "Loop",
        [trips, start, x],
        [f"FP32 {'-1' if joined else dims}"],
        version="opset5",
        inside=inside + body_of(inner),
    )
    net.result(out[0])
    return net
