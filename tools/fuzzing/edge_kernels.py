"""Statements of the edge generator about kernels of their own at the sizes where they change: sorts, running
operations, products with what follows them, sums into places, Fourier transforms, systems of equations.

Whole numbers wherever results are compared to the bit.
"""

from __future__ import annotations

import functools
from typing import Any

from fuzzing.aimed_elements import dtype_of, extreme, kind_of
from fuzzing.aimed_kernels import disguised
from fuzzing.aimed_loops import size
from fuzzing.drawer import Drawer
from fuzzing.edge_loops import edge, numbers

LENGTHS = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 39, 40, 41, 63, 64, 65, 127, 128, 129, 255, 256, 257, 511, 513)
LONG = (1000, 1023, 1025, 2047, 2049, 4095, 4096, 4097, 8191, 8192, 8193, 16_383, 16_385, 32_767, 32_769, 65_535, 65_537, 70_000)


def exactly(draw: Any) -> Any:
    """A family whose values may be large, as they are whole numbers."""

    @functools.wraps(draw)
    def family(d: Drawer) -> None:
        special, d.special = d.special, True
        try:
            draw(d)
        finally:
            d.special = special

    return family


def rows_of(d: Drawer, longest: int = 0) -> tuple[int, ...]:
    """A shape with an axis of a length at an edge."""
    most = min(d.largest, longest) if longest else d.largest
    n = d.one(LENGTHS if d.chance(0.6) else [k for k in LONG if k <= most])
    shape = [n]
    for _ in range(d.one([0, 1, 1, 1, 2])):
        m = d.one([1, 2, 3, 5, 8, 15, 16, 17, 33, 64, 100, 300])
        if size((m, *shape)) <= most:
            shape.insert(d.number(0, len(shape) + 1), m)
    return tuple(shape)


def long_axis(d: Drawer, shape: tuple[int, ...]) -> int:
    return shape.index(max(shape)) if d.chance(0.8) else d.number(0, len(shape))


def values(d: Drawer, shape: tuple[int, ...], dtype: str) -> str:
    """The text of an array: ties, the ends of the range, an order or the reverse of one."""
    kind = d.number(0, 6)
    if kind < 2:
        return extreme(d, shape, dtype)
    if kind == 2:
        return numbers(d, shape, dtype)
    if kind == 3 and dtype != "bool":
        return f"jnp.flip(jnp.arange({size(shape)}, dtype='int32') % {d.one([100, 1000])}).reshape({shape}).astype('{dtype}')"
    cast = f"astype('{dtype}')" if dtype != "bool" else "astype('int32') % 2 == 0"
    return f"((jnp.arange({size(shape)}, dtype='uint32') * jnp.uint32(2654435761) >> {d.one([8, 25, 29])}) % {d.one([100, 127, 3])}).reshape({shape}).{cast}"


@edge(3)
@exactly
def ordered(d: Drawer) -> None:
    """Sorts of one or several operands, extremes, ranks."""
    shape = rows_of(d)
    axis = long_axis(d, shape)
    dtype = dtype_of(d)
    if not d.attempt(values(d, shape, dtype)):
        return
    x, v = d.pool[-1]
    n = v.shape[axis]
    k = min(n, d.one([1, 2, 5, 16, 127, 128, 129, n]))
    others = [dtype_of(d, "iufb") for _ in range(d.number(1, 3))]
    more = ", ".join(values(d, shape, t) for t in others)
    keys = d.number(1, len(others) + 2)
    at = lambda text: ":, " * axis + text
    texts = [
        f"jnp.sort({x}, axis={axis})", f"jnp.sort({x}, axis={axis}, descending=True)", f"jnp.argsort({x}, axis={axis})",
        f"jnp.argsort({x}, axis={axis}, descending=True)", f"lax.sort(({x}, {more}), dimension={axis}, num_keys={keys})",
        f"lax.sort(({more}, {x}), dimension={axis}, num_keys={keys})", f"lax.sort(({x}, {x}), dimension={axis})",
        f"lax.sort(({x}, lax.broadcasted_iota('int32', {shape}, {axis})), dimension={axis}, num_keys=1)",
        f"lax.top_k(jnp.moveaxis({x}, {axis}, -1), {k})", f"jnp.sort({x}, axis={axis})[{at(f':{k}')}]",
        f"jnp.flip(jnp.sort(jnp.flip({x}, {axis}), axis={axis}), {axis})", f"jnp.sort(-{x}, axis={axis})" if dtype != "bool" else x,
        f"jnp.take_along_axis({x}, jnp.argsort({x}, axis={axis}), {axis})", f"jnp.partition({x}, {k - 1}, axis={axis})[{at(str(k - 1))}]",
        f"jnp.argsort(jnp.argsort({x}, axis={axis}), axis={axis})", f"jnp.searchsorted(jnp.sort({x}.ravel()), {x})",
        f"jnp.unique({x}, size=9, fill_value=0, return_inverse=True, return_counts=True)" if kind_of(dtype) in "iu" else x,
        f"lax.sort({x}, dimension={axis}, is_stable=False)", f"jnp.lexsort(({more}, {x}), axis={axis})",
        f"jnp.median({x}, axis={axis})" if kind_of(dtype) in "iu" else x, f"vmap(jnp.argsort)({x})" if len(shape) > 1 else x,
    ]  # fmt: skip
    for _ in range(d.number(1, 4)):
        d.attempt(d.one(texts))


