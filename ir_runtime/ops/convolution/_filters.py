"""Filters and the channels they are made for: what all convolutions have in common."""

from __future__ import annotations

from ...errors import InferenceError
from ...ir.dimension import Dimension
from ...ir.shape import PartialShape
from ...ir.tensor import Value
from .._window import Dilated, data_dims


class Filtering(Dilated):
    """A window of filters, one for each pair of channels."""

    def filter_dims(self, shape: PartialShape, leading: int, layout: str) -> PartialShape:
        """The shape of the filters, whose kernel follows ``leading`` other axes."""
        rank = len(self.strides) + leading
        if shape.rank is None:
            return PartialShape.dynamic(rank)
        if shape.rank != rank:
            raise InferenceError(f"filters must have rank {rank}, {layout}, found {shape}")
        return shape

    def check_channels(self, found: Dimension, expected: Dimension) -> None:
        """Require as many channels as the filters are made for."""
        if not found.compatible(expected):
            raise InferenceError(f"data has {found} channels, filters expect {expected}")

    def groups_of(self, channels: Dimension, groups: Dimension, each: Dimension) -> Dimension:
        """How many groups there are: as the filters say, or else as fit into the channels of the data."""
        self.check_channels(channels, Dimension.of(groups * each))
        if groups.is_dynamic and channels.is_static and each.is_static and each.min:
            if channels.min % each.min:
                raise InferenceError(f"data has {channels} channels, filters expect a multiple of {each}")
            return Dimension(channels.min // each.min)
        return groups

    def correlated(self, data: Value, filters: Value) -> PartialShape:
        """The shape of the output where every filter sees all channels."""
        x = data_dims(data.shape, len(self.strides))
        w = self.filter_dims(filters.shape, 2, "[C_out, C_in, kernel...]")
        self.check_channels(x[1], w[1])
        return PartialShape([x[0], w[0], *self.slide(x[2:], w[2:])])


class Planar(Filtering):
    """Filters of images."""

    def verify(self) -> None:
        """Require two spatial axes."""
        super().verify()
        if len(self.strides) != 2:
            raise ValueError(f"strides must have a number for Y and one for X, not {list(self.strides)}")
