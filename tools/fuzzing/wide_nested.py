"""Statements of the wider generator with functions inside: loops of several carries, loops whose end
is computed, branches under `vmap`, loops that Python unrolls, derivatives of all that."""

from __future__ import annotations

from typing import Any

from fuzzing.arrays import is_float
from fuzzing.drawer import Drawer, statement
from fuzzing.nested import DEEPEST, last, same, small_float, total
from fuzzing.wide_places import REAL, whole


def nested(weight: float) -> Any:
    """As `wide`, of a family that gives definitions and an expression; not too deep."""

    def add(draw: Any) -> Any:
        def family(d: Drawer) -> None:
            found = None if d.depth >= DEEPEST else draw(d)
            if found is not None:
                definitions, text = found
                d.attempt(text, definitions)

        statement(weight, wide=True)(family)
        return draw

    return add


def rows_of(d: Drawer) -> Any:
    return d.pick(lambda v: v.ndim > 0 and 0 < v.shape[0] <= 40 and 0 < v.size <= 4000)


def axis_name(d: Drawer) -> str:
    return d.fresh("i")


@nested(2)
def scan_of_several(d: Drawer) -> tuple[str, str] | None:
    """Two carries, two rows of what is read, two results of each round."""
    a, b = d.pick(lambda v: v.size <= 1000), d.pick(lambda v: v.size <= 1000)
    xs = rows_of(d)
    if a is None or b is None or xs is None:
        return None
    n = xs[1].shape[0]
    ys = d.pick(lambda v: v.ndim > 0 and v.shape[0] == n and 0 < v.size <= 4000) or xs

    def result(inner: Drawer, names: list[str]) -> str | None:
        first, second, y = inner.like(a[1]), inner.like(b[1]), inner.pick()
        if first is None or second is None or y is None:
            return None
        return f"({first}, {second}), ({y[0]}, {names[d.number(0, 4)]})"

    made = d.block([a[1], b[1], xs[1][0], ys[1][0]], d.number(2, 6), result)
    if made is None:
        return None
    options = d.one(["", ", reverse=True", ", unroll=3", ""])
    body = f"lambda s, r: {made[0]}(*s, *r)"
    if d.chance(0.2):
        body = f"checkpoint({body})"
    text = f"lax.scan({body}, ({a[0]}, {b[0]}), ({xs[0]}, {ys[0]}){options})"
    return made[1], f"(lambda s: (*s[0], *s[1]))({text})"


@nested(1.5)
def scan_of_places(d: Drawer) -> tuple[str, str] | None:
    """A carry that is read and written at places that are computed or counted."""
    x = d.pick(lambda v: v.ndim > 0 and 0 < v.size <= 2000 and v.dtype.kind != "b")
    y = d.pick(lambda v: v.ndim > 0 and REAL(v) and v.shape[0] <= 40)
    if x is None or y is None:
        return None
    n = x[1].shape[0]
    row = x[1][0]

    def result(inner: Drawer, names: list[str]) -> str | None:
        return inner.like(row)

    made = d.block([row, y[1][0]], d.number(1, 4), result)
    if made is None:
        return None
    where = whole(d, n, ("jnp.ravel(r)[0]", y[1]))
    method = d.one(["set", "add", "set"])
    step = d.one(
        [
            f"lambda s, r: (s.at[{where}].{method}({made[0]}(s[{where}], r)), s[0])",
            f"lambda s, r: (lax.dynamic_update_index_in_dim(s, {made[0]}(s[{where}], r), {where}, 0), jnp.max(s) if s.dtype.kind != 'c' else s[0])",
            f"lambda s, r: (jnp.concatenate([s[1:], {made[0]}(s[0], r)[None]]), s[-1])",
            f"lambda s, r: (s.at[{where}].{method}({made[0]}(s[-1], r), mode='drop'), s[{where}])",
        ]
    )
    return made[1], f"lax.scan({step}, {x[0]}, {y[0]})"


