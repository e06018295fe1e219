"""Statements of the wider generator: places that are computed, pieces, orders, values with several users.

Each makes a value and, mostly at once, what reads it (`used`): reductions along its axes, parts,
orders, so that a kernel has to write what another one, or itself, reduces.
"""

from __future__ import annotations

from typing import Any

from fuzzing.arrays import is_float, is_inexact
from fuzzing.drawer import Drawer, Named, statement
from fuzzing.statements import NON_EMPTY

REAL = lambda v: NON_EMPTY(v) and v.dtype.kind != "c"


def wide(weight: float) -> Any:
    """As `statement`, for the wider generator alone."""
    return statement(weight, wide=True)


def last_axis(d: Drawer, v: Any) -> int:
    """An axis of a value that has some; an outer one more often than the last."""
    return d.number(0, v.ndim) if d.chance(0.6) else max(v.ndim - 2, 0)


def reduced(d: Drawer, name: str, v: Any, axis: int) -> str:
    """The text of a reduction of a value along an axis."""
    keep = ", keepdims=True" if d.chance(0.3) else ""
    names = ["sum", "max", "min", "mean", "any", "argmax", "argmin", "var", "count_nonzero", "ptp"]
    if v.dtype.kind == "c":
        names = ["sum", "mean", "any", "var"]
    elif v.dtype.kind == "b":
        names = ["sum", "all", "any", "argmax", "count_nonzero"]
    elif v.dtype.kind in "iu":
        names += ["prod"]
    return f"jnp.{d.one(names)}({name}, axis={axis}{keep})"


def reader(d: Drawer, name: str, v: Any) -> str:
    """The text of something that reads a value with axes."""
    axis = d.number(0, v.ndim)
    kind = d.number(0, 12)
    if kind < 5:
        return reduced(d, name, v, axis)
    if kind == 5 and v.ndim > 1:
        axes = tuple(sorted(d.rng.choice(v.ndim, 2, replace=False).tolist()))
        return f"jnp.sum({name}, axis={axes})"
    if kind == 6:
        order = tuple(d.rng.permutation(v.ndim).tolist())
        return f"jnp.transpose({name}, {order})"
    if kind == 7:
        return d.one(
            [
                f"{name}[::-1]",
                f"{name}[..., ::2]",
                f"lax.rev({name}, ({axis},))",
                f"jnp.roll({name}, 1, {axis})",
            ]
        )
    if kind == 8:
        return f"jnp.cumsum({name}, axis={axis})"
    if kind == 9 and v.dtype.kind not in "cb":
        return f"jnp.sort({name}, axis={axis})"
    if kind == 10 and v.dtype.kind not in "b":
        return f"{name} - jnp.sum({name}, axis={axis}, keepdims=True)"
    return f"jnp.concatenate([{name}, {name}[::-1]], {axis})"


def used(d: Drawer, text: str, functions: str = "") -> None:
    """Adds a value, and up to three statements that read it."""
    if not d.attempt(text, functions):
        return
    name, v = d.pool[-1]
    if not v.ndim:
        return
    for _ in range(d.number(0, 4)):
        d.attempt(reader(d, name, v))


def whole(d: Drawer, n: int, y: Named) -> str:
    """The text of a value as int32, some of it outside of [0, n)."""
    name, v = y
    if v.dtype.kind in "iu":
        return f"({name}.astype('int32') % {n + 2} - 1)"
    if v.dtype.kind == "b":
        return f"{name}.astype('int32')"
    return f"jnp.clip(jnp.nan_to_num({name} * 2 + 0.1), {-n - 1}, {n + 1}).astype('int32')"


