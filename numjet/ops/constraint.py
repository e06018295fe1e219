"""`sharding_constraint`: a value, laid out over devices as a sharding says.

The partitioner reads it (`partition`); on one block of memory it changes nothing. For
`api.sharding`. What would break it: a sharding without `batched` and `layout`.
"""
from __future__ import annotations

from typing import Any

from numjet.core.lowering import elementwise_loops
from numjet.core.primitive import Primitive, Zero
from numjet.transforms.batch import Axis


def _jvp(primals: tuple, tangents: tuple, *, sharding: Any = None) -> tuple:
    (x,), (t,) = primals, tangents
    out = sharding_constraint_p.bind(x, sharding=sharding)
    return out, t if type(t) is Zero else sharding_constraint_p.bind(t, sharding=sharding)


def _batch(axis: Axis, args: tuple, dims: tuple, *, sharding: Any = None) -> tuple:
    (x,), (dim,) = args, dims
    if dim is not None and sharding is not None:
        sharding = sharding.batched(dim, axis.spmd)
    return sharding_constraint_p.bind(x, sharding=sharding), dim


sharding_constraint_p = Primitive(
    "sharding_constraint",
    linear=True,
    abstract=lambda x, *, sharding=None: x,
    reference=lambda x, *, sharding=None: x,
    jvp=_jvp,
    transpose=lambda ct, x, *, sharding=None: [sharding_constraint_p.bind(ct, sharding=sharding)],
    batch=_batch,
    loops=elementwise_loops(lambda e, x, *, sharding=None: x),
)