@nested(1)
def counted_by_values(d: Drawer) -> tuple[str, str] | None:
    """Loops whose end, or whose going on, is computed."""
    x = d.pick(lambda v: 0 < v.size <= 2000)
    y = d.pick(lambda v: REAL(v) and v.dtype.kind != "b")
    if x is None or y is None:
        return None
    count = d.scope["jnp"].asarray(1)
    made = d.block([count, x[1]], d.number(1, 4), same(x[1]))
    if made is None:
        return None
    rounds = d.one(
        [
            f"jnp.clip(jnp.argmax({y[0]}), 0, {d.number(1, 6)}).astype('int32')",
            f"jnp.sum({y[0]} > 0) % {d.number(1, 6)}",
        ]
    )
    if d.chance(0.5):
        return made[1], f"lax.fori_loop(0, {rounds}, {made[0]}, {x[0]})"
    more = "" if x[1].dtype.kind == "c" else f" & (jnp.max(s[1]) < {d.number(1, 40)})"
    test = f"lambda s: (s[0] < {d.number(1, 7)}){more}"
    return made[
        1
    ], f"lax.while_loop({test}, lambda s: (s[0] + 1, {made[0]}(*s)), (jnp.asarray(0), {x[0]}))"


@nested(3)
def made_outside(d: Drawer) -> tuple[str, str] | None:
    """Parts of a value, taken before a loop or a branch, and put together inside of it."""
    x = d.pick(lambda v: v.ndim > 0 and v.size > 0 and v.dtype.kind != "b")
    axis = 0 if x is None else d.number(0, x[1].ndim)
    if x is None or x[1].shape[axis] < 2:
        return None
    before, first, second = d.fresh("p"), d.fresh("p"), d.fresh("p")
    source = d.one([f"{x[0]} + {x[0]}", f"jnp.flip({x[0]}, {axis})", f"jnp.where(True, {x[0]}, 0)"])
    cut = d.number(1, x[1].shape[axis])
    parts = d.one([f"{first}, {second}", f"{first}, {second}", f"{second}, {first}"])
    whole = f"jnp.concatenate([{parts}], {axis})"
    text = d.one(
        [
            f"lax.cond(jnp.ravel({x[0]})[0] == 0, lambda: {x[0]}, lambda: {whole})",
            f"lax.fori_loop(0, 3, lambda i, s: {whole} - s, {x[0]})",
            f"lax.scan(lambda s, r: ({whole} - s, {whole}), {x[0]}, None, length=3)",
            f"lax.map(lambda r: {whole} - r, {x[0]}[:3])" if axis else f"{whole} - {x[0]}",
        ]
    )
    return f"{before} = {source}\n{first}, {second} = jnp.split({before}, [{cut}], {axis})", text


@nested(1.2)
def branch_for_each(d: Drawer) -> tuple[str, str] | None:
    """Branches, and loops of different lengths, under vmap."""
    x, y = rows_of(d), rows_of(d)
    if x is None or y is None:
        return None
    n = x[1].shape[0]
    y = y if y[1].shape[0] == n else x
    if y[1].dtype.kind == "c":
        return None
    row = x[1][0]
    made = [d.block([row], d.number(1, 3), same(row)) for _ in range(2)]
    if made[0] is None or made[1] is None:
        return None
    definitions = "\n".join([f[1] for f in made if f])
    f, g = made[0][0], made[1][0]
    test = "jnp.max(t) > 0" if y[1].dtype.kind != "b" else "jnp.any(t)"
    text = d.one(
        [
            f"lax.cond({test}, {f}, {g}, r)",
            f"lax.switch(jnp.argmax(jnp.ravel(t)).astype('int32') % 3, [{f}, {g}, {f}], r)",
            f"lax.fori_loop(0, jnp.sum(t != 0) % 4, lambda k, s: {f}(s), r)",
            f"lax.while_loop(lambda s: s[0] < jnp.sum(t != 0) % 4, lambda s: (s[0] + 1, {g}(s[1])), (jnp.asarray(0), r))[1]",
            f"lax.scan(lambda s, k: ({f}(s), {g}(s)), r, None, length=3)",
        ]
    )
    if d.chance(0.25) and is_float(row.dtype):
        text = f"grad(lambda r: jnp.sum(lax.cond({test}, {f}, {g}, r)))(r)"
    return definitions, f"vmap(lambda r, t: {text})({x[0]}, {y[0]})"


