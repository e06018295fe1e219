"""Programs of one device, as the partitioner makes them, run on virtual devices."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numjet as nj
from numjet.core.jaxpr import eval_jaxpr
from numjet.partition.emit import Partitioned, partition
from numjet.transforms.stage import hoist_consts


def cut(
    f: Callable, args: tuple, ins: list, outs: list | None, sizes: Mapping[str, int]
) -> Partitioned:
    """The program of one device of a mesh with axes of these sizes."""
    closed = nj.make_jaxpr(f)(*args)
    whole = hoist_consts(closed.jaxpr)
    ins = [None] * len(closed.consts) + ins
    outs = [None] * len(whole.out_avals) if outs is None else outs
    found = partition(whole, ins, outs, sizes)
    found.consts = closed.consts  # type: ignore[attr-defined]
    return found


def on_devices(found: Partitioned, args: tuple) -> tuple:
    """The program of one device, run on all."""

    def spec(layout: tuple) -> nj.P:
        return nj.P(*[axes or None for axes in layout])

    run = nj.shard_map(
        lambda *xs: tuple(eval_jaxpr(found.closed.jaxpr, found.closed.consts, *xs)),
        mesh=nj.make_mesh(
            tuple(found.sizes.values()), tuple(found.sizes), nj.sharding.AxisType.Auto
        ),
        in_specs=tuple(map(spec, found.ins)),
        out_specs=tuple(map(spec, found.outs)),
    )
    return run(*found.consts, *args)  # type: ignore[attr-defined]
