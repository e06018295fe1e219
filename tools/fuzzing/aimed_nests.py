"""Statements of the aimed generator about loop nests: operands that lie in every way to the results, in sums
of several of them, with what reduces and moves these.

Operands are NumPy's arrays, which a compiled program finds in memory; whole numbers of few bits.
"""

from __future__ import annotations

from fuzzing.aimed_loops import aimed, size
from fuzzing.drawer import Drawer

SIZES = (1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 20, 31, 32, 33, 48, 64, 65, 70, 100, 129, 130, 256, 257)
DTYPES = ("int32", "int32", "float32", "float32", "int8", "uint8", "int16", "bfloat16", "float16", "int64", "float64",
          "complex64", "bool")  # fmt: skip


def memory(d: Drawer, shape: tuple[int, ...], dtype: str) -> str:
    """The text of an array in memory."""
    step, start = d.one([1, 3, 5, 7]), d.number(0, 9)
    wrapped = {"int64": "int32", "float64": "float32"}.get(dtype, dtype) if not d.wide_numbers() else dtype
    whole = f"(np.arange({size(shape)}) * {step} + {start}).reshape({shape}) % {d.one([11, 13, 7])}"
    if dtype == "bool":
        return f"jnp.asarray({whole} > 4)"
    return f"jnp.asarray({whole}, '{wrapped}')"


def term(d: Drawer, shape: tuple[int, ...]) -> str:
    """The text of an int32 (mostly) value of a shape, read from memory in some way."""
    rank, dtype = len(shape), d.one(DTYPES)
    axis = d.number(0, rank)
    n = shape[axis]
    with_n = lambda m, a=axis: (*shape[:a], m, *shape[a + 1 :])
    before = ":, " * axis
    kind = d.number(0, 26)
    if kind < 2:
        x = memory(d, shape, dtype)
    elif kind < 5:
        order = d.rng.permutation(rank).tolist()
        x = f"jnp.transpose({memory(d, tuple(shape[order.index(k)] for k in range(rank)), dtype)}, {tuple(order)})"
    elif kind < 7:
        x = f"jnp.flip({memory(d, shape, dtype)}, {axis})"
    elif kind < 9:
        step = d.one([2, 3, 4])
        x = f"{memory(d, with_n(n * step + d.number(0, 2)), dtype)}[{before}{d.number(0, step)}::{step}][{before}:{n}]"
    elif kind < 11:
        kept = tuple(m if d.chance(0.5) else 1 for m in shape)
        x = f"jnp.broadcast_to({memory(d, kept, dtype)}, {shape})"
    elif kind == 11:
        low, high = d.number(0, 4), d.number(0, 4)
        x = f"{memory(d, with_n(n + low + high), dtype)}[{before}{low}:{low + n}]"
    elif kind == 12:
        low, high = d.number(0, min(n, 5) + 1), d.number(0, 4)
        inner = max(n - low - high, 0)
        x = memory(d, with_n(inner), dtype)
        pads = [(low, n - inner - low, 0) if a == axis else (0, 0, 0) for a in range(rank)]
        x = f"lax.pad({x}, jnp.ones((), {x}.dtype), {pads})"
    elif kind == 13:
        cut = d.number(0, n + 1)
        parts = [memory(d, with_n(cut), dtype), memory(d, with_n(n - cut), dtype)]
        x = f"jnp.concatenate([{', '.join(parts)}], {axis})"
    elif kind in (14, 15):
        many = d.one([3, 7, 16, 100, 257])
        x = f"jnp.resize({memory(d, (many,), dtype)}, {shape})"
    elif kind == 16:
        x = f"jnp.roll({memory(d, shape, dtype)}, {d.number(-3, 4)}, {axis})"
    elif kind in (17, 18):
        rows = d.one([1, 2, 5, 9, n])
        places = d.one([f"np.arange({n}) * {d.number(1, 8)} % {rows}", f"jnp.arange({n}) // {d.number(1, 5)} % {rows}",
                        f"jnp.flip(jnp.arange({n})) % {rows}", f"jnp.cumsum(jnp.arange({n})) % {rows}"])  # fmt: skip
        x = f"jnp.take({memory(d, with_n(rows), dtype)}, {places}, axis={axis}, mode='{d.one(['clip', 'fill', 'wrap'])}')"
        x = f"jnp.nan_to_num({x})" if "'fill'" in x else x
    elif kind in (19, 20):
        other = d.number(0, rank)
        place = f"lax.broadcasted_iota('int32', {shape}, {other})"
        place = d.one([f"{place} % {n}", f"{place} // 2 % {n}", f"({memory(d, shape, 'int32')} + {place}) % {n}", f"{memory(d, shape, 'int32')} % {n}"])
        x = f"jnp.take_along_axis({memory(d, shape, dtype)}, {place}, {axis})"
    elif kind == 21:
        x = f"(jnp.arange({size(shape)}, dtype='int32').reshape({shape}) % {d.one([7, 64, 1000003])})"
    elif kind == 22:
        bound = d.number(0, n + 1)
        place = f"lax.broadcasted_iota('int32', {shape}, {axis})"
        test = d.one([f"{place} < {bound}", f"{place} >= {bound}", f"{place} % 2 == 0", f"{place} == {bound}"])
        x = f"jnp.where({test}, {memory(d, shape, dtype)}, {memory(d, with_n(1), dtype)}).astype('int32')"
    elif kind == 23:
        k = d.one([k for k in range(1, n + 1) if n % k == 0] or [1])
        x = f"jnp.repeat({memory(d, with_n(n // k if k else 0), dtype)}, {k}, axis={axis})"
    elif kind == 24:
        k = d.one([k for k in range(1, n + 1) if n % k == 0] or [1])
        tiles = tuple(k if a == axis else 1 for a in range(rank))
        x = f"jnp.tile({memory(d, with_n(n // k if k else 0), dtype)}, {tiles})"
    else:
        f = d.one(["sum", "max", "min", "argmax"] if n else ["sum"])
        x = memory(d, shape, dtype if dtype != "complex64" else "int32")
        x = f"jnp.broadcast_to(jnp.{f}({x}, axis={axis}, keepdims=True), {shape})"
    if dtype == "complex64":
        x = f"jnp.real({x})"
    return f"{x}.astype('int32')"


