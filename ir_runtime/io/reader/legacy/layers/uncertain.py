"""Layers that are refused because their meaning is uncertain."""

from __future__ import annotations

from typing import NoReturn

from .....codes import Code
from ..declaration import PAGE, LegacyLayer, layer
from ..site import Site


def _uncertain(type: str, anchor: str, why: str) -> type[LegacyLayer]:
    """Declare a layer that is refused, with its page and the reason."""

    class Uncertain(LegacyLayer):
        inputs = (0, None)
        is_certain = False

        def build(self, site: Site) -> NoReturn:
            site.refuse(
                f"what {type} computes is not certain: {why}",
                Code.UNKNOWN_OPERATION,
                f"convert the original model again; the layer is described at {PAGE}#{anchor}",
            )

    Uncertain.__doc__ = f"Refused: {why}."
    Uncertain.__name__ = Uncertain.__qualname__ = type
    return layer(type)(Uncertain)


for _type, _why in (
    ("ExperimentalSparseWeightedSum", "its page does not say what padding and weights of empty rows are"),
    ("SimplerNMS", "its page does not give the widths and heights that anchors have by default"),
    ("SparseFillEmptyRows", "its page does not say what fills the rest of outputs of fixed lengths"),
    ("SparseSegmentMean", "its page does not say what fills the rest of an output as long as the indices"),
    ("SparseSegmentSqrtN", "its page does not say what fills the rest of an output as long as the indices"),
    ("SparseSegmentSum", "its page does not say what fills the rest of an output as long as the indices"),
    ("Unique", "outputs as long as the input are filled in another way than by any operation of today"),
):
    _uncertain(_type, _type, _why)

_uncertain("RNN", "toc", "the catalogue has no page of it")
