"""Statements of the aimed generator about where elements are: long chains of moves, positions that are
computed with, rows that Python updates again and again, random keys that are moved and carried."""

from __future__ import annotations

from fuzzing.aimed_loops import WHOLE, aimed, grid, size
from fuzzing.drawer import Drawer


def divisors(n: int) -> list[int]:
    return [k for k in range(1, n + 1) if n % k == 0] if n else [1]


def move(d: Drawer, x: str, shape: tuple[int, ...]) -> str:
    """The text of a move of one value."""
    rank = len(shape)
    if not rank:
        return f"jnp.broadcast_to({x}, {(d.number(1, 4), d.number(1, 4))})"
    axis = d.number(0, rank)
    n = shape[axis]
    before = ":, " * axis
    kind = d.number(0, 24)
    if kind < 3:
        return f"jnp.transpose({x}, {tuple(d.rng.permutation(rank).tolist())})"
    if kind == 3:
        k = d.one(divisors(n))
        return f"{x}.reshape({(*shape[:axis], k, n // k, *shape[axis + 1 :])})"
    if kind in (4, 5) and rank > 1:
        axis = d.number(0, rank - 1)
        return f"{x}.reshape({(*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :])})"
    if kind == 6:
        total = size(shape)
        k = d.one(divisors(total))
        m = d.one(divisors(total // k if k else 0))
        return f"{x}.reshape({(k, m, total // (k * m) if k * m else 0)})"
    if kind == 7:
        return f"jnp.flip({x}, {axis})"
    if kind in (8, 9) and n > 1:
        step = d.one([1, 1, 2, 3, -1, -2])
        low, high = d.number(0, n // 2 + 1), d.number(n // 2 + 1, n + 1)
        return f"{x}[{before}{low}:{high}:{step}]" if step > 0 else f"{x}[{before}{high - 1}::{step}]"
    if kind == 10:
        return f"lax.pad({x}, jnp.ones((), {x}.dtype), {[(d.number(-1, 3), d.number(-1, 3), d.number(0, 3)) if a == axis else (0, 0, 0) for a in range(rank)]})"
    if kind == 11:
        cut = d.number(0, n + 1)
        return f"jnp.concatenate([{x}[{before}{cut}:], {x}[{before}:{cut}]], {axis})"
    if kind == 12:
        return f"jnp.concatenate([{x}, jnp.flip({x}, {axis})], {axis})"
    if kind == 13:
        return f"jnp.roll({x}, {d.number(-3, 4)}, {axis})"
    if kind == 14:
        return f"jnp.repeat({x}, {d.number(1, 4)}, axis={axis})"
    if kind == 15:
        return f"jnp.tile({x}, {tuple(d.number(1, 3) for _ in shape)})"
    if kind == 16:
        return f"jnp.stack([{x}, jnp.flip({x}, {axis})], {d.number(0, rank + 1)})"
    if kind == 17 and n:
        return f"{x}[{before}{d.number(-n, n)}]"
    if kind == 18:
        return f"jnp.broadcast_to(jnp.expand_dims({x}, {axis}), {(*shape[:axis], d.number(1, 4), *shape[axis:])})"
    if kind == 19 and rank > 1:
        other = d.one([a for a in range(rank) if a != axis])
        return f"jnp.diagonal({x}, {d.number(-1, 2)}, {axis}, {other})"
    if kind == 20 and n:
        return f"jnp.take({x}, jnp.arange({d.number(1, 8)}) * {d.number(1, 4)} % {n}, axis={axis})"
    if kind == 21 and n > 1:
        start = ["0"] * rank
        start[axis] = d.one([str(d.number(0, n)), f"({x}.ravel()[0].astype('int32') % {n})"])
        return f"lax.dynamic_slice({x}, [{', '.join(start)}], {(*shape[:axis], d.number(1, n + 1), *shape[axis + 1 :])})"
    if kind == 22 and n > 1:
        at, to = f"{x}[{before}1:]", f"{before}:-1"
        return f"{x}.at[{to}].set({at})"
    if kind == 23 and rank > 1:
        return f"jnp.swapaxes({x}, {axis}, {d.number(0, rank)})[..., ::-1]"
    return f"jnp.squeeze({x})"


@aimed(4)
def moves(d: Drawer) -> None:
    """Chains of moves; values on the way are read together where their shapes agree."""
    shape = tuple(d.one([1, 2, 3, 4, 5, 6, 8, 12, 17]) for _ in range(d.number(1, 5)))
    if not d.attempt(grid(d, shape, d.one(WHOLE))):
        return
    x, v = d.pool[-1]
    kept: list[tuple[str, tuple[int, ...]]] = []
    for _ in range(d.number(5, 40)):
        if d.attempt(move(d, x, v.shape)):
            if d.pool[-1][1].size > 4000:
                continue
            x, v = d.pool[-1]
            if d.chance(0.15):
                kept.append((x, v.shape))
            if v.dtype.kind != "b" and d.chance(0.12):
                d.attempt(d.one([f"{x} + jnp.flip({x})", f"jnp.maximum({x}, 2)", f"{x} * 3", f"jnp.cumsum({x}, 0)" if v.ndim else x,
                                 f"jnp.sum({x}, axis=0, dtype={x}.dtype)" if v.ndim > 1 else x]))  # fmt: skip
                x, v = d.pool[-1]
            same = [n for n, s in kept if s == v.shape]
            if same and d.chance(0.5):
                d.attempt(d.one([f"jnp.where({d.one(same)} > {x}, {x}, 0).astype({x}.dtype)", f"{x} ^ {d.one(same)}" if v.dtype.kind in "iub" else f"{x} - {d.one(same)}"]))  # noqa: E501
                x, v = d.pool[-1]
    if v.ndim:
        axis = d.number(0, v.ndim)
        d.attempt(d.one([f"jnp.sum({x}, axis={axis})", f"jnp.sort({x}, axis={axis})", f"jnp.cumsum({x}, axis={axis})"]))


def counted(d: Drawer, names: list[str], deep: int = 2) -> str:
    """The text of a whole number of positions."""
    x = f"({counted(d, names, deep - 1)})" if deep and d.chance(0.6) else d.one(names)
    y = f"({counted(d, names, deep - 1)})" if deep and d.chance(0.3) else d.one(names)
    k, m = d.one([2, 3, 4, 5, 7, 8, 16]), d.number(-9, 40)
    return d.one([
        f"{x} // {k}", f"{x} % {k}", f"{x} * {k}", f"{x} + {m}", f"{m} - {x}", f"{x} - {y}", f"{x} + {y}", f"{x} * {y}",
        f"jnp.minimum({x}, {m})", f"jnp.maximum({x}, {y})", f"{x} >> {d.number(0, 4)}", f"{x} & {d.one([1, 3, 7, 6])}",
        f"lax.rem({x}, jnp.int32({k}))", f"lax.div({x} - {abs(m)}, jnp.int32({k}))", f"jnp.where({x} > {y}, {x}, {k})",
        f"jnp.clip({x}, 1, {k + 3})", f"jnp.abs({x} - {k})", f"{x} ^ {k}", f"jnp.where({x} % {k} == 0, {y}, {x})",
        f"-{x}", f"~{x}", f"{x}.astype('uint8').astype('int32')", f"{x}.astype('float32').astype('int32')",
    ])  # fmt: skip


@aimed(4)
def positions_computed(d: Drawer) -> None:
    """Conditions on positions, and elements read where computed positions say."""
    rank = d.number(1, 4)
    shape = tuple(d.one([1, 2, 3, 5, 8, 9, 16, 17, 33, 64, 70]) for _ in range(rank))
    if size(shape) > d.largest:
        return
    f, dtype = d.fresh("f"), d.one(["int32", "int32", "int8", "float32", "uint8", "uint16"])
    names = [f"i{a}" for a in range(rank)]
    lines = [f"    i{a} = lax.broadcasted_iota('int32', {shape}, {a})" for a in range(rank)]
    made = ["x"]
    n = shape[0]
    for k in range(d.number(2, 9)):
        c = f"({counted(d, names)})"
        x, y = d.one(made), d.one(made)
        axis = d.number(0, rank)
        bound = d.number(-1, shape[axis] + 2)
        test = d.one([
            f"i{axis} < {bound}", f"i{axis} >= {bound}", f"i{axis} == {bound}", f"{c} > {d.number(-3, 9)}", f"{c} % 2 == 0",
            f"(i{axis} >= {bound}) & (i{d.number(0, rank)} < {d.number(0, 9)})", f"i{axis} != i{d.number(0, rank)}",
            f"i{axis} <= i{d.number(0, rank)} + {d.number(-2, 3)}", f"(i{axis} > {bound}) | ({c} == 1)", f"~(i{axis} < {bound})",
            f"(i{axis} % 2 == 0) ^ (i{d.number(0, rank)} < 3)", f"i{axis} + i{d.number(0, rank)} == {d.number(0, 12)}",
        ])  # fmt: skip
        whole = f"({c} % {shape[axis]})"
        text = d.one([
            f"jnp.where({test}, {x}, {y})", f"jnp.where({test}, {x}, {d.number(0, 9)})", f"{x} + {c}.astype(x.dtype)",
            f"jnp.where({test}, jnp.roll({x}, 1, {axis}), {y})", f"jnp.take_along_axis({x}, {whole}, {axis})",
            f"jnp.take_along_axis({x}, {c}, {axis}, mode='clip')", f"jnp.take_along_axis({x}, {c}, {axis}, mode='fill', fill_value=5)",
            f"{x}[{', '.join(f'({counted(d, names, 1)}) % {m}' for m in shape)}]",
            f"jnp.where({test}, jnp.flip({x}, {axis}), {x})", f"jnp.where({test}, {x}, jnp.sum(jnp.where({test}, {y}, 0), {axis}, keepdims=True).astype(x.dtype))",
            f"jnp.where(jnp.arange({shape[-1]}) < {d.number(0, shape[-1] + 1)}, {x}, {y})",
            f"jnp.cumsum(jnp.where({test}, {x}, 0), {axis}, dtype=x.dtype)",
            f"{x}.at[jnp.where({test}, {c}, 0)[{', '.join(['0'] * (rank - 1))}{',' if rank > 1 else ''}:{shape[-1]}] % {n}].add(1)",
            f"jnp.max(jnp.where({test}, {x}, 0), {axis}, keepdims=True) - {x}",
            f"jnp.where({test}, {x}, {y})[{', '.join('::-1' if a == axis else ':' for a in range(rank))}]",
        ])  # fmt: skip
        lines.append(f"    x{k} = {text}")
        made.append(f"x{k}")
    some = [m for m in made[1:] if d.chance(0.4)] + [made[-1]]
    definition = "\n".join([f"def {f}(x):", *lines, f"    return {', '.join(dict.fromkeys(some))},"])
    x = grid(d, shape, dtype)
    d.attempt(d.one([f"{f}({x})", f"{f}({x})", f"vmap({f})(jnp.stack([{x}, jnp.flip({x})]))",
                     f"lax.map({f}, jnp.stack([{x}, jnp.flip({x})]))"]), definition)  # fmt: skip


UPDATES = (
    "x = x.at[{i}].set(x[{j}])",
    "x = x.at[{i}].add(x[{j}])",
    "x = x.at[{i}].set(x[{j}] - x[{k}])",
    "x = x.at[{i}:{i1}].set(x[{j}:{j1}])",
    "x = x.at[{i}:{i1}].max(x[{j}:{j1}][::-1])",
    "a, b = x[{i}], x[{j}]; x = x.at[{i}].set(jnp.minimum(a, b)).at[{j}].set(jnp.maximum(a, b))",
    "x = x.at[::2].add(x[{j}])",
    "y = x; x = x.at[{i}].set(y[{j}]).at[{k}].set(y[{i}])",
    "x = jnp.concatenate([x[{i}:], x[:{i}]])",
    "y = x * 2; x = x.at[{j}].set(y[{i}])",
    "x = lax.dynamic_update_slice(x, x[{j}:{j1}], (x.ravel()[{k}].astype('int32'), *[0] * (x.ndim - 1)))",
    "x = jnp.where(jnp.arange({n}).reshape(-1, *[1] * (x.ndim - 1)) == {i}, x[{j}], x)",
    "x, y = x.at[{i}].set(y[{j}]), y.at[{k}].set(x[{i}])",
    "y = y.at[{i}:{i1}].set(x[{j}:{j1}])",
    "x, y = y, x",
    "y = jnp.flip(x, 0)",
    "x = x.at[jnp.array([{i}, {j}])].add(y[jnp.array([{j}, {k}])])",
    "x = x.at[{i}].set(jnp.sum(x[:{j}], 0, dtype=x.dtype))",
    "x = x.at[..., -1].set(x[..., 0] + 1)",
)


@aimed(3)
def unrolled(d: Drawer) -> None:
    """Rows that Python moves about, hundreds of equations of them."""
    n = d.one([3, 4, 5, 8, 16, 20])
    shape = d.one([(n,), (n,), (n, d.number(1, 9)), (n, 2, 3), (n, 33)])
    f = d.fresh("f")
    lines = []
    chosen = [d.one(UPDATES) for _ in range(d.number(2, 8))]
    for _ in range(d.one([5, 15, 40, 120])):
        i, j, k = (d.number(0, n) for _ in range(3))
        length = d.number(1, n - max(i, j) + 1)
        lines.append("    " + d.one(chosen).format(i=i, j=j, k=k, i1=i + length, j1=j + length, n=n))
    definition = "\n".join([f"def {f}(x, y):", *lines, "    return x, y"])
    x, y = grid(d, shape, dtype := d.one(WHOLE[:-1])), grid(d, shape, dtype)
    d.attempt(d.one([
        f"{f}({x}, {y})", f"{f}({x}, {y})", f"vmap({f})(jnp.stack([{x}, {y}]), jnp.stack([{y}, {y}]))",
        f"lax.fori_loop(0, 3, lambda i, s: {f}(*s), ({x}, {y}))", f"lax.cond({x}.ravel()[0] > 3, {f}, lambda x, y: (y, x), {x}, {y})",
        f"lax.scan(lambda s, r: ({f}(*s), s[0]), ({x}, {y}), None, length=3)[1]",
    ]), definition)  # fmt: skip


@aimed(1.5)
def keys(d: Drawer) -> None:
    """Keys in arrays, moved, chosen, carried."""
    impl = d.one(["", "", ", impl='threefry2x32'"])  # the others draw otherwise under vmap
    n = d.one([2, 3, 4, 6, 8])
    f = d.fresh("f")
    lines, made = [f"    k0 = random.split(random.key(s{impl}), {n})"], ["k0"]
    for j in range(1, d.number(2, 9)):
        k, m = d.one(made), d.one(made)
        cut = d.number(0, n + 1)
        lines.append(f"    k{j} = " + d.one([
            f"jnp.flip({k})", f"jnp.concatenate([{k}[{cut}:], {m}[:{cut}]])", f"{k}[jnp.arange({n}) * 3 % {n}]",
            f"jnp.where(jnp.arange({n}) % 2 == 0, {k}, {m})", f"vmap(random.fold_in)({k}, jnp.arange({n}))",
            f"{k}.at[{d.number(0, n)}].set({m}[{d.number(0, n)}])", f"jnp.roll({k}, 1)",
            f"vmap(lambda k: random.split(k)[1])({k})", f"lax.cond(s > {d.number(0, 9)}, lambda: {k}, lambda: jnp.flip({m}))",
            f"lax.scan(lambda c, k: (random.fold_in(c, 3), jnp.stack([c, k])[s % 2]), {k}[0], {m})[1]",
            f"lax.fori_loop(0, s % 4, lambda i, k: k.at[i].set(k[i + 1]), {k})",
            f"{k}[random.permutation({m}[0], {n})]", f"jnp.stack([{k}, {m}], 1)[:, {d.number(0, 2)}]",
            f"{k}.reshape(2, -1).T.reshape(-1)" if n % 2 == 0 else f"{k}[::-1]",
            f"lax.dynamic_update_slice({k}, {m}[:{max(cut, 1)}], (s % {n},))",
            f"lax.while_loop(lambda t: t[0] < 3, lambda t: (t[0] + 1, jnp.roll(t[1], t[0])), (jnp.int32(0), {k}))[1]",
        ]))  # fmt: skip
        made.append(f"k{j}")
    ends = [d.one([f"random.key_data({k})", f"vmap(lambda k: random.bits(k, (3,)))({k})", f"random.bits({k}[0], (5,), 'uint8')",
                   f"vmap(lambda k: random.randint(k, (4,), 0, 9))({k})", f"lax.map(lambda k: random.bits(k, (2,)), {k})"])
            for k in [made[-1], d.one(made)]]  # fmt: skip
    definition = "\n".join([f"def {f}(s):", *lines, f"    return {', '.join(ends)}"])
    y = d.pick(lambda v: v.size > 0 and v.dtype.kind in "iu")
    s = "jnp.int32(5)" if y is None else f"{y[0]}.ravel()[0].astype('int32') % 16"
    d.attempt(d.one([f"{f}({s})", f"vmap({f})(jnp.arange(3))"]), definition)