def places(d: Drawer, n: int) -> str:
    """The text of a row (or a table) of places along an axis of length n."""
    kind = d.number(0, 6)
    count = d.number(1, 9)
    if kind < 3:
        y = d.pick(lambda v: REAL(v) and v.size < 5000)
        if y is not None:
            row = (f"jnp.ravel({y[0]})[:{count}]", y[1])
            shape = d.one(["", "", "[:, None]", "[None]"])
            return whole(d, n, row) + shape
    if kind == 3:
        y = d.pick(lambda v: v.ndim == 1 and REAL(v) and v.shape[0] <= n)
        if y is not None:
            return f"jnp.argsort({y[0]})"
    if kind == 4:
        return f"(jnp.arange({count}) * {d.number(-2, 4)} + {d.number(-2, n + 1)})"
    given = d.rng.integers(-n - 1, n + 2, count).tolist()
    return f"jnp.array({given})"


def like_places(d: Drawer, x: Named, axis: int) -> str | None:
    """The text of places along an axis, an array of the shape of x (or of one of its axes of 1)."""
    name, v = x
    y = d.pick(lambda w: w.shape == v.shape and w.dtype.kind != "c")
    if y is None:
        return None
    if d.chance(0.5):
        return f"jnp.argsort({y[0]}, axis={axis}{d.one(['', ', descending=True'])})"
    found = whole(d, v.shape[axis], y)
    return f"lax.slice_in_dim({found}, 0, 1, axis={axis})" if d.chance(0.2) else found


@wide(5)
def gathers(d: Drawer) -> None:
    """What is read at computed places."""
    x = d.pick(NON_EMPTY)
    if x is None:
        return
    name, v = x
    axis = last_axis(d, v)
    n = v.shape[axis]
    kind = d.number(0, 9)
    mode = d.one(["", ", mode='clip'", ", mode='fill'", ", mode='wrap'"])
    if kind < 3:
        where = like_places(d, x, axis)
        if where is not None:
            mode = mode if d.chance(0.5) else ""
            mode = "" if "wrap" in mode else mode
            return used(d, f"jnp.take_along_axis({name}, {where}, axis={axis}{mode})")
    if kind < 5:
        return used(d, f"jnp.take({name}, {places(d, n)}, axis={axis}{mode})")
    before = ":, " * axis
    if kind == 5:
        filled = d.one(["mode='fill', fill_value=1", "mode='clip'", "mode='promise_in_bounds'"])
        if "promise" in filled:
            row = f"jnp.arange({n})[::-1]"
        else:
            row = places(d, n)
        return used(d, f"{name}.at[{before}{row}].get({filled})")
    if kind == 6 and v.ndim > 1:
        other = (axis + 1) % v.ndim
        rows = [":"] * v.ndim
        y = d.pick(lambda w: REAL(w) and w.size < 5000)
        if y is None:
            return None
        flat = f"jnp.ravel({y[0]})[:{d.number(1, 8)}]"
        rows[axis], rows[other] = whole(d, n, (flat, y[1])), whole(d, v.shape[other], (flat, y[1]))
        return used(d, f"{name}[{', '.join(rows)}]")
    if kind == 7:
        y = d.pick(lambda w: REAL(w) and w.dtype.kind != "b")
        if y is None:
            return None
        start = f"jnp.argmax({y[0]})" if d.chance(0.5) else whole(d, n, (f"jnp.max({y[0]})", y[1]))
        size = d.number(1, n + 1)
        return used(
            d,
            d.one(
                [
                    f"lax.dynamic_slice_in_dim({name}, {start}, {size}, {axis})",
                    f"lax.dynamic_index_in_dim({name}, {start}, {axis}, keepdims=False)",
                    f"jnp.roll({name}, {start}, {axis})",
                    f"{name}[{before}{start}]",
                ]
            ),
        )
    return used(d, f"{name}[{before}{places(d, n)}]")


