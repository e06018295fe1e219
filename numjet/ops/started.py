"""Sums over processes in two parts: `psum_start` begins one, `psum_done` waits for it.

For `api.execution.overlap`, which writes them in the place of `psum` into the program of one
process. What lies between them runs while messages travel. `number` is the request, one in a
program; the value between the two is memory that belongs to MPI, which nothing but the `psum_done`
may read.
"""
from __future__ import annotations

from typing import Any

from numjet.core.lowering import Host
from numjet.core.primitive import Primitive
from numjet.ops.collective import collective_effects, over_processes


def _mapped(*_: Any, **params: Any) -> Any:
    raise NotImplementedError("psum_start and psum_done stand in programs of processes, unmapped.")


def _part(name: str) -> Primitive:
    return Primitive(
        name,
        abstract=lambda x, *, axes, number: x,
        reference=over_processes(name, lambda x, **_: x.shape),
        batch=_mapped,
        differentiable=False,
        loops=Host(),
        effects=collective_effects,
        collective=True,
    )


psum_start_p = _part("psum_start")
psum_done_p = _part("psum_done")
