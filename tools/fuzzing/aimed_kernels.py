"""Statements of the aimed generator about kernels of their own: products and windows of operands that are
moved, cut or repeated, with what follows them; rules of the user's within loops within maps, differentiated.

Values are small whole numbers, so that sums are exact in every order.
"""

from __future__ import annotations

from fuzzing.aimed_loops import aimed, size
from fuzzing.drawer import Drawer


def exact(d: Drawer, shape: tuple[int, ...], dtype: str, top: int = 5) -> str:
    """The text of an array of small whole numbers, some of the program's."""
    x = d.pick(lambda v: v.size > 0 and v.dtype.kind in "iub")
    low = 0 if dtype[0] in "ub" else top // 2
    base = f"jnp.arange({size(shape)}, dtype='int32') * {d.one([1, 3, 7, 11])}"
    base = f"({base}).reshape({shape})"
    if x is not None and d.chance(0.5):
        base = f"({base} + jnp.resize({x[0]}, {shape}).astype('int32') % 5)"
    return f"({base} % {top} - {low}).astype('{dtype}')"


def disguised(d: Drawer, shape: tuple[int, ...], dtype: str, top: int = 5) -> str:
    """The text of an operand that is a view of another: turned, cut, reversed, repeated, joined."""
    rank = len(shape)
    kind = d.number(0, 11) if rank else 0
    axis = d.number(0, max(rank, 1))
    n = shape[axis] if rank else 1
    with_n = lambda m: (*shape[:axis], m, *shape[axis + 1 :])
    before = ":, " * axis
    if kind < 2:
        return exact(d, shape, dtype, top)
    if kind in (2, 3):
        order = d.rng.permutation(rank).tolist()
        inner = tuple(shape[order.index(k)] for k in range(rank))
        return f"jnp.transpose({exact(d, inner, dtype, top)}, {tuple(order)})"
    if kind == 4:
        step = d.number(1, 4)
        first = d.number(0, 3)
        return f"{exact(d, with_n(n * step + first), dtype, top)}[{before}{first}::{step}]" if n else exact(d, shape, dtype, top)
    if kind == 5:
        return f"jnp.flip({exact(d, shape, dtype, top)}, {axis})"
    if kind == 6:
        return f"jnp.broadcast_to({exact(d, with_n(1), dtype, top)}, {shape})"
    if kind == 7:
        cut = d.number(0, n + 1)
        return f"jnp.concatenate([{exact(d, with_n(cut), dtype, top)}, {exact(d, with_n(n - cut), dtype, top)}], {axis})"
    if kind == 8:
        return f"jnp.where({exact(d, shape, 'int32')} > 0, {exact(d, shape, dtype, top)}, {exact(d, with_n(1), dtype, top)})"
    if kind == 9:
        return f"{exact(d, shape, 'int8', top)}.astype('{dtype}')" if dtype[0] != "u" else exact(d, shape, dtype, top)
    low, high = d.number(0, 3), d.number(0, 3)
    pads = [(low, high, 0) if a == axis else (0, 0, 0) for a in range(rank)]
    inner = n - low - high
    if inner < 0:
        return exact(d, shape, dtype, top)
    return f"lax.pad({exact(d, with_n(inner), dtype, top)}, jnp.zeros((), '{dtype}'), {pads})"


def followed(d: Drawer, text: str) -> None:
    """Adds a value and what a kernel may do at once with it."""
    if not d.attempt(text):
        return
    name, v = d.pool[-1]
    for _ in range(d.number(0, 3)):
        axis = d.number(0, max(v.ndim, 1))
        texts = [f"{name} * 2 - 1", f"jnp.maximum({name}, 1)", f"{name}.astype('float32')", f"-{name}",
                 f"{name} == 2", f"jnp.where({name} > 1, {name}, 3)"]  # fmt: skip
        if v.ndim:
            texts += [f"jnp.sum({name}, axis={axis})", f"jnp.flip({name}, {axis})", f"jnp.moveaxis({name}, {axis}, 0)",
                      f"{name}[..., ::2] + 1", f"jnp.cumsum({name}, axis={axis})",
                      f"{name} + jnp.flip({name}, {axis})"]  # fmt: skip
            if v.shape[axis]:
                texts += [f"jnp.max({name}, axis={axis}, keepdims=True) - {name}", f"jnp.argmax({name}, axis={axis})"]
        d.attempt(d.one(texts))


