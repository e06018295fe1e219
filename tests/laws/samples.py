"""A sample for every registered primitive: functions of arrays that use it, and arrays to call them
with.

`test_laws.py` runs every law over every sample; a primitive without one fails the suite.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import numjet as nj
import numjet.numpy as jnp
from numjet import ffi, lax, random
from numjet.core.memories import MemorySpace
from numjet.custom_batching import custom_vmap
from numjet.experimental import checkify, hijax, io_callback
from numjet.experimental.layout import Layout
from numjet.experimental.shard_alike import shard_alike
from numjet.extend.random import threefry_2x32
from numjet.ops.collective import pvary_p
from numjet.ops.cond import chosen_p
from numjet.ops.constraint import layout_constraint_p
from numjet.ops.fma import fma
from numjet.ops.named import empty_p
from numjet.ops.permute import permute_rows
from numjet.ops.special import (
    betainc_density_p,
    betainc_grad_a_p,
    betainc_grad_b_p,
    igamma_density_p,
    zeta_grad_x_p,
)
from numjet.ops.special_series import polynomial
from numjet.ops.transcendental import one_less_square_p, pow_by_integer_p


@dataclass(frozen=True)
class Sample:
    """`fun(*args)` uses `primitive`. `diff` names the arguments to differentiate; None means
    none."""

    primitive: str
    fun: Callable
    args: tuple
    diff: tuple[int, ...] | None = None
    note: str = ""
    params: dict = field(default_factory=dict)

    @property
    def id(self) -> str:
        return f"{self.primitive}{'-' + self.note if self.note else ''}"


RNG = np.random.default_rng(0)
SAMPLES: list[Sample] = []


def add(primitive: str, fun: Callable, *args: Any, diff: Any = None, note: str = "") -> None:
    SAMPLES.append(Sample(primitive, fun, args, (diff,) if isinstance(diff, int) else diff, note))


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape)


def positive(*shape: int) -> np.ndarray:
    return RNG.uniform(0.3, 2.0, shape)


def unit(*shape: int) -> np.ndarray:
    return RNG.uniform(-0.8, 0.8, shape)


def complexes(*shape: int) -> np.ndarray:
    return normal(*shape) + 1j * normal(*shape)


def integers(*shape: int, low: int = -5, high: int = 6, dtype: Any = np.int32) -> np.ndarray:
    return RNG.integers(low, high, shape, dtype=dtype)


def distinct(*shape: int) -> np.ndarray:
    """Numbers far enough apart that a small step changes no order."""
    return RNG.permutation(np.arange(np.prod(shape, dtype=int)) * 0.37 - 2.0).reshape(shape)


# ------------------------------------------------------------------ elementwise
add("mulhi", lax.mulhi, integers(3, 4), integers(3, 4))
_SIZES = np.array([2, 1, 2], np.int32)
add("ragged_dot_general", lambda x, y: lax.ragged_dot(x, y, _SIZES), normal(6, 3), normal(3, 3, 2),
    diff=(0, 1))  # fmt: skip
add("approx_top_k", lambda x: lax.approx_max_k(x, 2), distinct(3, 5), diff=0)
add("rng_bit_generator", lambda k: lax.rng_bit_generator(k, (3, 3)),
    np.arange(4, dtype=np.uint32))  # fmt: skip
add("create_token", lambda x: (x, lax.create_token())[0], normal(2))
add("after_all", lambda x: (lax.after_all(lax.create_token()), x)[1], normal(2))
add("dce_sink", lambda x: (lax.dce_sink(x), x * 2.0)[1], normal(2), diff=0)
_BLANK = {"memory_space": MemorySpace.Device, "weak_type": False}
add("empty2", lambda x: x + empty_p.bind(dtype=x.dtype, **_BLANK), normal(2), diff=0)
add("stage", lambda x: lax.stage_p.bind(jnp.asarray(x)), normal(2), diff=0)
add("composite", lax.composite(lambda x, y: (jnp.sin(x) * y, y), "pair"), normal(3), normal(3),
    diff=(0, 1))  # fmt: skip
add("split", lambda x: lax.split_p.bind(jnp.asarray(x), sizes=(1, 2), axis=0), normal(3, 2), diff=0)
add("stack", lambda x, y: lax.stack_p.bind(jnp.asarray(x), jnp.asarray(y), axis=1), normal(3),
    normal(3), diff=(0, 1))  # fmt: skip
add("tile", lambda x: lax.tile_p.bind(jnp.asarray(x), reps=(2, 3)), normal(2, 2), diff=0)
add("unstack", lambda x: lax.unstack_p.bind(jnp.asarray(x), axis=1), normal(2, 3), diff=0)
for _name in ("eq_to", "le_to", "lt_to"):
    add(_name, lambda x, y, p=getattr(lax, f"{_name}_p"): p.bind(jnp.asarray(x), jnp.asarray(y)),
        normal(5), normal(5))  # fmt: skip
add("device_put", lambda x: lax.device_put_p.bind(
    jnp.asarray(x), devices=(nj.devices()[0],), srcs=(None,), copy_semantics=(None,)), normal(3),
    diff=0)  # fmt: skip
add("permute_rows", lambda x: permute_rows(jnp.asarray(x), 0, ((0, 1), (2, 0))), normal(3, 2),
    diff=0)  # fmt: skip
add("sharding_constraint", lambda x: lax.sharding_constraint_p.bind(jnp.asarray(x)), normal(3),
    diff=0)  # fmt: skip
add("layout_constraint", lambda x: layout_constraint_p.bind(
    jnp.asarray(x), layout=Layout((1, 0))), normal(3, 2), diff=0)  # fmt: skip
add("reduce", lambda x: lax.reduce_p.bind(jnp.asarray(x), jnp.zeros((), x.dtype),
    computation=lax.add, dimensions=(0,)), normal(3, 2), diff=0)  # fmt: skip
add("reduce_window", lambda x: lax.reduce_window_p.bind(jnp.asarray(x), jnp.zeros((), x.dtype),
    computation=lax.add, window_dimensions=(2,)), normal(5), diff=0)  # fmt: skip
_WINDOWS = dict(select_prim=lax.ge_p, window_dimensions=(2,), window_strides=(2,),
                padding=((0, 0),))
add("select_and_scatter_add", lambda s, x: lax.select_and_scatter_add_p.bind(
    jnp.asarray(s), jnp.asarray(x), **_WINDOWS), normal(3), distinct(6), diff=0)  # fmt: skip
add("select_and_gather_add", lambda t, x: lax.select_and_gather_add_p.bind(
    jnp.asarray(t), jnp.asarray(x), **_WINDOWS, base_dilation=(1,), window_dilation=(1,)),
    normal(6), distinct(6), diff=0)  # fmt: skip
for _name in (
    "sin",
    "cos",
    "tanh",
    "exp",
    "expm1",
    "sinh",
    "cosh",
    "asinh",
    "atan",
    "logistic",
    "neg",
    "exp2",
    "square",
    "abs",
    "erf",
    "erfc",
    "tan",
):
    if hasattr(lax, _name):
        add(_name, getattr(lax, _name), normal(3, 5), diff=0)
        add(_name, getattr(lax, _name), normal(), diff=0, note="scalar")
for _name in ("log", "log1p", "sqrt", "rsqrt", "cbrt", "lgamma", "digamma"):
    if hasattr(lax, _name):
        add(_name, getattr(lax, _name), positive(4, 3), diff=0)
for _name in ("asin", "acos", "atanh", "erf_inv"):
    if hasattr(lax, _name):
        add(_name, getattr(lax, _name), unit(7), diff=0)
add("acosh", lax.acosh, positive(5) + 1.5, diff=0)
add("one_less_square", one_less_square_p.bind, unit(7), diff=0)
for _name in ("sin", "exp", "tanh", "log", "sqrt", "neg", "cos", "sinh", "cosh", "square"):
    add(_name, getattr(lax, _name), complexes(4), diff=0, note="complex")
for _name in ("add", "sub", "mul", "div", "max", "min"):
    _first, _second = (
        (distinct(3, 4), distinct(3, 4) + 0.1)
        if _name in ("max", "min")
        else (normal(3, 4), positive(3, 4))
    )
    add(_name, getattr(lax, _name), _first, _second, diff=(0, 1))
    add(_name, getattr(lax, _name), _first, 0.7, diff=0, note="scalar")
    add(_name, getattr(lax, _name), integers(6), integers(6, low=1), note="integers")
for _name in ("add", "sub", "mul", "div"):
    add(_name, getattr(lax, _name), complexes(5), complexes(5), diff=(0, 1), note="complex")
add("rem", lax.rem, normal(6) * 3, positive(6), diff=0)
add("rem", lax.rem, integers(6), integers(6, low=1), note="integers")
add("pow", lax.pow, positive(3, 2), normal(3, 2), diff=(0, 1))
add(
    "pow_by_integer",
    lambda x, n: pow_by_integer_p.bind(jnp.asarray(x), jnp.asarray(n)),
    positive(3, 2),
    integers(3, 2),
    diff=(0,),
)
add("polynomial", lambda x: polynomial([1.0, -0.5, 0.25, 0.125], x), normal(5), diff=0)
add("integer_pow", lambda x: lax.integer_pow(x, 3), normal(5), diff=0)
add("integer_pow", lambda x: lax.integer_pow(x, -2), positive(5), diff=0, note="negative")
add("atan2", lax.atan2, normal(6), positive(6), diff=(0, 1))
add("atan2", lax.atan2, complexes(5), complexes(5) + 1, diff=(0, 1), note="complex")
add("nextafter", lax.nextafter, normal(4), normal(4))
add("sign", lax.sign, normal(5))
for _name in ("floor", "ceil", "is_finite"):
    add(_name, getattr(lax, _name), normal(6) * 3)
add("round", lambda x: lax.round(x, 0), np.array([-1.5, -0.5, 0.5, 1.2, 2.5]))
add(
    "round_even",
    lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN),
    np.array([-1.5, -0.5, 0.5, 1.2, 2.5]),
)
add("clamp", lambda x: lax.clamp(-0.5, x, 0.5), normal(8), diff=0)
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    add(_name, getattr(lax, _name), integers(6, low=0, high=3), integers(6, low=0, high=3))
    add(_name, getattr(lax, _name), normal(4), 0.1, note="scalar")
for _name, _fun in (("and", lax.bitwise_and), ("or", lax.bitwise_or), ("xor", lax.bitwise_xor)):
    add(_name, _fun, integers(5), integers(5))
    add(_name, _fun, normal(5) > 0, normal(5) > 0, note="bool")
add("not", lax.bitwise_not, integers(5))
for _name in ("shift_left", "shift_right_arithmetic", "shift_right_logical"):
    add(_name, getattr(lax, _name), integers(6), integers(6, low=0, high=40))
add("population_count", lax.population_count, integers(6))
add("clz", lax.clz, integers(6))
add("reduce_precision", lambda x: lax.reduce_precision(x, 5, 10), normal(5))
add("complex", lax.complex, normal(4), normal(4), diff=(0, 1))
for _name in ("real", "imag", "conj"):
    add(_name, getattr(lax, _name), complexes(4), diff=0)
add(
    "convert_element_type",
    lambda x: lax.convert_element_type(x, np.float32).astype(np.float64) * 2,
    normal(4),
)
add(
    "convert_element_type",
    lambda x: lax.convert_element_type(x, np.int32),
    normal(6) * 4,
    note="to-int",
)
add(
    "convert_element_type",
    lambda x: lax.convert_element_type(x, np.complex128),
    normal(4),
    diff=0,
    note="to-complex",
)

# ------------------------------------------------------------------ shape
add("reshape", lambda x: lax.reshape(x, (4, 3)), normal(2, 6), diff=0)
add("squeeze", lambda x: lax.squeeze(x, (1,)), normal(3, 1, 2), diff=0)
add("transpose", lambda x: lax.transpose(x, (2, 0, 1)), normal(2, 3, 4), diff=0)
add("broadcast_in_dim", lambda x: lax.broadcast_in_dim(x, (4, 3, 2), (1, 2)), normal(3, 1), diff=0)
add("rev", lambda x: lax.rev(x, (0,)), normal(5, 2), diff=0)
add(
    "concatenate",
    lambda x, y: lax.concatenate([x, y, x], 1),
    normal(2, 3),
    normal(2, 2),
    diff=(0, 1),
)
add("pad", lambda x, v: lax.pad(x, v, [(1, 2, 0), (0, 1, 2)]), normal(3, 2), normal(), diff=(0, 1))
add(
    "pad",
    lambda x: lax.pad(x, 0.0, [(-1, 2, 1), (3, -2, 0)]),
    normal(4, 5),
    diff=0,
    note="negative",
)
add(
    "select_n",
    lambda p, x, y: lax.select(p, x, y),
    normal(3, 4) > 0,
    normal(3, 4),
    normal(3, 4),
    diff=(1, 2),
)
add(
    "select_n",
    lambda x, y: lax.select_n(np.int32(1), x, y),
    normal(3),
    normal(3),
    diff=(0, 1),
    note="integer",
)
add("iota", lambda x: x + lax.broadcasted_iota(np.float64, (3, 4), 1), normal(3, 4), diff=0)
add("slice", lambda x: lax.slice(x, (1, 0), (5, 4), (2, 3)), normal(6, 4), diff=0)
add(
    "dynamic_slice",
    lambda x, i: lax.dynamic_slice(x, (i, 1), (2, 2)),
    normal(5, 4),
    np.int32(2),
    diff=0,
)
add(
    "dynamic_slice",
    lambda x, i: lax.dynamic_slice(x, (i, i), (2, 2)),
    normal(5, 4),
    np.int32(9),
    diff=0,
    note="clamped",
)
add(
    "dynamic_update_slice",
    lambda x, u, i: lax.dynamic_update_slice(x, u, (i, 0)),
    normal(5, 4),
    normal(2, 3),
    np.int32(2),
    diff=(0, 1),
)
add(
    "bitcast_convert_type",
    lambda x: lax.bitcast_convert_type(x, np.uint32),
    normal(4).astype(np.float32),
)
add(
    "bitcast_convert_type",
    lambda x: lax.bitcast_convert_type(x, np.uint16),
    integers(3),
    note="narrower",
)
add(
    "copy",
    lax.copy_p.bind if hasattr(lax, "copy_p") else (lambda x: jnp.array(x, copy=True)),
    normal(3),
    diff=0,
)
add("gather", lambda x, i: jnp.take(x, i, axis=0), normal(5, 3), integers(4, low=0, high=5), diff=0)
add(
    "gather",
    lambda x, i: jnp.asarray(x)[i, :, i],
    normal(4, 2, 4),
    integers(3, low=0, high=4),
    diff=0,
    note="pairs",
)
add(
    "scatter",
    lambda x, u: jnp.asarray(x).at[np.array([3, 0])].set(u),
    normal(5, 2),
    normal(2, 2),
    diff=(0, 1),
)
add(
    "scatter-add",
    lambda x, u: jnp.asarray(x).at[np.array([3, 0, 3])].add(u),
    normal(5, 2),
    normal(3, 2),
    diff=(0, 1),
)
add(
    "scatter-sub",
    lambda x, u: jnp.asarray(x).at[np.array([3, 0, 3])].subtract(u),
    normal(5, 2),
    normal(3, 2),
    diff=(0, 1),
)
add(
    "scatter-mul",
    lambda x, u: jnp.asarray(x).at[np.array([3, 0])].multiply(u, unique_indices=True),
    normal(5, 2),
    normal(2, 2),
    diff=(0, 1),
)
add(
    "scatter-min",
    lambda x, u: jnp.asarray(x).at[np.array([3, 0])].min(u),
    distinct(5, 2),
    distinct(2, 2) + 0.1,
    diff=(0, 1),
)
add(
    "scatter-max",
    lambda x, u: jnp.asarray(x).at[np.array([3, 0])].max(u),
    distinct(5, 2),
    distinct(2, 2) + 0.1,
    diff=(0, 1),
)

# ------------------------------------------------------------------ reductions and products
add("reduce_sum", lambda x: jnp.sum(x, axis=(0, 2)), normal(3, 4, 2), diff=0)
add("reduce_sum", lambda x: jnp.sum(x), normal(37), diff=0, note="all")
add("reduce_max", lambda x: jnp.max(x, axis=1), distinct(4, 5), diff=0)
add("reduce_min", lambda x: jnp.min(x, axis=0), distinct(4, 5), diff=0)
add("reduce_prod", lambda x: jnp.prod(x, axis=1), normal(3, 5), diff=0)
add("reduce_and", lambda x: jnp.all(x, axis=0), normal(3, 4) > -1)
add("reduce_or", lambda x: jnp.any(x, axis=1), normal(3, 4) > 1)
add("reduce_xor", lambda x: lax.reduce_xor(x, (0,)), integers(3, 4))
add("argmax", lambda x: jnp.argmax(x, axis=1), normal(3, 7))
add("argmin", lambda x: jnp.argmin(x, axis=0), normal(3, 7))
for _name in ("cumsum", "cumprod", "cumlogsumexp"):
    add(_name, lambda x, f=getattr(lax, _name): f(x, 1), normal(3, 6), diff=0)
    add(
        _name,
        lambda x, f=getattr(lax, _name): f(x, 0, reverse=True),
        normal(5, 2),
        diff=0,
        note="reverse",
    )
for _name in ("cummax", "cummin"):
    add(_name, lambda x, f=getattr(lax, _name): f(x, 1), distinct(3, 6), diff=0)
add("dot_general", jnp.dot, normal(3, 4), normal(4, 2), diff=(0, 1))
add(
    "dot_general",
    lambda x, y: jnp.einsum("bij,bkj->bik", x, y),
    normal(2, 3, 4),
    normal(2, 5, 4),
    diff=(0, 1),
    note="batch",
)
add("dot_general", jnp.dot, complexes(3, 4), complexes(4, 2), diff=(0, 1), note="complex")
add("dot_general", jnp.dot, integers(3, 4), integers(4, 2), note="integers")
add("sort", lambda x: jnp.sort(x, axis=1), distinct(3, 6), diff=0)
add("sort", lambda x: jnp.argsort(x), distinct(9), note="argsort")
add("top_k", lambda x: lax.top_k(x, 3)[0], distinct(2, 6), diff=0)

# ------------------------------------------------------------------ control flow and calls
add(
    "jit",
    lambda x, y: nj.jit(lambda a, b: (jnp.sin(a) * b, a))(x, y),
    normal(3),
    normal(3),
    diff=(0, 1),
)
add(
    "cond", lambda p, x: lax.cond(p, jnp.sin, lambda a: a * a, x), np.bool_(True), normal(3), diff=1
)
add(
    "cond",
    lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, lambda a: a * 3.0], x),
    np.int32(2),
    normal(3),
    diff=1,
    note="switch",
)
add(
    "scan",
    lambda c, xs: lax.scan(lambda c, x: (jnp.sin(c) * x, c + x), c, xs),
    normal(2),
    normal(5, 2),
    diff=(0, 1),
)
add(
    "scan",
    lambda c, w: lax.scan(lambda c, _: (jnp.tanh(w @ c), jnp.sum(c)), c, None, length=4),
    normal(3),
    normal(3, 3),
    diff=(0, 1),
    note="consts",
)
add(
    "scan",
    lambda c, xs: lax.scan(lambda c, x: (c * x, c), c, xs, reverse=True),
    normal(),
    normal(4),
    diff=(0, 1),
    note="reverse",
)
add(
    "while",
    lambda x: lax.while_loop(lambda c: jnp.sum(c) < 20.0, lambda c: c * 1.5, x),
    positive(3),
)
add(
    "while",
    lambda n, x: lax.fori_loop(0, n, lambda i, c: jnp.sin(c) + i, x),
    np.int32(4),
    normal(2),
    note="fori",
)
add("remat2", lambda x: nj.checkpoint(lambda a: jnp.sin(jnp.sin(a)))(x), normal(3), diff=0)
add(
    "name",
    lambda x: jnp.sin(nj.ad_checkpoint.checkpoint_name(jnp.sin(x), "inner")),
    normal(3),
    diff=0,
)


@nj.custom_jvp
def _cubed(x: Any) -> Any:
    return x * x * x


_cubed.defjvps(lambda t, out, x: 3.0 * x * x * t)


@nj.custom_vjp
def _scaled_sin(x: Any, y: Any) -> Any:
    return jnp.sin(x) * y


_scaled_sin.defvjp(
    lambda x, y: (_scaled_sin(x, y), (x, y)),
    lambda res, ct: (jnp.cos(res[0]) * res[1] * ct, jnp.sin(res[0]) * ct),
)
@nj.custom_vjp
def _kept_sin(x: Any) -> Any:
    return jnp.sin(x)


_kept_sin.defvjp(
    lambda x: (jnp.sin(x), jnp.cos(x)), lambda kept, ct: (ct * kept,), optimize_remat=True
)


class _Squared(hijax.VJPHiPrimitive):
    def __init__(self, aval: Any) -> None:
        self.in_avals, self.out_aval = (aval,), aval
        super().__init__()

    def expand(self, x: Any) -> Any:
        return x * x

    def jvp(self, primals: Any, tangents: Any) -> Any:
        return self(*primals), 2 * primals[0] * tangents[0]

    def batch(self, _: Any, args: Any, dims: Any) -> Any:
        return _squared(*args), dims[0]


def _squared(x: Any) -> Any:
    return _Squared(nj.typeof(x))(x)


add("remat_opt", lambda x: nj.vjp(_kept_sin, x)[0], normal(3), diff=0)
add("call_hi_primitive", nj.jit(_squared), normal(3), diff=0)
add("custom_jvp_call", _cubed, normal(4), diff=0)
add("custom_vjp_call", _scaled_sin, normal(4), normal(4), diff=(0, 1), note="reverse-only")
add(
    "custom_linear_solve",
    lambda a, b: lax.custom_linear_solve(
        lambda v: a * v, b, lambda mv, y: y / mv(jnp.ones_like(y)), symmetric=True
    ),
    positive(3),
    normal(3),
    diff=(0, 1),
)

# ------------------------------------------------------------------ collectives, inside the map
# that owns the axis
for _name, _fun in {
    "psum": lambda x: x * lax.psum(x, "i"),
    "pmax": lambda x: x * lax.pmax(x, "i"),
    "pmin": lambda x: x * lax.pmin(x, "i"),
    "axis_index": lambda x: x * lax.axis_index("i"),
    "all_gather": lambda x: jnp.sum(lax.all_gather(x, "i"), axis=0) * x,
    "ppermute": lambda x: x * lax.ppermute(x, "i", [(0, 1), (1, 2)]),
    "all_to_all": lambda x: lax.all_to_all(x, "i", 0, 0) * x,
    "reduce_scatter": lambda x: lax.psum_scatter(x, "i") * x[0],
    "pvary": lambda x: x * pvary_p.bind(lax.psum(x, "i"), axis_name="i"),
    "ragged_all_to_all": lambda x: x * lax.ragged_all_to_all(
        x, jnp.zeros_like(x), jnp.arange(3), jnp.ones(3, int),
        jnp.full(3, lax.axis_index("i")), jnp.ones(3, int), axis_name="i"),
}.items():
    add(_name, nj.vmap(_fun, axis_name="i"), distinct(3, 3), diff=0)

# ------------------------------------------------------------------ random bits
add(
    "random_bits",
    lambda k: random.bits(random.wrap_key_data(k), (3, 5)),
    np.array([1, 2], np.uint32),
)
add(
    "random_split",
    lambda k: random.key_data(random.split(random.wrap_key_data(k), 3)),
    np.array([1, 2], np.uint32),
)
add(
    "random_fold_in",
    lambda k: random.key_data(random.fold_in(random.wrap_key_data(k), 7)),
    np.array([1, 2], np.uint32),
)
add("random_seed", lambda s: random.key_data(random.key(s)), np.uint32(5))
add("select_and_scatter", lambda x, s: lax.select_and_scatter_p.bind(
    x, s, jnp.zeros((), x.dtype),
    select_jaxpr=nj.make_jaxpr(lambda a, b: a >= b)(x[0, 0], x[0, 0]).jaxpr, select_consts=(),
    scatter_jaxpr=nj.make_jaxpr(lambda a, b: a + b)(x[0, 0], x[0, 0]).jaxpr, scatter_consts=(),
    window_dimensions=(2, 2), window_strides=(2, 1), padding=((0, 0), (1, 0))),
    distinct(4, 3), normal(2, 3), diff=(1,))  # fmt: skip
for name in ("random_wrap_words", "random_unwrap_words"):
    add(name, lambda k: random.key_data(random.split(random.wrap_key_data(k, impl="rbg"))[::-1]),
        np.arange(4, dtype=np.uint32))
add("threefry2x32", lambda k, x: threefry_2x32(k, x), np.arange(2, dtype=np.uint32),
    np.arange(5, dtype=np.uint32))
add("random_wrap", lambda k: random.key_data(random.wrap_key_data(k)), np.array([1, 2], np.uint32))
add(
    "random_unwrap", lambda k: random.key_data(random.wrap_key_data(k)), np.array([1, 2], np.uint32)
)

# ------------------------------------------------------------------ special functions, barriers
def _bound(primitive: Any) -> Callable:
    return lambda *xs: primitive.bind(*map(jnp.asarray, xs))


for _name in ("bessel_i0e", "bessel_i1e"):
    add(_name, getattr(lax, _name), normal(5), diff=0)
add("igamma", lax.igamma, positive(4), positive(4), diff=(0, 1))
add("igammac", lax.igammac, positive(4), positive(4), diff=(0, 1))
add("polygamma", lambda x: lax.polygamma(1.0, x), positive(4), diff=0)
add("zeta", lax.zeta, positive(4) + 1.5, positive(4), diff=(0, 1))
add("zeta_grad_x", _bound(zeta_grad_x_p), positive(4) + 1.5, positive(4), diff=1)
add("fma", fma, normal(4), normal(4), normal(4), diff=(0, 1, 2))
add(
    "regularized_incomplete_beta",
    lax.betainc,
    positive(4),
    positive(4),
    RNG.uniform(0.1, 0.9, 4),
    diff=(0, 1, 2),
)
for _primitive in (betainc_grad_a_p, betainc_grad_b_p):
    add(_primitive.name, _bound(_primitive), positive(4), positive(4), RNG.uniform(0.1, 0.9, 4),
        diff=2)
add("betainc_density", _bound(betainc_density_p), positive(4), positive(4),
    RNG.uniform(0.1, 0.9, 4), diff=(0, 1, 2))
add("igamma_density", _bound(igamma_density_p), positive(4), positive(4), diff=(0, 1))
add("igamma_grad_a", lax.igamma_grad_a, positive(4), positive(4), diff=1)
add("random_gamma_grad", lax.random_gamma_grad, positive(4), positive(4), diff=1)
add("optimization_barrier", lambda x: lax.optimization_barrier(x) * 2.0, normal(4), diff=0)
add("shard_alike", lambda x, y: sum(shard_alike(x, y)) * 2.0, normal(4), normal(4))
add("chosen", lambda x: chosen_p.bind(jnp.ones(4, bool), x) * 2.0, normal(4, 2), diff=0)
add("stop_gradient", lambda x: lax.stop_gradient(x) * 2.0, normal(4))


# ------------------------------------------------------------------ linear algebra, windows,
# Fourier transforms
def symmetric(x: Any) -> Any:
    """A positive definite matrix from any one."""
    return x @ jnp.swapaxes(x, -1, -2) + 3.0 * jnp.eye(x.shape[-1])


add("cholesky", lambda x: jnp.linalg.cholesky(symmetric(x)), normal(3, 3), diff=0)
add("eigh", lambda x: jnp.linalg.eigvalsh(symmetric(x)), normal(3, 3), diff=0)
add(
    "eig",
    lambda x: jnp.sort(jnp.abs(jnp.linalg.eigvals(x))),
    np.diag([1.0, 3.0, 6.0]) + 0.1 * normal(3, 3),
    diff=0,
    note="first-order",
)
add("svd", lambda x: jnp.linalg.svd(x, compute_uv=False), normal(4, 3), diff=0)
add("qr", lambda x: jnp.linalg.qr(x)[1], normal(4, 3), diff=0)
add("lu", lambda x: lax.linalg.lu(x)[0], normal(3, 3) + 3 * np.eye(3), diff=0)
add(
    "lu_pivots_to_permutation",
    lambda p: lax.linalg.lu_pivots_to_permutation(p, 4),
    np.array([2, 1, 3, 3], np.int32),
)
add(
    "solve",
    lambda a, b: jnp.linalg.solve(a, b),
    normal(3, 3) + 3 * np.eye(3),
    normal(3),
    diff=(0, 1),
)
add(
    "triangular_solve",
    lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, lower=True),
    np.tril(normal(3, 3)) + 3 * np.eye(3),
    normal(3, 2),
    diff=(0, 1),
)
add(
    "householder_product",
    lambda a, t: lax.linalg.householder_product(a, t),
    normal(4, 3),
    positive(3),
)
add("hessenberg", lambda x: lax.linalg.hessenberg(x)[0], normal(4, 4))
add("geqrf", lambda x: jnp.linalg.qr(x, mode="raw"), normal(2, 4, 3))
add("ormqr", lambda a, t, c: lax.linalg.ormqr(a, t, c), normal(4, 3), unit(3), normal(4, 2), diff=2)
add(
    "ormqr",
    lambda a, t, c: lax.linalg.ormqr(a, t, c, left=False, transpose=True),
    complexes(2, 4, 3), complexes(2, 3), complexes(2, 2, 4), diff=2, note="complex",
)  # fmt: skip
add("tridiagonal", lambda x: lax.linalg.tridiagonal(x), normal(2, 4, 4))
add("tridiagonal", lambda x: lax.linalg.tridiagonal(x, lower=False), complexes(4, 4), note="upper")
add(
    "tridiagonal_solve", lax.linalg.tridiagonal_solve,
    normal(2, 5), normal(2, 5) + 4.0, normal(2, 5), normal(2, 5, 3), diff=(0, 1, 2, 3),
)  # fmt: skip
add(
    "cholesky_update", lax.linalg.cholesky_update,
    np.triu(normal(4, 4)) + 3.0 * np.eye(4), normal(4), diff=(0, 1),
)  # fmt: skip
add(
    "symmetric_product",
    lambda a, c: lax.linalg.symmetric_product(a, c, alpha=2.0, beta=0.5),
    normal(2, 3, 4), normal(2, 3, 3), diff=(0, 1),
)  # fmt: skip
add("schur", lambda x: lax.linalg.schur(symmetric(x))[0], normal(3, 3))
add("fft", lambda x: jnp.fft.fft(x), complexes(3, 5), diff=0)
add("fft", lambda x: jnp.fft.irfft(jnp.fft.rfft(x)), normal(8), diff=0, note="real")
add(
    "conv_general_dilated",
    lambda x, w: lax.conv(x, w, (1, 1), "SAME"),
    normal(2, 3, 5, 4),
    normal(4, 3, 3, 3),
    diff=(0, 1),
)
add(
    "conv_general_dilated",
    lambda x, w: lax.conv_general_dilated(
        x, w, (2,), ((1, 2),), lhs_dilation=(2,), rhs_dilation=(2,), feature_group_count=2
    ),
    normal(2, 4, 7),
    normal(6, 2, 3),
    diff=(0, 1),
    note="dilated-groups",
)
for _name in ("random_gamma", "random_gamma_of_key"):
    add(
        _name,
        lambda k: random.gamma(random.wrap_key_data(k), 2.5, (3,)),
        np.array([1, 2], np.uint32),
    )
for _name, _init, _fun in (
    ("sum", 0.0, lax.add),
    ("max", -np.inf, lax.max),
    ("min", np.inf, lax.min),
):
    add(
        f"reduce_window_{_name}",
        lambda x, init=_init, fun=_fun: lax.reduce_window(x, init, fun, (2, 3), (1, 2), "VALID"),
        distinct(4, 7),
        diff=0,
    )

# ------------------------------------------------------------------ calls of the host
for _method in ("sequential", "expand_dims", "broadcast_all"):
    add(
        "pure_callback",
        lambda x, y, method=_method: nj.pure_callback(
            lambda a, b: np.sin(np.asarray(a)) * np.asarray(b),
            nj.ShapeDtypeStruct((4,), np.float64),
            x,
            y,
            vmap_method=method,
        ),
        normal(4),
        normal(4),
        note=_method,
    )


@ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))
def _negated(out: int, ins: Any) -> None:
    pair = ctypes.c_double * 2
    pair.from_address(out)[:] = [-x for x in pair.from_address(ins[0])]


ffi.register_ffi_target("laws_negated", ffi.pycapsule(_negated), api_version=0)
add(
    "ffi_call",
    lambda x: ffi.ffi_call(
        "laws_negated",
        nj.ShapeDtypeStruct((2,), np.float64),
        vmap_method="sequential",
        custom_call_api_version=1,
    )(x),
    normal(2),
)
add(
    "io_callback",
    lambda x: io_callback(lambda a: np.asarray(a) * 2, nj.ShapeDtypeStruct((3,), np.float64), x),
    normal(3),
)


def _with_debug_callback(x: Any) -> Any:
    nj.debug.callback(lambda a: None, x)
    return x * x


add("debug_callback", _with_debug_callback, normal(3), diff=0)


def _with_debug_check(x: Any) -> Any:
    checkify.debug_check(x.sum() > 0, "sum of {}", x)
    return x * x


add("check", _with_debug_check, normal(3), diff=0)


@custom_vmap
def _doubled(x: Any, y: Any) -> Any:
    return jnp.sin(x) * y


_doubled.def_vmap(
    lambda size, batched, x, y: (
        jnp.sin(x) * (y if batched[1] else jnp.broadcast_to(y, (size, *y.shape))),
        True,
    )
)
add("custom_vmap_call", _doubled, normal(3), normal(3), diff=(0, 1))
