"""`sharding_constraint`: a value, laid out over devices as a sharding says; `mesh_cast`: one
that lies as it did, over a mesh whose axes have other types; `layout_constraint`: one whose
axes lie in memory in another order, as types of results alone tell; `to_memory`: one that is put in
another memory of its devices, when it is a program's result; `device_put`: values that are put on
devices where operations run one by one, and are what they are in a program;
`inspect_sharding`, which tells where a value lies.

The partitioner reads it (`partition`); on one block of memory it changes nothing. For
`api.placement.sharding`. What would break it: a sharding without `batched` and `layout`.
"""
from __future__ import annotations

import enum
from typing import Any

from numjet.core import hooks
from numjet.core.array import ArrayImpl
from numjet.core.avals import ShapedArray
from numjet.core.effects import DEBUG
from numjet.core.given import seen
from numjet.core.jaxpr import ClosedJaxpr, Jaxpr, Var
from numjet.core.lowering import Expand
from numjet.core.memories import MemorySpace
from numjet.core.primitive import Linear, Primitive, Zero
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


def _check_spmd(spmd: Any, sharding: Any) -> None:
    """Raise ValueError where a constraint names the axes of the mesh that `vmap` cuts over."""
    names = spmd if isinstance(spmd, tuple) else (spmd,)
    spec = getattr(sharding, "spec", None) or ()
    named = {a for entry in spec for a in (entry if isinstance(entry, tuple) else (entry,))}
    if not named.isdisjoint(names):
        raise ValueError(
            f"vmap spmd_axis_name {names} cannot appear in with_sharding_constraint spec, but got "
            f"spec {spec}: the mapped axis is cut over it."
        )


def _batch(axis: Axis, args: tuple, dims: tuple, *, sharding: Any = None) -> tuple:
    (x,), (dim,) = args, dims
    if dim is not None and hasattr(sharding, "batched"):
        placed = x.aval.placed
        if axis.spmd is not None and not axis.of_devices and placed is None:
            _check_spmd(axis.spmd, sharding)
        sharding = sharding.batched(dim, axis.spmd if placed is None else placed.spec[dim] or ())
    elif dim is not None and axis.spmd is not None and not axis.of_devices:
        raise ValueError(
            "If you are using spmd_axis_name parameter of jax.vmap, please make sure to run your "
            "jitted function inside the mesh context manager. Only "
            "`jax.lax.with_sharding_constraint` with `jax.sharding.NamedSharding` as an input can "
            "be transformed with spmd_axis_name batching rules outside of an explicit mesh context "
            f"manager scope {sharding}."
        )
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


def _with_sums(x: ShapedArray, *, sharding: Any) -> ShapedArray:
    entries = (None,) * x.ndim if x.placed is None else tuple(x.placed.spec)
    if sharding is not None:
        return x.bare().over(sharding.of_entries(entries, *sharding.sums))
    return x.bare() if not any(entries) else x.bare().over(x.placed.of_entries(entries))


def _sums_of_cotangents(ct: Any, x: Any, *, sharding: Any) -> list:
    own = x.aval.placed
    sums = None if own is None or not any(own.sums) else own.for_cotangents()
    return [sum_cast_p.bind(ct, sharding=sums)]


# Of a function of one device's part: from here on the value's type says that it is a part of a sum
# over the axes that `sharding` names so, or, where that is None, of none.
sum_cast_p = Primitive(
    "sum_cast",
    linear=True,
    abstract=_with_sums,
    reference=lambda x, *, sharding: x,
    jvp=linear_jvp(lambda: sum_cast_p),
    transpose=_sums_of_cotangents,
    batch=lambda axis, args, dims, *, sharding: (
        sum_cast_p.bind(*args, sharding=sharding), dims[0]),
    loops=Expand(lambda x, *, sharding: x),
)  # fmt: skip


def pending_axes(x: Any) -> frozenset:
    """The axes over which a value is a part of a sum, as its type says."""
    placed = x.aval.placed
    return frozenset() if placed is None else placed.sums[0]


def whole(x: Any, names: Any, what: str) -> Any:
    """`x`, which a collective may read. Raises ValueError where it is a part of a sum over one of
    its axes."""
    if x.aval.placed is not None and not pending_axes(x).isdisjoint(names):
        raise ValueError(
            f"{what} cannot accept args which are unreduced: {x.aval.str_short(True)} is a part of "
            f"a sum over {sorted(map(str, pending_axes(x)))}. Add it up with lax.psum first."
        )
    return x


