"""What `make_jaxpr` prints is what JAX prints, and its jaxprs mean what the functions mean."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest
from oracle import run_in_oracle

import numjet as nj
import numjet.numpy as jnp
from numjet import lax, nn, random, scipy
from numjet.core.jaxpr import eval_jaxpr
from numjet.core.jaxpr_check import check_jaxpr

_VALUES = """
f, s = 1.5, np.int32(1)
x = jnp.arange(4.0) + 0.5
i = jnp.array([1, 0, 2])
m = jnp.arange(12.0).reshape(3, 4)
w = jnp.ones((4, 3))
p = {"w": w, "b": jnp.ones(3)}
k = jax.random.key(0)
saved = jax.checkpoint_policies.dots_saveable
every = jax.checkpoint_policies.everything_saveable
only = jax.checkpoint_policies.save_only_these_names("c")
named = jax.ad_checkpoint.checkpoint_name
step = lambda c, _: (jnp.sin(named(c * 2, "c")), None)
held = jax.jit(lambda v: m @ v)
y = jnp.array([0.3, 0.9, 0.6])
b = jnp.array([True, False, True])
place = jnp.asarray(1)
sq = jnp.array([[4.0, 1, 0], [1, 3, 1], [0, 1, 2]])
t = jnp.ones((2, 3, 3))
q4 = jnp.ones((2, 5, 4, 8))
z = jnp.array([1.0 + 2j, 3.0])
im = jnp.ones((8, 8, 3))
"""
# Functions, and their arguments behind a bar.
_FUNCTIONS = """
lambda x: jnp.var(x, axis=-1, keepdims=True) | m
lambda x: jnp.std(x, ddof=1) | x
lambda x: jnp.where(x > 0, x, 0) | x
lambda x: jnp.where(x[:, None] > 0, x[None], 1) | x
lambda x: jnp.clip(x, 0, 1) | x
lambda x: x.clip(max=2.0) | x
lambda x: jax.nn.relu(x) | x
lambda x: jax.nn.relu6(x) | x
lambda x: jax.nn.softmax(x) | m
lambda x: jax.nn.log_softmax(x) | m
lambda x: jax.nn.gelu(x) | x
lambda x: jax.nn.silu(x) | x
lambda x: jax.nn.elu(x) | x
lambda x: jax.nn.softplus(x) | x
lambda x: jax.nn.leaky_relu(x) | x
lambda x: jax.nn.hard_tanh(x) | x
lambda x: jax.nn.one_hot(x, 5) | i
lambda x: jax.nn.logsumexp(x, axis=1) | m
lambda x: jax.nn.standardize(x) | m
lambda x: x[..., None] | m
lambda x: x[None, 0] | m
lambda x: x[::2] | x
lambda x, i: x[i] | x, i
lambda x, i: x[i] | x, s
lambda x, i: x[i] | m, s
lambda x, i: x[i, i] | m, s
lambda x, i: x[i, 1] | m, 1
lambda x, i: x[-1, i, None] | m, 1
lambda x, i: x[i, 1:3] | m, np.uint8(1)
lambda x, i: x[i, ::-1] | m, 1
lambda x: x[5, 1] | m
lambda x: x.at[-9].set(1.0) | x
lambda x: x.at[9].get(mode="clip") | x
lambda x: x.at[2].get(mode="fill") | x
lambda x, i: x.at[i].get(mode="fill", fill_value=7.0) | x, 1
lambda v: m.at[9].set(v) | f
jax.vmap(lambda a, i: a[i, 1], (None, 0)) | m, i
jax.grad(lambda a, i: a[i, 1]) | m, 1
jax.jit(lambda v: m @ v) | x
lambda x: jax.jit(lambda v: m @ v)(x) + m.sum() | x
jax.jit(lambda x: jax.jit(lambda v: m @ v)(x) + m[:, 0]) | x
jax.jit(lambda v, n: n @ m @ v) | x, m[:, :3]
lambda w: jax.jit(lambda v: w @ m[:, :3] @ v)(w) | x[:3]
jax.grad(jax.jit(lambda v: jnp.sum((m @ v - 1) ** 2))) | x
jax.jit(jax.grad(lambda v: jnp.sum((m @ v - 1) ** 2))) | x
jax.vmap(jax.jit(lambda v: m @ v)) | m
jax.jacfwd(jax.jit(lambda v: m @ v)) | x
lambda a: jax.jvp(jax.jit(lambda v: m @ v), (a,), (a,)) | x
jax.jit(lambda v: m) | f
lambda v: held(v) + held(v) | x
lambda v: lax.cond(v[0] > 0, held, lambda u: m[:, :3].T @ held(u), v) | x
lambda v: lax.scan(lambda c, t: (c, held(v)), 0.0, v) | x
lambda v: lax.while_loop(lambda c: held(c)[0] < 1, lambda c: c + held(x)[0], v) | x
jax.checkpoint(held) | x
lambda v: jax.random.normal(k) + v | f
jnp.sum | f
jnp.mean | f
jnp.max | f
lambda x: jnp.sum(x, axis=()) | m
jax.vmap(jax.grad(lambda a: jnp.sum(a ** 2))) | x
jax.grad(lambda a: jnp.sum(a ** 2)) | f
jax.grad(lambda a: jnp.mean(a ** 2)) | f
jax.grad(lambda a: a[::2].sum()) | x
jax.grad(lambda a: jnp.var(a)) | x
jax.grad(lambda a: jnp.std(a)) | x
jax.grad(lambda a: jnp.pad(a, 1).sum()) | x
jax.grad(lambda a: jnp.diag(a).sum()) | x
jax.grad(lambda a: jnp.broadcast_to(a[:, None], (4, 3)).sum()) | x
jax.grad(lambda a: jnp.where(a[:, None] > 0, a[:, None], m[:, :1].T).sum()) | x
jax.grad(lambda a: (jnp.ones((4, 3)) - a[:, None]).sum()) | x
jax.grad(lambda a: (a[:, None] + jnp.ones((4, 3))).sum()) | x
jax.grad(lambda a: jnp.power(a[:, None], jnp.ones((4, 3))).sum()) | x
jax.grad(lambda s: (x - s).sum()) | f
jax.grad(lambda a: jnp.sum(a @ a.T - a @ a.T * 2)) | m
lambda a: jax.jvp(lambda b: b - b * b, (a,), (a,)) | x
lambda a: jax.jvp(lambda b: b[:1] + b, (a,), (a,)) | x
lambda a: jax.jvp(jnp.tanh, (a,), (a,)) | x
lambda a: jax.jvp(jnp.exp2, (a,), (a,)) | x
lambda a: jax.jvp(jnp.arccos, (a,), (a,)) | x
lambda a: jax.jvp(jnp.arcsinh, (a,), (a,)) | x
lambda a: jax.jvp(jax.scipy.special.erf, (a,), (a,)) | x
lambda a: jax.jvp(lambda b: jnp.power(b, b), (a,), (a,)) | x
lambda a: jax.jvp(jnp.max, (a,), (a,)) | x
jax.linearize(lambda a: a * a + 1, x)[1] | x
jax.jacfwd(jnp.tanh) | x
jnp.hypot | x, f
jnp.isclose | x, f
jnp.isclose | i, i
jnp.trunc | x
lambda x: jnp.tile(x, (2, 1)) | x
jax.jit(lambda v: jax.random.normal(k, (2,)) + v) | f
lambda x: x[jnp.array([0, 2])] | x
lambda x: x.at[0].set(1.0) | x
lambda x: x.at[1:3].add(2.0) | x
lambda x: x.at[:2, 1:].set(0) | m
lambda x: x.at[:, 0].set(0) | m
lambda x, i: x.at[i].set(1.0) | x, i
lambda x, i: x.at[i].multiply(2.0) | x, s
lambda x, i: x.at[i].get(mode="fill") | x, i
lambda x: x // 2 | i
lambda x: x % 2 | i
lambda x: x % 2 | x
lambda x: divmod(x, 3) | i
lambda x: jnp.outer(x, x) | x
lambda x: jnp.tril(x) | m
lambda x: jnp.triu(x, 1) | m
lambda x: jnp.sum(x > 0) | x
lambda x: jnp.cumsum(x) | x
lambda x: jnp.argsort(x, axis=0) | m
lambda x: jnp.array([x[0], x[1]]) | x
lambda x: [y * 2 for y in x] | x
lambda x: (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5) | m
lambda x: jnp.sqrt(jnp.sum((x[:, None] - x[None]) ** 2, -1)) | m
lambda a, b: lax.add(a, b[:, :1]) | m, m
lambda a, b: lax.max(a[:, :1], b[:1]) | m, m
lambda a, b: jnp.arctan2(a[:, :1], b[:1]) | m, m
lambda a, b: a + b | m, x
lambda x: jax.lax.cond(x.sum() > 0, lambda: x * 2, lambda: x) | x
lambda x: jax.lax.fori_loop(0, 3, lambda i, c: c + x[i], 0.0) | x
lambda x: jax.lax.fori_loop(0, 3, lambda i, c: c.at[i, 0].add(1.0), x) | m
lambda x: jax.lax.fori_loop(0, 5, lambda i, c: c + jnp.where(c > i, c, 0), x) | x
lambda p, x: jax.nn.relu(x @ p["w"] + p["b"]).sum() | p, m
jax.grad(jnp.tanh) | f
jax.grad(lambda x: jnp.sum(jnp.sqrt(x))) | x
jax.grad(jnp.arcsin) | f
jax.grad(lambda x: jnp.max(x)) | x
jax.grad(lambda x: jnp.sum(jnp.maximum(x, 0))) | x
jax.grad(lambda x: jnp.sum(jnp.clip(x, 0, 1))) | x
jax.grad(lambda x: jnp.sum(jnp.where(x > 0, x, 0.0))) | x
jax.grad(lambda x: jnp.sum(jax.nn.relu(x))) | x
jax.grad(lambda x: jnp.sum(jax.nn.softmax(x) * x)) | x
jax.grad(lambda x: jax.nn.logsumexp(x)) | x
jax.grad(lambda x: x[0]) | x
jax.grad(lambda x: jnp.sum(x[1:])) | x
jax.grad(lambda x, y: x - y, (0, 1)) | f, f
jax.grad(lambda a, b: jnp.sum(a + b)) | x, m
jax.grad(lambda a, b: jnp.sum(a[:3, None] * b)) | x, m
jax.grad(lambda p, x: jax.nn.relu(x @ p["w"] + p["b"]).sum()) | p, m
jax.grad(lambda p, x: jnp.mean(jnp.tanh(x @ p["w"] + p["b"]) ** 2)) | p, m
jax.jit(lambda p, x: jax.grad(lambda p: jnp.mean((x @ p["w"] + p["b"]) ** 2))(p)) | p, m
jax.vmap(jnp.sum) | m
jax.vmap(lambda x: jax.nn.relu(x).sum()) | m
jax.vmap(lambda a, b: a * b) | m, x[:3]
jax.vmap(lambda a, b: a + b, in_axes=(0, None)) | x[:3], m
jax.vmap(jax.value_and_grad(lambda x: jnp.sum(x ** 2))) | m
lambda k: jax.random.split(k, 3) | k
jax.jacfwd(lambda x: x ** 2) | x
jax.jacrev(lambda x: jnp.sin(x) * x) | x
jax.jacfwd(lambda a, b: a * b, argnums=(0, 1)) | x, x
jax.jacfwd(jnp.sin) | f
jax.jacrev(lambda x: x @ x) | m[:, :3]
jax.hessian(lambda x: jnp.sum(x ** 3)) | x
jax.hessian(jnp.sin) | f
jax.vmap(jax.hessian(lambda x: jnp.sum(jnp.sin(x)))) | m
lambda x: x[jnp.tril_indices(3)] | sq
lambda x: jnp.triu_indices(3, 1, 4)[1] + x | f
lambda x: x.at[jnp.diag_indices(3)].set(1.0) | sq
jax.pmap(lambda x: x * 2 + 1) | m[:1]
jax.pmap(lambda x: lax.psum(x, "i") + lax.axis_index("i"), axis_name="i") | m[:1]
jax.pmap(lambda x, y: (x * y, y), axis_name="i", in_axes=(1, None), out_axes=(1, 0)) | m[:, :1], f
jax.pmap(lambda d: d["w"] + 1) | {"w": m[:1]}
jax.pmap(lambda x: lax.psum(x, "i"), axis_name="i", out_axes=None) | m[:1]
jax.vmap(jax.pmap(lambda x: jnp.sin(x))) | m[:, None]
jax.grad(jax.checkpoint(jnp.sin)) | f
jax.grad(jax.checkpoint(lambda x: jnp.sum(jnp.tanh(x) ** 2))) | x
jax.grad(jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)), policy=saved)) | f
jax.grad(jax.checkpoint(lambda x: jnp.sin(named(jnp.cos(x), "c")), policy=only)) | f
jax.grad(jax.checkpoint(lambda x: jnp.sin(named(jnp.bfloat16(x), "c")), policy=only)) | f
jax.grad(jax.checkpoint(lambda x: jnp.sin(jnp.cos(x) * x) * x, policy=every)) | f
jax.grad(jax.checkpoint(lambda x: jnp.sin(x[0] * x).sum(), policy=every)) | x
jax.grad(jax.checkpoint(lambda a, b: jnp.tanh(jnp.tanh(a @ b) @ m).sum(), policy=saved), 1) | m, w
jax.grad(lambda x: sum(jax.checkpoint(lambda x: (x * x, jnp.sin(x * x)), policy=every)(x))) | f
jax.grad(lambda y: lax.scan(jax.checkpoint(step, policy=only), y, None, length=3)[0]) | f
jax.grad(lambda x: lax.scan(lambda c, a: (c * a, None), 1.0, x)[0]) | x
jax.grad(lambda x: lax.fori_loop(0, 3, lambda i, c: c * x, x)) | f
jax.grad(lambda x: lax.cond(x > 0, jnp.sin, jnp.cos, x)) | f
jax.grad(lambda x: lax.cond(x[0] > 0, lambda x: jnp.sin(x).sum(), lambda x: jnp.cos(x[0]), x)) | x
jax.grad(lambda x, i: lax.switch(i, [jnp.sin, lambda x: x * 2, jnp.exp], x)) | f, 1
lambda x: lax.switch(2, [jnp.sin, jnp.cos, jnp.tan], x) | x
lambda x: lax.cond(True, jnp.sin, jnp.cos, x) | x
jax.vmap(lambda x: lax.cond(x > 0, jnp.sin, jnp.cos, x)) | x
jax.vmap(lambda i, x: lax.switch(i, [lambda x: x + 1, lambda x: x * 2, lambda x: -x], x)) | i, i
jax.vmap(lambda p, x: lax.cond(p > 1, jnp.sin, jnp.cos, x)) | i, m
jax.grad(lambda p, x: jnp.mean((x @ p["w"][:, :1] + p["b"][:1]) ** 2)) | p, m
jax.grad(lambda x: jnp.sum(jnp.broadcast_to(x, (2, 1, 4)) * 2)) | m[:1]
jax.grad(lambda x: jnp.sum(x - jnp.mean(x, axis=1, keepdims=True))) | m
jax.grad(lambda x: jnp.concatenate([x, 2 * x]).sum()) | x
jax.grad(lambda x: jnp.stack([x, 2 * x]).sum()) | x
jax.grad(lambda x: jnp.tile(x, 3).sum()) | x
jax.grad(lambda x: jnp.split(x, 2)[1].sum()) | x
jax.vmap(lambda x: jnp.stack([x, x])) | m
jax.vmap(lambda x: jnp.tile(x, 2)) | m
lambda x: jnp.unstack(x) | m
lambda x: jnp.linalg.norm(x) | x
jax.grad(lambda x: jnp.linalg.norm(x)) | x
jax.grad(lambda x: jax.nn.log_softmax(x)[0, 0]) | m
jax.grad(lambda x: x ** 0.5) | f
lambda x: lax.round(x) | x
jax.vmap(lambda x, y: lax.scan(lambda c, a: (c + a, c), 0.0, y)[0] * x, (0, None)) | x, x
lambda k: jax.random.uniform(k, (2, 3)) | k
lambda k: jax.random.normal(k) | k
jax.vmap(lambda k: jax.random.normal(k, (3,))) | jax.random.split(k)
lambda x: jnp.take(x, jnp.array([0, 1])) | x
lambda x: jnp.round(x, 2) | x
lambda x: x.round() | i
lambda x: jnp.rint(x) | x
lambda x: jnp.hstack([x, x]) | x
lambda x: jnp.vstack([x, x]) | x
lambda x: jnp.dstack([x, x]) | x
lambda x: jnp.column_stack([x, x]) | x
lambda x: jnp.atleast_1d(x) | f
lambda x: jnp.roll(x, 1) | x
lambda x: jnp.roll(x, -1, axis=1) | m
lambda x: jnp.roll(x, (1, 2), axis=(0, 1)) | m
lambda x: jnp.linspace(0, x, 3) | f
lambda x: jnp.linspace(x, 2 * x, 4) | x
lambda x: jnp.linspace(0.0, x, 5, endpoint=False) | f
lambda x: jnp.trace(x) | m
lambda x: jnp.diag(x) | x
lambda x: jnp.diag(x, 1) | x
lambda x: jnp.diag(x, -1) | m
lambda x: jnp.diagonal(x, 1) | m
lambda x: jnp.pad(x, ((1, 0), (0, 2)), constant_values=5) | m
lambda x: jnp.kron(x, x) | x
lambda x: x // 2 | x
lambda x: divmod(x, 2) | x
lambda a: (a + 1) // (a[:1] + 1) | m
lambda a: (a + 1) % (a[:1] + 1) | m
lambda x: jnp.isclose(x, x, equal_nan=True) | x
lambda x: jnp.meshgrid(x, x) | x
lambda x: jnp.cross(x[:3], x[1:]) | x
lambda x: jnp.fft.fft(x).real | x
lambda x: jnp.fft.rfft2(x).real | m
lambda x, i: lax.dynamic_slice(x, (i,), (2,)) | x, 1
lambda x, i: lax.dynamic_update_slice(x, jnp.zeros(1), (i,)) | x, 1
lambda k: jax.random.bernoulli(k, 0.3, (4,)) | k
lambda k, p: jax.random.bernoulli(k, p, (2, 4)) | k, x / 9
lambda k: jax.random.exponential(k, (3,)) | k
lambda k: jax.random.gumbel(k) | k
lambda k: jax.random.laplace(k, (3,)) | k
lambda k: jax.random.categorical(k, x, shape=(4,)) | k
lambda k: jax.random.rademacher(k, (3,)) | k
lambda k: jax.random.truncated_normal(k, -2.0, 2.0, (3,)) | k
lambda k: jax.random.randint(k, (2,), 0, 5) | k
lambda k: jax.random.permutation(k, x) | k
lambda k: jax.random.permutation(k, m) | k
lambda k: jax.random.choice(k, x, (2,)) | k
lambda k: jax.random.choice(k, 5, (3,), replace=False) | k
jax.vmap(lambda a: lax.while_loop(lambda c: c < 5, lambda c: c + 1, a)) | x
jax.vmap(lambda a: lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + a, -c[1]), (a, 1.))) | x
jax.vmap(jax.vmap(lambda a: lax.while_loop(lambda c: c < 5, lambda c: c + 1, a))) | m
jax.vmap(lambda a: lax.fori_loop(0, a, lambda j, c: c + j, 0)) | i
lambda a: lax.associative_scan(jnp.add, a) | x
lambda a: lax.associative_scan(jnp.multiply, a, axis=1, reverse=True) | m
lambda a: lax.associative_scan(lambda p, q: (p[0] * q[0], p[1] + q[1]), (a, a)) | x
jax.vmap(lambda a, i: a[i], (None, 0)) | x, i
jax.vmap(lambda a, i: a[i]) | m, i
jax.vmap(lambda a, i: a[i], (0, None)) | m, 1
jax.vmap(lambda a, i: a.at[i].set(0.0)) | m, i
jax.vmap(lambda a, i: a.at[i].add(1.0), (None, 0)) | x, i
jax.vmap(lambda a, i: lax.dynamic_slice(a, (i,), (2,))) | m, i
jax.vmap(lambda a, i: lax.dynamic_update_slice(a, jnp.zeros(1), (i,))) | m, i
jax.vmap(lambda a: a[jnp.array([0, 1])]) | m
jax.vmap(lambda a: a / lax.psum(a, "i"), axis_name="i") | x
jax.vmap(lambda a: a - lax.pmean(a, "i") + lax.pmax(a, "i"), axis_name="i") | x
lambda a: lax.scan(lambda c, t: ((c[0] + t, c[1]), c[1]), (0.0, 1.0), a) | x
lambda a: lax.scan(lambda c, t: (c + t, t), 0.0, a) | x
lambda a: lax.scan(lambda c, t: (c, t), 0.0, a, reverse=True) | x
lambda a: lax.scan(lambda c, t: ((c[0] + t * a[0], c[1], c[2]), c[1] * c[2]), (0., a, a), a) | x
lambda a: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1]), (0, a)) | x
lambda a: lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1], c[2] * a), (0., a, a)) | x
lambda a, n: lax.fori_loop(0, n, lambda j, c: c + a[j], 0.0) | x, 2
lambda a: lax.fori_loop(0, 3, lambda j, c: c.at[j].set(j), a) | x
lambda a: lax.cond(a[0] > 0, lambda q: q[0], lambda q: 0.0, a) | x
jax.grad(lambda a: lax.scan(lambda c, t: ((c[0] * c[1] + t, c[1]), None), (0.0, a), x)[0][0]) | f
jax.grad(lambda a: jnp.prod(a)) | x
jax.grad(lambda a: jnp.prod(a[:3])) | x
jax.grad(lambda a: jnp.prod(a)) | m[:, :3]
lambda a: jax.jvp(jnp.prod, (a,), (a,)) | x
jax.grad(lambda a: jnp.sort(a)[0]) | x
jax.grad(lambda a: jnp.trace(a)) | m
jax.grad(lambda a: jnp.roll(a, 1)[0]) | x
jax.grad(lambda a: jnp.linspace(0, a, 3).sum()) | f
lambda a: jnp.einsum("i,j->ij", a, a) | x
lambda a: jnp.log2(a) + jnp.log10(a) | x
lambda a: jnp.rot90(a, 3) | m
lambda a: jnp.median(a) | x
lambda a: jnp.quantile(a, 0.25) | x
lambda a: jnp.select([a > 1, a > 2], [a, -a]) | x
lambda a: jnp.select([a > 1], [1.0], 2.0) | x
lambda a: jax.ops.segment_sum(a, jnp.array([0, 0, 1, 1]), 2) | x
lambda a, i: lax.dynamic_index_in_dim(a, i, 1, keepdims=False) | m, 1
lambda k: jax.random.normal(k, (2,)) | jax.random.PRNGKey(1)
lambda k: jax.random.randint(k, (2,), 0, 3) | jax.random.PRNGKey(1)
lambda k: [jax.random.bernoulli(q) for q in jax.random.split(k)] | jax.random.PRNGKey(1)
lambda *x: jnp.concatenate(x) | *[x] * 30
lambda *x: jax.checkpoint(lambda *y: [z * 2 for z in y])(*x) | *[x] * 12
jnp.nanstd | m
jnp.nanvar | m
lambda a: jnp.nanvar(a, axis=0, ddof=1, keepdims=True) | m
lambda a: jnp.nanmean(a, axis=1) | m
lambda a: jnp.nanmean(a, axis=1, keepdims=True) | m
jnp.nanargmax | m
lambda a: jnp.nanargmin(a, axis=1) | m
jnp.nancumsum | m
jnp.nancumprod | x
jnp.nanmax | m
lambda a: jnp.nanmin(a, axis=0) | m
lambda a: jnp.quantile(a, 0.3) | m
lambda a: jnp.quantile(a, 0.3, axis=0) | m
lambda a: jnp.quantile(a, 0.3, axis=-1, keepdims=True) | m
lambda a: jnp.quantile(a, jnp.array([0.1, 0.9])) | m
lambda a: jnp.quantile(a, jnp.array([0.1, 0.9]), axis=1) | m
lambda a: jnp.median(a, axis=1, keepdims=True) | m
jnp.median | m
jnp.median | i
lambda a: jnp.percentile(a, 30, method='nearest') | x
lambda a: jnp.percentile(a, 30, axis=1) | m
lambda a: jnp.percentile(a, jnp.array([30, 40])) | x
lambda a: jnp.quantile(a, 0.3, method='lower') | x
lambda a: jnp.quantile(a, 0.3, method='higher') | x
jnp.nanmedian | x
jnp.nanmedian | m
lambda a: jnp.nanquantile(a, 0.3) | m
lambda a: jnp.nanpercentile(a, 30.0) | m
jax.grad(lambda a: jnp.median(a)) | x
lambda a: jnp.nonzero(a, size=3, fill_value=7) | m
lambda a: jnp.nonzero(a > 1, size=3) | x
lambda a: jnp.where(a > 1, size=3, fill_value=-1) | x
lambda a: jnp.flatnonzero(a > 1, size=3) | m
lambda a: jnp.argwhere(a, size=3) | m
lambda a: jnp.bincount(a, x[:3], length=3) | i
lambda a: jnp.bincount(a, length=3) | i
jnp.trapezoid | x
lambda a: jnp.convolve(a, a, mode='same') | x
lambda a: jnp.correlate(a, x[:2]) | x
jax.grad(lambda a: jnp.convolve(a, x[:2]).sum()) | x
lambda a: jnp.lexsort((a, a)) | x
jnp.vander | x
lambda a: jnp.isin(a, a) | x
lambda a: jnp.block([[a, a], [a, a]]) | m
jax.nn.mish | x
jax.nn.log_sigmoid | x
jax.nn.hard_swish | x
jnp.signbit | x
jnp.copysign | x, x
jnp.heaviside | x, x
jnp.modf | x
lambda a: jnp.trace(a) | m[:, :3]
lambda a: jnp.linalg.cross(a, a) | x[:3]
lambda a: jnp.linalg.matrix_power(a, 3) | m[:, :3]
jnp.polyval | x, x
jnp.polyval | x, 2.0
jax.nn.logmeanexp | m
jax.scipy.special.xlogy | x, x
jax.grad(lambda a: jax.scipy.special.xlog1py(a, a).sum()) | x
jax.scipy.special.logit | x
jax.scipy.special.log_softmax | x
jax.scipy.stats.norm.logpdf | x
jax.scipy.linalg.lu_factor | m[:, :3]
lambda a, b: jax.scipy.linalg.solve_triangular(a, b, lower=True) | m[:, :3], x[:3]
jax.scipy.linalg.block_diag | m, m
lambda a: jnp.pad(a, (0, 2), mode='edge') | x
lambda a: jnp.pad(a, ((1, 2), (0, 1)), mode='edge') | m
lambda a: jnp.pad(a, ((1, 2), (0, 1)), mode='reflect') | m
lambda a: jnp.pad(a, 2, mode='symmetric') | m
lambda a: jnp.pad(a, ((1, 2), (0, 1)), mode='wrap') | m
lambda a: jnp.pad(a, 7, mode='reflect') | x
lambda a: jnp.array([[a, 0], [0, a * 2]]) | f
lambda a: jnp.array([a, 2], jnp.float32) | 1
lambda a: jnp.asarray([a, 1.0, True]) | s
lambda a: jnp.array([a, x, x]) | x
lambda a: jnp.mean(a, where=a > 1, axis=1, keepdims=True) | m
lambda b: lax.custom_linear_solve(jnp.negative, b, *[lambda mv, b: -b] * 2) | x
"""
# More of them, of the public functions one by one.
_CALLS = Path(__file__).with_name("jax_form_calls.txt").read_text()
CASES = [line for line in (_FUNCTIONS + _CALLS).splitlines() if line]
_TEXTS = """
from jax import lax
import jax.ad_checkpoint, jax.image, jax.scipy.fft, jax.scipy.linalg, jax.scipy.signal
import jax.scipy.special, jax.scipy.stats
exec(str(values))
texts = []
for case in cases:
    function, given = str(case).rsplit("|", 1)
    texts.append(str(jax.make_jaxpr(eval(function))(*eval(f"({given},)"))))
