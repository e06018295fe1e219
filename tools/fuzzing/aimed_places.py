"""Statements of the aimed generator about places: gathers and scatters of every form and mode, and loops
that carry the places where they read and write."""

from __future__ import annotations

from fuzzing.aimed_loops import WHOLE, aimed, grid
from fuzzing.drawer import Drawer

INTEGERS = ("int32", "int32", "int8", "uint8", "int16", "uint32", "int64", "uint16")


def positions(d: Drawer, shape: tuple[int, ...], top: int) -> str:
    """The text of an array of places, some of them negative or beyond the end."""
    dtype = d.one(INTEGERS)
    if dtype == "int64" and not d.wide_numbers():
        dtype = "int32"
    low = 0 if dtype.startswith("u") else d.one([0, 0, -2, -top])
    high = top + d.one([0, 0, 0, 3])
    if d.chance(0.5):
        found = d.rng.integers(low, max(high, low + 1), shape).tolist()
        return f"jnp.array({found}, dtype='int32').reshape({shape}).astype('{dtype}')"
    return f"({grid(d, shape, 'int32')} * {d.one([1, 3, 5])} % {max(high - low, 1)} + {low}).astype('{dtype}')"


def mode_of(d: Drawer) -> str:
    return d.one(["'clip'", "'fill'", "'drop'", "None", "lax.GatherScatterMode.CLIP",
                  "lax.GatherScatterMode.FILL_OR_DROP"])  # fmt: skip


def numbers(d: Drawer) -> tuple | None:
    """A gather's dimensions: operand's shape, window, batch shape, numbers (as a dict)."""
    rank = d.number(1, 5)
    operand = tuple(d.one([1, 2, 3, 4, 5, 7, 9]) for _ in range(rank))
    axes = list(range(rank))
    batching = [a for a in axes if d.chance(0.15)]
    others = [a for a in axes if a not in batching]
    collapsed = [a for a in others if d.chance(0.4)]
    window = [1 if a in collapsed or a in batching else d.number(1, operand[a] + 1) for a in axes]
    starts = [a for a in others if d.chance(0.6)]
    d.rng.shuffle(starts)
    starts = [int(a) for a in starts]
    extra = tuple(d.number(1, 5) for _ in range(d.number(0, 3)))
    batch = [*extra, *[operand[a] for a in batching]]
    order = d.rng.permutation(len(batch)).tolist()
    shaped = [batch[k] for k in order]
    at = [order.index(len(extra) + k) for k in range(len(batching))]
    offset_count = rank - len(collapsed) - len(batching)
    out_rank = len(shaped) + offset_count
    offsets = sorted(int(k) for k in d.rng.permutation(out_rank)[:offset_count])
    return operand, tuple(window), tuple(shaped), starts, collapsed, batching, at, offsets


@aimed(3)
def gathered(d: Drawer) -> None:
    """A gather of any dimensions."""
    operand, window, batch, starts, collapsed, batching, at, offsets = numbers(d)
    x = grid(d, operand, d.one(WHOLE))
    top = max([operand[a] - window[a] + 1 for a in starts], default=1)
    where = positions(d, (*batch, len(starts)), top)
    dims = (f"lax.GatherDimensionNumbers({tuple(offsets)}, {tuple(collapsed)}, {tuple(starts)}, "
            f"{tuple(batching)}, {tuple(at)})")  # fmt: skip
    fill = ", fill_value=7" if d.chance(0.2) else ""
    text = f"lax.gather({{}}, {{}}, {dims}, {window}, mode={mode_of(d)}{fill})"
    mapped(d, text, x, where, operand, (*batch, len(starts)))


def mapped(
    d: Drawer, text: str, x: str, where: str, shape: tuple[int, ...], places: tuple[int, ...]
) -> None:
    """The text of an array and of places in it, alone, mapped, in a loop, or read after moves."""
    how = d.number(0, 10)
    if how < 4:
        d.attempt(text.format(x, where))
    elif how < 7:
        f = f"lambda x, i: {text.format('x', 'i')}"
        first, second = d.one([(0, 0), (0, None), (None, 0), (len(shape), 0), (0, len(places))])
        n = d.number(1, 4)
        stack = lambda t, axis: t if axis is None else f"jnp.stack([{t}, jnp.flip({t}), jnp.roll({t}, 1)][:{n}], {axis})"
        d.attempt(f"vmap({f}, in_axes=({first}, {second}))({stack(x, first)}, {stack(where, second)})")
    elif how == 7:
        d.attempt(f"lax.map(lambda i: {text.format(x, 'i')}, jnp.stack([{where}, jnp.flip({where})]))")
    elif how == 8:
        d.attempt(f"lax.scan(lambda s, i: (jnp.flip(s, 0), {text.format('s', 'i')}), {x}, jnp.stack([{where}, jnp.flip({where}), {where}]))")
    else:
        turned = tuple(d.rng.permutation(len(shape)).tolist())
        back = tuple(turned.index(k) for k in range(len(shape)))
        d.attempt(text.format(f"jnp.transpose(jnp.transpose({x}, {turned}) + {x}.dtype.type(1), {back})", where)
                  if "bool" not in x else text.format(x, where))