@nested(1)
def mapped_over_rows(d: Drawer) -> tuple[str, str] | None:
    x = rows_of(d)
    if x is None:
        return None
    made = d.block([x[1][0]], d.number(1, 5), last)
    if made is None:
        return None
    size = d.one(["", f", batch_size={d.number(1, 5)}"])
    return made[1], f"lax.map({made[0]}, {x[0]}{size})"


@nested(1.5)
def mapped_over_two(d: Drawer) -> tuple[str, str] | None:
    """vmap over axes of two values, with names of axes now and then."""
    x = d.pick(lambda v: v.ndim > 0 and 0 < v.size <= 3000)
    if x is None:
        return None
    i = d.number(0, x[1].ndim)
    n = x[1].shape[i]
    y = d.pick(lambda v: n in v.shape and 0 < v.size <= 3000) or x
    j = y[1].shape.index(n)
    take = d.scope["jnp"].take
    made = d.block([take(x[1], 0, axis=i), take(y[1], 0, axis=j)], d.number(1, 5), last)
    if made is None:
        return None
    inner, more = made[0], ""
    if d.chance(0.25):
        name = axis_name(d)
        inner = (
            f"lambda p, q: (lambda r: r + lax.{d.one(['psum', 'pmax'])}(r, '{name}') * lax.axis_index('{name}').astype(r.dtype))"
            f"({made[0]}(p, q))"
        )
        more = f", axis_name='{name}'"
    return (
        made[1],
        f"vmap({inner}, in_axes=({i}, {j}), out_axes={d.one(['0', '-1', '0'])}{more})({x[0]}, {y[0]})",
    )


@nested(1.2)
def repeated(d: Drawer) -> tuple[str, str] | None:
    """A step that Python repeats: long runs of equal equations."""
    x = d.pick(lambda v: v.size <= 2000)
    made = None if x is None else d.block([x[1]], d.number(1, 4), same(x[1]))
    if x is None or made is None:
        return None
    name = d.fresh("f")
    loop = f"def {name}(x):\n    for _ in range({d.one([2, 3, 6, 12])}):\n        x = {made[0]}(x)\n    return x"
    return f"{made[1]}\n{loop}", f"{name}({x[0]})"


@nested(1.5)
def derivative(d: Drawer) -> tuple[str, str] | None:
    """Gradients through loops, Jacobians, second derivatives, vmap of them."""
    x = small_float(d)
    if x is None or not x[1].ndim:
        return None
    kind = d.number(0, 5)
    if kind < 2:
        made = d.block([x[1][0], x[1][0]], d.number(1, 4), lambda inner, names: inner.like(x[1][0]))
        if made is None:
            return None
        body = d.one(
            ["lambda s, r: ({0}(s, r), s)", "checkpoint(lambda s, r: ({0}(s, r), {0}(r, s)))"]
        )
        loss = f"lambda x: (lambda s, y: jnp.sum(s) + jnp.sum(y) * 0.5)(*lax.scan({body.format(made[0])}, x[0], x))"
        wrap = d.one(
            ["grad({})", "jit(grad({}))", "lambda x: vmap(grad({}))(jnp.stack([x, x * 0.5]))"]
        )
        return made[1], f"({wrap.format(loss)})({x[0]})"
    made = d.block([x[1]], d.number(1, 4), total)
    if made is None:
        return None
    if kind == 2 and x[1].size <= 40:
        return made[1], f"{d.one(['jacfwd', 'jacrev', 'hessian'])}({made[0]})({x[0]})"
    if kind == 3:
        return made[1], f"value_and_grad({made[0]})({x[0]})"
    second = f"grad(lambda x: jnp.sum(jnp.sin(grad({made[0]})(x))))"
    return made[1], d.one(
        [
            f"{second}({x[0]})",
            f"jvp(grad({made[0]}), ({x[0]},), (jnp.cos({x[0]}),))",
            f"vmap(grad({made[0]}))(jnp.stack([{x[0]}, {x[0]} * 2]))",
        ]
    )


