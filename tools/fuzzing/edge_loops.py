"""Statements of the edge generator about loops over a few elements: bodies of every operation that registers,
lanes and locals hold, carries of many dtypes and shapes, alone, mapped over examples that end at different
times, in each other.

Floats are kept small whole numbers where a round ends, so that most differences are ones.
"""

from __future__ import annotations

from typing import Any

from fuzzing.aimed_elements import KINDS, kind_of, step
from fuzzing.drawer import EDGES, Drawer

KNOWN = {t for names in KINDS.values() for t in names}


def edge(weight: float) -> Any:
    """Registers a family of the edge generator."""

    def add(draw: Any) -> Any:
        EDGES.append((weight, draw))
        return draw

    return add


def numbers(d: Drawer, shape: tuple[int, ...], dtype: str) -> str:
    """The text of an array of small whole numbers."""
    count = 1
    for n in shape:
        count *= n
    base = f"(jnp.arange({count}, dtype='int32') * {d.one([1, 3, 5, 7])} + {d.number(0, 9)}).reshape({shape})"
    if dtype == "bool":
        return f"({base} % 3 == 0)"
    low = 0 if dtype[0] == "u" else d.one([0, 3, 5])
    return f"({base} % {d.one([4, 7, 11])} - {low}).astype('{dtype}')"


def dtype_for(d: Drawer) -> str:
    found = d.one(["int32", "int32", "float32", "float32", "int8", "uint8", "int16", "uint32", "bool", "float16", "bfloat16",
                   "uint16", "int64", "uint64", "float64", "complex64"])  # fmt: skip
    wide = d.wide_numbers()
    return found if wide else {"int64": "int32", "uint64": "uint32", "float64": "float32"}.get(found, found)


def ended(name: str, value: Any, shape: tuple[int, ...], dtype: str) -> str:
    """The text of a value cast, kept small and broadcast to be a carry."""
    kind, to = value.dtype.kind, kind_of(dtype)
    text = name
    if kind == "c" and to != "c":
        text, kind = f"jnp.real({text})", "f"
    if kind in "fV" and to in "iu":
        text = f"jnp.clip(jnp.nan_to_num(jnp.round({text})), {0 if to == 'u' else -100}, 100)"
    elif to == "f" and kind != "b":
        text = f"jnp.round({text} % 13)" if kind in "fV" else f"({text} % 13)"
    elif to == "c":
        text = f"(jnp.round(jnp.real({text}) % 5) + 1j * jnp.round(jnp.imag({text}) % 5))"
    elif to == "b":
        text = f"({text} != 0)"
    if value.dtype.name != dtype:
        text = f"{text}.astype('{dtype}')"
    elif to in "fc":
        text = f"({text}).astype('{dtype}')"
    return text if value.shape == shape else f"jnp.broadcast_to({text}, {shape})"


def carried(inner: Drawer, value: Any) -> str:
    """The text of what a round makes of a carry."""
    made = [(n, v) for n, v in inner.pool if v.dtype.name in KNOWN]
    fits = lambda v: v.ndim <= value.ndim and all(a in (1, b) for a, b in zip(v.shape[::-1], value.shape[::-1]))
    recent = [(n, v) for n, v in made if n in inner.made and fits(v)]
    same = [(n, v) for n, v in recent if v.shape == value.shape and v.dtype == value.dtype]
    there = recent[-6:] or [m for m in made if fits(m[1])]
    text = ended(*inner.one(same[-3:] if same and inner.chance(0.6) else there), value.shape, value.dtype.name)
    for _ in range(inner.number(0, 3)):
        other = ended(*inner.one(there), value.shape, value.dtype.name)
        join = inner.one(["^", "|"] if value.dtype.kind == "b" else ["+", "-", "+"])
        text = f"({text} {join} {other})"
    return text


