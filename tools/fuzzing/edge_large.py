"""Statements of the edge generator about arrays of megabytes: where results are streamed, rows prefetched,
stencils written over what they read, blocks turned, columns cut into chunks for threads, carries exchanged.

Whole numbers of few bits, in sums that are exact.
"""

from __future__ import annotations

from fuzzing.aimed_loops import moved, size
from fuzzing.aimed_nests import mixed, term
from fuzzing.drawer import Drawer
from fuzzing.edge_kernels import exactly
from fuzzing.edge_loops import edge

# Of int32: around 1, 4, 6, 16 and 64 MiB.
COUNTS = (1 << 18, 1 << 20, (1 << 20) + 1, 3 << 19, 1_600_000, (1 << 22) - 1, 1 << 22, (1 << 22) + 64, 4_500_001)
AXES = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 100, 127, 128, 129, 255, 256, 257, 1000, 1024, 2049, 4099, 16_385, 65_537)


def shape_of(d: Drawer) -> tuple[int, ...]:
    """A shape of about as many elements as an edge."""
    total = d.one(COUNTS)
    shape = [d.one(AXES) for _ in range(d.one([0, 1, 1, 1, 2, 2, 3]))]
    while size(tuple(shape)) > total:
        shape.pop()
    shape.insert(d.number(0, len(shape) + 1), total // size(tuple(shape)))
    return tuple(shape)


def ends_of(d: Drawer, x: str, shape: tuple[int, ...]) -> str:
    rank = len(shape)
    axis = d.number(0, rank)
    n = shape[axis]
    before = ":, " * axis
    order = tuple(d.rng.permutation(rank).tolist())
    two = tuple(sorted({d.number(0, rank), d.number(0, rank)}))
    dtype = d.one(["int8", "int16", "float32", "uint8", "int32", "bfloat16", "bool"])
    return d.one([
        x, x, x, f"{x}.astype('{dtype}')", f"jnp.transpose({x}, {order})", f"jnp.transpose({x}.astype('{dtype}'), {order})",
        f"jnp.sum({x}, {axis})", f"jnp.sum({x}, {two})", f"jnp.max({x}, {axis})", f"jnp.cumsum({x}, {axis})", f"jnp.flip({x}, {axis})",
        f"jnp.argmax({x}, {axis})", f"jnp.argmin({x}.astype('{dtype if dtype != 'bool' else 'int8'}'), {axis})", f"{x}[..., ::2]", f"{x}[{before}1:] - {x}[{before}:-1]",
        f"jnp.concatenate([{x}, jnp.flip({x}, {axis})], {axis})", f"{x}.reshape(-1)", f"jnp.any({x} > 9, {axis})", f"jnp.all({x} > -99, {two})",
        f"jnp.stack([{x}, {x} + 1], {d.number(0, rank + 1)})", f"{x} - jnp.max({x}, {axis}, keepdims=True)", f"jnp.pad({x}, {[(1, 2) if a == axis else (0, 0) for a in range(rank)]})",
        f"jnp.sum({x} * 2, {axis}, keepdims=True) + {x}", f"jnp.sum({x})", f"jnp.argmax({x})", f"jnp.sum({x} % 7 == 3, {axis}, dtype='{d.one(['int32', 'uint8', 'float32'])}')",
        f"jnp.where(lax.broadcasted_iota('int32', {shape}, {axis}) % {d.one([2, 3, 8])} == 0, {x}, {d.number(0, 9)})", f"{x}.at[{before}{d.number(0, n)}].set(7)",
        f"{x}.at[{before}{n // 3}:{n // 2}].add(1)", f"jnp.moveaxis({x}, {axis}, 0)", f"jnp.max({x}, {two}), jnp.min({x}, {two})", f"lax.cummax({x}, {axis}, reverse=True)",
        f"jnp.roll({x}, {d.number(-3, 4)}, {axis})", f"jnp.take({x}, jnp.arange({n}) * 3 % {n}, axis={axis})", f"jnp.sum({x}, {axis}), jnp.max({x}, {d.number(0, rank)}), {x} + 1",
        f"lax.reduce({x}, np.int32(0), jnp.bitwise_xor, {two})", f"jnp.repeat({x}[{before}::2], 2, axis={axis})", f"jnp.sort({x}.astype('int8'), {axis})",
        f"jnp.square({x} - jnp.sum({x}, {axis}, keepdims=True))" , f"({x} * lax.broadcasted_iota('int32', {shape}, {axis})).sum({axis})",
    ])  # fmt: skip


@edge(2)
@exactly
def large(d: Drawer) -> None:
    """Operands of megabytes that lie in every way to results, in sums, moved and reduced."""
    shape, most, d.largest = shape_of(d), d.largest, 40_000_000
    f = d.fresh("f")
    lines, made = [], []
    for k in range(d.number(1, 4)):
        text = mixed(d, shape, 2)
        if made and d.chance(0.6):
            text = f"{d.one(made)} - ({text})"
        if made and d.chance(0.3):
            axis, x = d.number(0, len(shape)), d.one(made)
            text = f"({text}) + " + d.one([f"jnp.flip({x}, {axis})", f"jnp.roll({x}, 1, {axis})", f"jnp.sum({x}, {axis}, keepdims=True)",
                                           f"jnp.cumsum({x}, {axis})", f"jnp.max({x}, {axis}, keepdims=True)"])  # fmt: skip
        lines.append(f"    x{k} = {text}")
        made.append(f"x{k}")
    ends = ", ".join(ends_of(d, d.one([made[-1], d.one(made)]), shape) for _ in range(d.number(1, 4)))
    d.attempt(f"{f}()", "\n".join([f"def {f}():", *lines, f"    return {ends},"]))
    d.largest = most


@edge(1.5)
@exactly
def large_loops(d: Drawer) -> None:
    """Loops that carry arrays of megabytes: stencils, moves, windows, rows that are stacked."""
    shape, most, d.largest = shape_of(d), d.largest, 40_000_000
    rank = len(shape)
    f = d.fresh("f")
    dtype = d.one(["int32", "int32", "int16", "float32", "uint8"])
    axis = d.number(0, rank)
    n = shape[axis]
    rest = ":, " * axis
    many = d.number(1, 4)
    carries = [f"c{k}" for k in range(d.number(1, 4))]

    def new() -> str:
        x, y = d.one(carries), d.one(carries)
        inside = f"{x}[{rest}:-2] - {y}[{rest}2:] + {x}[{rest}1:-1]" if n > 2 else x
        texts = [
            f"{x}.at[{rest}1:-1].set({inside})" if n > 2 else f"{x} + {y}", f"{x}.at[{rest}1:-1].add({inside})" if n > 2 else f"{x} - {y}",
            f"jnp.roll({x}, 1, {axis}) - {y}", f"{x} + jnp.flip({y}, {axis})", f"jnp.pad({inside}, {[(1, 1) if a == axis else (0, 0) for a in range(rank)]})" if n > 2 else x,
            f"jnp.pad({inside}, {[(1, 1) if a == axis else (0, 0) for a in range(rank)]}, mode='edge')" if n > 2 else x, f"{x} * 3 - {y}",
            f"{x} - jnp.sum({y}, {axis}, keepdims=True, dtype={y}.dtype) % 5" if dtype != "float32" else f"{x} % 7 - {y} % 3",
            f"{x}.at[{rest}i % {n}].set({y}[{rest}(i + 1) % {n}])", f"{x}.at[{rest}i % {n}].add(1)", f"jnp.where({x} > {y}, {x}, {y} + i.astype('{dtype}'))",
            f"lax.dynamic_update_slice_in_dim({x}, lax.dynamic_slice_in_dim({y}, i, {max(n // 2, 1)}, {axis}), i + 1, {axis})",
            f"jnp.concatenate([{x}[{rest}{n // 2}:], {y}[{rest}:{n // 2}]], {axis})", f"jnp.maximum({x}, jnp.roll({y}, -1, {d.number(0, rank)}))",
            moved(d, [x, y], shape, "i"), x,
        ]  # fmt: skip
        return d.one(texts)

    body = [f"        t = {new()}"]
    carries.append("t")
    made = [new() for _ in carries[:-1]]
    body += [f"        n{k} = ({text}){' % 64' if dtype == 'float32' else ''}" for k, text in enumerate(made)]
    names, results = ", ".join(carries[:-1]), ", ".join(f"n{k}" for k in range(len(made)))
    kind = d.number(0, 3)
    starts = ", ".join(d.one(["x", "x", "y", "x + 1", f"jnp.flip(x, {axis})", "x - y"]) for _ in made)
    if kind == 0:
        text = ["    def body(i, s):", f"        {names}, = s", *body, f"        return {results},",
                f"    return lax.fori_loop(0, {many}, body, ({starts},))"]  # fmt: skip
    elif kind == 1:
        y = d.one([f"jnp.sum({carries[0]}[..., :9])", "jnp.max(t)", f"{carries[0]}[0]", "t[-1]", f"n0.ravel()[i * {d.number(1, 90)}]"])
        text = ["    def body(s, i):", f"        {names}, = s", *body, f"        return ({results},), {y}",
                f"    s, y = lax.scan(body, ({starts},), jnp.arange({many}){d.one(['', ', reverse=True', ', unroll=2'])})", "    return *s, y"]  # fmt: skip
    else:
        text = ["    def body(s):", f"        i, {names} = s", *body, f"        return i + 1, {results}",
                f"    return lax.while_loop(lambda s: (s[0] < {many}) & (s[1].ravel()[0] < 60), body, (jnp.int32(0), {starts}))"]  # fmt: skip
    definition = "\n".join([f"def {f}(x, y):", *text])
    x, y = (f"({term(d, shape)}).astype('{dtype}')" for _ in range(2))
    d.attempt(f"{f}({x}, {y})", definition)
    d.largest = most
