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


def layers(rng: random.Random) -> Drawn:
    """Parts of neural networks, run or differentiated with respect to input and weights."""
    batch = rng.choice((1, 2, 4, 8, 16, 32))
    length = rng.choice((10, 16, 32, 50, 77, 100, 128, 196))
    heads, width = rng.choice((1, 2, 3, 4, 6, 8, 12)), rng.choice((8, 16, 24, 32, 40, 64))
    d = heads * width
    while batch > 1 and batch * length * d > 3e5:
        batch //= 2
    out = rng.choice((d, 4 * d, 10, 100, 3 * d)) if d < 300 else rng.choice((d, 10))
    split = f"({batch}, {length}, {heads}, {width})"
    norm = "((x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5))"
    batch_norm = "((x - x.mean((0, 1))) / jnp.sqrt(x.var((0, 1)) + 1e-5))"
    attention = (
        "(lambda q: (lambda s: jnp.einsum('bhqk,bkhd->bqhd', nn.softmax(MASKED, -1), q))"
        f"(jnp.einsum('bqhd,bkhd->bhqk', q, q) / {width**0.5}))(x.reshape{split})"
    )
    causal = f"jnp.where(jnp.tril(jnp.ones(({length}, {length}), bool)), s, -1e30)"
    angles = (
        f"(jnp.arange({length})[:, None] * jnp.exp(-jnp.arange({d // 2}) / {d // 2} * 9.))"
        ".astype(x.dtype)"
    )
    turned = (
        "(lambda t: jnp.concatenate([x[..., ::2] * jnp.cos(t) - x[..., 1::2] * jnp.sin(t), "
        f"x[..., ::2] * jnp.sin(t) + x[..., 1::2] * jnp.cos(t)], -1))({angles})"
    )
    target = f"(jnp.arange({batch * length}).reshape({batch}, {length}) % {out})"
    text = rng.choice([
        "x @ w + b", "nn.gelu(x @ w + b)", "nn.relu(x @ w + b)", "nn.softmax(x @ w + b)",
        f"{norm} * x[0, 0] + x[0, 1]", f"{norm} @ w", f"{norm}.reshape{split}.swapaxes(1, 2)",
        "x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * x[0, 0]", f"{batch_norm} @ w",
        attention.replace("MASKED", "s"), attention.replace("MASKED", causal), turned,
        f"nn.dot_product_attention(*[x.reshape{split}] * 3)",
        "nn.silu(x @ w) * (x @ w[:, ::-1])", "x.mean(1) @ w + b", "x.max(1) @ w",
        f"-jnp.take_along_axis(nn.log_softmax(x @ w + b), {target}[..., None], -1)",
        f"nn.logsumexp(x @ w, -1) - (x @ w * nn.one_hot({target}, {out}, dtype=x.dtype)).sum(-1)",
        f"x[:, {target}[0] % {length}] + jnp.arange({d}).astype(x.dtype)",
        "jnp.where(random.bernoulli(random.key(1), .9, x.shape), x / .9, 0) @ w",
        "jnp.tanh(x[:, 1:] - x[:, :-1]) @ w", "jnp.abs(x @ w - b).mean(-1)",
        "lax.scan(lambda h, u: (jnp.tanh(u + .5 * h),) * 2, x[:, 0], x.swapaxes(0, 1))[1]",
        "jnp.pad(x, ((0, 0), (1, 1), (0, 0)))[:, 2:] + x @ (w @ w.T)",
        "x * nn.sigmoid(x.mean(1, keepdims=True)) + nn.softplus(x)",
        "jnp.where(jnp.abs(x) < 1, .5 * x * x, jnp.abs(x) - .5)", "jnp.cumsum(nn.softmax(x, 1), 1)",
        "(lambda y: y / jnp.linalg.norm(y, axis=-1, keepdims=True))(x.mean(1) @ w)",
    ])  # fmt: skip
    text = f"lambda x, w, b: {text}"
    if rng.random() < 0.5:
        of = rng.choice(("0", "1", "(0, 1)", "(0, 1, 2)"))
        text = f"lambda x, w, b: grad(lambda *a: (({text})(*a)**2).mean(), {of})(x, w + 0, b)"
    dtype = rng.choice(("float32",) * 5 + ("bfloat16", "float64"))
    return text, [(dtype, (batch, length, d), 0), (dtype, (d, out), 0), (dtype, (out,), 0)]


