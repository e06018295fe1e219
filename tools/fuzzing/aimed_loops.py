"""Statements of the aimed generator about loops: carries that are moved into each other, and written while
their old values are read.

Values are whole numbers wherever steps multiply, so that every difference is one. What would break it:
an update whose places are equal, with values that are not.
"""

from __future__ import annotations

from typing import Any

from fuzzing.arrays import is_float
from fuzzing.drawer import AIMED, Drawer


def aimed(weight: float) -> Any:
    """Registers a family of the aimed generator."""

    def add(draw: Any) -> Any:
        AIMED.append((weight, draw))
        return draw

    return add


WHOLE = ("int32", "int32", "int8", "uint8", "int16", "uint32", "float32", "float32", "float64", "bfloat16", "bool")


def grid(d: Drawer, shape: tuple[int, ...], dtype: str = "") -> str:
    """The text of an array of a shape with values of the program."""
    dtype = dtype or d.one(WHOLE[:-1])
    if dtype == "float64" and not d.wide_numbers():
        dtype = "float32"
    there = [n for n, v in d.pool if v.shape == shape and v.dtype == dtype]
    if there and d.chance(0.4):
        return d.one(there)
    if "float" in dtype and d.chance(0.5):  # what has a derivative
        x = d.floating(lambda v: v.size > 0)
        if x is not None:
            moved = f" + (jnp.arange({size(shape)}) % 7).astype('{dtype}').reshape({shape})" if d.chance(0.5) else ""
            return f"jnp.resize({x[0]}.astype('{dtype}') * 8, {shape}){moved}"
    x = d.pick(lambda v: v.size > 0 and v.dtype.kind in "iufbV" and v.dtype.names is None)
    base = "jnp.arange(40)" if x is None else x[0]
    if x is not None and (is_float(x[1].dtype)):
        base = f"(jnp.nan_to_num(jnp.clip({base}, -9, 9)) * 8)"
    base = f"jnp.resize({base}, {shape}).astype('int32')"
    if d.chance(0.7):
        base = f"({base} + jnp.arange({size(shape)}, dtype='int32').reshape({shape}) * {d.one([1, 3, 7])})"
    if dtype == "bool":
        return f"({base} % 3 == 0)"
    return f"({base} % {d.one([5, 11, 97])}).astype('{dtype}')"


