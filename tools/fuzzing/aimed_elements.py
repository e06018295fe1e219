"""Statements of the aimed generator about elements: many dtypes in one kernel, with the ends of their ranges,
NaN and infinities; values with many users; sizes at which kernels are cut."""

from __future__ import annotations

from fuzzing.aimed_loops import aimed, size
from fuzzing.drawer import Drawer

KINDS = {
    "i": ("int32", "int8", "int16", "int64"),
    "u": ("uint32", "uint8", "uint16", "uint64"),
    "f": ("float32", "float16", "bfloat16", "float64"),
    "b": ("bool",),
    "c": ("complex64",),
}
ENDS = {
    "i": "jnp.iinfo('{t}').min, jnp.iinfo('{t}').max, -1, 0, 1, jnp.iinfo('{t}').min + 1, 7, -8, 31, 8, 64, 33",
    "u": "jnp.iinfo('{t}').max, 0, 1, 7, 8, 16, 31, 32, 33, 64, jnp.iinfo('{t}').max - 1, jnp.iinfo('{t}').max // 2 + 1",
    "f": "jnp.nan, jnp.inf, -jnp.inf, -0.0, 0.0, 1.0, -1.0, 0.5, 2.5, -3.5, 100.0, 127.0",
    "b": "0, 1, 1, 0, 1",
    "c": "1.0, 2 - 1j, -3j, 0.5, -0.25 + 2j",
}
LENGTHS = (0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 131, 257, 1009)


def kind_of(dtype: str) -> str:
    return next(kind for kind, names in KINDS.items() if dtype in names)


def dtype_of(d: Drawer, kinds: str = "iiuffb") -> str:
    found = d.one(KINDS[d.one(kinds)])
    wide = d.wide_numbers()
    return found if wide else {"int64": "int32", "uint64": "uint32", "float64": "float32"}.get(found, found)


def extreme(d: Drawer, shape: tuple[int, ...], dtype: str) -> str:
    """The text of an array with the ends of a dtype's range among its values."""
    numbers = ENDS[kind_of(dtype)].format(t=dtype)
    return (f"jnp.array([{numbers}], dtype='{dtype}')[(jnp.arange({size(shape)}) * {d.one([1, 5, 7])} + {d.number(0, 12)}) "
            f"% {numbers.count(',') + 1}].reshape({shape})")  # fmt: skip


INTEGER = ("{x} << {y}", "{x} >> {y}", "lax.shift_right_logical({x}, {y})", "lax.shift_left({x}, {y})",
           "lax.shift_right_arithmetic({x}, {y})", "{x} // {y}", "{x} % {y}", "lax.div({x}, {y})", "lax.rem({x}, {y})",
           "{x} * {y}", "{x} - {y}", "~{x}", "-{x}", "jnp.abs({x})", "{x} & {y}", "{x} ^ {y}", "jnp.minimum({x}, {y})",
           "jnp.maximum({x}, {y})", "lax.clz({x})", "lax.population_count({x})", "jnp.sign({x})", "{x} ** 2",
           "lax.integer_pow({x}, 3)", "jnp.clip({x}, {y}, {z})", "lax.clamp({y}, {x}, {z})", "{x} + {y} + {z}",
           "{x} * {y} + {z}", "jnp.where({x} > {y}, {x}, {z})")  # fmt: skip
# Which of 0.0 and -0.0 is an extreme is not said: a sum with 0 is 0.0.
FLOAT = ("jnp.minimum({x}, {y}) + 0", "jnp.maximum({x}, {y}) + 0", "jnp.fmin({x}, {y}) + 0", "jnp.fmax({x}, {y}) + 0", "{x} * {y}",
         "{x} - {y}", "{x} / {y}", "jnp.abs({x})", "jnp.sign({x})", "-{x}", "jnp.floor({x})", "jnp.round({x})",
         "lax.round({x})", "jnp.ceil({x})", "jnp.trunc({x})", "lax.rem({x}, {y})", "{x} % {y}", "jnp.copysign({x}, {y})",
         "jnp.where({x} > {y}, {x}, {z})", "jnp.clip({x}, -1, {y}) + 0", "lax.clamp({y}, {x}, {z}) + 0", "{x} + {y}",
         "jnp.nan_to_num({x})", "jnp.where(jnp.isnan({x}), {y}, {x})", "jnp.signbit({x})", "jnp.isinf({x})", "{x} * {y} + {z}",
         "jnp.sqrt({x})", "lax.integer_pow({x}, 2)", "lax.is_finite({x})", "jnp.square({x})", "jnp.nextafter({x}, {y})",
         "jnp.heaviside({x}, {y})", "jnp.reciprocal({x})", "lax.reduce_precision({x}, 5, 3)")  # fmt: skip
