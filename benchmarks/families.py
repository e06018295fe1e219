"""Calls of one family each, drawn at random, on some hundred thousand elements: of `generated.py`.

    python benchmarks/generated.py SEED COUNT --family NAME

`FAMILIES[name](rng)` gives the text of a function of `xs` and its operands, each as (element type,
shape, bound of integers): what people index, update, broadcast, sort, convolve, scan, differentiate
and solve. Shapes are theirs: few are powers of two.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

Drawn = tuple[str, list[tuple[str, tuple[int, ...], int]]]

SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 28, 30, 32, 48, 50, 64, 100, 128, 200, 256,
         300, 500, 512, 1000)  # fmt: skip
FLAT = (50_000, 65_536, 100_000, 200_000)
DTYPES = ("float32",) * 6 + ("int32", "uint8", "float64", "bfloat16")


def shape(rng: random.Random, least: float, most: float, ranks: tuple[int, int]) -> tuple[int, ...]:
    """A shape of so many elements and axes."""
    while True:
        rank = rng.randint(*ranks)
        found = tuple(rng.choice(SIZES if rank > 1 else FLAT) for _ in range(rank))
        if least <= math.prod(found) <= most:
            return found


def _parts(rng: random.Random, whole: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Two shapes that broadcast to `whole`."""
    return [tuple(n if rng.random() < 0.5 else 1 for n in whole) for _ in range(2)]


