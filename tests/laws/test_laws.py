"""Laws over the whole registry, at every sample of `samples.py`, in 64 bits so that differences are
exact enough:

eager = operation by operation = compiled; JVP = central difference; the transpose is the adjoint;
vmap = stacked calls; the compositions of two; and derived jaxprs pass the checker.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import numjet as nj
from numjet.base import config
from numjet.core.jaxpr import Jaxpr, subjaxprs
from numjet.core.primitive import REGISTRY
from numjet.transforms import eager

with config.enable_x64(True):
    from laws.samples import SAMPLES, Sample

# Bound by rules only: sums of cotangents, the linear part of a custom_vjp function, and where a
# window's extreme lies (the derivative of window maxima). rng_uniform draws other
# numbers each time.
INTERNAL = {"add_any", "custom_lin", "repeat", "window_winner", "rng_uniform",
            "psum_start", "psum_done", "custom_partitioning", "mesh_cast", "sum_cast", "shard_map",
            "first_member", "to_memory", "inspect_sharding",
            "dim_as_value"}  # of programs that are written again before they run


@pytest.fixture(autouse=True)
def wide() -> Iterator[None]:
    with config.enable_x64(True), config.check_ir(True):
        yield


def leaves(value: Any) -> list[np.ndarray]:
    return [np.asarray(x) for x in nj.tree.leaves(value)]


def same(got: Any, want: Any, rtol: float = 1e-9, atol: float = 1e-11) -> None:
    for a, b in zip(leaves(got), leaves(want), strict=True):
        assert a.shape == b.shape
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)


def names_in(jaxpr: Jaxpr) -> set[str]:
    found = {eqn.primitive.name for eqn in jaxpr.eqns}
    for eqn in jaxpr.eqns:
        for sub in subjaxprs(eqn.params):
            found |= names_in(sub)
    return found


def each(samples: list[Sample]) -> Any:
    return pytest.mark.parametrize(
        "sample", samples, ids=[f"{i}-{s.id}" for i, s in enumerate(samples)]
    )


DIFFERENTIABLE = [s for s in SAMPLES if s.diff]
FORWARD = [s for s in DIFFERENTIABLE if s.note != "reverse-only"]


def test_every_primitive_has_a_sample() -> None:
    # Those of sparse arrays are there once another test has loaded them; it has their samples.
    sparse = {name for name in REGISTRY
              if name.startswith(("bcoo_", "bcsr_", "coo_", "csr_", "todense"))}
    missing = set(REGISTRY) - {s.primitive for s in SAMPLES} - INTERNAL - sparse
    assert not missing, f"primitives without a sample in tests/laws/samples.py: {sorted(missing)}"


@each(SAMPLES)
def test_sample_uses_its_primitive(sample: Sample) -> None:
    # A collective is gone once the map that owns its axis has interpreted it.
    if REGISTRY[sample.primitive].collective:
        return
    # What is printed in JAX's equations may be made of others than what runs.
    shown = names_in(nj.make_jaxpr(sample.fun)(*sample.args).jaxpr)
    if sample.primitive not in shown:
        shown = names_in(nj.jit(sample.fun).trace(*sample.args).program.jaxpr)
    assert sample.primitive in shown


@each(SAMPLES)
def test_compiled_is_eager(sample: Sample) -> None:
    eager = sample.fun(*sample.args)
    same(nj.jit(sample.fun)(*sample.args), eager)
    with config.direct_code(False):  # by LLVM
        same(nj.jit(lambda *args: sample.fun(*args))(*sample.args), eager)
    with nj.disable_jit():
        same(sample.fun(*sample.args), eager)


def direction(sample: Sample, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    out = []
    for i in sample.diff or ():
        x = np.asarray(sample.args[i])
        d = rng.standard_normal(x.shape)
        out.append(d + 1j * rng.standard_normal(x.shape) if x.dtype.kind == "c" else d)
    return out


def at(sample: Sample, xs: list[Any]) -> Any:
    args = list(sample.args)
    for i, x in zip(sample.diff or (), xs, strict=True):
        args[i] = x
    return sample.fun(*args)


def inexact(value: Any) -> list[np.ndarray]:
    return [x for x in leaves(value) if x.dtype.kind in "fc"]


@each(FORWARD)
def test_jvp_is_the_central_difference(sample: Sample) -> None:
    xs, vs = [np.asarray(sample.args[i]) for i in sample.diff], direction(sample, 1)
    _, tangent = nj.jvp(lambda *a: at(sample, list(a)), tuple(xs), tuple(vs))
    h = 1e-6
    above = inexact(at(sample, [x + h * v for x, v in zip(xs, vs, strict=True)]))
    below = inexact(at(sample, [x - h * v for x, v in zip(xs, vs, strict=True)]))
    got = [t for t in leaves(tangent) if t.dtype.kind in "fc"]
    assert len(got) == len(above)
    for t, a, b in zip(got, above, below, strict=True):
        np.testing.assert_allclose(t, (a - b) / (2 * h), rtol=2e-5, atol=2e-6)


def inner(a: list[np.ndarray], b: list[np.ndarray]) -> complex:
    return sum(np.sum(x * y) for x, y in zip(a, b, strict=True) if x.dtype.kind in "fc")


@each(FORWARD)
def test_transpose_is_the_adjoint(sample: Sample) -> None:
    xs, vs = [np.asarray(sample.args[i]) for i in sample.diff], direction(sample, 2)
    fun = lambda *a: [y for y in nj.tree.leaves(at(sample, list(a))) if y.dtype.kind in "fc"]  # noqa: E731
    out, tangent = nj.jvp(fun, tuple(xs), tuple(vs))
    rng = np.random.default_rng(3)
    us = [
        rng.standard_normal(y.shape)
        + (1j * rng.standard_normal(y.shape) if y.dtype.kind == "c" else 0)
        for y in out
    ]
    us = [u.astype(y.dtype) for u, y in zip(us, out, strict=True)]
    for f in (fun, nj.jit(fun)):
        _, pull = nj.vjp(f, *xs)
        back = leaves(pull(us))
        # Cotangents pair with tangents by the real part of the product without conjugation.
        left, right = np.real(inner(us, leaves(tangent))), np.real(inner(back, vs))
        np.testing.assert_allclose(left, right, rtol=1e-8, atol=1e-9)


@each(DIFFERENTIABLE)
def test_rules_linearize_as_the_general_way(
    sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    xs, vs = [np.asarray(sample.args[i]) for i in sample.diff], direction(sample, 5)
    fun = lambda *a: [y for y in nj.tree.leaves(at(sample, list(a))) if y.dtype.kind in "fc"]  # noqa: E731
    monkeypatch.setattr(eager, "_rules", {})
    results = []
    # The general way, the same while rules are derived, and by rules.
    for uses in (1 << 30, 0, 0):
        monkeypatch.setattr(eager, "USES_BEFORE_DERIVING", uses)
        out, pull = nj.vjp(fun, *xs)
        us = [np.ones_like(y) for y in out]
        many = nj.vmap(pull)([np.stack([u, 2 * u]) for u in us])
        linear = nj.linearize(fun, *xs)[1](*vs) if sample.note != "reverse-only" else None
        found = nj.tree.leaves((out, pull(us), many, linear))
        results.append([(nj.typeof(x), np.asarray(x)) for x in found])
    for other in results[1:]:
        for (aval, value), (want_aval, want) in zip(other, results[0], strict=True):
            assert aval is want_aval
            np.testing.assert_allclose(value, want, rtol=1e-13, atol=1e-13)


@each(DIFFERENTIABLE)
def test_gradient_compiles_and_second_derivatives_agree(sample: Sample) -> None:
    xs = [np.asarray(sample.args[i]) for i in sample.diff]

    def loss(*a: Any) -> Any:
        return sum(nj.numpy.sum(nj.numpy.abs(y) ** 2) for y in nj.tree.leaves(at(sample, list(a))))

    nums = tuple(range(len(xs)))
    eager = nj.grad(loss, nums)(*xs)
    same(nj.jit(nj.grad(loss, nums))(*xs), eager, rtol=1e-7, atol=1e-8)
    same(nj.grad(nj.jit(loss), nums)(*xs), eager, rtol=1e-7, atol=1e-8)
    if sample.note in ("reverse-only", "first-order") or any(np.iscomplexobj(x) for x in xs):
        return
    vs = direction(sample, 4)
    _, forward = nj.jvp(nj.grad(loss, nums), tuple(xs), tuple(vs))
    backward = nj.grad(
        lambda *a: sum(
            nj.numpy.sum(g * v) for g, v in zip(nj.grad(loss, nums)(*a), vs, strict=True)
        ),
        nums,
    )(*xs)
    same(forward, backward, rtol=1e-6, atol=1e-7)


# One stream gives the bits of all examples, as in JAX: tests/random/test_implementations.py.
ONE_STREAM = {"rng_bit_generator"}


@each([s for s in SAMPLES if s.primitive not in ONE_STREAM])
def test_vmap_is_stacked_calls(sample: Sample) -> None:
    args = [np.asarray(a) for a in sample.args]
    n = len(args)
    choices = [tuple([True] * n)] + [tuple(i == j for j in range(n)) for i in range(n) if n > 1]
    for mapped in choices:
        stacked = []
        for a, m in zip(args, mapped, strict=True):
            other = a if a.dtype.kind not in "fc" else a * 0.9
            stacked.append(np.stack([a, other, a]) if m else a)
        for fun in (sample.fun, nj.jit(sample.fun)):
            got = nj.vmap(fun, in_axes=tuple([0 if m else None for m in mapped]))(*stacked)
            want = [
                sample.fun(*[s[k] if m else s for s, m in zip(stacked, mapped, strict=True)])
                for k in range(3)
            ]
            same(
                got,
                nj.tree.map(lambda *ys: np.stack([np.asarray(y) for y in ys]), *want),
                rtol=1e-8,
            )


@each(DIFFERENTIABLE)
def test_vmap_of_grad_is_stacked_grads(sample: Sample) -> None:
    xs = [np.asarray(sample.args[i]) for i in sample.diff]

    def loss(*a: Any) -> Any:
        return sum(
            nj.numpy.sum(nj.numpy.real(y) * 1.3) for y in nj.tree.leaves(at(sample, list(a)))
        )

    nums = tuple(range(len(xs)))
    stacked = [np.stack([x, x * 0.9]) for x in xs]
    got = nj.jit(nj.vmap(nj.grad(loss, nums)))(*stacked)
    for k in range(2):
        want = nj.grad(loss, nums)(*[s[k] for s in stacked])
        same([g[k] for g in got], list(want), rtol=1e-8, atol=1e-9)