@aimed(3)
def scattered(d: Drawer) -> None:
    """A scatter of any dimensions; what is set at equal places is equal."""
    operand, window, batch, starts, collapsed, batching, at, offsets = numbers(d)
    dtype = d.one(WHOLE[:-1])
    x = grid(d, operand, dtype)
    top = max([operand[a] - window[a] + 1 for a in starts], default=1)
    places = (*batch, len(starts))
    where = positions(d, places, top)
    windows = iter([window[a] for a in range(len(operand)) if a not in collapsed and a not in batching])
    batches = iter(batch)
    updates = tuple(next(windows) if k in offsets else next(batches) for k in range(len(batch) + len(offsets)))
    dims = (f"lax.ScatterDimensionNumbers({tuple(offsets)}, {tuple(collapsed)}, {tuple(starts)}, "
            f"{tuple(batching)}, {tuple(at)})")  # fmt: skip
    f = d.one(["scatter", "scatter_add", "scatter_add", "scatter_min", "scatter_max", "scatter_mul", "scatter_sub"])
    given = grid(d, updates, dtype)
    if f == "scatter":
        given = f"jnp.full({updates}, 3, {dtype if dtype != 'float64' or d.wide_numbers() else 'float32'!r})"
    if f == "scatter_mul":
        given = f"({given} % 2 + 1)"
    mapped(d, f"lax.{f}({{}}, {{}}, {given}, {dims}, mode={mode_of(d)})", x, where, operand, places)


POINTERS = {
    # A permutation's cycles are followed; what is met is written in order.
    "follow": """
def {f}(x, p):
    def body(k, s):
        at, out = s
        return p[at], out.at[k].set(x[at])
    return lax.fori_loop(0, {n}, body, (jnp.int32({a}), x))""",
    "sorted by exchanges": """
def {f}(x, p):
    def body(k, x):
        i, j = k % ({n} - 1), k % ({n} - 1) + 1
        a, b = x[i], x[j]
        return x.at[i].set(jnp.minimum(a, b)).at[j].set(jnp.maximum(a, b))
    return lax.fori_loop(0, {n} * {r}, body, x), p""",
    "exchange by where": """
def {f}(x, p):
    def body(s, j):
        i = p[j]
        y = x[i]
        new = s.at[i].set(s[j]).at[j].set(s[i])
        return new, (s[i], new[j], y)
    s, y = lax.scan(body, x, jnp.arange({n}){options})
    return (s, *y)""",
    "stack": """
def {f}(x, p):
    def body(s, v):
        top, stack = s
        push = v % 2 == {b}
        stack = lax.cond(push, lambda: stack.at[top].set(v), lambda: stack)
        top = jnp.where(push, jnp.minimum(top + 1, {n} - 1), jnp.maximum(top - 1, 0))
        return (top, stack), stack[top]
    (top, stack), y = lax.scan(body, (jnp.int32(0), x), p.astype(x.dtype){options})
    return top, stack, y""",
    "ring": """
def {f}(x, p):
    def body(s, v):
        head, ring = s
        old = ring[head]
        ring = lax.dynamic_update_index_in_dim(ring, old + ring[(head + {a}) % {n}] + v, head, 0)
        return ((head + {b} + 1) % {n}, ring), (old, ring[(head + {r}) % {n}], ring)
    s, y = lax.scan(body, (jnp.int32({a}), x), p.astype(x.dtype){options})
    return (*s, *y)""",
    "distances": """
def {f}(x, p):
    def row(before, v):
        def cell(s, k):
            left, row = s
            here = jnp.minimum(jnp.minimum(left + 1, before[k + 1] + 1), before[k] + (v != x[k]).astype(x.dtype))
            return (here, row.at[k + 1].set(here)), left
        (last, new), y = lax.scan(cell, (before[0] + 1, before.at[0].add(1)), jnp.arange({n}))
        return new, (last, y)
    s, y = lax.scan(row, jnp.arange({n} + 1).astype(x.dtype), p.astype(x.dtype){options})
    return (s, *y)""",
    "elimination": """
def {f}(x, p):
    m = jnp.outer(x, p.astype(x.dtype)) + jnp.arange({n}).astype(x.dtype)
    def body(k, m):
        j = jnp.argmax(jnp.where(jnp.arange({n}) >= k, jnp.abs(m[:, k]) if m.dtype.kind != 'u' else m[:, k], m.dtype.type(0)))
        m = m.at[jnp.array([0, 1]) * 0 + jnp.stack([k, j]).astype(int)].set(m[jnp.stack([j, k]).astype(int)]) if {b} else m.at[k].set(m[j]).at[j].set(m[k])
        rest = (jnp.arange({n}) > k)[:, None]
        return jnp.where(rest, m * m[k, k] - jnp.outer(m[:, k], m[k]), m)
    return lax.fori_loop(0, {r}, body, m)""",
    "walk": """
def {f}(x, p):
    def body(s):
        at, seen, count = s
        return p[at], seen.at[at].add(1), count + x[at].astype(int)
    return lax.while_loop(lambda s: (s[1][s[0]] < {r}) & (s[2] < 500), body, (jnp.int32({a}), jnp.zeros({n}, int), 0))""",
    "counts": """
def {f}(x, p):
    def body(s, v):
        counts, last = s
        at = (v + last) % {n}
        return (counts.at[at].add(1), counts[at]), (counts[last % {n}], jnp.argmax(counts))
    s, y = lax.scan(body, (jnp.zeros({n}, 'int32'), jnp.int32(0)), p{options})
    return (*s, *y, x)""",
    "window": """
def {f}(x, p):
    def body(s, at):
        part = lax.dynamic_slice(s, (at - {b},), ({m},))
        s = lax.dynamic_update_slice(s, jnp.flip(part) + part[0], (at + {a} - 1,))
        return s, (part, lax.dynamic_slice(s, (at,), ({m},)))
    s, y = lax.scan(body, x, p{options})
    return (s, *y)""",
    "rows of a table": """
def {f}(x, p):
    t = jnp.stack([x, jnp.flip(x), x + x])
    def body(s, at):
        row = s[at % 3]
        s = s.at[at % 3].set(s[(at + 1) % 3]).at[(at + {a}) % 3, :{m}].add(row[-{m}:])
        return s, (row, s[:, at % {n}], s.T[at % {n}])
    s, y = lax.scan(body, t, p{options})
    return (s, *y)""",
    "two tables": """
def {f}(x, p):
    def body(k, s):
        a, b = s
        i = p[k % {n}]
        return b.at[i].set(a[k % {n}]), lax.dynamic_update_slice(a, lax.dynamic_slice(b, (i,), ({m},)), (k,))
    return lax.fori_loop(0, {r} + 2, body, (x, jnp.flip(x)))""",
    "sieve": """
def {f}(x, p):
    def body(k, s):
        def inner(s):
            j, s = s
            return j + k, s.at[j].set(0, mode='drop')
        return lax.while_loop(lambda t: t[0] < {n}, inner, (k * 2, s))[1]
    return lax.fori_loop(2, {n}, body, jnp.ones({n}, x.dtype) + x * 0), p""",
}  # fmt: skip