@wide(4)
def scatters(d: Drawer) -> None:
    """What is written at computed places, and read again."""
    x = d.pick(NON_EMPTY)
    if x is None:
        return
    name, v = x
    axis = last_axis(d, v)
    n = v.shape[axis]
    before = ":, " * axis
    methods = (
        ["set"] if v.dtype.kind == "b" else ["add", "add", "multiply", "min", "max", "subtract"]
    )
    method = d.one(methods[:2] if v.dtype.kind == "c" else methods)
    kind = d.number(0, 8)
    if kind < 2:  # a permutation: each place once
        y = d.pick(lambda w: w.shape == v.shape and w.dtype.kind != "c")
        if y is None:
            return None
        order = f"jnp.argsort({y[0]}, axis={axis})"
        return used(d, f"jnp.put_along_axis({name}, {order}, {name}, {axis}, inplace=False)")
    if kind == 2:
        hint = d.one(
            ["", ", unique_indices=True", ", indices_are_sorted=True, unique_indices=True"]
        )
        row = f"jnp.arange({d.number(0, n)}, {n}, {d.number(1, 3)})"
        return used(d, f"{name}.at[{before}{row}].{d.one(['set', method])}(1{hint})")
    if kind == 3:
        y = d.pick(lambda w: REAL(w) and w.dtype.kind != "b")
        z = d.pick(
            lambda w: (
                w.dtype == v.dtype
                and w.ndim == v.ndim
                and all(m <= k for m, k in zip(w.shape, v.shape))
            )
        )
        if y is None or z is None:
            return None
        starts = ["0"] * v.ndim
        starts[axis] = d.one(
            [f"jnp.argmin({y[0]}).astype('int32')", whole(d, n, (f"jnp.min({y[0]})", y[1]))]
        )
        return used(d, f"lax.dynamic_update_slice({name}, {z[0]}, [{', '.join(starts)}])")
    where = places(d, n)
    mode = d.one(["", ", mode='drop'", ", mode='clip'", ""])
    part = f"{name}[{before}{where}]"
    value = d.one(["1", part, "2", f"({part} + {part})" if v.dtype.kind != "b" else "1"])
    if method == "set":
        value = "1"
    if is_inexact(v.dtype) and method == "multiply":
        value = "0.5"
    used(d, f"{name}.at[{before}{where}].{method}({value}{mode})")
    if d.chance(0.5):
        made, w = d.pool[-1]
        if w.ndim == v.ndim:
            used(d, f"{made}[{before}{places(d, max(w.shape[axis], 1))}]")


@wide(2)
def segmented(d: Drawer) -> None:
    """Sums and extremes of segments, counts, places in sorted rows."""
    x = d.pick(lambda v: REAL(v) and v.dtype.kind != "b")
    if x is None:
        return
    name, v = x
    n = v.shape[0]
    y = d.pick(lambda w: w.ndim == 1 and w.shape[0] == n and w.dtype.kind != "c")
    if y is None or d.chance(0.3):
        ids = d.one(
            [
                f"jnp.arange({n}) // 2",
                f"jnp.arange({n}) % 5 - 1",
                f"whole{n}",
                f"jnp.ravel({name})[:{n}]",
            ]
        )
        if ids.startswith("whole"):
            ids = f"jnp.argsort(jnp.ravel({name})[:{n}])"
        elif "ravel" in ids:
            ids = whole(d, 6, (ids, v))
    else:
        ids = whole(d, 6, y)
    kind = d.number(0, 10)
    count = d.number(1, 8)
    if kind < 5:
        names = ["sum", "max", "min", "sum"] + ([] if is_inexact(v.dtype) else ["prod"])
        which = d.one(names)
        told = ", indices_are_sorted=True" if ids.endswith("// 2") and d.chance(0.5) else ""
        text = f"ops.segment_{which}({name}, {ids}, num_segments={count}{told})"
        if which in ("max", "min") and is_inexact(v.dtype):
            text = f"jnp.clip({text}, -99, 99)"  # of no elements it is infinite
        return used(d, text)
    if kind == 5:
        return used(d, f"jnp.bincount(jnp.abs({ids}), length={count})")
    if kind == 6:
        side = d.one(["left", "right"])
        method = d.one(["scan", "sort", "compare_all", "scan_unrolled"])
        row = f"jnp.sort(jnp.ravel({name})[:{d.number(1, 40)}])"
        return used(d, f"jnp.searchsorted({row}, {name}, side='{side}', method='{method}')")
    if kind == 7:
        return used(d, f"jnp.digitize({name}, jnp.array([-1, 0, 1, 2]))")
    if kind == 8:
        bins = f"bins={d.number(1, 7)}, range=(-2.0625, 2.0625)"
        return used(d, f"jnp.histogram(jnp.ravel({name}).astype('float32'), {bins})[0]")
    return used(d, f"jnp.zeros(({count}, *{name}.shape[1:]), {name}.dtype).at[{ids}].max({name})")


