"""What a function costs on an accelerator, told from its jaxpr: operations, bytes of memory, bytes
between devices.

`roofline(f)(*args)` gives the shapes of the results and a `RooflineResult`. Its model is JAX's:
figures whose names begin with "unfused" count every equation as if it read and wrote memory by
itself, the others products alone, which everything else is fused with. Of a loop one round is
counted, of `while_loop` and `cond` nothing; the biggest sum of the sizes of values that are alive
at once is `peak_hbm_bytes`. Devices lie on a torus, an axis of the mesh to a ring. What would
break it: an equation that `make_jaxpr` shows in another form than JAX.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from numjet.api.compiled.abstract import make_jaxpr
from numjet.api.derivatives.pullbacks import vjp as _vjp
from numjet.api.maps.shard_map import shard_map
from numjet.api.placement.shape_struct import ShapeDtypeStruct
from numjet.base import tree
from numjet.core import dtypes
from numjet.core.jaxpr import Eqn, Jaxpr, Var, subjaxprs
from numjet.extend.primitive import Primitive
from numjet.numpy.creation import ones_like
from numjet.transforms.simplify import dce_jaxpr

_log = logging.getLogger("numjet.experimental.roofline")


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflineShape:
    """An operand of an equation as rules see it.

    >>> import numpy as np
    >>> from numjet.experimental import roofline
    >>> roofline.RooflineShape(shape=(2, 3), dtype=np.dtype("float32")).bytes
    24
    """

    shape: tuple[int, ...]
    dtype: Any

    @classmethod
    def from_aval(cls, aval: Any) -> RooflineShape:
        """The shape and dtype of an abstract value."""
        return cls(shape=tuple(aval.shape), dtype=aval.dtype)

    @property
    def size(self) -> int:
        """How many elements there are."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """How many bytes they have."""
        return self.size * (np.dtype(dtypes.physical(self.dtype)).itemsize)

    @classmethod
    def total_bytes(cls, avals: Sequence[Any]) -> int:
        """The bytes of several abstract values."""
        return sum([cls.from_aval(a).bytes for a in avals])


def _summed(a: Mapping[str, int], b: Mapping[str, int]) -> dict[str, int]:
    return {axis: a.get(axis, 0) + b.get(axis, 0) for axis in (*a, *[k for k in b if k not in a])}


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflineResult:
    """What a function, or one equation, costs.

    flops, unfused_flops: operations of products, and of all. hbm_bytes, unfused_hbm_bytes: read and
    written by products, and by all. ici_bytes, ici_latency: bytes over the links of each axis of
    the mesh, and steps from device to device. peak_hbm_bytes: of the values that are alive at once.
    Results are added up, but for the peak, of which the larger is taken.

    >>> from numjet.experimental.roofline import RooflineResult
    >>> (RooflineResult(flops=2) + RooflineResult(flops=3)).flops
    5
    """

    flops: int = 0
    unfused_flops: int = 0
    ici_bytes: dict[str, int] = field(default_factory=dict)
    ici_latency: dict[str, int] = field(default_factory=dict)
    hbm_bytes: int = 0
    peak_hbm_bytes: int = 0
    unfused_hbm_bytes: int = 0

    @classmethod
    def zeros(cls) -> RooflineResult:
        """What costs nothing."""
        return cls()

    def __add__(self, other: RooflineResult) -> RooflineResult:
        return RooflineResult(
            flops=self.flops + other.flops,
            unfused_flops=self.unfused_flops + other.unfused_flops,
            ici_bytes=_summed(self.ici_bytes, other.ici_bytes),
            ici_latency=_summed(self.ici_latency, other.ici_latency),
            hbm_bytes=self.hbm_bytes + other.hbm_bytes,
            peak_hbm_bytes=max(self.peak_hbm_bytes, other.peak_hbm_bytes),
            unfused_hbm_bytes=self.unfused_hbm_bytes + other.unfused_hbm_bytes,
        )

    def __mul__(self, times: int) -> RooflineResult:
        return RooflineResult(
            flops=self.flops * times,
            unfused_flops=self.unfused_flops * times,
            ici_bytes={axis: n * times for axis, n in self.ici_bytes.items()},
            ici_latency={axis: n * times for axis, n in self.ici_latency.items()},
            hbm_bytes=self.hbm_bytes * times,
            peak_hbm_bytes=self.peak_hbm_bytes * times,
            unfused_hbm_bytes=self.unfused_hbm_bytes * times,
        )

    __rmul__ = __mul__


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflineRuleContext:
    """What a rule is told of its equation beside operands and params: the names of its scopes, the
    primitive, abstract values, the mesh, and which operands of products stay in fast memory.

    >>> from numjet.experimental.roofline import RooflineRuleContext
    >>> "avals_out" in RooflineRuleContext.__dataclass_fields__
    True
    """

    name_stack: Any
    primitive: Any
    avals_in: Sequence[Any]
    avals_out: Sequence[Any]
    jaxpr_eqn_ctx: Any
    mesh: Any
    pin_lhs_in_vmem: bool
    pin_rhs_in_vmem: bool


_Rule = Callable[..., RooflineResult]
_rules: dict[Any, _Rule] = {}  # by users' primitives


def register_roofline(prim: Any) -> Callable[[_Rule], _Rule]:
    """A decorator: the rule of a primitive.

    prim: a primitive. The rule is called with a `RooflineRuleContext`, a `RooflineShape` for each
    operand, and the params by name; it gives a `RooflineResult`.

    >>> from numjet.extend.core import Primitive
    >>> from numjet.experimental import roofline
    >>> @roofline.register_roofline(Primitive("solve_on_tpu"))
    ... def rule(ctx, x, **params):
    ...     return roofline.RooflineResult(flops=x.size, unfused_flops=x.size)
    """

    def register(rule: _Rule) -> _Rule:
        _rules[prim] = rule
        return rule

    return register


def register_standard_roofline(prim: Any) -> None:
    """Count an operation as free, as those are that only move elements.

    prim: a primitive.

    >>> from numjet.extend.core import Primitive
    >>> from numjet.experimental import roofline
    >>> roofline.register_standard_roofline(Primitive("shuffle_on_tpu"))
    """
    _rules[prim] = lambda ctx, *args, **params: RooflineResult()


# ------------------------------------------------------------------ elementwise, sums, indices
def _traffic(ctx: RooflineRuleContext) -> int:
    return RooflineShape.total_bytes([*ctx.avals_in, *ctx.avals_out])


def _elementwise(ctx: RooflineRuleContext, *args: Any, **_: Any) -> RooflineResult:
    size = RooflineShape.from_aval(ctx.avals_out[0]).size
    return RooflineResult(unfused_flops=size, unfused_hbm_bytes=_traffic(ctx))


def _selected(ctx: RooflineRuleContext, *args: RooflineShape, **_: Any) -> RooflineResult:
    out = RooflineShape.from_aval(ctx.avals_out[0])
    return RooflineResult(unfused_flops=out.size, unfused_hbm_bytes=args[0].bytes + out.bytes)


def _reduced(ctx: RooflineRuleContext, x: RooflineShape, **_: Any) -> RooflineResult:
    out = RooflineShape.from_aval(ctx.avals_out[0])
    return RooflineResult(unfused_flops=x.size - out.size, unfused_hbm_bytes=x.bytes + out.bytes)


def _running(steps: int) -> _Rule:
    def rule(ctx: RooflineRuleContext, x: RooflineShape, *, axis: int, **_: Any) -> RooflineResult:
        return RooflineResult(
            unfused_flops=steps * x.shape[axis], unfused_hbm_bytes=_traffic(ctx)
        )

    return rule


def _gathered(
    ctx: RooflineRuleContext, x: RooflineShape, indices: RooflineShape, *, mode: Any, **_: Any
) -> RooflineResult:
    out = RooflineShape.from_aval(ctx.avals_out[0])
    # Indices are compared with both ends and counted, and the result is chosen, where it is filled.
    filled = str(mode).upper().endswith("FILL_OR_DROP") or str(mode) == "fill"
    flops = 4 * indices.size + out.size if filled else 0
    return RooflineResult(unfused_flops=flops, unfused_hbm_bytes=2 * out.bytes + indices.bytes)


def _scattered(combined: bool) -> _Rule:
    def rule(
        ctx: RooflineRuleContext, x: Any, indices: Any, updates: Any, **_: Any
    ) -> RooflineResult:
        flops = updates.size if combined else 0
        moved = 3 * updates.bytes + indices.bytes
        return RooflineResult(unfused_flops=flops, unfused_hbm_bytes=moved)

    return rule


def _called_back(ctx: RooflineRuleContext, *args: Any, **_: Any) -> RooflineResult:
    return RooflineResult(unfused_hbm_bytes=_traffic(ctx))


# ------------------------------------------------------------------ products
def _product(
    ctx: RooflineRuleContext, lhs: RooflineShape, rhs: RooflineShape, *, dimension_numbers: Any,
    **_: Any,
) -> RooflineResult:  # fmt: skip
    (contracted, _), _ = dimension_numbers
    out = RooflineShape.from_aval(ctx.avals_out[0])
    flops = 2 * out.size * math.prod([lhs.shape[axis] for axis in contracted])
    moved = 0 if ctx.pin_lhs_in_vmem else lhs.bytes + out.bytes
    moved += 0 if ctx.pin_rhs_in_vmem else rhs.bytes
    return RooflineResult(
        flops=flops, unfused_flops=flops, hbm_bytes=moved, unfused_hbm_bytes=moved
    )


def _taps(
    n: int, out: int, width: int, stride: int, low: int, spread: int, dilation: int
) -> int:
    """How many elements of an axis the windows along it hold, padding and gaps not counted."""
    last = (n - 1) * spread
    places = [i * stride - low + k * dilation for i in range(out) for k in range(width)]
    return len([at for at in places if 0 <= at <= last and at % spread == 0])


def _convolved(
    ctx: RooflineRuleContext, lhs: RooflineShape, rhs: RooflineShape, *, window_strides: Any,
    padding: Any, lhs_dilation: Any, rhs_dilation: Any, dimension_numbers: Any, **_: Any,
) -> RooflineResult:  # fmt: skip
    out = RooflineShape.from_aval(ctx.avals_out[0])
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    places = 1
    for i, (a, b, c) in enumerate(zip(lhs_spec[2:], rhs_spec[2:], out_spec[2:], strict=True)):
        places *= _taps(
            lhs.shape[a], out.shape[c], rhs.shape[b], window_strides[i], padding[i][0],
            lhs_dilation[i], rhs_dilation[i],
        )  # fmt: skip
    products = places * out.shape[out_spec[0]] * out.shape[out_spec[1]] * rhs.shape[rhs_spec[1]]
    return RooflineResult(unfused_flops=2 * products, unfused_hbm_bytes=_traffic(ctx))


# ------------------------------------------------------------------ between devices
def _axes(given: Any) -> tuple:
    return tuple(given) if isinstance(given, tuple | list) else (given,)


def _over(
    ctx: RooflineRuleContext, axes: tuple, total: float, latency: float
) -> RooflineResult:
    """A cost over the links of axes of the mesh; nothing where there is one device."""
    if math.prod([ctx.mesh.shape[axis] for axis in axes]) == 1:
        total = latency = 0
    return RooflineResult(
        ici_bytes=dict.fromkeys(axes, int(total)), ici_latency=dict.fromkeys(axes, int(latency))
    )


def _ring(share: Callable[[int, int], float], rounds: int) -> _Rule:
    """Rings over all axes at once. share(bytes of the operand, devices): what each device sends.
    rounds: how often it goes round."""

    def rule(ctx: RooflineRuleContext, *args: RooflineShape, **params: Any) -> RooflineResult:
        axes = _axes(params["axes"] if "axes" in params else params["axis_name"])
        sizes = [ctx.mesh.shape[axis] for axis in axes]
        sent = sum([share(x.bytes, math.prod(sizes)) for x in args])
        return _over(ctx, axes, sent / len(axes), rounds * max(sizes) * len(axes))

    return rule


def _extreme(ctx: RooflineRuleContext, *args: RooflineShape, **params: Any) -> RooflineResult:
    """`pmax` and `pmin`, of which JAX counts a single element."""
    axes = _axes(params["axes"] if "axes" in params else params["axis_name"])
    sizes = [ctx.mesh.shape[axis] for axis in axes]
    width = max([x.bytes // max(x.size, 1) for x in args])
    sent = width * (math.prod(sizes) - 1)
    return _over(ctx, axes, sent / len(axes), max(sizes) * len(axes))


def _exchanged(ctx: RooflineRuleContext, x: RooflineShape, **params: Any) -> RooflineResult:
    """`all_to_all`: half of what is sent crosses the middle of the longest ring, which has two
    links there; a ring of two devices has one."""
    axes = _axes(params["axis_name"])
    sizes = [ctx.mesh.shape[axis] for axis in axes]
    sent = x.bytes * max(sizes) / 4 * (2 if 2 in sizes else 1)
    return _over(ctx, axes, sent, sum([n / 2 for n in sizes]))


def _permuted(ctx: RooflineRuleContext, x: RooflineShape, **params: Any) -> RooflineResult:
    """`ppermute`: each message the shorter way round each ring; the busiest link counts."""
    axes = _axes(params["axis_name"])
    sizes = [ctx.mesh.shape[axis] for axis in axes]
    used: dict[tuple, int] = {}
    farthest = 0
    for source, target in params["perm"]:
        hops = 0
        places = zip(np.unravel_index(source, sizes), np.unravel_index(target, sizes), strict=True)
        for axis, n, (a, b) in zip(axes, sizes, places, strict=True):
            forward = (b - a) % n
            step = 1 if forward <= n - forward else -1
            at = a
            while at != b:
                link = axis, min(at, (at + step) % n), max(at, (at + step) % n)
                used[link] = used.get(link, 0) + 1
                at, hops = (at + step) % n, hops + 1
        farthest = max(farthest, hops)
    return _over(ctx, axes, x.bytes * max(used.values(), default=0), farthest)


_UNARY = (
    "abs acos asin atan bessel_i0e bessel_i1e cbrt ceil conj cos cosh digamma erf erf_inv erfc exp "
    "expm1 floor imag integer_pow pow_by_integer is_finite lgamma log log1p logistic neg not real "
    "round round_even rsqrt sign sin sinh sqrt square tan"
).split()
_BINARY = "add add_any and div eq ge gt le lt max min mul ne or rem sub xor".split()
# By the names of equations.
_RULES: dict[str, _Rule] = {
    **dict.fromkeys((*_UNARY, *_BINARY), _elementwise),
    "select_n": _selected,
    "reduce_sum": _reduced,
    **dict.fromkeys(("cumsum", "cumprod", "cummax", "cummin"), _running(1)),
    "cumlogsumexp": _running(2),
    "dot_general": _product,
    "conv_general_dilated": _convolved,
    "gather": _gathered,
    "scatter": _scattered(False),
    **{f"scatter{mark}{kind}": _scattered(True)
       for mark in "-_" for kind in ("add", "sub", "mul", "min", "max")},
    **dict.fromkeys(("pure_callback", "io_callback"), _called_back),
    "psum": _ring(lambda size, n: 2 * size * (n - 1) / n, 2),
    "psum_invariant": _ring(lambda size, n: 2 * size * (n - 1) / n, 2),
    "all_gather": _ring(lambda size, n: size * (n - 1), 1),
    "reduce_scatter": _ring(lambda size, n: size * (n - 1) / n, 1),
    **dict.fromkeys(("pmax", "pmin"), _extreme),
    "all_to_all": _exchanged,
    "ppermute": _permuted,
}  # fmt: skip
# Equations whose functions are not counted: how often they run is not known.
_OPAQUE = frozenset(("while", "cond", "custom_linear_solve"))


# ------------------------------------------------------------------ jaxprs
def _bytes(v: Any) -> int:
    return RooflineShape.from_aval(v.aval).bytes


def _of_equation(eqn: Eqn, context: dict[str, Any]) -> RooflineResult:
    rule = _rules.get(eqn.primitive)
    counted = rule is None and eqn.primitive.name not in _OPAQUE
    inner = next(iter(subjaxprs(eqn.params)), None) if counted else None
    if inner is not None:
        mesh = eqn.params["mesh"] if eqn.primitive.name == "shard_map" else context["mesh"]
        return _of_jaxpr(getattr(inner, "jaxpr", inner), {**context, "mesh": mesh})
    rule = rule or _RULES.get(eqn.primitive.name)
    if rule is None:
        if type(eqn.primitive) is Primitive:  # of the user's
            _log.warning("No roofline rule for %s, skipping...", eqn.primitive.name)
        return RooflineResult()
    told = RooflineRuleContext(
        name_stack=getattr(eqn.source_info, "name_stack", None),
        primitive=eqn.primitive,
        avals_in=[v.aval for v in eqn.invars],
        avals_out=[v.aval for v in eqn.outvars],
        jaxpr_eqn_ctx=getattr(eqn, "ctx", None),
        **context,
    )
    found = rule(told, *[RooflineShape.from_aval(v.aval) for v in eqn.invars], **eqn.params)
    return replace(found, peak_hbm_bytes=0)  # the values that are alive tell that


def _of_jaxpr(jaxpr: Jaxpr, context: dict[str, Any]) -> RooflineResult:
    last: dict[Any, int] = {}
    for i, eqn in enumerate(jaxpr.eqns):
        last.update({v: i for v in eqn.invars if type(v) is Var})
    last.update({v: len(jaxpr.eqns) for v in jaxpr.outvars if type(v) is Var})
    alive = {v: _bytes(v) for v in (*jaxpr.constvars, *jaxpr.invars) if v in last}
    total = RooflineResult(peak_hbm_bytes=sum(alive.values()))
    for i, eqn in enumerate(jaxpr.eqns):
        total = total + _of_equation(eqn, context)
        alive.update({v: _bytes(v) for v in eqn.outvars if v in last})
        alive = {v: size for v, size in alive.items() if last[v] > i}
        total = total + RooflineResult(peak_hbm_bytes=sum(alive.values()))
    return total


def roofline(
    f: Callable,
    mesh: Any = None,
    in_specs: Any = None,
    out_specs: Any = None,
    *,
    pin_lhs_in_vmem: bool = False,
    pin_rhs_in_vmem: bool = False,
    vjp: bool = False,
    print_jaxpr: bool = False,
) -> Callable[..., tuple[Any, RooflineResult]]:
    """A function of `f`'s arguments that gives the shapes of its results and what it costs.

    f: a function of arrays; it is traced, not run. mesh, in_specs, out_specs: as of `shard_map`, in
    which f is to run: the cost is that of one device. pin_lhs_in_vmem, pin_rhs_in_vmem: the left
    (with the result) or the right operand of products stays in fast memory. vjp: count the backward
    pass with it. print_jaxpr: print what is counted. Arguments may be ShapeDtypeStructs.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> from numjet.experimental.roofline import roofline
    >>> x = nj.ShapeDtypeStruct((8, 16), jnp.float32)
    >>> shape, cost = roofline(lambda x: x @ x.T)(x)
    >>> cost.flops, cost.hbm_bytes
    (2048, 1280)
    """

    def with_pullback(*args: Any) -> Any:
        outs, pullback = _vjp(f, *args)
        return outs, pullback(tree.tree_map(ones_like, outs))

    fun = with_pullback if vjp else f
    specs = (out_specs, in_specs) if vjp else out_specs
    context = {
        "mesh": mesh,
        "pin_lhs_in_vmem": pin_lhs_in_vmem,
        "pin_rhs_in_vmem": pin_rhs_in_vmem,
    }

    def told(*args: Any) -> tuple[Any, RooflineResult]:
        jaxpr, shapes = _traced(fun, mesh, in_specs, specs, args)
        if print_jaxpr:
            print(jaxpr)  # noqa: T201 - what was asked for
        return shapes[0] if vjp else shapes, _of_jaxpr(jaxpr, context)

    return told


def _traced(
    fun: Callable, mesh: Any, in_specs: Any, out_specs: Any, args: Sequence[Any]
) -> tuple[Jaxpr, Any]:
    """What one device computes, and the shapes of the results."""
    if mesh is not None:
        fun = shard_map(fun, mesh=mesh, in_specs=in_specs, out_specs=out_specs)
    shown, shapes = make_jaxpr(fun, return_shape=True)(*tree.tree_map(_abstract, args))
    jaxpr, _ = dce_jaxpr(shown.jaxpr)
    if mesh is not None:
        (mapped,) = [eqn for eqn in jaxpr.eqns if eqn.primitive.name == "shard_map"]
        inner = next(iter(subjaxprs(mapped.params)))
        jaxpr, _ = dce_jaxpr(getattr(inner, "jaxpr", inner))
    return jaxpr, shapes


def _after(jaxpr: Jaxpr, count: int) -> Jaxpr:
    """The part of a jaxpr that depends on its last `count` inputs; what it reads of the rest are
    inputs of it."""
    found: set[Any] = set(jaxpr.invars[len(jaxpr.invars) - count :])
    eqns = []
    for eqn in jaxpr.eqns:
        if any([v in found for v in eqn.invars if type(v) is Var]):
            eqns.append(eqn)
            found.update(eqn.outvars)
    read = {v: None for eqn in eqns for v in eqn.invars if type(v) is Var and v not in found}
    given = jaxpr.invars[len(jaxpr.invars) - count :]
    return Jaxpr([], [*read, *given], jaxpr.outvars, eqns)


def _abstract(x: Any) -> Any:
    if isinstance(x, ShapeDtypeStruct) or not hasattr(x, "shape"):
        return x
    return ShapeDtypeStruct(x.shape, x.dtype)


def roofline_and_grad(
    f: Callable,
    mesh: Any,
    in_specs: Any,
    out_specs: Any,
    *,
    pin_lhs_in_vmem: bool = False,
    pin_rhs_in_vmem: bool = False,
    print_jaxpr: bool = False,
) -> Callable[..., tuple[Any, RooflineResult, RooflineResult]]:
    """A function that gives the shapes of `f`'s results, what it costs, and what its backward pass
    costs, to which what it keeps is given.

    f, mesh, in_specs, out_specs, pin_lhs_in_vmem, pin_rhs_in_vmem, print_jaxpr: as of `roofline`.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> from numjet.experimental.roofline import roofline_and_grad
    >>> mesh = nj.sharding.AbstractMesh((4,), ("i",))
    >>> cost = roofline_and_grad(jnp.sin, mesh, (nj.P("i"),), nj.P("i"))
    >>> [c.unfused_flops for c in cost(nj.ShapeDtypeStruct((8,), jnp.float32))[1:]]
    [2, 2]
    """
    context = {
        "mesh": mesh,
        "pin_lhs_in_vmem": pin_lhs_in_vmem,
        "pin_rhs_in_vmem": pin_rhs_in_vmem,
    }

    def pulled(args: tuple, cotangents: Any) -> Any:
        return _vjp(f, *args)[1](cotangents)

    def told(*args: Any) -> tuple[Any, RooflineResult, RooflineResult]:
        forward, shapes = _traced(f, mesh, in_specs, out_specs, args)
        specs = (tuple(in_specs), out_specs)
        both, _ = _traced(pulled, mesh, specs, tuple(in_specs), (args, shapes))
        backward = _after(both, len(tree.tree_leaves(shapes)))
        if print_jaxpr:
            print(forward, backward, sep="\n")  # noqa: T201 - what was asked for
        return shapes, _of_jaxpr(forward, context), _of_jaxpr(backward, context)

    return told


__all__ = [
    "RooflineResult", "RooflineRuleContext", "RooflineShape", "register_roofline",
    "register_standard_roofline", "roofline", "roofline_and_grad",
]  # fmt: skip


def __dir__() -> list[str]:
    return [*__all__]