COMPARED = ("{x} < {y}", "{x} <= {y}", "{x} == {y}", "{x} != {y}", "{x} > {y}", "{x} >= {y}", "~({x} < {y})")
BOOLEAN = ("{x} & {y}", "{x} | {y}", "{x} ^ {y}", "~{x}", "jnp.where({x}, {y}, {z})", "{x} == {y}", "{x} < {y}")


def step(d: Drawer, values: list[tuple[str, str]]) -> tuple[str, str] | None:
    """The text of an element's value of values of all dtypes (name, dtype), and its dtype or ""."""
    x, dtype = d.one(values[-5:] if d.chance(0.6) else values)
    kind = kind_of(dtype)
    mates = [n for n, t in values if t == dtype]
    y, z = d.one(mates), d.one(mates)
    u = d.rng.random()
    if u < 0.2:
        target = dtype_of(d)
        if kind == "f" and kind_of(target) in "iu":  # what is out of range is not said
            return f"jnp.clip(jnp.nan_to_num({x}), {0 if target[0] == 'u' else -100}, 100).astype('{target}')", target
        return f"{x}.astype('{target}')", target
    if u < 0.3:
        c = [n for n, t in values if t == "bool"]
        return (f"jnp.where({d.one(c)}, {x}, {y})", dtype) if c else None
    if u < 0.42:
        return d.one(COMPARED).format(x=x, y=y), "bool"
    if u < 0.47 and dtype in ("int32", "float32", "uint32", "int16", "float16", "uint16", "bfloat16"):
        target = d.one({"2": ["int16", "uint16"], "4": ["int32", "uint32"]}["4" if "32" in dtype else "2"])
        if kind == "f":  # of which NaN, is not said
            x = f"jnp.nan_to_num({x})"
        return f"lax.bitcast_convert_type({x}, '{target}')", target
    texts = INTEGER if kind in "iu" else FLOAT if kind == "f" else BOOLEAN
    return d.one(texts).format(x=x, y=y, z=z), ""


def shape_of(d: Drawer) -> tuple[int, ...]:
    top = LENGTHS + ((4099, 70_001, 32_768, 16_385, 65_537) if d.largest > 20_000 else ())
    rank = d.number(1, 4)
    if rank == 1:
        return (d.one(top),)
    shape = [d.one(LENGTHS if rank == 2 else LENGTHS[:11]) for _ in range(rank)]
    while size(tuple(shape)) > d.largest:
        shape.pop()
    return tuple(shape)


def ending(d: Drawer, x: str, dtype: str, shape: tuple[int, ...]) -> str:
    """The text of what reads whole rows of a value."""
    axis = d.number(0, len(shape))
    kind = kind_of(dtype)
    some = shape[axis] > 0
    zero = " + 0" if kind == "f" else ""
    orders = [f"jnp.sort({x}, axis={axis})", f"jnp.argsort({x}, axis={axis})",
              f"lax.sort({x}, dimension={axis})", f"jnp.sum({x} == {x}, axis={axis})", f"jnp.any({x} != 0, axis={axis})",
              f"jnp.all({x} == 0, axis={axis})", f"jnp.count_nonzero({x}, axis={axis})"]  # fmt: skip
    if some:
        orders += [f"jnp.argmax({x}, axis={axis})", f"jnp.argmin({x}, axis={axis})", f"jnp.max({x}, axis={axis}){zero}",
                   f"jnp.min({x}, axis={axis}){zero}", f"lax.argmax({x}, {axis}, 'int32')", f"lax.argmin({x}, {axis}, 'int8')"
                   if shape[axis] < 127 else f"lax.argmin({x}, {axis}, 'int32')",
                   f"lax.top_k(jnp.moveaxis({x}, {axis}, -1), {d.number(1, shape[axis] + 1)})[{d.number(0, 2)}]"]  # fmt: skip
    if kind in "iuf":
        r = d.one(["", ", reverse=True"])
        orders += [f"lax.cummax({x}, {axis}{r}){zero}", f"lax.cummin({x}, {axis}{r}){zero}"]
    if kind in "iu":
        r = d.one(["", ", reverse=True"])
        orders += [f"lax.cumsum({x}, {axis}{r})", f"lax.cumprod({x}, {axis}{r})", f"jnp.sum({x}, axis={axis})",
                   f"jnp.prod({x}, axis={axis})", f"lax.reduce_xor({x}, ({axis},))", f"lax.reduce_and({x}, ({axis},))",
                   f"lax.reduce_or({x}, ({axis},))", f"jnp.sum({x}, axis={axis}, dtype='{dtype}')",
                   f"jnp.diff({x}, axis={axis})"]  # fmt: skip
    if kind == "b":
        orders += [f"jnp.cumsum({x}, axis={axis})", f"jnp.sum({x}, axis={axis})", f"lax.reduce_xor({x}, ({axis},))"]
    if kind == "f":
        orders += [f"jnp.isnan({x}).sum({axis})"]
    return d.one(orders)