def table(rows: int, columns: int, dtype: str = "float32") -> str:
    """The text of a matrix of numbers that are not alike, the products of which stay small."""
    made = f"(jnp.arange({rows * columns}) * 7 % 23 / 8 - 1).reshape{(rows, columns)}"
    return f"({made} / {rows}).astype('{dtype}')"


@nested(2)
def layers(d: Drawer) -> tuple[str, str] | None:
    """Products with biases and activations behind them, their gradients, sums over examples."""
    x = d.floating(lambda v: v.ndim >= 1 and v.size > 0)
    if x is None:
        return None
    big = d.largest > 20_000
    examples = d.one([1, 3, 16, 33, 64] + [200] * big)
    inner, outer = d.one([8, 17, 32, 64] + [256] * big), d.one([4, 8, 31, 64] + [130] * big)
    dtype = d.one(
        [
            "float32",
            "float32",
            "float32",
            "bfloat16",
            "float16",
            "float64" if d.wide_numbers() else "float32",
        ]
    )
    rows = f"jnp.resize(jnp.tanh({x[0]}), {(examples, inner)}).astype('{dtype}')"
    made = d.block([d.scope["jnp"].zeros((examples, outer), dtype)], d.number(1, 4), last)
    if made is None:
        return None
    f = d.fresh("f")
    weights = table(inner, outer, dtype)
    bias = d.one(
        ["jnp.arange({0}).astype(w.dtype) / {0}", "w[0]", "jnp.float32(0.5).astype(w.dtype)"]
    ).format(outer)
    act = d.one(["jnp.tanh", "nn.relu", "nn.gelu", "jnp.sin", ""])
    turned = d.chance(0.2)
    lines = [
        f"def {f}(w):",
        f"    x = {rows}",
        f"    y = {act}({'jnp.swapaxes(w, 0, 1) @ jnp.swapaxes(x, 0, 1)' if turned else 'x @ w'} + {bias if not turned else '0.5'})",
    ]
    if turned:
        lines.append("    y = y.T")
    lines.append(f"    return {made[0]}(y)")
    definitions = made[1] + "\n" + "\n".join(lines)
    if d.chance(0.5):
        return (
            definitions,
            f"grad(lambda w: jnp.sum(jnp.real({f}(w)).astype('float32')) + jnp.sum(w))({weights})",
        )
    return definitions, f"{f}({weights})"


@nested(1)
def attention(d: Drawer) -> tuple[str, str] | None:
    """Heads of attention cut out of one product."""
    x = d.floating(lambda v: v.ndim >= 1 and v.size > 0)
    if x is None:
        return None
    heads, size, length = d.number(1, 4), d.one([2, 4, 8, 16]), d.one([2, 5, 8, 16, 24])
    width = heads * size
    f = d.fresh("f")
    mask = d.one(["", "    s = jnp.where(jnp.tril(jnp.ones(s.shape[-2:], bool)), s, -jnp.inf)\n"])
    text = (
        f"def {f}(x):\n"
        f"    y = jnp.resize(jnp.tanh(x), {(2, length, width)}) @ {table(width, 3 * width)}.astype(x.dtype)\n"
        f"    q, k, v = [h.reshape(2, {length}, {heads}, {size}) for h in jnp.split(y, 3, axis=-1)]\n"
        f"    s = jnp.einsum('bqhd,bkhd->bhqk', q, k)\n{mask}"
        f"    return jnp.einsum('bhqk,bkhd->bqhd', nn.softmax(s, axis=-1), v).reshape(2, {length}, {width})"
    )
    return text, d.one([f"{f}({x[0]})", f"grad(lambda x: jnp.sum(jnp.sin({f}(x))))({x[0]})"])


