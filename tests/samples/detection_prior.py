"""Samples of prior boxes: sizes, ratios, densities, steps, grids and images."""

from __future__ import annotations

from typing import Any

from harness.sample import Sample, case, ints

GRID, IMAGE = ints(3, 4), ints(48, 100)


# The reference writes without room where the size of the grid is not known.
PLUGIN: dict[str, Any] = {"_oracle": "plugin"}


def prior(name: str, *inputs: Any, **attributes: Any) -> Sample:
    return case(name, *(inputs or (GRID, IMAGE)), **{"_constant": (0, 1), "offset": 0.5} | attributes)


FIXED = {"fixed_size": (16.0, 9.0), "density": (2.0, 3.0)}


def common(name: str) -> list[Sample]:
    squares: dict[str, Any] = {"min_size": (16.0, 20.0), "aspect_ratio": (2.0, 3.0)}
    return [
        prior(name, min_size=(16.0,)),
        prior(name, min_size=(16.0,), **PLUGIN, _constant=()),
        prior(name, GRID.astype("i4"), IMAGE.astype("i4"), min_size=(16.0,)),
        *(prior(name, GRID.astype(t), (IMAGE // 2).astype(t), **squares) for t in ("i1", "u1", "u8")),
        prior(name, **squares),
        prior(name, **squares, flip=True, clip=True),
        prior(name, **squares, max_size=(38.46, 40.0), flip=True),
        prior(name, **squares, max_size=(38.46,)),
        prior(name, min_size=(16.0,), aspect_ratio=(1.0, 2.0, 2.0, 0.5), flip=True, variance=(0.3,)),
        prior(name, min_size=(16.0,), step=16.0, offset=0.25, variance=(0.1, 0.1, 0.2, 0.2)),
        prior(name, min_size=(0.1, 0.4), scale_all_sizes=False, aspect_ratio=(2.0,), step=-1.0),
        prior(name, min_size=(0.1, 0.4), scale_all_sizes=False, aspect_ratio=(2.0,), step=0.25),
        prior(name, min_size=(0.1,), scale_all_sizes=False, flip=True, aspect_ratio=(2.0,)),
        prior(name, **FIXED),
        prior(name, **FIXED, fixed_ratio=(1.0,)),
        prior(name, **FIXED, fixed_ratio=(0.5, 2.0), aspect_ratio=(2.0,), step=8.0),
        prior(name, **FIXED, aspect_ratio=(2.0,), flip=True),
        prior(name, fixed_size=(32.0, 64.0, 128.0), density=(4.0, 2.0, 1.0), clip=True, step=32.0),
        prior(name, ints(0, 4), IMAGE, min_size=(4.0,)),
        prior(name, min_size=(0.25,), max_size=(0.5,)),
        prior(name, fixed_size=(0.5,), density=(1.0,)),
        prior(name, fixed_size=(16.0, 9.0), density=(0.0, 2.0)),
        prior(name, fixed_size=(16.75, 9.5), density=(2.0, 3.0), aspect_ratio=(2.0,)),
        prior(name, fixed_size=(16.75, 9.5), density=(2.0, 3.0), fixed_ratio=(2.0,)),
    ]


ORDERS = [
    prior(
        "PriorBox-8",
        min_size=(16.0, 20.0),
        max_size=(40.0, 50.0),
        aspect_ratio=(2.0,),
        min_max_aspect_ratios_order=order,
    )
    for order in (True, False)
]
NAME = "PriorBoxClustered-1"
SIDES = {"width": (86.0, 13.0, 57.0), "height": (44.0, 10.0, 30.0)}
CLUSTERED = [
    prior(NAME, **SIDES),
    prior(NAME, **SIDES, **PLUGIN, _constant=()),
    prior(NAME, **SIDES, clip=False),
    prior(NAME, **SIDES, clip=True, step=16.0, variance=(0.1, 0.1, 0.2, 0.2)),
    prior(NAME, **SIDES, clip=False, step_w=16.0, step_h=8.0, variance=(0.5,)),
    prior(NAME, **SIDES, clip=False, step=4.0, step_h=8.0, offset=0.0),
    prior(NAME, **SIDES, clip=False, step_w=8.0, offset=1.5),
    *(prior(NAME, GRID.astype(t), IMAGE.astype(t), **SIDES, clip=False) for t in ("i4", "i1", "u1", "u8")),
    prior(NAME, ints(1, 1), IMAGE, width=(3.0,), height=(4.0,), clip=False),
    prior(NAME, ints(2, 0), IMAGE, width=(3.0,), height=(4.0,)),
]

SAMPLES = [*(s for name in ("PriorBox-1", "PriorBox-8") for s in common(name)), *ORDERS, *CLUSTERED]