def moved(d: Drawer, names: list[str], shape: tuple[int, ...], count: str, deep: int = 1) -> str:
    """The text of a value of `shape` made by moving values of that shape, `names`."""
    x, y = d.one(names), d.one(names)
    if deep and d.chance(0.35):
        x = f"({moved(d, names, shape, count, deep - 1)})"
    axis = d.number(0, len(shape))
    n = shape[axis]
    at = lambda low, high: ":, " * axis + f"{low}:{high}"
    one = lambda k: ":, " * axis + k
    cut = d.number(0, n + 1)
    many = d.number(1, n + 1)
    p, q = d.number(0, n - many + 1), d.number(0, n - many + 1)
    place = f"({count} * {d.number(1, 4)} + {d.number(0, n)}) % {n}"
    other = f"({count} + {d.number(0, n)}) % {n}"
    order = f"jnp.array({d.rng.permutation(n).tolist()})"
    kind = d.number(0, 24)
    if kind == 0 or n == 0:
        return x
    if kind == 1:
        return f"jnp.flip({x}, {axis})"
    if kind == 2 and len(shape) > 1 and shape[0] == shape[1]:
        return f"jnp.swapaxes({x}, 0, 1)"
    if kind == 3:
        return f"jnp.roll({x}, {d.one([-1, 1, 2, cut])}, {axis})"
    if kind in (4, 5):
        return f"jnp.concatenate([{x}[{at(cut, '')}], {y}[{at('', cut)}]], {axis})"
    if kind in (6, 7):
        return f"{x}.at[{at(p, p + many)}].set({y}[{at(q, q + many)}])"
    if kind == 8:
        start = ["0"] * len(shape)
        start[axis] = f"{count} - {d.number(0, 3)}"
        return f"lax.dynamic_update_slice({x}, {y}[{at(q, q + many)}], [{', '.join(start)}])"
    if kind == 9:
        start = ["0"] * len(shape)
        start[axis] = f"{count} % {n + 1}"
        return f"lax.dynamic_slice(jnp.concatenate([{x}, {y}], {axis}), [{', '.join(start)}], {shape})"
    if kind == 10:
        return f"{x}.at[{one(order)}].set({y})"
    if kind == 11:
        return f"{x}[{one(order)}]"
    if kind == 12:
        return f"jnp.where(jnp.flip({x}, {axis}) > {y}, {x}, {y})"
    if kind == 13:
        return f"{x}.at[{one(place)}].set({y}[{one(other)}])"
    if kind == 14:
        return f"{x}.at[{one(place)}].{d.one(['set', 'max', 'min', 'set'])}({x}[{one(other)}])"
    if kind == 15:
        return f"lax.cond({count} % {d.number(2, 4)} == 0, lambda: {x}, lambda: {y})"
    if kind == 16:
        return f"jnp.sort({x}, axis={axis})"
    if kind == 17 and n > 1:
        half = n // 2
        return f"{x}.at[{at('', 2 * half)}:2].set({y}[{at(1, 2 * half)}:2])"
    if kind == 18:
        return f"lax.dynamic_update_index_in_dim({x}, lax.dynamic_index_in_dim({y}, {other}, {axis}), {place}, {axis})"
    if kind == 19:
        return f"lax.pad({x}[{at(cut, '')}], {y}[{', '.join(['0'] * len(shape))}], {[(cut if a == axis else 0, 0, 0) for a in range(len(shape))]})"
    if kind == 20:
        return f"jnp.maximum({x}, jnp.roll({y}, 1, {axis}))"
    if kind == 21:
        return f"lax.select({count} % 2 == 1, {x}, jnp.flip({y}, {axis}))"
    if kind == 22:
        return f"({x} ^ {y} if {x}.dtype.kind in 'iub' else {x} - {y} * 0 + jnp.flip({y}, {axis}) * 0)"
    return f"jnp.take_along_axis({x}, jnp.argsort({y}, axis={axis}), axis={axis})"


def shapes(d: Drawer) -> tuple[int, ...]:
    big = d.largest > 20_000
    n = d.one([1, 2, 3, 4, 5, 7, 8, 16, 17, 33])
    return d.one(
        [(n,), (n,), (n, n), (d.number(1, 9), n), (2, 3, n), (n, d.number(1, 9)), (64,), (129,)]
        + [(4099,), (130, 70), (65, 257)] * big
    )