@nested(2)
def recurrent(d: Drawer) -> tuple[str, str] | None:
    """A loop whose rounds multiply by a matrix; its gradient; a step that Python repeats so."""
    x = d.floating(lambda v: v.ndim >= 1 and v.size > 0)
    if x is None:
        return None
    n, rounds = d.one([2, 3, 4, 8, 16, 33, 64]), d.one([2, 5, 9, 12])
    batch = d.one([(), (), (3,), (8,)])
    rows = f"jnp.resize(jnp.tanh({x[0]}), {(rounds, *batch, n)})"
    row = d.scope["jnp"].zeros((*batch, n), x[1].dtype)
    made = d.block([row, row], d.number(1, 3), same(row))
    if made is None:
        return None
    f = d.fresh("f")
    product = d.one(["s @ w", "s @ w", "s @ w.T", "w @ s" if not batch else "s @ w"])
    if d.chance(0.3):
        loop = (
            f"    for r in {rows}:\n        x = {made[0]}(jnp.tanh({product.replace('s', 'x')}), r)\n"
            "    return x"
        )
        text = f"def {f}(w):\n    x = {rows}[0]\n{loop}"
    else:
        more = d.one(["", ", reverse=True", ", unroll=2"])
        text = (
            f"def {f}(w):\n    body = lambda s, r: ({made[0]}(jnp.tanh({product} + r), r), s)\n"
            f"    s, y = lax.scan(body, {rows}[0], {rows}{more})\n    return s + jnp.sum(y, axis=0)"
        )
    weights = table(n, n, x[1].dtype.name)
    return f"{made[1]}\n{text}", d.one(
        [
            f"{f}({weights})",
            f"grad(lambda w: jnp.sum({f}(w)))({weights})",
            f"vmap({f})(jnp.stack([{weights}, {weights} * 0.5]))",
        ]
    )


@nested(1.5)
def swept(d: Drawer) -> tuple[str, str] | None:
    """Loops over the rows of a grid forth and back, as in eliminations, one reading the other's rows."""
    x = d.floating(lambda v: v.size > 0)
    if x is None:
        return None
    shape = (
        d.number(2, 12),
        *d.one([(40,), (8, 17), (129,), (64, 20)] + [(5000,), (70, 64)] * (d.largest > 20_000)),
    )
    row = d.scope["jnp"].zeros(shape[1:], x[1].dtype)
    made = [d.block([row, row], d.number(1, 3), same(row)) for _ in range(2)]
    if made[0] is None or made[1] is None:
        return None
    f = d.fresh("f")
    first, second = made[0][0], made[1][0]
    middle = d.one(["y * 0.5 + a", "jnp.sin(y)", "y", "a - y"])
    text = (
        f"def {f}(a):\n    a = jnp.resize(jnp.tanh(a), {shape}) * 0.5\n"
        f"    s, y = lax.scan(lambda s, r: ({first}(s, r) * 0.5, s - r), a[0], a * 2)\n"
        f"    t, z = lax.scan(lambda s, r: ({second}(s, r[0]) * 0.25, s + r[1]), s, ({middle}, y), reverse=True)\n"
        "    return t, z, jnp.sum(z, axis=0)"
    )
    return f"{made[0][1]}\n{made[1][1]}\n{text}", f"{f}({x[0]})"


@nested(0.8)
def iterated(d: Drawer) -> tuple[str, str] | None:
    """A stencil on a grid, again and again."""
    x = d.floating(lambda v: v.size > 0)
    if x is None:
        return None
    shape = d.one([(70, 9), (66, 33), (130, 40), (9, 65)])
    f = d.fresh("f")
    step = d.one(
        [
            "u.at[1:-1, 1:-1].add(0.2 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]))",
            "0.5 * u + 0.25 * (jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0))",
            "u.at[1:-1].set((u[2:] + u[:-2]) * 0.5)",
            "jnp.pad((u[2:] - u[:-2]) * 0.5 + u[1:-1], ((1, 1), (0, 0)), mode='edge')",
            "u.at[0].set(u[-2]).at[-1].set(u[1]) * 0.9",
        ]
    )
    text = (
        f"def {f}(u):\n    u = jnp.resize(jnp.tanh(u), {shape})\n"
        f"    return lax.fori_loop(0, {d.number(1, 5)}, lambda k, u: {step}, u)"
    )
    return text, d.one([f"{f}({x[0]})", f"grad(lambda u: jnp.sum(jnp.sin({f}(u))))({x[0]})"])