@wide(2.5)
def orders(d: Drawer) -> None:
    """Sorts by several keys, quantiles, the places of extremes."""
    x = d.pick(REAL)
    if x is None:
        return
    name, v = x
    axis = last_axis(d, v)
    kind = d.number(0, 10)
    if kind < 3:
        y = d.pick(lambda w: w.shape == v.shape and w.dtype.kind != "c")
        if y is None:
            return
        keys = d.number(1, 3)
        third = d.one(["", f", {y[0]} == {y[0]}", f", -{name}" if v.dtype.kind != "b" else ""])
        d.attempt(f"lax.sort(({name}, {y[0]}{third}), dimension={axis}, num_keys={keys})")
        return
    if kind == 3:
        y = d.pick(lambda w: w.shape == v.shape and w.dtype.kind != "c")
        return None if y is None else used(d, f"jnp.lexsort(({y[0]}, {name}), axis={axis})")
    if kind == 4 and is_float(v.dtype):
        method = d.one(["linear", "lower", "higher", "nearest", "midpoint"])
        at = d.one(["0.3", "jnp.array([0.0, 0.25, 1.0])", "0.5"])
        return used(d, f"jnp.quantile({name}, {at}, axis={axis}, method='{method}')")
    if kind == 5:
        d.attempt(f"lax.top_k(jnp.moveaxis({name}, {axis}, -1), {d.number(1, 6)})")
        return
    if kind == 6:
        return used(d, f"jnp.unique({name}, size={d.number(1, 9)}, fill_value=0)")
    if kind == 7:
        stable = d.one(["", ", stable=False" if v.dtype.kind == "b" else "", ", descending=True"])
        return used(d, f"jnp.argsort({name}, axis={axis}{stable})")
    if kind == 8:
        return used(d, f"jnp.nonzero({name}, size={d.number(1, 12)}, fill_value=0)[0]")
    return used(d, f"lax.argmax({name}, {axis}, 'int32')")


@wide(3)
def runs(d: Drawer) -> None:
    """Cumulative operations, also by functions of the program."""
    x = d.pick(NON_EMPTY)
    if x is None:
        return
    name, v = x
    axis = d.number(0, v.ndim)
    reverse = d.one(["False", "True"])
    kind = d.number(0, 8)
    if kind == 0 and v.dtype.kind != "b":
        inner = name if v.dtype.kind in "iu" else f"jnp.cos({name})"
        return used(d, f"lax.cumprod({inner}, axis={axis}, reverse={reverse})")
    if kind == 1 and v.dtype.kind not in "cb":
        return used(d, f"lax.{d.one(['cummax', 'cummin'])}({name}, axis={axis}, reverse={reverse})")
    if kind == 2 and v.dtype.kind != "b":
        if v.dtype.kind == "c":
            f = "jnp.add"
        else:
            f = d.one(["jnp.add", "jnp.maximum", "jnp.minimum", "lambda p, q: p * 0 + q"])
        text = f"lax.associative_scan({f}, {name}, axis={axis}, reverse={reverse})"
        return used(d, text)
    if kind == 3 and v.dtype.kind != "b":
        return used(d, f"jnp.cumulative_sum({name}, axis={axis}, include_initial=True)")
    if kind == 4 and is_float(v.dtype):
        pair = f"(jnp.cos({name}), jnp.sin({name}))"
        text = (
            f"lax.associative_scan(lambda p, q: (p[0] * q[0], p[1] * q[0] + q[1]), {pair}, "
            f"axis={axis}, reverse={reverse})"
        )
        d.attempt(text)
        return None
    if kind == 5 and is_float(v.dtype):
        return used(
            d,
            d.one(
                [
                    f"jnp.gradient({name}, axis={axis})",
                    f"jnp.ediff1d({name})",
                    f"jnp.trapezoid({name}, axis={axis})",
                    f"lax.cumlogsumexp({name}, axis={axis}, reverse={reverse})",
                ]
            ),
        )
    return used(
        d,
        f"lax.cumsum({name}{'.astype(int)' if v.dtype.kind == 'b' else ''}, axis={axis}, "
        f"reverse={reverse})",
    )


