"""Statements of arrays: elementwise, reductions, movement, indexing, updates, products."""

from __future__ import annotations

from typing import Any

from fuzzing.arrays import is_float, is_inexact
from fuzzing.drawer import Drawer, statement

SMOOTH = ("sin({})", "cos({})", "tanh({})", "exp(-jnp.abs({}))", "log1p(jnp.abs({}))",
          "sqrt(jnp.abs({}) + 1)", "square({})", "arctan({})", "log(jnp.abs({}) + 0.5)",
          "expm1(jnp.tanh({}))", "exp2(jnp.sin({}))", "sinh(jnp.sin({}))", "cbrt(jnp.abs({}) + 1)",
          "reciprocal({} * {} + 1)", "arcsinh({})", "sinc({})",
          "log2(jnp.abs({}) + 1)")  # fmt: skip
NN = ("relu", "sigmoid", "softplus", "gelu", "silu", "elu", "leaky_relu", "log_sigmoid")
ANY = ("negative", "abs", "sign", "square")
ROUNDING = ("floor", "ceil", "trunc", "round", "rint")
INTEGER = ("invert", "negative", "abs", "square", "bitwise_count")
BINARY = ("add", "subtract", "multiply", "maximum", "minimum")
FLOAT_BINARY = ("logaddexp", "copysign", "fmax", "fmin")
AWAY_FROM_ZERO = ("arctan2", "hypot", "divide", "power")  # of something positive
INTEGER_BINARY = ("bitwise_and", "bitwise_or", "bitwise_xor", "floor_divide", "remainder", "gcd",
                  "left_shift", "right_shift")  # fmt: skip
COMPARISONS = ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal")
REDUCTIONS = ("sum", "mean", "max", "min", "prod", "var", "any", "all", "argmax", "argmin",
              "count_nonzero", "ptp")  # fmt: skip
ORDERED = frozenset(("max", "min", "argmax", "argmin", "ptp"))
CASTS = ("float32", "float16", "bfloat16", "int32", "int8", "int16", "uint8", "uint32", "bool",
         "complex64")  # fmt: skip
WIDE_CASTS = ("float64", "int64", "complex128")
NON_EMPTY = lambda v: v.ndim > 0 and v.size > 0


@statement(4)
def unary(d: Drawer) -> str | None:
    x = d.floating()
    if x is None:
        return None
    kind = d.rng.random()
    if kind < 0.6:
        return f"jnp.{d.one(SMOOTH)}".replace("{}", x[0])
    if kind < 0.75:
        return f"nn.{d.one(NN)}({x[0]})"
    return f"jnp.{d.one(ANY + ROUNDING)}({x[0]})"


@statement(2)
def plain(d: Drawer) -> str | None:
    x = d.pick(lambda v: v.dtype.kind in "iucb")
    if x is None:
        return None
    if x[1].dtype.kind == "b":
        return f"jnp.logical_not({x[0]})"
    if x[1].dtype.kind == "c":
        return f"jnp.{d.one(['real', 'imag', 'conj', 'abs', 'exp', 'square', 'tanh'])}({x[0]})"
    return f"jnp.{d.one(INTEGER)}({x[0]})"


@statement(6)
def binary(d: Drawer) -> str | None:
    x = d.pick()
    y = None if x is None else d.mate(x)
    if x is None or y is None:
        return None
    kind, u = x[1].dtype.kind, d.rng.random()
    if kind == "c" and d.special:  # which of two complex numbers is larger is not said where NaN is
        return f"jnp.add({x[0]}, {y})"
    if u < 0.2:
        return f"jnp.{d.one(COMPARISONS)}({x[0]}, {y})"
    if u < 0.45 and is_float(x[1].dtype):
        if d.chance(0.5):
            return f"jnp.{d.one(FLOAT_BINARY)}({x[0]}, {y})"
        return f"jnp.{d.one(AWAY_FROM_ZERO)}(jnp.abs({x[0]}) + 1, jnp.abs({y}) + 1)"
    if u < 0.5 and kind in "iu":
        return f"jnp.{d.one(INTEGER_BINARY)}({x[0]}, {y})"
    if kind == "b":
        return f"jnp.logical_{d.one(['and', 'or', 'xor'])}({x[0]}, {y})"
    first, second = (x[0], y) if d.chance(0.5) else (y, x[0])
    return f"jnp.{d.one(BINARY)}({first}, {second})"