@aimed(3)
def contracted(d: Drawer) -> None:
    """dot_general of any dimensions, of operands that are views."""
    dtype = d.one(["float32", "float32", "int32", "int8", "int16", "uint8", "bfloat16", "float16", "float64", "complex64"])
    if dtype == "float64" and not d.wide_numbers():
        dtype = "float32"
    top = 130 if d.largest > 20_000 else 34
    length = lambda: d.one([1, 1, 2, 3, 4, 5, 7, 8, 13, 16, 17, top] + [0] * (d.number(0, 8) == 0))
    batch = [d.number(1, 4) for _ in range(d.one([0, 0, 1, 1, 2]))]
    summed = [length() for _ in range(d.one([0, 1, 1, 1, 2]))]
    rows = [length() for _ in range(d.one([0, 1, 1, 2]))]
    columns = [length() for _ in range(d.one([0, 1, 1, 2]))]
    if size((*batch, *summed, *rows)) > 20_000 or size((*batch, *summed, *columns)) > 20_000:
        return
    if size((*batch, *rows, *columns)) > d.largest:
        return

    def laid(free: list[int]) -> tuple[tuple[int, ...], list[int], list[int]]:
        sizes = [*batch, *summed, *free]
        order = d.rng.permutation(len(sizes)).tolist()  # place k holds sizes[order[k]]
        shape = tuple(sizes[k] for k in order)
        where = [order.index(k) for k in range(len(sizes))]
        return shape, where[: len(batch)], where[len(batch) : len(batch) + len(summed)]

    (left, lb, lc), (right, rb, rc) = laid(rows), laid(columns)
    numbers = ((tuple(lc), tuple(rc)), (tuple(lb), tuple(rb)))
    wanted = ""
    if d.chance(0.3):
        more = {"int8": "int32", "uint8": "uint32", "int16": "int32", "bfloat16": "float32", "float16": "float32"}
        wanted = f", preferred_element_type='{more[dtype]}'" if dtype in more else ""
    most = 3 if dtype in ("bfloat16", "float16") else 5
    a, b = disguised(d, left, dtype, most), disguised(d, right, dtype, most)
    text = f"lax.dot_general({{}}, {{}}, {numbers}{wanted})"
    kind = d.number(0, 8)
    if kind == 0 and "int" not in dtype and dtype not in ("complex64", "float16", "bfloat16"):
        x = d.fresh("x")
        d.attempt(f"grad(lambda {x}: jnp.sum({text.format(x, b)} * 2))({a})")
    elif kind == 1:
        x = d.fresh("x")
        d.attempt(f"vmap(lambda {x}: {text.format(x, b)}, in_axes={len(left)}, out_axes=-1)(jnp.stack([{a}, {a} * 2, -{a}], -1))")
    elif kind == 2:
        x = d.fresh("x")
        d.attempt(f"lax.map(lambda {x}: {text.format(a, x)}, jnp.stack([{b}, {b} * 2]))")
    elif kind == 3:
        x = d.fresh("x")
        d.attempt(f"lax.scan(lambda s, {x}: (s + {x}, {text.format('s', b)}), {a}, jnp.stack([{a}, {a}]))")
    else:
        followed(d, text.format(a, b))