@edge(2.5)
@exactly
def running(d: Drawer) -> None:
    """Running operations along long and short axes, of what is computed, with what follows."""
    shape = rows_of(d)
    axis = long_axis(d, shape)
    dtype = d.one(["int32", "int32", "uint8", "int16", "int8", "uint32", "float32", "float32", "bool", "float16", "bfloat16",
                   "int64" if d.wide_numbers() else "int32", "complex64"])  # fmt: skip
    small = "float" in dtype and dtype != "float32"
    x = disguised(d, shape, dtype, 3 if small else 5)
    if small:  # sums of a few, which are exact
        x = f"({x} * (lax.broadcasted_iota('int32', {shape}, {axis}) % {d.one([37, 300])} == 0)).astype('{dtype}')"
    if not d.attempt(x):
        return
    x = d.pool[-1][0]
    r = d.one(["", ", reverse=True"])
    n = shape[axis]
    texts = [f"lax.cummax({x}, {axis}{r})", f"lax.cummin({x}, {axis}{r})", f"jnp.max({x}, {axis})", f"jnp.argmax({x}, {axis})",
             f"lax.associative_scan(jnp.maximum, {x}, axis={axis}{r})"] if dtype not in ("complex64", "bool") else []  # fmt: skip
    if not small and dtype != "bool":
        texts += [f"lax.cumsum({x}, {axis}{r})", f"lax.cumsum({x}, {axis}{r})", f"jnp.cumsum({x} * 2 - 1, {axis})",
                  f"lax.cumsum({x}, {axis}{r}) + {x}", f"jnp.sum(lax.cumsum({x}, {axis}{r}), {axis})" if dtype != "float32" else f"-lax.cumsum({x}, {axis})",
                  f"jnp.diff(lax.cumsum({x}, {axis}{r}), axis={axis})", f"lax.cumsum(lax.cumsum({x}, {axis}), {axis}, reverse=True)" if dtype != "float32" else x,
                  f"jnp.moveaxis(lax.cumsum({x}, {axis}{r}), {axis}, 0)", f"lax.associative_scan(jnp.add, {x}, axis={axis}{r})",
                  f"lax.cumsum(jnp.flip({x}, {axis}), {axis}{r})[{':, ' * axis}{d.number(0, n)}]", f"jnp.sum({x}, {axis})"]  # fmt: skip
    if kind_of(dtype) in "iu":
        texts += [f"lax.cumprod({x} | 1, {axis}{r})", f"lax.associative_scan(lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), ({x} | 1, {x}), axis={axis}{r})",
                  f"lax.associative_scan(jnp.bitwise_xor, {x}, axis={axis}{r})", f"jnp.prod({x} | 1, {axis}, dtype='{dtype}')"]  # fmt: skip
    if small:
        texts += [f"jnp.cumsum({x}, {axis}, dtype='float32')", f"jnp.sum({x}, {axis}, dtype='float32')", f"jnp.sum({x}.astype('float32'), {axis})"]
    if dtype == "bool":
        texts += [f"jnp.cumsum({x}, {axis})", f"jnp.cumsum({x}, {axis}, dtype='{d.one(['int8', 'uint8', 'float32'])}')", f"jnp.argmax({x}, {axis})",
                  f"lax.associative_scan(jnp.logical_xor, {x}, axis={axis}{r})", f"jnp.sum({x}, {axis}, dtype='uint8')", f"jnp.all({x}, {axis})"]  # fmt: skip
    for _ in range(d.number(1, 4)):
        d.attempt(d.one(texts))


EDGE = (1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 15, 16, 17, 24, 31, 32, 33, 47, 48, 49, 63, 64, 65, 95, 96, 97, 127, 128, 129, 191, 193, 257)