@aimed(5)
def mixed(d: Drawer) -> None:
    """One long kernel of elements of many dtypes with extreme values, and what reads its rows."""
    shape = shape_of(d)
    special, d.special = d.special, True
    values: list[tuple[str, str]] = []
    for _ in range(d.number(2, 5)):
        dtype = dtype_of(d)
        at = tuple(1 if d.chance(0.15) else n for n in shape)
        text = extreme(d, at, dtype)
        text = text if at == shape else f"jnp.broadcast_to({text}, {shape})"
        if d.attempt(text):
            values.append((d.pool[-1][0], dtype))
    for _ in range(d.number(3, 30) if values else 0):
        found = step(d, values)
        if found is not None and d.attempt(found[0]):
            name, v = d.pool[-1]
            if v.dtype.name in {t for names in KINDS.values() for t in names}:
                values.append((name, v.dtype.name))
    for _ in range(d.number(1, 5) if values else 0):
        name, dtype = d.one(values[-8:])
        if d.attempt(ending(d, name, dtype, shape)) and d.chance(0.4):
            made, v = d.pool[-1]
            if v.shape == shape and v.dtype.name in KINDS["i"] + KINDS["u"] + KINDS["f"] + KINDS["b"]:
                values.append((made, v.dtype.name))
            else:
                axis = [a for a in range(len(shape)) if v.shape == shape[:a] + shape[a + 1 :]]
                if axis:
                    d.attempt(f"jnp.expand_dims({made}, {axis[0]}) <= {name}")
    d.special = special


@aimed(2.5)
def many_users(d: Drawer) -> None:
    """Many equations over few values, each read again and again, reduced along different axes."""
    rank = d.number(1, 4)
    shape = tuple(d.one([1, 2, 3, 5, 8, 17, 33]) for _ in range(rank))
    dtype = d.one(["int32", "int32", "int8", "uint16", "uint32", "int16"])
    whole: list[str] = []
    for _ in range(d.number(1, 4)):
        if d.attempt(extreme(d, shape, dtype)):
            whole.append(d.pool[-1][0])
    if not whole:
        return
    for _ in range(d.one([10, 25, 60, 150])):
        x, y, z = (d.one(whole[-6:] if d.chance(0.5) else whole) for _ in range(3))
        axis = d.number(0, rank)
        n = shape[axis]
        f = d.one(["sum", "max", "min", "prod"])
        other = d.number(0, rank)
        order = d.rng.permutation(rank).tolist()
        back = tuple(order.index(k) for k in range(rank))
        k = d.number(0, 14)
        if k < 4:
            text = d.one(INTEGER).format(x=x, y=y, z=z)
        elif k < 7:
            text = f"{x} - jnp.{f}({y}, axis={axis}, keepdims=True).astype({x}.dtype)"
        elif k == 7:
            text = f"{x} ^ jnp.flip({y}, {axis})"
        elif k == 8:
            text = f"jnp.transpose(jnp.cumsum(jnp.transpose({x}, {tuple(order)}), axis={other}, dtype={x}.dtype), {back}) + {y}"
        elif k == 9:
            text = f"jnp.roll({x}, {d.number(-2, 3)}, {axis}) + {y}"
        elif k == 10:
            cut = d.number(0, n + 1)
            at = lambda a, b, axis=axis: ":, " * axis + f"{a}:{b}"
            text = f"jnp.concatenate([{x}[{at(cut, '')}], {y}[{at('', cut)}]], {axis})"
        elif k == 11:
            text = f"{x} * (jnp.argmax({y}, axis={axis}, keepdims=True) + 1).astype({x}.dtype)"
        elif k == 12:
            text = f"jnp.where(jnp.any({x} > {y}, axis={axis}, keepdims=True), {z}, {x})"
        else:
            text = f"{x} + jnp.broadcast_to(jnp.{f}({y}), {shape}).astype({x}.dtype)"
        if d.attempt(text):
            made, v = d.pool[-1]
            if v.shape == shape and v.dtype == dtype:
                whole.append(made)
            elif v.shape == shape:
                d.attempt(f"{made}.astype('{dtype}')")
                whole.append(d.pool[-1][0])