@wide(3)
def reductions(d: Drawer) -> None:
    """Reductions in less usual forms."""
    x = d.pick(lambda v: v.ndim > 0 and v.dtype.kind != "c")
    if x is None:
        return
    name, v = x
    axis = last_axis(d, v)
    kind = d.number(0, 10)
    if kind == 0 and v.dtype.kind != "b":
        mask = f"where=({name} > 0), initial={d.number(0, 3)}"
        return used(d, f"jnp.{d.one(['sum', 'max', 'min'])}({name}, axis={axis}, {mask})")
    if kind == 1 and v.dtype.kind != "b":
        first, f = d.one([("-3", "lax.max"), ("3", "lax.min"), ("0", "lax.add"), ("1", "lax.mul")])
        inner = f"jnp.cos({name})" if f == "lax.mul" and is_float(v.dtype) else name
        return used(
            d, f"lax.reduce({inner}, jnp.asarray({first}).astype({name}.dtype), {f}, ({axis},))"
        )
    if kind == 2 and v.dtype.kind not in "b" and v.size:
        places = f"lax.broadcasted_iota('int32', {v.shape}, {axis})"
        text = (
            f"lax.reduce(({name}, {places}), (jnp.asarray(-99).astype({name}.dtype), np.int32(-1)), "
            "lambda p, q: (jnp.where(p[0] >= q[0], p[0], q[0]), "
            f"jnp.where(p[0] >= q[0], p[1], q[1])), ({axis},))"
        )
        d.attempt(text)
        return None
    if kind == 3 and is_float(v.dtype) and v.size:
        return used(
            d,
            d.one(
                [
                    f"jnp.nansum({name}, axis={axis})",
                    f"jnp.nanmax({name}, axis={axis})",
                    f"jnp.average({name}, axis={axis}, weights=jnp.cos({name}) + 1.5)",
                    f"jnp.sqrt(jnp.var({name}, axis={axis}) + 1)",
                    f"nn.logsumexp({name}, axis={axis})",
                    f"jnp.linalg.norm({name} + 3, axis={axis})",
                    f"jnp.nanargmin({name}, axis={axis})",
                ]
            ),
        )
    if kind == 4 and v.dtype.kind in "iu":
        f = d.one(["and", "or", "xor"])
        return used(d, f"jnp.bitwise_{f}.reduce({name}, axis={axis})")
    if kind == 5 and v.ndim > 1:
        other = (axis + 1) % v.ndim
        d.attempt(
            f"(jnp.max({name}, axis={axis}), jnp.sum({name}, axis={other}), jnp.argmin({name}, axis={axis}), jnp.any({name}, axis={other}))"
        )  # noqa: E501
        return None
    if kind == 6 and v.size:
        return used(d, f"jnp.max({name}, axis={axis}, keepdims=True) == {name}")
    if kind == 7 and v.ndim > 1:
        return used(d, f"jnp.trace({name}, axis1=0, axis2={v.ndim - 1})")
    return used(d, reduced(d, name, v, axis))