@edge(4)
@exactly
def products(d: Drawer) -> None:
    """Products at the edges of tiles, with what follows them on each piece."""
    dtype = d.one(["float32"] * 5 + ["int32", "bfloat16", "float16", "complex64", "int8", "float64" if d.wide_numbers() else "float32"])
    most = 4_000_000 if dtype[0] == "f" else 400_000
    while True:
        m, n, k = (d.one(EDGE) for _ in range(3))
        if d.chance(0.15):
            k = d.one([1000, 4097, 16_383, 16_384, 16_385, 40_000])
        if d.chance(0.1):
            n = d.one([1000, 4097])
        if m * n * k <= most and m * k <= 300_000 and n * k <= 300_000 and m * n <= 100_000:
            break
    batch = d.one([(), (), (), (), (2,), (3, 2), (17,)]) if m * n * k < 200_000 else ()
    few = 3 if dtype in ("float16", "bfloat16") else 5
    if k > 1000:
        few = 2
    a, b = disguised(d, (*batch, m, k), dtype, few), disguised(d, (*d.one([batch, ()]), k, n), dtype, few)
    f = d.fresh("f")
    lines = [f"    p = {d.one(['a @ b', 'a @ b', 'jnp.matmul(a, b)', '(b.swapaxes(-1, -2) @ a.swapaxes(-1, -2)).swapaxes(-1, -2)'])}"]
    if d.chance(0.2):
        lines = ["    p = jnp.matmul(a, b, preferred_element_type='float32')"] if dtype in ("bfloat16", "float16") else lines
    made = ["p"]
    row, column, whole = (disguised(d, s, dtype, 3) for s in ((n,), (m, 1), (*batch, m, n)))
    real = dtype != "complex64"
    for j in range(d.number(1, 6)):
        x, y = made[-1] if d.chance(0.7) else d.one(made), d.one(made)
        texts = [f"{x} + ({row})", f"{x} * ({column})", f"{x} - ({whole})", f"{x} * 2 + {y}", f"{x} - jnp.sum({y}, -1, keepdims=True).astype({x}.dtype)",
                 f"{x} - jnp.sum({y}, -2, keepdims=True).astype({x}.dtype)", f"jnp.flip({x}, -1) + {y}", f"{x} + jnp.roll({y}, 1, -2)",
                 f"{x}.at[..., {d.number(0, m)}, :].set(3)", f"jnp.where(jnp.arange({m})[:, None] >= jnp.arange({n}), {x}, 0)",
                 f"jnp.where(({row}) != 0, {x}, {y})", f"jnp.cumsum({x}, -1) - {y}"]  # fmt: skip
        if real:
            texts += [f"jnp.maximum({x}, 0)", f"jnp.where({x} > {y}, {x}, ({whole}))", f"{x} - jnp.max({x}, -1, keepdims=True)",
                      f"jnp.minimum({x}, ({column}))", f"({x} == jnp.max({x}, -1, keepdims=True)).astype({x}.dtype)", f"jnp.clip({x}, -3, 3)",
                      f"({x} > 1).astype('int8').astype({x}.dtype)", f"{x} * (lax.iota('int32', {n}) % 3 == 0)"]  # fmt: skip
        lines.append(f"    x{j} = {d.one(texts)}")
        made.append(f"x{j}")
    ends = [made[-1], d.one(made)]
    x = d.one(made)
    ends.append(d.one([f"jnp.sum({x}, -1)", f"jnp.sum({x}, -2)", f"{x}.swapaxes(-1, -2)", f"{x}[..., ::2, 1:]", f"{x}.reshape(-1)",
                       f"jnp.sum({x})", f"{x}.astype('int32')" if real else x, f"jnp.argmax({x}, -1)" if real else x,
                       f"{x}.swapaxes(-1, -2) @ a", f"jnp.concatenate([{x}, {x}], -1)", f"jnp.maximum({x}, 0).swapaxes(-1, -2) @ p" if real else x,
                       f"jnp.einsum('...ij,...ik->jk', {x}, p)" if n < 20 else x, f"jnp.max({x}, -2)" if real else x]))  # fmt: skip
    ends = [e for e in ends if d.chance(0.7)] or [made[-1]]
    definition = "\n".join([f"def {f}(a, b):", *lines, f"    return {', '.join(ends)},"])
    kind = d.number(0, 7)
    if kind == 0:
        d.attempt(f"vmap({f}, in_axes=({d.one(['0, None', 'None, 0', '0, 0'])}))"
                  f"(jnp.stack([{a}, {a} * 2]), jnp.stack([{b}, -{b}]))", definition)  # fmt: skip
    elif kind == 1:
        d.attempt(f"lax.scan(lambda s, x: (s + x.astype(s.dtype), {f}(s, {b})), {a}, jnp.stack([{a}, {a}]))[1]", definition)
    else:
        d.attempt(f"{f}({a}, {b})", definition)


