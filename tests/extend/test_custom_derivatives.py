"""linear_call, helpers of custom rules, and the answers of checkpoint's policies."""

from __future__ import annotations

import numpy as np
import pytest
from both import both

import numjet as nj
import numjet.numpy as jnp
from numjet import ad_checkpoint, custom_derivatives as cd


def test_linear_call_and_helpers_beside_jax():
    both("""
from PACKAGE import custom_derivatives as cd
f = lambda r, x: {'a': x['b'] / r}
ft = lambda r, ct: {'b': ct['a'] * (100.0 + r)}
g = lambda x: cd.linear_call(f, ft, 2.0, {'b': x})['a']
out['~value'] = g(3.0)
out['~grad'] = jax.grad(g)(3.0)
out['~jvp'] = np.stack(jax.jvp(g, (3.0,), (1.0,)))
out['~jit grad'] = jax.jit(jax.grad(g))(3.0)
back = lambda ct: jax.linear_transpose(g, 1.0)(ct)[0]
out['~transposed twice'] = jax.linear_transpose(back, 1.0)(1.0)[0]
twice = lambda x: lax.scan(lambda c, _: (g(c), None), x, None, length=2)[0]
out['~inside scan'] = jax.grad(twice)(1.0)
out['values'] = str(cd.custom_vjp_primal_tree_values(
    {'a': cd.CustomVJPPrimal(1.0, True), 'b': [cd.CustomVJPPrimal(2.0, False)]}))
out['other leaf'] = err(lambda: cd.custom_vjp_primal_tree_values({'a': 1.0}))
zeros = cd.zero_from_primal({'a': jnp.ones(2), 'b': 1.0})
out['zeros'] = str([zeros['a'].shape, float(zeros['b'])])
out['symbolic'] = type(cd.zero_from_primal(jnp.ones(2), symbolic_zeros=True)).__name__
""")


def test_linear_call_under_vmap_and_what_it_refuses():
    g = lambda r, x: cd.linear_call(lambda r, x: x * r, lambda r, ct: ct * r * 10, r, x)  # noqa: E731
    r, x = jnp.array([2.0, 3.0]), jnp.array([1.0, 4.0])
    np.testing.assert_allclose(nj.vmap(g)(r, x), r * x)
    np.testing.assert_allclose(nj.jit(nj.vmap(nj.grad(g, 1), (0, None)))(r, 1.0), 10 * r)
    loss = lambda y: nj.vmap(g, (0, None))(r, y).sum()  # noqa: E731
    np.testing.assert_allclose(nj.grad(loss)(1.0), 50.0)
    with pytest.raises(NotImplementedError, match="residual_args are differentiated"):
        nj.grad(g)(2.0, 3.0)
    bad = lambda x: cd.linear_call(lambda r, x: x, lambda r, ct: (ct, ct), 1.0, x)  # noqa: E731
    with pytest.raises(TypeError, match="transpose output pytree"):
        nj.grad(bad)(1.0)


def test_policies_that_keep_values_in_other_memories(capsys):
    policies = nj.checkpoint_policies
    named = lambda x: jnp.sin(ad_checkpoint.checkpoint_name(jnp.sin(x), "inner"))  # noqa: E731
    both_names = policies.save_and_offload_only_these_names(
        names_which_can_be_saved=["other"], names_which_can_be_offloaded=["inner"],
        offload_src="device", offload_dst="pinned_host")  # fmt: skip
    dots = policies.offload_dot_with_no_batch_dims("device", "pinned_host")
    for policy, kept in ((both_names, True), (dots, False)):
        grad = nj.grad(nj.checkpoint(named, policy=policy))
        np.testing.assert_allclose(grad(0.5), np.cos(np.sin(0.5)) * np.cos(0.5), rtol=1e-6)
        text = str(nj.make_jaxpr(lambda x, g=grad: g(x))(0.5))
        assert text.count("name=inner") == (1 if kept else 2), text
    with pytest.raises(ValueError, match="both saved and offloaded"):
        policies.save_and_offload_only_these_names(
            names_which_can_be_saved=["a"], names_which_can_be_offloaded=["a"],
            offload_src="device", offload_dst="pinned_host")  # fmt: skip
    assert ad_checkpoint.Saveable and not ad_checkpoint.Recompute
    ad_checkpoint.print_saved_residuals(
        lambda x, *, w: jnp.tanh(x["k"] @ w).sum(), {"k": jnp.ones((2, 3))}, w=jnp.ones((3, 2))
    )
    shown = capsys.readouterr().out
    assert "f32[2,3] from the argument x['k']" in shown
    assert "f32[3,2] from the argument w" in shown
