"""Descriptors: one declaration gives the layout of a record in Python and the field indices in kernels."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from struct import error
from typing import Annotated

import numpy as np
import pytest

from ir_runtime.backends.native.codegen.descriptor import Descriptor, concatenate, f32, i64
from ir_runtime.ir.tensor import Array


class Point(Descriptor):
    x: i64
    y: i64


class Job(Descriptor):
    rows: i64
    low: f32
    high: f32
    point: Point
    strides: Annotated[int, (np.int64, (3,))]
    epsilon: f32


class Longer(Point):
    z: i64


def test_an_attribute_is_the_index_of_its_field() -> None:
    record = Job.fill(rows=7, low=-1, high=2, point=(3, 4), strides=(5, 6, 8), epsilon=0.5)
    integers, numbers = concatenate(record), concatenate(record).view(np.float32)
    assert integers[Job.rows] == 7
    assert (numbers[Job.low], numbers[Job.high], numbers[Job.epsilon]) == (-1, 2, 0.5)
    assert integers[Job.point + Point.y] == 4
    assert integers[Job.strides : Job.strides + 3].tolist() == [5, 6, 8]
    assert Job.words == len(integers)


def test_a_subclass_adds_fields() -> None:
    assert concatenate(Longer.fill(z=3, y=2, x=1)).tolist() == [1, 2, 3]


def test_fields_must_be_complete_and_known() -> None:
    with pytest.raises(TypeError, match="Point expected a field 'y'"):
        Point.fill(x=1)
    with pytest.raises(TypeError, match="Point got unknown fields: z"):
        Point.fill(x=1, y=2, z=3)


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
def test_numbers_beyond_f32_are_infinite() -> None:
    record = Job.fill(rows=7, low=-1e39, high=1e39, point=(3, 4), strides=(5, 6, 8), epsilon=np.inf)
    assert (record["low"], record["high"], record["rows"]) == (-np.inf, np.inf, 7)


@pytest.mark.parametrize("derive", [lambda x: x, lambda x: x.copy(), concatenate, lambda x: x.view(np.int64)])
def test_addresses_are_those_of_arrays_which_the_record_holds(derive: Callable[[Array], Array]) -> None:
    table = np.arange(3)
    address, held = table.ctypes.data, weakref.ref(table)
    record = derive(Point.fill(x=table, y=None))
    del table
    assert held() is not None
    assert record.view(np.int64).tolist() == [address, 0]


def test_values_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(error, match="required argument is not an integer"):
        Point.fill(x="1", y=2)