@edge(2.5)
@exactly
def added(d: Drawer) -> None:
    """Many updates of few or many places: sums, extremes, rows of tables, counts."""
    m = d.one([1, 2, 3, 8, 16, 17, 33, 100, 257, 1000, 5000])
    count = d.one([1, 2, 7, 15, 16, 17, 33, 64, 100, 257, 1000, 4097, 10_000])
    rows = d.one([(), (), (), (1,), (2,), (3,), (8,), (17,), (2, 3), (64,)])
    if size((count, *rows)) > d.largest or size((m, *rows)) > d.largest:
        return
    dtype = d.one(["int32", "int32", "float32", "float32", "int8", "uint16", "float16", "bfloat16", "uint32", "bool", "complex64",
                   "float64" if d.wide_numbers() else "float32"])  # fmt: skip
    places = d.one(["'int32'", "'int32'", "'uint8'", "'int8'", "'uint32'", "'int16'"])
    low = d.one([0, 0, -2, -m])
    at = f"((jnp.arange({count}, dtype='uint32') * jnp.uint32(2654435761) >> {d.one([3, 9, 20])}).astype('int32') % {m + d.one([0, 0, 3])} + {low}).astype({places})"
    if d.chance(0.2):
        at = f"jnp.sort({at})"
    small = dtype in ("float16", "bfloat16")
    x = disguised(d, (m, *rows), dtype, 3)
    u = disguised(d, (count, *rows), dtype, 2 if small else 5)
    if small:
        u = f"({u} * (jnp.arange({count}) % 50 == 0).reshape(-1{', 1' * len(rows)})).astype('{dtype}')"
    f = d.one(["add", "add", "add", "max", "min", "subtract", "multiply"])
    if f == "multiply" and dtype[0] not in "iu" or dtype == "complex64" and f in ("max", "min"):
        f = "add"
    mode = d.one(["", "", ", mode='drop'", ", mode='clip'", ", indices_are_sorted=True" if "sort" in at and "+ 0)" in at else ""])
    texts = [f"({x}).at[{at}].{f}({u}{mode})"] * 4
    texts += [f"({x}).at[{at}].set(jnp.full({(count, *rows)}, 3).astype('{dtype}'))", f"({x})[{at}] * 1", f"ops.segment_sum({u}, {at}, {m})",
              f"jnp.take({x}, {at}, 0, mode='{d.one(['clip', 'fill', 'wrap'])}')", f"jnp.bincount({at} % {m}, length={m})" if "u" not in places and places != "'int8'" else f"({x}).at[{at}].add({u})"]  # fmt: skip
    if dtype not in ("complex64",):
        texts += [f"ops.segment_max({u}, {at}, {m})" if dtype != "bool" else x, f"ops.segment_min({u}, {at}, {m})" if dtype != "bool" else x]
    if rows:
        texts += [f"jnp.moveaxis(jnp.moveaxis({x}, 0, -1).at[..., {at}].{f}(jnp.moveaxis({u}, 0, -1){mode}), -1, 0)",
                  f"({x}).at[{at}, ..., {d.number(0, rows[-1])}].{f}({u}[..., 0]{mode})",
                  f"({x}).at[{at}, ..., jnp.arange({count}) % {rows[-1]}].{f}({u}[..., 0]{mode})" if len(rows) == 1 else f"({x})[{at}]"]
    text = d.one(texts)
    if not d.attempt(text):
        return
    name, v = d.pool[-1]
    if d.chance(0.4) and v.ndim:
        d.attempt(d.one([f"jnp.sum({name}, 0)", f"{name} + {name}[::-1]" if v.dtype.kind != "b" else name, f"jnp.cumsum({name}, 0)" if v.dtype.kind in "iu" else name]))