@statement(2)
def choice(d: Drawer) -> str | None:
    x = d.pick()
    y = None if x is None else d.mate(x)
    if x is None or y is None:
        return None
    c = d.pick(lambda v: v.dtype.kind == "b" and v.shape == x[1].shape)
    if c is None:
        if x[1].dtype.kind == "c":
            return None
        return d.one([f"jnp.where({x[0]} > 0, {x[0]}, {y})", f"jnp.clip({x[0]}, -1, 2)"])
    return f"jnp.where({c[0]}, {x[0]}, {y})"


@statement(1.5)
def cast(d: Drawer) -> str | None:
    x = d.pick()
    if x is None:
        return None
    kinds = CASTS + WIDE_CASTS if d.scope["jnp"].zeros(0, float).dtype.itemsize == 8 else CASTS
    target = d.one(kinds)
    if x[1].dtype.kind == "c" and not target.startswith("complex"):
        return f"jnp.real({x[0]}).astype('{target}')"
    # Floats out of an integer's range have no answer that all agree on.
    if is_float(x[1].dtype) and "int" in target:
        low = 0 if target.startswith("u") else -100
        return f"jnp.nan_to_num(jnp.clip({x[0]}, {low}, 100)).astype('{target}')"
    return f"{x[0]}.astype('{target}')"


def axis_of(d: Drawer, v: Any) -> str:
    """An axis, several or all."""
    if d.chance(0.25):
        return "None"
    if v.ndim > 1 and d.chance(0.2):
        return str(tuple(sorted(d.rng.choice(v.ndim, 2, replace=False).tolist())))
    return str(d.number(-v.ndim, v.ndim))


@statement(3)
def reduction(d: Drawer) -> str | None:
    x = d.pick(lambda v: v.ndim > 0)
    if x is None:
        return None
    keep = ", keepdims=True" if d.chance(0.4) else ""
    name = d.one(REDUCTIONS)
    if x[1].dtype.kind == "c" and d.special and name in ORDERED:
        name = "sum"  # which of two complex numbers is larger is not said where NaN is
    if name == "prod" and is_inexact(x[1].dtype):
        return f"jnp.prod(jnp.cos(jnp.real({x[0]})), axis={axis_of(d, x[1])}{keep})"
    axis = str(d.number(0, x[1].ndim)) if name.startswith("arg") else axis_of(d, x[1])
    return f"jnp.{name}({x[0]}, axis={axis}{keep})"


@statement(1.5)
def normalized(d: Drawer) -> str | None:
    x = d.floating(NON_EMPTY)
    if x is None:
        return None
    axis = d.number(0, x[1].ndim)
    return d.one([f"nn.softmax({x[0]}, axis={axis})", f"nn.log_softmax({x[0]}, axis={axis})",
                  f"{x[0]} - jnp.mean({x[0]}, axis={axis}, keepdims=True)",
                  f"{x[0]} - jnp.max({x[0]}, axis={axis}, keepdims=True)",
                  f"nn.logsumexp({x[0]}, axis={axis})",
                  f"nn.standardize({x[0]}, axis={axis}, epsilon=0.5)"])  # fmt: skip


@statement(1)
def running(d: Drawer) -> str | None:
    x = d.pick(NON_EMPTY)
    if x is None:
        return None
    v, axis = x[1], d.number(0, x[1].ndim)
    if is_float(v.dtype) and d.chance(0.5):
        reverse = d.one([True, False])
        name = d.one(["cummax", "cummin", "cumsum", "cumlogsumexp"])
        return f"lax.{name}({x[0]}, axis={axis}, reverse={reverse})"
    return f"jnp.cumsum({x[0]}, axis={axis})"


@statement(1)
def ordered(d: Drawer) -> str | None:
    x = d.pick(lambda v: v.ndim > 0 and v.dtype.kind != "c")
    if x is None:
        return None
    axis = d.number(0, x[1].ndim)
    return d.one([f"jnp.sort({x[0]}, axis={axis})", f"jnp.argsort({x[0]}, axis={axis})",
                  f"jnp.sort({x[0]}, axis={axis}, descending=True)",
                  f"lax.top_k({x[0]}, {d.number(1, 4)})", f"jnp.median({x[0]}, axis={axis})",
                  f"jnp.flip({x[0]}, {axis})"])  # fmt: skip