def settled(x: Any, names: Any) -> Any:
    """A value that is no part of a sum over these axes any more: what it is, whoever adds it up."""
    if x.aval.placed is None:
        return x
    pending, done = x.aval.placed.sums
    if pending.isdisjoint(names):
        return x
    left = pending.difference(names)
    entries = tuple(x.aval.placed.spec)
    sharding = x.aval.placed.of_entries(entries, left, done) if left or done else None
    return sum_cast_p.bind(x, sharding=sharding)


def _batched_order(axis: Axis, args: tuple, dims: tuple, *, layout: Any) -> tuple:
    """The mapped axis is the outermost in memory."""
    (x,), (dim,) = args, dims
    if dim is not None:
        order = tuple([d + (d >= dim) for d in layout.major_to_minor])
        layout = type(layout)((dim, *order), layout.tiling, layout.sub_byte_element_size_in_bits)
    return layout_constraint_p.bind(x, layout=layout), dim


layout_constraint_p = Primitive(
    "layout_constraint",
    linear=True,
    abstract=lambda x, *, layout: x,
    reference=lambda x, *, layout: x,
    jvp=linear_jvp(lambda: layout_constraint_p),
    transpose=lambda ct, x, *, layout: [layout_constraint_p.bind(ct, layout=layout)],
    batch=_batched_order,
    loops=Expand(lambda x, *, layout: x),
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


def _put_jvp(primals: tuple, tangents: tuple, **params: Any) -> tuple:
    outs = device_put_p.bind(*primals, **params)
    # Cotangents come back to where arrays were put.
    params["srcs"] = tuple([
        src or _place_of(x) for src, x in zip(params["srcs"], seen(primals), strict=True)
    ])
    dense = [i for i, t in enumerate(tangents) if type(t) is not Zero]
    puts = device_put_p.bind(*[tangents[i] for i in dense], **_chosen(params, dense))
    found = dict(zip(dense, puts, strict=True))
    return outs, [found.get(i, t) for i, t in enumerate(tangents)]


def _place_of(x: Any) -> Any:
    """Where an array lies; None of a traced value, of what was given as a number or a NumPy array,
    and where that binds nothing."""
    if not isinstance(x, ArrayImpl):
        return None
    return x.sharding if x._sharding is None or x._sharding.binds else None  # type: ignore[attr-defined]


def _put_transpose(cts: Any, *args: Any, **params: Any) -> list:
    """Cotangents are put where the operands were, as far as somebody said it."""
    back = [i for i, (ct, x) in enumerate(zip(cts, args, strict=True))
            if type(ct) is not Zero and type(x) is Linear]  # fmt: skip
    turned = {
        "devices": params["srcs"], "srcs": params["devices"],
        "copy_semantics": (CopySemantics.ALWAYS_COPY,) * len(cts),
    }  # fmt: skip
    puts = device_put_p.bind(*[cts[i] for i in back], **_chosen(turned, back)) if back else []
    found = dict(zip(back, puts, strict=True))
    return [found.get(i) for i in range(len(cts))]


def _chosen(params: dict, which: list[int]) -> dict:
    """The params for some of the operands."""
    return {name: tuple([each[i] for i in which]) for name, each in params.items()}


class CopySemantics(enum.Enum):
    """Whether what is put somewhere may be what it was."""

    REUSE_INPUT = enum.auto()
    ALWAYS_COPY = enum.auto()
    DONATE_INPUT = enum.auto()

    def __repr__(self) -> str:
        return f"ArrayCopySemantics.{self.name}"


device_put_p = Primitive(
    "device_put",
    multiple_results=True,
    linear=True,
    abstract=lambda *avals, **_: list(avals),
    evaluate=lambda *xs, devices, **_: [
        x if place is None else hooks.device_put(x, place)
        for x, place in zip(xs, devices, strict=True)
    ],
    jvp=_put_jvp,
    transpose=_put_transpose,
    batch=lambda axis, args, dims, **params: (device_put_p.bind(*args, **params), list(dims)),
    loops=Expand(lambda *xs, **_: list(xs)),
)


inspect_sharding_p = Primitive(
    "inspect_sharding",
    multiple_results=True,
    abstract=lambda x, *, callback: [],
    evaluate=lambda x, *, callback: callback(x.sharding) or [],
    differentiable=False,  # it sees primals and has no results
    batch=lambda axis, args, dims, *, callback: (
        inspect_sharding_p.bind(*args, callback=callback), []
    ),
    loops=Expand(lambda x, *, callback: []),
    effects=frozenset([DEBUG]),
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
        elif name == "device_put":
            outs = [_other(place.kind if isinstance(place, MemorySpace) else
                           getattr(place, "memory_kind", None))
                    for place in eqn.params["devices"]]  # fmt: skip
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
