"""What a pullback keeps: arguments as they came, and values computed on the way."""

from __future__ import annotations

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp

W = jnp.arange(6.0).reshape(2, 3) / 6
X = jnp.ones((4, 2))


def layer(w: nj.Array, x: nj.Array) -> nj.Array:
    return jnp.sin(x @ w)


def reference(w, x, w_used, x_used):
    ct = np.cos(np.asarray(x) @ np.asarray(w))
    return x_used.T @ ct, ct @ w_used.T


@pytest.mark.parametrize("jitted", [False, True])
def test_arguments_that_are_kept(jitted: bool) -> None:
    forward = lambda w, x: nj.vjp(layer, w, x)  # noqa: E731
    out, pullback = (nj.jit(forward) if jitted else forward)(W, X)
    assert len(pullback.args_res) == 2 and len(pullback.opaque_residuals) == 1
    np.testing.assert_array_equal(pullback.args_res[0], W)
    np.testing.assert_array_equal(pullback.args_res[1], X)
    np.testing.assert_allclose(pullback.opaque_residuals[0], np.cos(X @ W), rtol=1e-6)
    pullback.args_res[0] = 3 * W
    got = pullback(jnp.ones_like(out))
    for a, b in zip(got, reference(W, X, 3 * W, X), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)
    # What was put there goes with the pullback into compiled functions.
    again = nj.jit(lambda f, ct: f(ct))(pullback, jnp.ones_like(out))
    np.testing.assert_allclose(again[1], got[1], rtol=1e-6)


def test_arguments_are_put_into_a_pullback_inside_jit() -> None:
    out, pullback = nj.jit(lambda w, x: nj.vjp(layer, w, x))(W, X)

    @nj.jit
    def backward(pullback, w, ct):
        pullback.args_res[0] = w
        return pullback(ct)

    got = backward(pullback, 2 * W, jnp.ones_like(out))
    np.testing.assert_allclose(got[1], reference(W, X, 2 * W, X)[1], rtol=1e-5)


def test_arguments_that_are_not_needed() -> None:
    def f(d, pair, n):
        return d["b"] @ d["a"] * jnp.sin(pair[0]) + n

    d = {"a": jnp.ones((2, 2)), "b": 2 * jnp.ones((2, 2))}
    _, pullback = nj.vjp(f, d, (3.0, 4.0), 5.0)
    kept = pullback.args_res[0]
    np.testing.assert_array_equal(kept["a"], d["a"])
    np.testing.assert_array_equal(kept["b"], d["b"])
    assert repr(pullback.args_res[1:]) == "[(NotNeeded(), NotNeeded()), NotNeeded()]"
    # Only the leaves count.
    pullback.args_res[0] = (d["a"], 4 * d["b"])
    assert pullback(jnp.ones((2, 2)))[0]["a"][0, 0] == pytest.approx(16 * np.sin(3.0), rel=1e-5)


def test_what_does_not_fit_is_refused() -> None:
    out, pullback = nj.vjp(layer, W, X)
    pullback.args_res[0] = jnp.ones(2)
    with pytest.raises(ValueError, match=r"args_res\[0\] must be an array"):
        pullback(out)
    pullback.args_res = [None, X]
    with pytest.raises(ValueError, match="args_res has 1 leaves"):
        pullback(out)


def test_gradients_that_are_not_wanted_are_not_computed() -> None:
    out, pullback = nj.vjp(layer, W, X)
    wanted = pullback.with_refs(nj.ad.GradValue(), nj.ad.DontWant())
    count = lambda f: str(nj.make_jaxpr(f)(out)).count("dot_general")  # noqa: E731
    assert count(pullback) == 2 and count(wanted) == 1
    np.testing.assert_allclose(wanted(out)[0], pullback(out)[0], rtol=1e-6)


def test_what_is_printed_of_linear_functions() -> None:
    _, pullback = nj.vjp(lambda x, y: jnp.sin(x) * y, jnp.zeros(2), jnp.ones(2))
    text = repr(pullback)
    assert text.startswith("VJP(fun={ lambda a:f32[2] b:f32[2] c:f32[2]; d:f32[2] e:f32[2]. let")
    assert "in_tree=PyTreeDef((*, *)), out_tree=PyTreeDef(*), args_res=[NotNeeded(), Arr" in text
    assert pullback.args_res and pullback(jnp.ones(2))[0][0] == 1  # printing changed nothing
    assert "VJP[{ lambda a:f32[2]" in str(nj.tree.structure(pullback))
    _, linear = nj.linearize(jnp.sin, jnp.zeros(2))
    assert "Partial(" + repr(linear).partition("Partial(")[2] == (  # 3.13 names its module
        "Partial(LinearMap({ lambda a:f32[2]; b:f32[2]. let c:f32[2] = mul b a in (c,) }), "
        "[Array([1., 1.], dtype=float32)])"
    )


def test_transposes_are_pytrees_of_what_they_hold() -> None:
    transposed = nj.linear_transpose(lambda x: X @ x, W[:, 0])
    assert [x.shape for x in nj.tree.leaves(transposed)] == [(4, 2)]
    within = nj.jit(lambda x: nj.linear_transpose(lambda v: x @ v, W[:, 0]))(2 * X)
    for f, scale in ((transposed, 1), (within, 2)):
        found = nj.jit(lambda f, ct: f(ct))(f, jnp.ones(4))
        np.testing.assert_allclose(found[0], scale * np.asarray(X).sum(0))


def test_numbers_are_kept_beside_arrays() -> None:
    """What was computed of values is a residual, with or without axes."""
    _, pullback = nj.vjp(lambda x: jnp.sin(x) * 3, jnp.zeros(2))
    assert sorted(x.shape for x in nj.tree.leaves(pullback)) == [(), (2,)]
    _, linear = nj.linearize(lambda x: jnp.sum(x) * jnp.max(x), jnp.ones(2))
    assert () in [x.shape for x in nj.tree.leaves(linear)]
    np.testing.assert_allclose(linear(jnp.ones(2)), 4.0)