def science(rng: random.Random) -> Drawn:
    """Parts of simulations: stencils, particles, kernels between points, spectra, chains."""
    n, m = rng.choice((50, 64, 100, 128, 200, 300)), rng.choice((40, 100, 256))
    dims, dtype = rng.choice((2, 3)), rng.choice(("float32",) * 3 + ("float64",))
    around = " + ".join(f"jnp.roll(u, {s}, {a})" for s in (1, -1) for a in (0, 1))
    step = f"u + .1 * ({around} - 4 * u)"
    inner = "(u[1:-1, 1:-1] + .1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]))"
    pairs, unit = "(p[:, None] - p[None])", f"jnp.eye({n}, dtype=p.dtype)"
    kernel, near = f"jnp.exp(-({pairs}**2).sum(-1) / 2)", "((p[:, None] - p[None, :10])**2).sum(-1)"
    force = f"(lambda r: (r / ((r * r).sum(-1, keepdims=True) + .1)**1.5).sum(1))({pairs})"
    accepted = (
        f"jnp.log(random.uniform(k, ({n}, 1))) < (q * q).sum(-1, keepdims=True) - (t * t).sum(-1, "
        "keepdims=True)"
    )
    text = rng.choice([
        step, f"lax.fori_loop(0, 20, lambda i, u: {step}, u)", f"u.at[1:-1, 1:-1].set({inner})",
        f"jnp.pad({inner}, 1, mode='edge')", f"({pairs}**2).sum(-1)", f"{kernel} @ p", force,
        f"lax.scan(lambda u, _: (u.at[1:-1, 1:-1].set({inner}) * .7, u.mean()), u, None, 20)",
        f"grad(lambda p: (1 / jnp.sqrt(({pairs}**2).sum(-1) + .1)).sum())(p)",
        f"jnp.argmin({near}, 1)", f"ops.segment_sum(p, jnp.argmin({near}, 1), 10)",
        "jnp.fft.irfft2(jnp.fft.rfft2(u) * .9, u.shape)", "jnp.abs(jnp.fft.fft2(u))**2",
        "jnp.gradient(u)[0] + jnp.gradient(u)[1]", "jnp.hypot(*jnp.gradient(u))",
        "jnp.where(u > 0, u * (u - jnp.roll(u, 1, 0)), u * (jnp.roll(u, -1, 0) - u))",
        "jnp.histogram(u, 30)[0]", "jnp.cov(u[:, :20].T)", "jnp.corrcoef(u[:, :20].T)",
        f"linalg.solve({kernel} + {unit}, p)", f"linalg.cholesky({kernel} + .1 * {unit})",
        "vmap(lambda k, a: a + .1 * random.normal(k, a.shape, a.dtype))"
        f"(random.split(random.key(0), {n}), p)",
        f"lax.scan(lambda q, k: ((lambda t: jnp.where({accepted}, t, q))"
        "(q + .3 * random.normal(k, q.shape, q.dtype)), 0), p, random.split(random.key(0), 20))[0]",
        f"lax.scan(lambda c, _: ((c[0] + .01 * c[1], c[1] - .01 * (lambda p: {force})(c[0])), 0), "
        "(p, p * 0), None, 5)[0]",
        "lax.scan(lambda a, e: (nn.logsumexp(a[:, None] + u[:8, :8], 0) + e[:8],) * 2, u[0, :8], "
        "u)[1]",
        f"jnp.interp(u.ravel(), jnp.linspace(-3, 3, {m}), jnp.sin(jnp.linspace(-3, 3, {m})))",
        "jax.scipy.ndimage.map_coordinates(u, [u * 5 + 20, u * 5 + 20], 1)",
        "jnp.cross(p, p[::-1])" if dims == 3 else "jnp.arctan2(p[:, 0], p[:, 1])",
        "linalg.eigvalsh(jnp.einsum('ni,nj->ij', p, p))", "jnp.polyval(u[0, :8], u * .3)",
        "vmap(jax.hessian(lambda a: jnp.exp(-(a * a).sum()) * jnp.sin(a).prod()))(p)",
        "vmap(jax.jacfwd(lambda a: jnp.sin(a) * a[::-1].sum()))(p)",
        "vmap(lambda a: jnp.convolve(a, u[0, :9], mode='same'))(u)",
    ])  # fmt: skip
    if rng.random() < 0.3 and not any(word in text for word in ("fft", "histogram", "argmin")):
        total = f"sum([(a.astype('float32')**2).sum() for a in jax.tree.leaves({text})])"
        text = f"grad(lambda u, p: {total}, (0, 1))(u, p)"
    return f"lambda u, p: {text}", [(dtype, (n, m), 0), (dtype, (n, dims), 0)]


FAMILIES: dict[str, Callable[[random.Random], Drawn]] = {
    "indexing": indexing, "elementwise": elementwise, "ordering": ordering, "windows": windows,
    "recurrent": recurrent, "gradients": gradients, "matrices": matrices,
    "layers": layers, "science": science,
}  # fmt: skip


def draw(family: str, seed: int, number: int) -> dict[str, Any]:
    """Draw `number` of a family and a seed: a text of a function, and its operands."""
    text, operands = FAMILIES[family](random.Random(f"{family} {seed} {number}"))
    return {"text": text, "shape": operands, "dtype": family}