@wide(4)
def pieces(d: Drawer) -> None:
    """Many pieces put together, arrays that are cut, padded, reversed."""
    x = d.pick(NON_EMPTY)
    if x is None:
        return
    name, v = x
    axis = last_axis(d, v)
    n = v.shape[axis]
    before = ":, " * axis
    cut = lambda low, high, step="": f"{name}[{before}{low}:{high}{step}]"
    kind = d.number(0, 12)
    k, m = sorted((d.number(0, n + 1), d.number(0, n + 1)))
    if kind < 3:
        y = d.pick(lambda w: w.shape == v.shape and w.dtype == v.dtype)
        other = name if y is None else y[0]
        parts = [
            cut(k, n),
            cut(0, m),
            f"jnp.flip({other}, {axis})",
            cut(k, m),
            other,
            cut(0, n, ":2"),
            f"jnp.zeros_like({cut(0, k)})",
            cut("", "", "::-1"),
        ]
        chosen = [d.one(parts) for _ in range(d.number(2, 7))]
        return used(d, f"jnp.concatenate([{', '.join(chosen)}], {axis})")
    if kind < 5:
        count = min(n, d.number(1, 20))
        shift = d.number(0, n)
        made = d.one(
            [
                f"{name}[{before}k]",
                f"{name}[{before}k] * k",
                f"{name}[{before}(k + {shift}) % {n}]",
                f"{name}[{before}{n - 1} - k]",
            ]
        )
        made = made if v.dtype.kind != "b" else f"{name}[{before}k]"
        text = f"jnp.stack([{made} for k in range({count})], {d.number(0, v.ndim)})"
        if d.chance(0.5):
            text = d.one(
                [
                    f"jnp.sum({text}, 0)",
                    f"jnp.min({text}, 0)" if v.dtype.kind != "c" else text,
                    f"sum([{made} for k in range({count})])",
                ]
            )
        return used(d, text)
    if kind == 5:
        config = [(0, 0, 0)] * v.ndim
        for _ in range(d.number(1, 3)):
            config[d.number(0, v.ndim)] = (d.number(-3, 4), d.number(-3, 4), d.number(0, 4))
        return used(d, f"lax.pad({name}, jnp.ones((), {name}.dtype), {config})")
    if kind == 6:
        starts = [d.number(0, size) for size in v.shape]
        stops = [d.number(low + 1, size + 1) for low, size in zip(starts, v.shape)]
        strides = [d.number(1, 4) for _ in starts]
        return used(d, f"lax.slice({name}, {starts}, {stops}, {strides})")
    if kind == 7:
        axes = tuple(sorted({d.number(0, v.ndim) for _ in range(2)}))
        return used(d, f"lax.rev({name}, {axes})")
    if kind == 8:
        d.attempt(f"jnp.array_split({name}, {d.number(1, 5)}, {axis})")
        return None
    if kind == 9:
        return used(
            d,
            d.one(
                [
                    f"jnp.insert({name}, {k}, 1, axis={axis})",
                    f"jnp.append({name}, {name}, axis={axis})",
                    f"jnp.delete({name}, {min(k, n - 1)}, axis={axis})",
                    f"jnp.kron({name}, jnp.array([1, 2]))",
                    f"jnp.tril({name}, {d.number(-2, 3)})",
                    f"jnp.triu({name}, {d.number(-2, 3)})",
                    f"jnp.resize({name}, ({d.number(1, 40)},))",
                    f"jnp.atleast_3d({name})",
                    f"jnp.moveaxis({name}, {axis}, 0)",
                    f"jnp.repeat({name}, {d.number(1, 4)}, axis={axis})",
                ]
            ),
        )
    if kind == 10 and n > 2 and v.dtype.kind != "b":
        return used(d, f"{cut('1', '-1')} * 2 - {cut('2', '')} - {cut('', '-2')}")
    if kind == 11 and n > 2 and v.dtype.kind != "b":
        inside = f"{cut('1', '-1')} + {cut('2', '')} - {cut('', '-2')}"
        return used(d, f"{name}.at[{before}1:-1].set({inside})")
    mode = d.one(["edge", "reflect", "wrap", "symmetric", "maximum", "linear_ramp", "constant"])
    if mode in ("maximum", "linear_ramp") and v.dtype.kind in "cb":
        mode = "edge"
    widths = [(0, 0)] * v.ndim
    widths[axis] = (d.number(0, 5), d.number(0, 5))
    return used(d, f"jnp.pad({name}, {widths}, mode='{mode}')")