@edge(1.5)
def transformed(d: Drawer) -> None:
    """Fourier transforms of lengths at edges."""
    n = d.one([1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 15, 16, 17, 23, 24, 25, 31, 32, 34, 47, 48, 49, 53, 59, 60, 64, 94, 96, 97,
               100, 101, 106, 120, 127, 128, 169, 210, 243, 256, 257, 289, 318, 360, 500, 509, 512, 1000, 1009, 1024]
              + [2048, 2053, 4096, 4099, 6000, 8191, 8192, 10_000, 16_384] * d.chance(0.3))  # fmt: skip
    shape = [n]
    for _ in range(d.one([0, 1, 1, 2])):
        m = d.one([1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 33, 64])
        if size((m, *shape)) <= 40_000:
            shape.insert(d.number(0, len(shape) + 1), m)
    shape = tuple(shape)
    axis = shape.index(n)
    dtype = d.one(["float32", "complex64"] + ["float64", "complex128"] * d.wide_numbers())
    x = disguised(d, shape, "float32", 5)
    x = f"({x}).astype('{dtype}')" if dtype[0] == "f" else f"({x} + 1j * ({disguised(d, shape, 'float32', 5)})).astype('{dtype}')"
    many = f", n={max(n + d.number(-3, 4), 1)}" if d.chance(0.25) else ""
    norm = d.one(["", ", norm='ortho'", ", norm='forward'"])
    f = d.one(["fft", "ifft", "rfft", "ihfft"] if dtype[0] == "f" else ["fft", "ifft", "irfft", "hfft"])
    texts = [f"jnp.fft.{f}({x}{many}, axis={axis}{norm}) / {n}"] * 4
    if len(shape) > 1:
        axes = tuple(d.rng.permutation(len(shape))[:2].tolist())
        g = d.one(["fft2", "ifft2"] + (["rfft2"] if dtype[0] == "f" else ["irfft2"]))
        texts.append(f"jnp.fft.{g}({x}, axes={axes}{norm}) / {n}")
    texts += [f"jnp.fft.ifft(jnp.fft.fft({x}, axis={axis}) * 2, axis={axis})", f"jnp.real(jnp.fft.ifft(jnp.fft.fft({x}, axis={axis}) * jnp.arange({n}).reshape({tuple(n if a == axis else 1 for a in range(len(shape)))}) / {n}, axis={axis}))"]
    d.attempt(d.one(texts))


@edge(1.5)
def systems(d: Drawer) -> None:
    """Triangular systems, factorizations and their batches."""
    n = d.one([1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 31, 33, 63, 64, 65] + [100, 129, 191, 192, 193, 200] * d.chance(0.25))
    batch = d.one([(), (), (2,), (3,), (8,), (15,), (16,), (17,), (33,), (3, 5), (100,)])
    if size((*batch, n, n)) > 60_000:
        batch = ()
    dtype = d.one(["float32", "float32", "float64" if d.wide_numbers() else "float32", "complex64"])
    a = f"({disguised(d, (*batch, n, n), 'float32', 5)}).astype('{dtype}') / {8 * n}"
    if dtype == "complex64":
        a = f"({a} + 1j * ({disguised(d, (*batch, n, n), 'float32', 5)}) / {8 * n})"
    eye = f"jnp.eye({n}, dtype='{dtype}')"
    r = d.one([1, 2, 3, 5, 8, 16, 17, 33])
    left = d.chance(0.5)
    b = f"({disguised(d, (*batch, n, r) if left else (*batch, r, n), 'float32', 5)}).astype('{dtype}')"
    full = f"({a} + 2 * {eye})"
    herm = f"(0.5 * {full} + 0.5 * jnp.conj(jnp.swapaxes({full}, -1, -2)))"
    tri = (f"lax.linalg.triangular_solve({full}, {b}, left_side={left}, lower={d.chance(0.5)}, transpose_a={d.chance(0.5)}, "
           f"conjugate_a={dtype == 'complex64' and d.chance(0.5)}, unit_diagonal={d.chance(0.3)})")  # fmt: skip
    texts = [tri, tri, tri, f"jnp.linalg.cholesky({herm})", f"jnp.linalg.inv({full})", f"jnp.linalg.slogdet({full})[1]", f"jnp.linalg.det({full} / 2)",
             f"jnp.linalg.solve({full}, jnp.swapaxes({b}, -1, -2))" if not left else f"jnp.linalg.solve({full}, {b})",
             f"jnp.abs(jnp.diagonal(jnp.linalg.qr({full})[1], axis1=-2, axis2=-1))", f"lax.linalg.lu({full})[0]", f"lax.linalg.lu({full})[2]",
             f"jnp.linalg.eigvalsh({herm})", f"jnp.linalg.svd({full}, compute_uv=False)" if n < 40 else tri,
             f"lax.linalg.tridiagonal_solve({', '.join(f'jnp.ones(({n},), {dtype!r}) * {q}' for q in (0.25, 2, 0.5))}, jnp.ones(({n}, {r}), '{dtype}') * 3)" if n > 2 and dtype[0] == "f" else tri]  # fmt: skip
    d.attempt(d.one(texts))