def elementwise(d: Drawer) -> None:
    values = [(n, v) for n, v in d.pool if v.dtype.name in KNOWN]
    if not values:
        return
    shape = d.one(values[-4:])[1].shape
    mates = [(n, v.dtype.name) for n, v in values if v.shape == shape and v.dtype.kind != "c"]
    if not mates:
        x = d.one([n for n, v in values if v.dtype.kind == "c"])
        d.attempt(d.one([f"{x} * {x}", f"jnp.conj({x})", f"{x} + jnp.real({x})", f"jnp.imag({x})", f"-{x}", f"{x} * 1j", f"jnp.abs({x})"]))
        return
    found = step(d, mates)
    if found is not None:
        d.attempt(found[0])


def broadcasted(d: Drawer) -> None:
    x = d.pick(lambda v: v.dtype.kind in "iuf")
    if x is None:
        return
    name, v = x
    mates = [n for n, w in d.pool if w.dtype == v.dtype and w.ndim <= v.ndim and v.shape[v.ndim - w.ndim :] == w.shape]
    y = d.one(mates or [name])
    d.attempt(d.one([f"{name} + {y}", f"{name} - {y}", f"jnp.maximum({name}, {y})", f"jnp.where({name} > {y}, {y}, {name})",
                     f"{name} * ({y} > 2)"]))  # fmt: skip


def arranged(d: Drawer) -> None:
    """Elements that change places, sums along axes, small products."""
    x = d.pick(lambda v: v.ndim >= 1 and v.size > 0 and v.dtype.name in KNOWN)
    if x is None:
        return
    name, v = x
    axis = d.number(0, v.ndim)
    n = v.shape[axis]
    before = ":, " * axis
    count = d.pick(lambda w: w.ndim == 0 and w.dtype.kind in "iu")
    at = f"({count[0]}.astype('int32') + {d.number(-2, 4)})" if count is not None and d.chance(0.8) else str(d.number(0, n))
    cut = d.number(0, n)
    many = d.number(1, n + 1)
    zeros = lambda s: ", ".join(s if a == axis else "0" for a in range(v.ndim))
    part = (*v.shape[:axis], many, *v.shape[axis + 1 :])
    real = v.dtype.kind != "c"
    y = d.one([m for m, w in d.pool if w.shape == v.shape and w.dtype == v.dtype] or [name])
    texts = [
        f"jnp.flip({name}, {axis})", f"jnp.roll({name}, {d.number(-2, 3)}, {axis})", f"{name}[{before}{cut}]",
        f"{name}[{before}{at} % {n}]", f"jnp.take({name}, {at}, axis={axis}, mode='clip')",
        f"{name}.at[{before}{at} % {n}].set({y}[{before}{cut}])", f"{name}.at[{before}{cut}].{'add' if v.dtype.kind != 'b' else 'set'}({y}[{before}{n - 1 - cut}])",
        f"{name}.at[{before}{at}].set({y}[{before}{cut}], mode='drop')",
        f"lax.dynamic_slice({name}, [{zeros(at)}], {part})", f"lax.dynamic_update_slice({name}, {y}[{before}:{many}], [{zeros(at)}])",
        f"jnp.concatenate([{name}[{before}{cut}:], {y}[{before}:{cut}]], {axis})",
        f"jnp.stack([{name}[{before}{cut}], {y}[{before}0]], {axis})", f"{name}[{before}::2]", f"jnp.repeat({name}[{before}{cut}:{cut + 1}], {n}, {axis})",
        f"{name}[{before}jnp.arange({n})[::-1] * {d.number(1, 4)} % {n}]", f"jnp.transpose({name})",
        f"lax.pad({name}[{before}{cut}:], jnp.ones((), {name}.dtype), {[(cut if a == axis else 0, 0, 0) for a in range(v.ndim)]})",
    ]  # fmt: skip
    if real:
        texts += [f"jnp.argmax({name}, {axis})", f"jnp.max({name}, {axis})", f"jnp.min({name}, {axis}, keepdims=True)",
                  f"jnp.any({name} > 2, {axis})", f"jnp.sort({name}, {axis})", f"jnp.argmin({name}, {axis}).astype('uint8')",
                  f"jnp.cumsum({name}, {axis}, dtype='int32')" if v.dtype.kind in "iub" else f"jnp.cumsum({name}, {axis})",
                  f"lax.cummax({name}, {axis}, reverse=True)" if v.dtype.kind != "b" else f"jnp.all({name}, {axis})",
                  f"jnp.argsort({name}, {axis})", f"jnp.where({name} == jnp.max({name}, {axis}, keepdims=True), {y}, {name})"]  # fmt: skip
    if v.dtype.kind in "iuc" or v.dtype.name in ("float32", "float64"):
        texts += [f"jnp.sum({name}, {axis})", f"jnp.sum({name}, {axis}, dtype='{v.dtype.name}')", f"{name} @ {y}.T" if v.ndim == 2 else f"jnp.dot({name}, {y})",
                  f"jnp.sum({name} * {y}, {axis}, keepdims=True)", f"jnp.outer({name}, {y})" if v.ndim == 1 and n < 6 else f"jnp.sum({name})",
                  f"{name} - jnp.sum({y}, {axis}, keepdims=True).astype({name}.dtype)"]  # fmt: skip
        mates = [m for m, w in d.pool if w.ndim == 2 and w.shape[0] == v.shape[-1] and w.dtype == v.dtype]
        texts += [f"jnp.matmul({name}, {m})" for m in mates[-2:]] * 2
    d.attempt(d.one(texts))