out["texts"] = np.array(texts)
"""
SCOPE = {"jax": nj, "jnp": jnp, "np": np, "lax": lax}
exec(_VALUES, SCOPE)
assert nn and random and scipy.linalg and scipy.special and scipy.stats  # loaded, for `jax.nn`


@pytest.fixture(scope="module")
def texts():
    return run_in_oracle(_TEXTS, values=_VALUES, cases=np.array(CASES))["texts"].tolist()


def _case(text: str):
    function, given = text.rsplit("|", 1)
    return eval(function, SCOPE), eval(f"({given},)", SCOPE)


def test_printed_jaxprs_are_those_of_jax(texts):
    differ = {}
    for text, theirs in zip(CASES, texts, strict=True):
        function, args = _case(text)
        ours = str(nj.make_jaxpr(function)(*args))
        if ours != theirs:
            differ[text] = f"{theirs}\n--- ours\n{ours}"
    assert not differ, "\n".join([f"== {text}\n{how}" for text, how in differ.items()])


@pytest.mark.parametrize("text", CASES)
def test_they_mean_the_functions(text):
    """Evaluated, compiled and differentiated as what they were made of."""
    function, args = _case(text)
    closed = nj.make_jaxpr(function)(*args)
    flat = nj.tree.leaves(args)

    def again(*xs):
        return eval_jaxpr(closed.jaxpr, closed.consts, *xs)

    want = [jnp.asarray(x) for x in nj.tree.leaves(function(*args))]
    for got in (again(*flat), nj.jit(again)(*flat)):
        for x, y in zip(got, want, strict=True):
            if nj.dtypes.issubdtype(y.dtype, nj.dtypes.prng_key):
                x, y = random.key_data(x), random.key_data(y)
            np.testing.assert_allclose(x, y, rtol=2e-5, atol=1e-5)
    at = [n for n, x in enumerate(flat) if jnp.issubdtype(jnp.result_type(x), jnp.floating)]
    reversible = "while" not in str(closed)
    if at and jnp.issubdtype(want[0].dtype, jnp.floating) and reversible:
        total = lambda f: lambda x: jnp.sum(f(*[*flat[: at[0]], x, *flat[at[0] + 1 :]])[0])  # noqa: E731
        whole = lambda *xs: nj.tree.leaves(  # noqa: E731
            function(*nj.tree.unflatten(nj.tree.structure(args), xs))
        )
        x = jnp.asarray(flat[at[0]], float)
        np.testing.assert_allclose(
            nj.grad(total(again))(x), nj.grad(total(whole))(x), rtol=1e-4, atol=1e-4
        )


@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 3)])
@pytest.mark.parametrize("name", ["slogdet", "det"])
def test_calls_of_determinants_take_the_matrix_alone(name: str, shape: tuple) -> None:
    """Interpreters look calls up by their names, and hand rules the operands (folx)."""
    x = jnp.broadcast_to(jnp.array([[4.0, 1, 0], [1, 3, 1], [0, 1, 2]]), shape)
    closed = nj.make_jaxpr(getattr(jnp.linalg, name))(x)
    (call,) = closed.jaxpr.eqns
    assert call.params["name"] == name and [v.aval.shape for v in call.invars] == [shape]
    out = eval_jaxpr(closed.jaxpr, closed.consts, x)
    want = np.full(shape[:-2], 18.0 if name == "det" else np.log(18.0))
    np.testing.assert_allclose(out[-1], want, rtol=1e-5)


def test_parameters_and_names_of_rarer_equations() -> None:
    square, rows = jnp.eye(2), jnp.ones((3, 2))
    for function, args, shown in (
        (lax.linalg.schur, (square,),
         "compute_schur_vectors=True select_callable=None sort_eig_vals=False"),
        (lambda x, w: lax.ragged_dot(x, w, jnp.array([1, 2])), (rows, jnp.ones((2, 2, 2))),
         "group_offset=None out_sharding=None precision=None preferred_element_type=None "
         "ragged_dot_dimension_numbers="),
        (lambda v: lax.custom_root(lambda y: y**2 - v, v, lambda f, y: y - f(y) / 2,
                                   lambda g, y: y / g(1.0)), (2.0,), "jvp=_root_jvp"),
    ):  # fmt: skip
        assert shown in " ".join(str(nj.make_jaxpr(function)(*args)).split())


_GAIN = jnp.array(3.0)


def test_numbers_that_a_function_closes_over_are_constants() -> None:
    """As in JAX, wherever the function's variables hold them; Python's numbers are literals."""
    start, rows = jnp.array(2), jnp.arange(6.0).reshape(3, 2)
    state = {"start": start, "rows": [rows]}

    def inner(y):
        return y * _GAIN + state["rows"][0][0] * 2.0

    for function, arg, values in (
        (inner, jnp.ones(2), [3.0, np.asarray(rows)]),
        (functools.partial(lambda s, y: (y + s, s), start), jnp.arange(2), [2]),
        (lambda y: inner(y).sum() + _GAIN, jnp.ones(2), [3.0, np.asarray(rows)]),
        (lambda y: y * 2.0 + np.float32(3.0), 1.0, []),
    ):
        closed = nj.make_jaxpr(function)(arg)
        assert len(closed.consts) == len(values) == len(closed.jaxpr.constvars)
        for const, value in zip(closed.consts, values, strict=True):
            np.testing.assert_array_equal(const, value)
        out = eval_jaxpr(closed.jaxpr, closed.consts, jnp.asarray(arg))
        for x, y in zip(out, nj.tree.leaves(function(jnp.asarray(arg))), strict=True):
            np.testing.assert_allclose(x, y)


def test_dicts_of_every_kind_are_looked_through_for_numbers() -> None:
    """Those that hold themselves, as namespaces do, and those whose keys have no order."""
    itself: dict = {"gain": _GAIN}
    itself["itself"] = itself
    namespace: dict = {"nj": nj, "gain": _GAIN}
    exec("def function(y): return y * gain", namespace)
    for held in (itself, {"gain": _GAIN, 1: None}, namespace):
        for function in (
            lambda y, held=held: (lambda: y * held["gain"])(),
            lambda y, *, held=held: y * held["gain"],
            (lambda held: lambda y: y * held["gain"])(held),
        ):
            closed = nj.make_jaxpr(function)(jnp.ones(2))
            assert list(map(float, closed.consts)) == [3.0]


def test_constants_are_as_many_for_known_and_for_traced_numbers() -> None:
    """Loops carry the constants of a function's jaxpr from round to round (optimistix' LBFGS)."""
    numbers = []

    def count(start, y):
        closed = nj.make_jaxpr(lambda y: (jnp.arange(3) + start) % 3 + (start - 1) + y)(y)
        numbers.append([v.aval.dtype for v in closed.jaxpr.constvars])
        return y

    nj.jit(lambda y: count(jnp.array(0), y))(4)
    nj.jit(count)(0, 4)
    assert numbers[0] == numbers[1] and len(numbers[0]) == 1


_HELD_SCALARS = """
s, t, k = jnp.asarray(2.0), jnp.float32(3.0), jnp.asarray(2)
x = jnp.arange(3.0) + 1
called = jax.jit(lambda y: y * s)
saved = jax.checkpoint(lambda y: jnp.sin(y * s))
ruled = jax.custom_jvp(lambda y: y * s)
ruled.defjvp(lambda p, d: (ruled(*p), d[0] * s))
"""
# Functions whose loops, branches and calls close over arrays without axes.
_CLOSING = """
lambda y: lax.scan(lambda c, v: (c * t + x.sum() + s * y, v * t), jnp.float32(1), x) | 1.0
lambda y: lax.while_loop(lambda c: c < s * t, lambda c: c * t, y) | 1.0
lambda y: lax.fori_loop(0, k, lambda i, c: c * s, y) | 1.0
lambda y: lax.map(lambda v: v * s, x) + y | 1.0
lambda y: lax.cond(y > 0, lambda: y * s, lambda: t) | 1.0
lambda y: lax.cond(y > 0, lambda v: v * s, lambda v: v - t, y) | 1.0
lambda i, y: lax.switch(i, [lambda v: v * s, lambda v: v * t, lambda v: v * s * t * y], y) | 1, 2.0
jax.vmap(lambda y: lax.cond(True, lambda: s * y, lambda: t)) | x
lambda y: called(y) + s | 1.0
lambda y: jax.jit(lambda v: lax.cond(v > 0, lambda: s * v, lambda: t))(y) | jnp.float32(1)
lambda y: lax.scan(lambda c, v: (called(c), v), jnp.float32(1), x)[0] + y | 1.0
jax.grad(called) | 1.0
jax.grad(lambda y: jax.jit(lambda v: jnp.sin(v * s))(y)) | 1.0
jax.grad(lambda y: lax.scan(lambda c, v: (c * s, None), y, None, length=3)[0]) | 1.0
lambda y: saved(y) + 1 | 1.0
jax.grad(saved) | 1.0
lambda y: ruled(y) + 1 | 1.0
"""
CLOSING = [line for line in _CLOSING.splitlines() if line]


def test_loops_branches_and_calls_take_the_numbers_they_close_over():
    theirs = run_in_oracle(_TEXTS, values=_HELD_SCALARS, cases=np.array(CLOSING))["texts"].tolist()
    scope = {"jax": nj, "jnp": jnp, "lax": lax}
    exec(_HELD_SCALARS, scope)
    for text, want in zip(CLOSING, theirs, strict=True):
        function, given = text.rsplit("|", 1)
        function, args = eval(function, scope), eval(f"({given},)", scope)
        closed = nj.make_jaxpr(function)(*args)
        check_jaxpr(closed.jaxpr)
        assert str(closed) == want
        out = eval_jaxpr(closed.jaxpr, closed.consts, *args)
        for a, b in zip(out, nj.tree.leaves(function(*args)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)
