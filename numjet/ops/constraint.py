"""`sharding_constraint`: a value, laid out over devices as a sharding says; `mesh_cast`: one
that lies as it did, over a mesh whose axes have other types; `to_memory`: one that is put in
another memory of its devices, when it is a program's result.

The partitioner reads it (`partition`); on one block of memory it changes nothing. For
`api.sharding`. What would break it: a sharding without `batched` and `layout`.
"""
from __future__ import annotations

from typing import Any

from numjet.core import hooks
from numjet.core.avals import ShapedArray
from numjet.core.jaxpr import ClosedJaxpr, Jaxpr, Var
from numjet.core.lowering import Expand
from numjet.core.primitive import Primitive, Zero
from numjet.core.structural import broadcast_batch, linear_jvp, moveaxis
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


def broadcast_mapped(x: Any, dim: int | None, axis: Axis) -> Any:
    """`x` with a mapped axis first: if it has none, repeated for each member, and laid out as
    values that have this axis are."""
    if dim is not None:
        return moveaxis(x, dim, 0)
    wide = broadcast_batch(x, axis.size)
    if axis.placed is None:
        return wide
    return sharding_constraint_p.bind(wide, sharding=axis.over(x.aval).placed)


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


def _evaluated(x: Any, *, kind: str) -> Any:
    return hooks.in_memory(x, kind)


to_memory_p = Primitive(
    "to_memory",
    linear=True,
    abstract=lambda x, *, kind: x,
    evaluate=_evaluated,
    jvp=linear_jvp(lambda: to_memory_p),
    transpose=lambda ct, x, *, kind: [ct],
    batch=lambda axis, args, dims, *, kind: (to_memory_p.bind(*args, kind=kind), dims[0]),
    loops=Expand(lambda x, *, kind: x),
)


def result_memories(closed: ClosedJaxpr) -> list[str | None]:
    """The kinds of memory that a program's results are put in; None for the devices' own."""
    return _memories(closed.jaxpr, [None] * len(closed.jaxpr.invars))


def _memories(jaxpr: Jaxpr, given: list) -> list[str | None]:
    known: dict[Any, str | None] = dict(zip(jaxpr.invars, given, strict=True))
    for eqn in jaxpr.eqns:
        name = eqn.primitive.name
        ins = [known.get(x) if type(x) is Var else None for x in eqn.invars]
        if name == "to_memory":
            outs = [_other(eqn.params["kind"])]
        elif name == "sharding_constraint":
            outs = [_other(getattr(eqn.params["sharding"], "memory_kind", None))]
        elif name == "jit":
            outs = _memories(eqn.params["jaxpr"].jaxpr, ins)
        elif eqn.primitive.higher_order:
            outs = [None] * len(eqn.outvars)
        else:  # what is computed from a value is where it is
            outs = [next((kind for kind in ins if kind is not None), None)] * len(eqn.outvars)
        known.update(zip(eqn.outvars, outs, strict=True))
    return [known.get(x) if type(x) is Var else None for x in jaxpr.outvars]


def _other(kind: str | None) -> str | None:
    return None if kind == "device" else kind