def within(d: Drawer) -> None:
    """A loop or a branch in the body."""
    if d.depth >= 3:
        return
    made = looped(d, d.number(1, 3), small=True)
    if made is not None:
        d.attempt(made[1], made[0])


BODY = [(5.0, elementwise), (1.5, broadcasted), (4.0, arranged), (0.5, within)]


def starts(d: Drawer, count: int) -> list[tuple[str, Any]]:
    """Values that a loop may begin with."""
    there = [(n, v) for n, v in d.pool if v.dtype.name in KNOWN and v.size <= 40 and v.ndim <= 2]
    n = d.one([1, 2, 3, 4, 5, 7, 8])
    found = []
    for _ in range(count):
        if there and d.chance(0.4):
            found.append(d.one(there))
            continue
        shape = d.one([(), (), (n,), (n,), (n, n), (d.number(1, 5), n), (1,)])
        if d.attempt(numbers(d, shape, dtype_for(d))):
            found.append(d.pool[-1])
    return found


def looped(d: Drawer, count: int, small: bool = False) -> tuple[str, str] | None:
    """The definition of a loop's function and the text of its call."""
    carries = starts(d, count)
    if not carries:
        return None
    kind = d.one(["while", "fori", "scan", "scan", "cond"] if small else ["while", "while", "fori", "scan", "scan"])
    families, d.families = d.families, BODY
    given = ", ".join(n for n, _ in carries)
    values = [v for _, v in carries]
    counter = d.scope["jnp"].asarray(1, "int32")
    try:
        if kind == "cond":
            made = [d.block(values, d.number(1, 4), lambda inner, names: ", ".join(carried(inner, v) for v in values) + ",")
                    for _ in range(2)]
            if None in made:
                return None
            test = d.pick(lambda v: v.ndim == 0 and v.dtype.kind in "iufb")
            text = f"lax.cond({test[0] if test else True} != 0, {made[0][0]}, {made[1][0]}, {given})"
            return made[0][1] + "\n" + made[1][1], text
        rows = kind == "scan" and d.chance(0.7)
        length = d.one([1, 2, 3, 5, 8])
        row = []
        if rows:
            shape = d.one([(), (), *[v.shape for v in values]])
            dtype = dtype_for(d)
            if d.attempt(numbers(d, (length, *shape), dtype)):
                row = [d.pool[-1]]
        parameters = [counter, *values, *[v[0] for _, v in row]]

        def result(inner: Drawer, names: list[str]) -> str:
            ends = ", ".join(carried(inner, v) for v in values)
            if kind != "scan":
                return f"{ends},"
            ys = [inner.one(inner.pool[-6:])[0] for _ in range(inner.number(0, 4))]
            return f"({names[0]} + 1, {ends}), ({', '.join(ys)}{',' if ys else ''})"

        made = d.block(parameters, d.number(2, 14), result)
    finally:
        d.families = families
    if made is None:
        return None
    body, definition = made
    if kind == "fori":
        bounds = d.one(["0, 3", "1, 6", "0, 0", "-2, 2", "0, 1", "0, 8"])
        limit = d.pick(lambda v: v.ndim == 0 and v.dtype.kind in "iu")
        if limit is not None and d.chance(0.4):
            bounds = f"0, {limit[0]}.astype('int32') % 7"
        return definition, f"lax.fori_loop({bounds}, lambda i, s: {body}(jnp.int32(i), *s), ({given},))"
    if kind == "while":
        limit = d.pick(lambda v: v.ndim == 0 and v.dtype.kind in "iu")
        most = f"{limit[0]}.astype('int32') % 7" if limit is not None and d.chance(0.7) else str(d.number(0, 8))
        more = ""
        numeric = [k for k, v in enumerate(values) if v.dtype.kind in "iu"]
        if numeric and d.chance(0.5):
            k = d.one(numeric)
            more = f" & (jnp.max(s[{k + 1}]) {d.one(['<', '!='])} {d.number(3, 90)})"
        return definition, (f"lax.while_loop(lambda s: (s[0] < {most}){more}, "
                            f"lambda s: (s[0] + 1, *{body}(*s)), (jnp.int32({d.number(0, 2)}), {given}))")  # fmt: skip
    options = d.one(["", "", "", ", reverse=True", ", unroll=2", ", unroll=3"])
    xs = row[0][0] if row else "None"
    call = f"{body}(*s, {'x' if row else ''})".replace(", )", ")")
    return definition, (f"(lambda s, y: (*s, *y))(*lax.scan(lambda s, x: {call}, (jnp.int32(0), {given}), {xs}"
                        f"{'' if row else f', length={length}'}{options}))")  # fmt: skip


