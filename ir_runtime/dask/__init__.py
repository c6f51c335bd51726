"""Run a model on data larger than memory, and on several machines, with Dask.

`map_blocks` runs a model on Dask arrays, and `map_partitions` on columns of a Dask DataFrame. `Runner` is the picklable
function behind both, for ``dask.delayed``, bags and ``xarray.apply_ufunc``. Requires the extra ``ir_runtime[dask]``.

>>> import dask.array, numpy
>>> import ir_runtime
>>> from ir_runtime.dask import map_blocks
>>> model = ir_runtime.read_fragment('<layer id="0" name="relu" type="ReLU" version="opset1">'
...     '<input><port id="0"><dim>-1</dim><dim>2</dim></port></input>'
...     '<output><port id="1"><dim>-1</dim><dim>2</dim></port></output></layer>')
>>> x = dask.array.from_array(numpy.float32([[-1, 2], [3, -4], [5, 6]]), chunks=(2, 2))
>>> [y] = map_blocks(model, x)
>>> y.chunks
((2, 1), (2,))
>>> y.compute()
array([[0., 2.],
       [3., 0.],
       [5., 6.]], dtype=float32)
"""

from __future__ import annotations

from .blocks import Arrays, map_blocks
from .frames import map_partitions
from .runner import Runner

__all__ = ["Arrays", "Runner", "map_blocks", "map_partitions"]