def mixed(d: Drawer, shape: tuple[int, ...], most: int) -> str:
    """A term combined with fewer others than `most`."""
    text = term(d, shape)
    for _ in range(d.number(0, most)):
        more = term(d, shape)
        text = d.one([f"{text} + {more}", f"({text}) * {more}", f"jnp.maximum({text}, {more})", f"({text}) ^ {more}",
                      f"jnp.where({more} > 4, {text}, {more})"])  # fmt: skip
    return text


@aimed(5)
def nests(d: Drawer) -> None:
    """Sums of differently laid operands, moved and reduced."""
    rank = d.one([1, 2, 2, 2, 3, 3, 4])
    shape = [d.one(SIZES) for _ in range(rank)]
    while size(tuple(shape)) > (150_000 if d.largest > 20_000 else 20_000):
        shape[d.number(0, rank)] = d.one(SIZES[:8])
    shape = tuple(shape)
    f = d.fresh("f")
    lines, made = [], []
    for k in range(d.number(1, 5)):
        text = mixed(d, shape, 3)
        if made and d.chance(0.5):
            text = f"{d.one(made)} - ({text})"
        if made and d.chance(0.25):
            axis = d.number(0, rank)
            text = f"({text}) + " + d.one([f"jnp.flip({d.one(made)}, {axis})", f"jnp.roll({d.one(made)}, 1, {axis})",
                                           f"jnp.sum({d.one(made)}, {axis}, keepdims=True)", f"jnp.cumsum({d.one(made)}, {axis})"])
        lines.append(f"    x{k} = {text}")
        made.append(f"x{k}")
    ends = []
    for x in [made[-1], *[m for m in made[:-1] if d.chance(0.5)]]:
        axis = d.number(0, rank)
        order = tuple(d.rng.permutation(rank).tolist())
        dtype = d.one(["int8", "int16", "float32", "uint8", "int32"])
        ends += [d.one([x, x, f"{x}.astype('{dtype}')", f"jnp.transpose({x}, {order})", f"jnp.transpose({x}.astype('{dtype}'), {order})",
                        f"jnp.sum({x}, {axis})", f"jnp.max({x}, {axis}, initial=-99)", f"jnp.cumsum({x}, {axis})", f"jnp.flip({x}, {axis})",
                        f"jnp.argmax({x}, {axis})" if shape[axis] else x, f"jnp.sort({x}, {axis})", f"{x}[..., ::2]",
                        f"jnp.concatenate([{x}, jnp.flip({x}, {axis})], {axis})", f"{x}.reshape(-1)", f"jnp.any({x} > 9, {axis})",
                        f"jnp.stack([{x}, {x} + 1], {d.number(0, rank + 1)})"])
                 for _ in range(d.number(1, 3))]  # fmt: skip
    definition = "\n".join([f"def {f}():", *lines, f"    return {', '.join(ends)},"])
    d.attempt(f"{f}()", definition)