@edge(6)
def loops(d: Drawer) -> None:
    """A loop over a few elements, alone or mapped over examples."""
    f = d.fresh("f")
    n = d.number(1, 4)
    parameters = []
    for _ in range(n):
        shape = d.one([(), (), (2,), (3,), (4,), (5,), (8,), (2, 2), (3, 3), (4, 4), (2, 3), (17,), (33,)])
        if d.attempt(numbers(d, shape, dtype_for(d))):
            parameters.append(d.pool[-1])
    if not parameters:
        return
    families, d.families = d.families, [(1.0, _one_loop), (0.4, elementwise), (0.3, arranged)]
    depth, d.depth = d.depth, 0
    try:
        made = d.block([v for _, v in parameters], d.number(1, 4),
                       lambda inner, names: f"[{', '.join(inner.made)}]" if inner.made else None, False)
    finally:
        d.families, d.depth = families, depth
    if made is None:
        return
    f, definition = made
    given = ", ".join(n for n, _ in parameters)
    kind = d.number(0, 8)
    if kind < 2:
        d.attempt(f"{f}({given})", definition)
        return
    if kind < 7:
        batch = d.one([1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 100, 129] + [1000, 4096] * (d.largest > 20_000))
        axes = [d.one([0, 0, 0, v.ndim, None]) for _, v in parameters]
        if all(a is None for a in axes):
            axes[0] = 0
        stacked = []
        for (_, v), axis in zip(parameters, axes):
            shape = v.shape if axis is None else (*v.shape[:axis], batch, *v.shape[axis:])
            stacked.append(numbers(d, shape, v.dtype.name))
        outs = d.one(["0", "0", "-1"])
        mapped = f"vmap({f}, in_axes=({', '.join(map(str, axes))},), out_axes={outs})({', '.join(stacked)})"
        d.attempt(mapped, definition)
        return
    many = ", ".join(f"jnp.stack([{n}, {n}, jnp.flip({n})])" for n, _ in parameters)
    d.attempt(f"lax.map(lambda s: {f}(*s), ({many},))", definition)