@aimed(2.5)
def convolved(d: Drawer) -> None:
    """Convolutions of any layout, stride, edge, dilation and number of groups."""
    space = d.number(1, 4)
    dtype = d.one(["float32", "float32", "float32", "int32", "float16", "bfloat16", "float64"])
    if dtype == "float64" and not d.wide_numbers():
        dtype = "float32"
    groups, of_batch = d.one([(1, 1), (1, 1), (2, 1), (3, 1), (1, 2)])
    batch, channels = of_batch * d.number(1, 3), groups * d.number(1, 4)
    features = groups * of_batch * d.number(1, 4)
    sizes = [d.number(1, 12 if space < 3 else 6) for _ in range(space)]
    kernel = [d.number(1, 5 if space < 3 else 3) for _ in range(space)]
    names = "NC" + "DHW"[-space:], "OI" + "DHW"[-space:]
    full = (batch, channels, *sizes), (features, channels // groups, *kernel)
    left, right = ("".join(d.rng.permutation(list(s))) if d.chance(0.5) else s for s in names)
    out = d.one([left, "".join(d.rng.permutation(list(names[0])))])
    lshape = tuple(full[0][names[0].index(c)] for c in left)
    rshape = tuple(full[1][names[1].index(c)] for c in right)
    strides = tuple(d.one([1, 1, 2, 3]) for _ in sizes)
    padding = d.one(["'SAME'", "'VALID'", "'SAME_LOWER'"] + [str([(d.number(-1, 4), d.number(-1, 4)) for _ in sizes])] * 3)
    more = f", dimension_numbers=('{left}', '{right}', '{out}')"
    if d.chance(0.35) and padding[0] == "[":
        more += f", lhs_dilation={tuple(d.number(1, 4) for _ in sizes)}"
    if d.chance(0.35):
        more += f", rhs_dilation={tuple(d.number(1, 4) for _ in sizes)}"
    if groups > 1:
        more += f", feature_group_count={groups}"
    if of_batch > 1:
        more += f", batch_group_count={of_batch}"
    if dtype in ("float16", "bfloat16") and d.chance(0.5):
        more += ", preferred_element_type='float32'"
    text = f"lax.conv_general_dilated({{}}, {{}}, {strides}, {padding}{more})"
    most = 3 if dtype in ("bfloat16", "float16") else 5
    a, b = disguised(d, lshape, dtype, most), disguised(d, rshape, dtype, most)
    kind = d.number(0, 8)
    x = d.fresh("x")
    if kind == 0 and dtype == "float32":
        d.attempt(f"grad(lambda {x}: jnp.sum({text.format(x, b)} * 2))({a})")
    elif kind == 1 and dtype == "float32":
        d.attempt(f"grad(lambda {x}: jnp.sum(jnp.square({text.format(a, x)})))({b})")
    elif kind == 2:
        d.attempt(f"vmap(lambda {x}: {text.format(x, b)}, in_axes={d.number(0, space + 2)})(jnp.stack([{a}, {a} * 2], {d.number(0, space + 2)}))")
    elif kind == 3:
        d.attempt(f"vmap(lambda {x}: {text.format(a, x)})(jnp.stack([{b}, {b} * 2]))")
    else:
        followed(d, text.format(a, b))


@aimed(2.5)
def windowed(d: Drawer) -> None:
    """Reductions of windows with odd steps, edges and gaps, their derivatives, running reductions of them."""
    rank = d.number(1, 5)
    shape = tuple(d.one([1, 2, 3, 5, 8, 13, 17] if rank > 2 else [1, 2, 3, 7, 16, 33, 65]) for _ in range(rank))
    dtype = d.one(["float32", "float32", "int32", "int8", "uint8", "float16", "int16", "bool"])
    ones = d.chance(0.4)
    window = tuple(1 if ones and d.chance(0.5) else d.number(1, 6) for _ in shape)
    strides = tuple(d.one([1, 1, 2, 3, 4]) for _ in shape)
    padding = d.one(["'SAME'", "'VALID'", str([(d.number(0, 5), d.number(0, 5)) for _ in shape])])
    more = ""
    if padding[0] == "[" and d.chance(0.6):
        more = d.one([f", base_dilation={tuple(d.number(1, 4) for _ in shape)}", "",
                      f", base_dilation={tuple(d.number(1, 3) for _ in shape)}"])  # fmt: skip
        if d.chance(0.7):
            more += f", window_dilation={tuple(d.number(1, 4) for _ in shape)}"
    x = disguised(d, shape, dtype, 7)
    if dtype == "bool":
        first, f = d.one([("False", "jnp.logical_or"), ("True", "jnp.logical_and")])
        return followed(d, f"lax.reduce_window({x}, np.bool_({first}), {f}, {window}, {strides}, {padding}{more}).astype('int32')")
    low, high = ("0", "9") if dtype[0] == "u" else ("-9", "9")
    first, f = d.one([(low, "lax.max"), (high, "lax.min"), ("0", "lax.add"), ("3", "lax.add"), ("1", "lax.mul"),
                      ("2", "lambda p, q: p + q * 2")])  # fmt: skip
    if f == "lax.mul" and "float" in dtype or "lambda" in f:
        first, f = "0", "lax.add"
    g = d.fresh("x")
    text = f"lax.reduce_window({{}}, np.asarray({first}).astype('{dtype}'), {f}, {window}, {strides}, {padding}{more})"
    kind = d.number(0, 8)
    if kind == 0 and dtype == "float32" and f == "lax.add":
        d.attempt(f"grad(lambda {g}: jnp.sum(jnp.square({text.format(g)})))({x})")
    elif kind == 1 and dtype == "float32" and f != "lax.mul":
        ends = "-np.inf" if f == "lax.max" else "np.inf"
        padded = text.replace(f"np.asarray({first})", f"np.asarray({ends})") if f != "lax.add" else text
        if "dilation" in padded:
            return
        many = f"(jnp.arange({size(shape)}) * 7 % {size(shape) + 1}).reshape({shape}).astype('float32')"
        d.attempt(f"grad(lambda {g}: jnp.sum({padded.format(g)} * 3))({many})")
    elif kind == 2:
        at = d.number(0, rank + 1)
        d.attempt(f"vmap(lambda {g}: {text.format(g)}, in_axes={at})(jnp.stack([{x}, {x}], {at}))")
    elif kind == 3 and rank > 1:
        d.attempt(f"lax.map(lambda {g}: jnp.flip({text.format(g)}), jnp.stack([{x}, {x}]))")
    else:
        followed(d, text.format(x))


RULES = {
    "vjp": """
@custom_vjp
def {f}(x, y):
    return x * y + {k}
{f}.defvjp(lambda x, y: ({f}(x, y), (x, y)), lambda res, t: (t * res[1] * {k}, t * jnp.flip(res[0])))""",
    "jvp": """
@custom_jvp
def {f}(x, y):
    return x * x - y
{f}.defjvp(lambda p, t: ({f}(*p), t[0] * p[1] * {k} + t[1] * {f}(p[1], p[0])))""",
    "vjp of loop": """
@custom_vjp
def {f}(x, y):
    return lax.fori_loop(0, 2, lambda i, s: s * 0.5 + y, x)
{f}.defvjp(lambda x, y: ({f}(x, y), y), lambda y, t: (t * y, lax.fori_loop(0, 3, lambda i, s: s * 0.5 + t, t) * y))""",
    "checkpoint": """
@checkpoint
def {f}(x, y):
    z = x * y
    return z * z * 0.25 + jnp.flip(z) * {k}""",
    "checkpoint of jvp": """
@custom_jvp
def {f}_(x, y):
    return x * 2 + y * y
{f}_.defjvp(lambda p, t: ({f}_(*p), t[0] * p[1] + t[1] * p[0]))
{f} = checkpoint(lambda x, y: {f}_(y, {f}_(x, y) * 0.25))""",
    "jit": """
@jit
def {f}(x, y):
    return jnp.where(x > y, x * 0.5 + y, y * y - x * {k})""",
    "cond": """
def {f}(x, y):
    return lax.cond(x.ravel()[0] > {k}, lambda x, y: x * y, lambda x, y: jnp.flip(x) + y * 0.5, x, y)""",
}  # fmt: skip


@aimed(3)
def ruled_in_loops(d: Drawer) -> None:
    """Functions with rules of their own within loops within maps, differentiated once or twice."""
    n = d.one([1, 2, 3, 5, 8, 17])
    made = [(d.fresh("f"), d.one(sorted(RULES))) for _ in range(d.number(1, 4))]
    definitions = "\n".join([RULES[kind].format(f=f, k=d.one(["0.5", "2.0", "-1.0", "0.25"])).strip() for f, kind in made])
    names = [f for f, _ in made]
    f, call = d.fresh("f"), lambda a, b: f"{d.one(names)}({a}, {b})"
    wrap = d.one(["{}", "{}", "checkpoint({})", "jit({})"])
    options = d.one(["", "", ", reverse=True", ", unroll=2"])
    body = d.one([
        f"lambda s, r: ({call('s', 'r')} * 0.5, {call('r', 's')})",
        f"lambda s, r: (jnp.flip({call('s * 0.5', 'r')}) * 0.25, s)",
        f"lambda s, r: (vmap({d.one(names)})(jnp.stack([s, r]), jnp.stack([r, s]))[1] * 0.25, s * r)",
        f"lambda s, r: (lax.scan(lambda p, q: ({call('p', 'r')} * 0.25, p), s, None, length=2)[0], {call('s', 'r')})",
        f"lambda s, r: (grad(lambda z: jnp.sum({call('z', 'r')}))(s) * 0.25, s)",
        f"lambda s, r: (jnp.where(r > s, {call('s', 'r')}, s) * 0.25, r - s)",
    ])  # fmt: skip
    rows = d.one([f"x.reshape({n}, -1).T * jnp.ones((3, 1), x.dtype)", "jnp.stack([x, x * 2, jnp.flip(x)])",
                  "jnp.stack([jnp.roll(x, k) for k in range(4)])"])  # fmt: skip
    loss = (f"\ndef {f}(x):\n    s, y = lax.scan({wrap.format(body)}, x * 0.5, {rows}{options})\n"
            f"    return jnp.sum(s) + jnp.sum(y * y) * 0.25")  # fmt: skip
    floats = "float64" if d.wide_numbers() and d.chance(0.6) else "float32"
    x = f"((jnp.arange({n}) * 5 % 7 - 3) / 4).astype('{floats}')"
    many = f"jnp.stack([{x}, {x} * 0.5, -{x}])"
    text = d.one([
        f"grad({f})({x})", f"vmap(grad({f}))({many})", f"grad(lambda x: jnp.sum(vmap({f})(x)))({many})",
        f"value_and_grad({f})({x})", f"vmap(value_and_grad({f}))({many})",
        f"jit(grad(lambda x: jnp.sum(jit(grad({f}))(x) ** 2)))({x})", f"jacrev(lambda x: grad({f})(x) * x)({x})",
        f"lax.map(grad({f}), {many})", f"vmap(lambda x: lax.cond(x[0] > 0, grad({f}), lambda x: x, x))({many})",
        f"lax.scan(lambda s, r: (s - 0.0625 * grad({f})(s), {f}(r)), {x}, {many})",
        f"vjp(vmap({f}), {many})[1](jnp.arange(3).astype('{floats}'))[0]",
        f"linearize(grad({f}), {x})[1]({x} * 2)" if not any("vjp" in k for _, k in made) else f"grad({f})({x})",
        f"lax.fori_loop(0, 2, lambda i, s: s - 0.0625 * vmap(grad({f}))(s), {many})",
    ])  # fmt: skip
    d.attempt(text, definitions + loss)