@aimed(5)
def turned_carries(d: Drawer) -> None:
    """Loops whose carries are moves of each other; what they begin with are moves of one value."""
    shape, dtype = shapes(d), d.one(WHOLE)
    given = d.pick(lambda v: v.ndim > 0 and 0 < v.size <= d.largest // 4 and v.dtype.name in WHOLE)
    if given is not None and d.chance(0.5):
        shape, dtype = given[1].shape, given[1].dtype.name
    f, x = d.fresh("f"), d.fresh("x")
    k = d.number(1, 5)
    names = [f"c{j}" for j in range(k)]
    head = [f"def {f}({x}, t):"]
    whole = [x, "t"]
    starts = [moved(d, whole, shape, "0", 0) if d.chance(0.6) else d.one(whole) for _ in names]
    body = []
    kind = d.one(["scan", "scan", "fori", "while", "map over none"])
    rows = kind == "scan" and d.chance(0.6)
    reads = names + ([x] if d.chance(0.3) else []) + (["r"] if rows else [])
    temporaries = []
    for j in range(d.number(0, 4)):
        body.append(f"        t{j} = {moved(d, reads + temporaries, shape, 'i')}")
        temporaries.append(f"t{j}")
    new = [moved(d, reads + temporaries * 2, shape, "i") if d.chance(0.75) else d.one(names)
           for _ in names]
    if k > 1 and d.chance(0.3):
        new = new[1:] + new[:1]
    given, made = ", ".join(["i", *names]), ", ".join([f"n{j}" for j in range(k)])
    body += [f"        n{j} = {text}" for j, text in enumerate(new)]
    rounds = d.one([0, 1, 2, 3, 5, 8])
    ys = [d.one(names + temporaries + [f"n{j}" for j in range(k)]) for _ in range(d.number(0, 3))]
    ys += [f"jnp.sum({y})" for y in ys[:1] if d.chance(0.3)]
    first = ", ".join(starts)
    if kind in ("scan", "map over none"):
        options = d.one(["", "", ", reverse=True", ", unroll=2", ", unroll=3, reverse=True", ", unroll=True"])
        xs = f"jnp.stack([jnp.roll({x}, k, 0) for k in range({max(rounds, 1)})])" if rows else "None"
        text = [
            "    def body(s, r):", f"        {given} = s", *body,
            f"        return (i + 1, {made}), ({', '.join(ys)}{',' if ys else ''})",
            f"    s, y = lax.scan(body, (jnp.int32(0), {first}), {xs}"
            f"{', length=' + str(rounds) if not rows else ''}{options})",
            "    return (*s, *y)",
        ]  # fmt: skip
    elif kind == "fori":
        text = [
            "    def body(i, s):", f"        {', '.join(names)}, = s", *body,
            f"        return ({made},)",
            f"    return lax.fori_loop({d.one([0, 0, -1, 2])}, {d.one([rounds, 'jnp.max(t).astype(int) % 6'])}, body, ({first},))",
        ]  # fmt: skip
    else:
        more = f" & (jnp.sum({names[0]}.astype('int32')) % {d.one([3, 5, 7])} != 1)" if d.chance(0.5) else ""
        text = [
            "    def body(s):", f"        {given} = s", *body, f"        return (i + 1, {made})",
            f"    def test(s):\n        {given} = s\n        return (i < {rounds}){more}",
            f"    return lax.while_loop(test, body, (jnp.int32(0), {first}))",
        ]  # fmt: skip
    definition = "\n".join(head + text)
    a, b = grid(d, shape, dtype), grid(d, shape, dtype)
    how = d.number(0, 8)
    if how == 0:
        inside = f"vmap({f})({grid(d, (3, *shape), dtype)}, {grid(d, (3, *shape), dtype)})"
    elif how == 1:
        inside = f"vmap({f}, in_axes=({len(shape)}, None), out_axes=0)({grid(d, (*shape, 3), dtype)}, {b})"
    elif how == 2:
        inside = f"lax.cond(jnp.max({a}) > {d.number(0, 9)}, {f}, lambda x, t: jit({f})(t, x), {a}, {b})"
    elif how == 3:
        inside = f"lax.fori_loop(0, 2, lambda i, s: (s[1], {f}(*s)[-1].reshape(-1)[:{size(shape)}].reshape({shape}) if {f}(*s)[-1].size >= {size(shape)} and {f}(*s)[-1].dtype == s[0].dtype else s[0]), ({a}, {b}))"
    elif how == 4:
        g = d.fresh("x")
        definition += f"\n{g} = {a}"
        inside = f"{f}({g}, jnp.flip({g}))"
    elif how == 5:
        inside = f"{f}(*jnp.split(jnp.concatenate([{a}, {b}]), 2))"
    elif how == 6:
        inside = f"{f}(jnp.stack([{a}, {b}], -1)[..., 0], jnp.stack([{a}, {b}], 1)[:, 1] if {len(shape)} > 1 else {b})"
    else:
        inside = f"{f}({a}, {b})"
    d.attempt(inside, definition)


def size(shape: tuple[int, ...]) -> int:
    count = 1
    for n in shape:
        count *= n
    return count
