"""`sharding_constraint`: a value, laid out over devices as a sharding says; `mesh_cast`: one
that lies as it did, over a mesh whose axes have other types.

The partitioner reads it (`partition`); on one block of memory it changes nothing. For
`api.sharding`. What would break it: a sharding without `batched` and `layout`.
"""
from __future__ import annotations

from typing import Any

from numjet.core.avals import ShapedArray
from numjet.core.lowering import Expand
from numjet.core.primitive import Primitive, Zero
from numjet.core.structural import linear_jvp
from numjet.transforms.batch import Axis


def _abstract(x: ShapedArray, *, sharding: Any = None) -> ShapedArray:
    """Explicit axes of the mesh become a part of the type; where the layout is open it stays."""
    if not getattr(getattr(sharding, "mesh", None), "explicit_axes", ()):
        return x
    have = ((),) * x.ndim if x.placed is None else tuple(x.placed.spec)
    return x.over(sharding.of_entries(sharding.layout(x.ndim, have, True), *sharding.sums))


def _jvp(primals: tuple, tangents: tuple, *, sharding: Any = None) -> tuple:
    (x,), (t,) = primals, tangents
    out = sharding_constraint_p.bind(x, sharding=sharding)
    return out, t if type(t) is Zero else sharding_constraint_p.bind(t, sharding=sharding)


def _transpose(ct: Any, x: Any, *, sharding: Any = None) -> list:
    own = sharding.for_cotangents() if hasattr(sharding, "for_cotangents") else sharding
    return [sharding_constraint_p.bind(ct, sharding=own)]


def _batch(axis: Axis, args: tuple, dims: tuple, *, sharding: Any = None) -> tuple:
    (x,), (dim,) = args, dims
    if dim is not None and sharding is not None:
        placed = x.aval.placed
        sharding = sharding.batched(dim, axis.spmd if placed is None else placed.spec[dim] or ())
    return sharding_constraint_p.bind(x, sharding=sharding), dim


sharding_constraint_p = Primitive(
    "sharding_constraint",
    linear=True,
    abstract=_abstract,
    reference=lambda x, *, sharding=None: x,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    loops=Expand(lambda x, *, sharding=None: x),
    lays_out=True,
)


mesh_cast_p = Primitive(
    "mesh_cast",
    linear=True,
    abstract=lambda x, *, mesh: x if x.placed is None else x.over(x.placed.over_mesh(mesh)),
    reference=lambda x, *, mesh: x,
    jvp=linear_jvp(lambda: mesh_cast_p),
    transpose=lambda ct, x, *, mesh: [ct],
    batch=lambda axis, args, dims, *, mesh: (mesh_cast_p.bind(*args, mesh=mesh), dims[0]),
    loops=Expand(lambda x, *, mesh: x),
)