def indexing(rng: random.Random) -> Drawn:
    """Gathers, scatters, slices at computed places, sums by segments."""
    whole, dtype = shape(rng, 3e4, 6e5, (1, 4)), rng.choice(DTYPES)
    axis = rng.randrange(len(whole))
    n, many = whole[axis], rng.choice((1, 3, 10, 100, 500))
    at, places = ",".join([*[":"] * axis, "i"]), ("int32", (many,), n)
    rows = (*whole[:axis], many, *whole[axis + 1 :])
    half = (*whole[:axis], max(1, n // 2), *whole[axis + 1 :])
    bins = rng.choice((5, 64, 1000))
    x = (dtype, whole, 9)
    kinds: list[Drawn] = [
        (f"lambda x, i: jnp.take(x, i, axis={axis}) * 2", [x, places]),
        (f"lambda x, i: x[{at}] + x[{at}].mean()", [x, ("int32", (many, 2), n)]),
        (f"lambda x, i: jnp.take_along_axis(x, i, {axis})", [x, ("int32", half, n)]),
        *[(f"lambda x, i, v: x.at[{at}].{how}(v)", [x, places, (dtype, rows, 9)])
          for how in ("add", "set", "max")],
        (f"lambda x, i: x.at[{at}].multiply(2)", [x, places]),
        *[(f"lambda x, i: ops.segment_{how}(x, i, {bins})", [x, ("int32", whole[:1], bins)])
          for how in ("sum", "max")],
        (f"lambda x, i: lax.dynamic_slice_in_dim(x, i[0], {half[axis]}, {axis}) * 2",
         [x, ("int32", (1,), half[axis])]),
        (f"lambda x, i, v: lax.dynamic_update_slice_in_dim(x, v + 1, i[0], {axis})",
         [x, ("int32", (1,), half[axis]), (dtype, half, 9)]),
        (f"lambda x: jnp.roll(x, {rng.choice((1, -1, 7))}, {axis}) - x", [x]),
        (f"lambda x, i, v: grad(lambda x: (jnp.take(x, i, axis={axis}) * v).sum())(x)",
         [("float32", whole, 0), places, ("float32", rows, 0)]),
    ]  # fmt: skip
    if len(whole) > 1:
        two = [("int32", (1000,), whole[0]), ("int32", (1000,), whole[1])]
        kinds += [
            ("lambda x, i, j: x[i, j]", [x, *two]),
            ("lambda x, i, j, v: x.at[i, j].add(v)", [x, *two, (dtype, (1000, *whole[2:]), 9)]),
        ]
    return rng.choice(kinds)


def elementwise(rng: random.Random) -> Drawn:
    """Broadcasts, and what moves elements: transposes, stacks, pads, repetitions, casts."""
    whole, dtype = shape(rng, 3e4, 6e5, (2, 5)), rng.choice(DTYPES)
    rank = len(whole)
    order = rng.sample(range(rank), rank)
    axis, end = rng.randrange(rank), rng.randrange(rank + 1)
    floats = "x; jnp.tanh(x); x * x; jnp.abs(x); x + v; jnp.exp(-x * x)"
    first = rng.choice(("x; x * x; x + v; x // 3; x % 7" if "int" in dtype else floats).split("; "))
    then = rng.choice((
        f"a.transpose({order}); a; a * w; jnp.where(v > w, a, -a); jnp.maximum(a, v) - w; "
        f"a.reshape(-1)[::-1]; a.reshape(-1, {whole[-1]}).T; jnp.flip(a, {axis}); "
        f"a.swapaxes(0, {rank - 1}) + 1; jnp.concatenate([a, a * 2], {axis}); "
        f"jnp.stack([a, a + v], {end}); jnp.pad(a, 1); jnp.repeat(a, 2, {axis}); jnp.tile(a, 2); "
        f"jnp.diff(a, axis={axis}); a[..., ::2]; a[1:] - a[:-1]; (a > v).astype('float32') * w; "
        "a.astype('float32').astype('bfloat16'); a.astype('int32') + 1"
    ).split("; "))  # fmt: skip
    operands = [(dtype, s, 5) for s in (whole, *_parts(rng, whole))]
    return f"lambda x, v, w: (lambda a: {then})({first})", operands


def ordering(rng: random.Random) -> Drawn:
    """Sorts, ranks, histograms and running operations."""
    whole = shape(rng, 2e4, 2e5, (1, 3))
    axis = rng.randrange(len(whole))
    text = rng.choice((
        f"jnp.sort(x, {axis}); jnp.argsort(x, {axis}); lax.top_k(x, min(5, x.shape[-1])); "
        f"jnp.median(x, {axis}); jnp.percentile(x.astype('float32'), 30, {axis}); "
        "jnp.searchsorted(jnp.sort(x.ravel()), x.ravel()[:500]); "
        f"jnp.cumsum(x, {axis}); jnp.cumprod(x, {axis}); lax.cummax(x, {axis}); "
        f"jnp.partition(x, {whole[axis] // 2}, {axis}); jnp.unique(x, size=100); "
        f"jnp.argmin(x, {axis}); jnp.lexsort((x.ravel(), x.ravel()[::-1])); "
        f"lax.sort((x, -x), dimension={axis}, num_keys=1); jnp.nonzero(x > 0, size=1000); "
        "jnp.histogram(x, 20); jnp.digitize(x, jnp.linspace(-2, 2, 11).astype(x.dtype)); "
        f"jnp.count_nonzero(x > 1, {axis}); jnp.ptp(x, {axis}); "
        "jnp.bincount((x.ravel() * 3).astype('int32') % 16, length=16)"
    ).split("; "))  # fmt: skip
    return f"lambda x: {text}", [(rng.choice(DTYPES), whole, 9)]


def windows(rng: random.Random) -> Drawn:
    """Convolutions and their gradients, pooling."""
    batch, size = rng.choice((1, 2, 4, 8)), rng.choice((14, 16, 24, 28, 30, 32))
    channels, outs = rng.choice((1, 3, 4, 8, 16, 32)), rng.choice((1, 4, 8, 10, 16, 32))
    k, step = rng.choice((1, 2, 3, 3, 5, 7)), rng.choice((1, 1, 2))
    pad = rng.choice(("SAME", "VALID"))
    dtype = rng.choice(("float32", "float32", "float32", "bfloat16", "float64"))
    first = rng.random() < 0.5
    layout, kernels = ("NCHW", "OIHW") if first else ("NHWC", "HWIO")
    names = f"dimension_numbers=('{layout}', '{kernels}', '{layout}')"
    xs = (batch, channels, size, size) if first else (batch, size, size, channels)
    ws = (outs, channels, k, k) if first else (k, k, channels, outs)
    conv = f"lax.conv_general_dilated(x, w, ({step}, {step}), '{pad}', {names})"
    window, steps = ((1, 1, n, n) if first else (1, n, n, 1) for n in (k, step))
    x, w = (dtype, xs, 0), (dtype, ws, 0)
    bias = (1, outs, 1, 1) if first else (outs,)
    return rng.choice([
        (f"lambda x, w: {conv}", [x, w]),
        (f"lambda x, w, b: nn.relu({conv} + b)", [x, w, (dtype, bias, 0)]),
        *[(f"lambda x, w: grad(lambda x, w: ({conv}**2).sum(), {i})(x, w)", [x, w])
          for i in (0, 1)],
        (f"lambda x, w: lax.conv_transpose(x, w, (2, 2), 'SAME', {names})", [x, w]),
        ("lambda x, w: lax.conv_general_dilated(x, w, (1, 1), 'SAME', rhs_dilation=(2, 2), "
         f"{names})", [x, w]),
        (f"lambda x: lax.reduce_window(x, -jnp.inf, lax.max, {window}, {steps}, '{pad}')", [x]),
        (f"lambda x: lax.reduce_window(x, 0., lax.add, {window}, {steps}, '{pad}')", [x]),
    ])  # fmt: skip


def recurrent(rng: random.Random) -> Drawn:
    """Scans and loops with small linear algebra, mapped or differentiated."""
    n, rounds = rng.choice((2, 3, 4, 6, 8, 16, 32, 64)), rng.choice((50, 100, 300, 1000))
    dtype, zero = rng.choice(("float32", "float32", "float64")), f"jnp.zeros({n}, x.dtype)"
    unit = f"jnp.eye({n}, dtype=x.dtype)"
    text, differentiable = rng.choice([
        (f"lax.scan(lambda c, u: ((A @ c + u),) * 2, {zero}, x)[1]", True),
        (f"lax.scan(lambda h, u: (jnp.tanh(h @ A + u),) * 2, {zero}, x)[1]", True),
        ("lax.scan(lambda c, u: (.9 * c + .1 * u,) * 2, x[0], x)[1]", True),
        (f"lax.scan(lambda c, u: (lambda M: (M * .99, jnp.linalg.cholesky(M)[-1, -1]))"
         f"(c + jnp.outer(u, u)), {unit}, x)[1]", True),
        ("lax.scan(lambda M, u: (lambda N: (N / jnp.abs(N).max(), N[0, 0]))"
         "(M @ A + u[:, None]), A, x)[1]", True),
        (f"lax.fori_loop(0, {rounds}, lambda i, v: (lambda w: w / jnp.linalg.norm(w))(A @ v), "
         "x[0])", False),
        (f"lax.fori_loop(0, 20, lambda i, X: X @ (2 * {unit} - A @ X * .01), A.T * .01)", False),
        ("lax.associative_scan(lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), "
         "(jnp.tanh(x), x))[1]", False),
        (f"lax.while_loop(lambda c: (c[1] < {rounds}) & (jnp.abs(c[0]).max() < 1e3), "
         "lambda c: (c[0] * 1.001 + x[c[1]] * .01, c[1] + 1), (x[0], 0))[0]", False),
        (f"lax.scan(lambda c, k: (c - .01 * (A @ c) + .1 * random.normal(k, ({n},), x.dtype), "
         f"c[0]), x[0], random.split(random.PRNGKey(0), {rounds}))[1]", False),
    ])  # fmt: skip
    text, first = f"lambda x, A: {text}", (rounds, n)
    if differentiable and rng.random() < 0.35:
        text = f"lambda x, A: grad(lambda x, A: ({text})(x, A).sum(), 1)(x, A)"
    batch = rng.choice((0, 0, 4, 16, 64))
    if batch and rounds * n * batch < 3e5:
        text, first = f"lambda x, A: vmap({text}, (0, None))(x, A)", (batch, *first)
    return text, [(dtype, first, 0), (dtype, (n, n), 0)]


def gradients(rng: random.Random) -> Drawn:
    """Gradients of a function of elements or rows, reduced."""
    whole = shape(rng, 1e4, 2e5, (2, 4))
    i = rng.randrange(len(whole))
    inner = rng.choice((
        "x * v; jnp.tanh(x + v); jnp.exp(-(x - v)**2); nn.gelu(x) * v; nn.softplus(x * v); "
        "jnp.where(x > v, x * w, v); jnp.maximum(x, v); x / (1 + v * v); "
        f"nn.softmax(x * v, {i}); (x - x.mean({i}, keepdims=True)) * v; "
        f"x / jnp.sqrt((x * x).sum({i}, keepdims=True) + 1) * v; jnp.cumsum(x, {i}) * v; "
        f"jnp.sort(x, {i}) * v; lax.rsqrt(1 + x * x) * v; jnp.log1p(jnp.exp(x)) * v; "
        f"jnp.roll(x, 1, {i}) * v; jnp.diff(x, axis={i}, append=0) * v; jnp.sin(x * 3) * v; "
        f"jnp.concatenate([x, x * v], {i}); jnp.clip(x * v, -1, 1)"
    ).split("; "))  # fmt: skip
    outer = rng.choice((
        f"a.sum(); (a * a).mean(); a.max({i}).sum(); nn.logsumexp(a, {i}).sum(); a.std({i}).sum(); "
        f"jnp.sqrt(1 + (a * a).sum({i})).sum(); jnp.log(1 + a * a).sum(); (a.mean({i})**2).sum()"
    ).split("; "))  # fmt: skip
    dtype = rng.choice(("float32",) * 4 + ("float64", "bfloat16"))
    of = rng.choice(("0", "1", "(0, 1)", "(0, 1, 2)"))
    text = f"grad(lambda x, v, w: (lambda a: {outer})({inner}), {of})(x, v, w + 0 * w)"
    return f"lambda x, v, w: {text}", [(dtype, s, 0) for s in (whole, *_parts(rng, whole))]


def matrices(rng: random.Random) -> Drawn:
    """Linear algebra of one matrix or a batch of small ones, and gradients of it."""
    n = rng.choice((2, 3, 4, 5, 6, 8, 10, 16, 20, 32, 50, 64, 100))
    batch, columns = rng.choice((1, 10, 100, 1000)), rng.choice((1, n, 3))
    while batch > 1 and batch * n**3 > 3e6:
        batch //= 10
    unit, square = f"jnp.eye({n}, dtype=A.dtype)", "A @ A.swapaxes(-1, -2)"
    text = rng.choice((
        f"linalg.solve(A + 5 * {unit}, b); linalg.inv(A + 5 * {unit}); linalg.det(A); "
        f"linalg.slogdet(A); linalg.cholesky({square} + {unit}); linalg.qr(A)[1]; "
        "linalg.eigh(A + A.swapaxes(-1, -2))[0]; linalg.svd(A, compute_uv=False); "
        "linalg.svd(A)[1]; A @ A @ A; linalg.matrix_power(A, 5); linalg.norm(A, axis=(-2, -1)); "
        f"lax.linalg.triangular_solve(jnp.tril(A) + 3 * {unit}, b, left_side=True, lower=True); "
        "linalg.pinv(A); jax.scipy.linalg.expm(A * .1); jnp.einsum('bij,bkj->bik', A, A).sum(0); "
        "jnp.tril(A) @ b; (A * b[..., :1]).sum(-1); vmap(jnp.diag)(A); linalg.matrix_rank(A); "
        f"grad(lambda A: linalg.slogdet({square} + {unit})[1].sum())(A); "
        f"grad(lambda A: (linalg.solve(A + 5 * {unit}, b)**2).sum())(A); "
        f"grad(lambda A: linalg.cholesky({square} + {unit}).sum())(A)"
    ).split("; "))  # fmt: skip
    dtype = rng.choice(("float32", "float32", "float64"))
    return f"lambda A, b: {text}", [(dtype, (batch, n, n), 0), (dtype, (batch, n, columns), 0)]


FAMILIES: dict[str, Callable[[random.Random], Drawn]] = {
    "indexing": indexing, "elementwise": elementwise, "ordering": ordering, "windows": windows,
    "recurrent": recurrent, "gradients": gradients, "matrices": matrices,
}  # fmt: skip


def draw(family: str, seed: int, number: int) -> dict[str, Any]:
    """Draw `number` of a family and a seed: a text of a function, and its operands."""
    text, operands = FAMILIES[family](random.Random(f"{family} {seed} {number}"))
    return {"text": text, "shape": operands, "dtype": family}