@statement(3)
def moved(d: Drawer) -> str | None:
    x = d.pick(lambda v: v.ndim > 0)
    if x is None:
        return None
    name, v = x
    axis, by = d.number(0, v.ndim), d.number(-3, 4)
    order = tuple(d.rng.permutation(v.ndim).tolist())
    n = v.shape[axis]
    divisor = d.one([k for k in range(1, n + 1) if n % k == 0] or [1])
    split = (*v.shape[:axis], divisor, n // divisor, *v.shape[axis + 1 :])
    return d.one([
        f"jnp.transpose({name}, {order})", f"jnp.reshape({name}, {split})", f"jnp.ravel({name})",
        f"jnp.roll({name}, {by}, {axis})", f"jnp.flip({name}, {axis})",
        f"jnp.expand_dims({name}, {axis})", f"jnp.repeat({name}, {d.number(1, 4)}, axis={axis})",
        f"jnp.tile({name}, {d.number(1, 4)})", f"jnp.swapaxes({name}, 0, {axis})",
        f"jnp.broadcast_to({name}, {(d.number(1, 5), *v.shape)})",
        f"jnp.diff({name}, axis={axis})" if v.dtype.kind != "b" else f"jnp.rot90({name})",
        f"jnp.tril({name})", f"jnp.diagonal({name})",
    ])  # fmt: skip


@statement(1.5)
def joined(d: Drawer) -> str | None:
    x = d.pick(lambda v: v.ndim > 0)
    if x is None:
        return None
    name, v = x
    axis = d.number(0, v.ndim)
    rest = (*v.shape[:axis], *v.shape[axis + 1 :])
    y = d.pick(lambda w: w.ndim == v.ndim and (*w.shape[:axis], *w.shape[axis + 1 :]) == rest)
    if d.chance(0.4):
        widths = [(0, 0)] * v.ndim
        widths[axis] = (d.number(0, 4), d.number(0, 4))
        mode = d.one(["constant", "edge", "reflect", "wrap", "constant"])
        if d.chance(0.4):
            config = [(0, 0, 0)] * v.ndim
            config[axis] = (d.number(-2, 4), d.number(-2, 4), d.number(0, 3))
            return f"lax.pad({name}, jnp.zeros((), {name}.dtype), {config})"
        return f"jnp.pad({name}, {widths}, mode='{mode}')"
    if y is None:
        return None
    if y[1].shape == v.shape and d.chance(0.3):
        return f"jnp.stack([{name}, {y[0]}], {axis})"
    return f"jnp.concatenate([{name}, {y[0]}, {name}][:{d.number(2, 4)}], {axis})"


def index_of(d: Drawer, v: Any, static: bool = False) -> str:
    """The text of an index into v: integers, slices, new axes, arrays of integers."""
    parts: list[str] = []
    rows = False
    for n in v.shape[: d.number(1, v.ndim + 1)]:
        kind = d.number(0, 10)
        if kind < 4 and n:
            start, stop = sorted((d.number(0, n + 1), d.number(0, n + 1)))
            step = d.one([1, 1, 2, 3])
            parts.append(d.one([f"{start}:{stop}", f"{start}::{step}", f"::{-step}",
                                f"-{start + 1}:", f":{stop}:{step}"]))  # fmt: skip
        elif kind < 6 and n:
            parts.append(str(d.number(-n, n)))
        elif kind < 8 and n and not rows and not static:
            rows = True
            parts.append(fancy(d, n))
        else:
            parts.append(":")
    if d.chance(0.1):
        parts.append("None")
    if d.chance(0.1):
        parts[-1:] = ["...", parts[-1]]
    return ", ".join(parts)


def fancy(d: Drawer, n: int) -> str:
    """An array of indices, known or computed; some are out of bounds."""
    values = d.rng.integers(-n - 1, n + 2, d.number(1, 6)).tolist()
    y = d.pick(lambda v: v.dtype.kind in "iu" and v.ndim == 1 and 0 < v.size < 100)
    return f"jnp.array({values})" if y is None else y[0]


@statement(3)
def indexed(d: Drawer) -> str | None:
    x = d.pick(NON_EMPTY)
    if x is None:
        return None
    name, v = x
    kind = d.rng.random()
    if kind < 0.6:
        return f"{name}[{index_of(d, v)}]"
    start = d.pick(lambda w: w.ndim == 0 and w.dtype.kind in "iu")
    axis = d.number(0, v.ndim)
    if kind < 0.8:
        sizes = [d.number(1, n + 1) for n in v.shape]
        starts = [str(d.number(-2, n + 1)) for n in v.shape]
        if start is not None and start[1].dtype == "int32":
            starts[axis] = start[0]
        return f"lax.dynamic_slice({name}, [{', '.join(starts)}], {sizes})"
    if kind < 0.9:
        return f"jnp.take({name}, {fancy(d, v.shape[axis])}, axis={axis}, mode='{d.one(['clip', 'fill', 'wrap'])}')"  # noqa: E501
    order = f"jnp.argsort({name}, axis={axis})"
    return None if v.dtype.kind == "c" else f"jnp.take_along_axis({name}, {order}, axis={axis})"


@statement(3)
def updated(d: Drawer) -> str | None:
    x = d.pick(NON_EMPTY)
    if x is None:
        return None
    name, v = x
    kind = d.rng.random()
    if kind < 0.2:
        y = d.pick(lambda w: w.dtype == v.dtype and w.ndim == v.ndim
                   and all(m <= n for m, n in zip(w.shape, v.shape)))  # fmt: skip
        starts = [d.number(-1, n + 1) for n in v.shape]
        return None if y is None else f"lax.dynamic_update_slice({name}, {y[0]}, {starts})"
    where = index_of(d, v)
    part = f"{name}[{where}]"
    value = d.one(["1", f"{part}", f"{part} * 2" if v.dtype.kind != "b" else part])
    methods = ["set"] if v.dtype.kind == "b" else ["set", "add", "add", "multiply", "min", "max"]
    method = d.one(methods[:-2] if v.dtype.kind == "c" else methods)
    if method == "set" and "jnp.array" in where:
        value = d.one(["1", "0"])  # of equal indices nobody says which is written last
    return f"{name}.at[{where}].{method}({value})"


@statement(1.5)
def product(d: Drawer) -> str | None:
    x = d.pick(lambda v: 1 <= v.ndim <= 3 and v.dtype.kind != "b")
    if x is None:
        return None
    v = x[1]
    y = d.pick(lambda w: w.dtype == v.dtype and 1 <= w.ndim <= 2 and w.shape[0] == v.shape[-1])
    scaled = f"{x[0]}" if not is_inexact(v.dtype) else f"({x[0]} * 0.25)"
    if y is None or d.chance(0.3):
        if v.ndim == 1:
            return d.one([f"jnp.outer({scaled}, {x[0]})", f"jnp.dot({scaled}, {x[0]})"])
        return d.one([f"{scaled} @ jnp.swapaxes({x[0]}, -1, -2)",
                      f"jnp.einsum('...ij,...ik->...jk', {scaled}, {x[0]})",
                      f"jnp.einsum('...ij,...ij->...i', {scaled}, {x[0]})"])  # fmt: skip
    return f"{scaled} @ {y[0]}"


@statement(0.7)
def windows(d: Drawer) -> str | None:
    x = d.floating(lambda v: v.ndim > 0 and min(v.shape) > 2)
    if x is None:
        return None
    name, v = x
    size = tuple(d.number(1, 4) for _ in v.shape)
    strides = tuple(d.number(1, 3) for _ in v.shape)
    padding = d.one(["SAME", "VALID"])
    if v.ndim == 1 and d.chance(0.5):
        return f"jnp.convolve({name}, {name}[:3], mode='{padding.lower()}')"
    start, function = d.one([("0.0", "lax.add"), ("-jnp.inf", "lax.max"), ("jnp.inf", "lax.min")])
    return (f"lax.reduce_window({name}, np.asarray({start.replace('jnp', 'np')}).astype({name}.dtype), {function}, {size}, "  # noqa: E501
            f"{strides}, '{padding}')")  # fmt: skip


@statement(0.7)
def segments(d: Drawer) -> str | None:
    x = d.pick(lambda v: NON_EMPTY(v) and v.dtype.kind != "b")
    if x is None:
        return None
    n = x[1].shape[0]
    ids = d.rng.integers(-1, 6, n).tolist() if n <= 64 else None
    if ids is None:
        return None
    return f"jnp.zeros((5, *{x[0]}.shape[1:]), {x[0]}.dtype).at[jnp.array({ids})].add({x[0]})"