def _one_loop(d: Drawer) -> None:
    made = looped(d, d.number(1, 4))
    if made is not None:
        d.attempt(made[1], made[0])


@edge(2.5)
def chained(d: Drawer) -> None:
    """Scans over one domain, one behind the other, and what is computed and moved between them; lengths that
    are the domain's as well."""
    n = d.one([8, 8, 12, 16, 17, 33] + [4096, 4099] * (d.largest > 20_000))
    domain = d.one([(n,), (n,), (n,), (2, n), (n, 2), (3, n)])
    f = d.fresh("f")
    length = n if n < 40 and d.chance(0.3) else d.one([1, 2, 3, 5, 8])
    dtype = d.one(["float32", "int32", "int32", "int16", "uint8", "bool"])
    wrap = f".astype('{dtype}')"
    small = "% 11" if dtype != "bool" else "!= 0"
    whole, rows, scalars = ["x", "y"], ["r"], ["t"]
    lines = []
    for k in range(d.number(2, 8)):
        if d.chance(0.45):
            a, b, r, t = d.one(whole), d.one(whole), d.one(rows), d.one([*scalars, *scalars, *rows, *([w for w in whole if domain == (length,)] * 3)])
            both = d.chance(0.5)
            step = d.one([f"c * 3 + r + {b}", "jnp.where(r > c, r, c + 1)", f"r - c * {b}", "c + r", f"jnp.where({b} > c, c, r) + u", "(c ^ 1) + r" if dtype != "float32" else "c - r"])
            if dtype == "bool":
                step = d.one(["c ^ r", f"jnp.where({b}, c, r)", "(r & ~c) | u"])
            u = "u" if both else "0" if dtype != "bool" else "False"
            step = step.replace("u", u) if "uint" not in step else step
            give = d.one(["c", "new", "r", "c + r" if dtype != "bool" else "c | r", "jnp.maximum(c, new)"])
            xs = f"({r}, {t})" if both else r
            unpack = "r, u" if both else "r"
            options = d.one(["", "", ", reverse=True"])
            lines += [f"def body{k}(c, s):", f"    {unpack} = s", f"    new = (({step}) {small}){wrap}", f"    return new, ({give}){wrap}",
                      f"c{k}, s{k} = lax.scan(body{k}, {a}, {xs}{options})"]  # fmt: skip
            whole.append(f"c{k}")
            rows.append(f"s{k}")
        elif d.chance(0.5):
            v, w = d.one(rows), d.one(rows)
            z = d.one(whole)
            axis = d.number(0, len(domain) + 1)
            lines.append(f"s{k} = (" + d.one([f"{v} + {w}", f"({v} * 2 - {z})" if dtype != "bool" else f"{v} ^ {z}", f"jnp.flip({v}, {axis})", f"jnp.roll({w}, 1, {axis}) + {v}", f"jnp.where({v} > {w}, {v}, {z})",
                                              f"jnp.concatenate([{v}[1:], {w}[:1]])", f"jnp.broadcast_to({z}, {(length, *domain)})", f"jnp.maximum({v}, {v}[:1])"]) + f" {small}){wrap}")
            rows.append(f"s{k}")
        else:
            v, w = d.one(whole), d.one(whole)
            s = d.one(rows)
            lines.append(f"c{k} = (" + d.one([f"{v} + {w}", f"{s}[0]", f"{s}[-1] + {v}", f"jnp.flip({v})", f"jnp.where({v} > {w}, {v}, {w})", f"jnp.sum({s}, 0)", f"jnp.roll({v}, 1) + {w}"]) + f" {small}){wrap}")
            whole.append(f"c{k}")
    ends = [*dict.fromkeys([whole[-1], rows[-1], d.one(whole), *[v for v in rows[1:] if d.chance(0.3)]])]
    body = "\n".join(f"    {line}" for line in [*lines, f"return {', '.join(ends)},"])
    arguments = ", ".join(numbers(d, s, dtype) for s in (domain, domain, (length, *domain), (length,)))
    d.attempt(f"{f}({arguments})", f"def {f}(x, y, r, t):\n{body}")