@aimed(4)
def pointers(d: Drawer) -> None:
    """Loops that carry places, alone, mapped, nested, in a branch."""
    f, n = d.fresh("f"), d.one([3, 4, 5, 8, 13, 16, 17])
    options = d.one(["", "", ", reverse=True", ", unroll=2", ", unroll=4"])
    definition = POINTERS[d.one(sorted(POINTERS))].format(
        f=f, n=n, m=d.number(1, n), a=d.number(0, 3), b=d.number(0, 2), r=d.number(1, 4), options=options
    ).strip()  # fmt: skip
    dtype = d.one(["int32", "int32", "int16", "uint32", "uint8", "float32", "int8"])
    x = grid(d, (n,), dtype)
    y = grid(d, (n,), "int32")
    p = lambda: f"jnp.array({d.rng.permutation(n).tolist()}, dtype='int32')" if d.chance(0.5) else f"({y} % {n})"
    how = d.number(0, 8)
    if how < 2:
        text = f"vmap({f}, in_axes=({d.one(['0, 0', '0, None', 'None, 0'])}))"
        first = f"jnp.stack([{x}, jnp.flip({x}), {x} + 1])" if "(None" not in text else x
        second = f"jnp.stack([{p()}, {p()}, {p()}])" if "None)" not in text else p()
        d.attempt(f"{text}({first}, {second})", definition)
    elif how == 2:
        d.attempt(f"lax.map(lambda s: {f}(*s), (jnp.stack([{x}, jnp.flip({x})]), jnp.stack([{p()}, {p()}])))", definition)
    elif how == 3:
        d.attempt(f"lax.cond({x}[0] % 2 == 0, {f}, lambda x, p: {f}(x, jnp.flip(p)), {x}, {p()})", definition)
    elif how == 4:
        g = d.fresh("f")
        whole = f"def {g}(x, p):\n    found = {f}(x, p)\n    return found if isinstance(found, tuple) else (found,)"
        d.attempt(f"vmap(lambda b, x, p: lax.cond(b, {g}, lambda x, p: {g}(x, jnp.flip(p)), x, p))(jnp.array([True, False, True]), jnp.stack([{x}, {x}, jnp.flip({x})]), jnp.stack([{p()}, {p()}, {p()}]))", f"{definition}\n{whole}")
    else:
        d.attempt(f"{f}({x}, {p()})", definition)
