"""einops after its documentation, on arrays of JAX."""
import jax
import jax.numpy as jnp
import numpy as np
from einops import einsum, pack, rearrange, reduce, repeat

X = jnp.arange(2 * 4 * 6 * 3.0).reshape(2, 4, 6, 3)


def test_operations_are_those_of_numpy():
    for f in (lambda x: rearrange(x, "b (h h2) w c -> b h w (c h2)", h2=2),
              lambda x: reduce(x, "b (h h2) (w w2) c -> b h w c", "mean", h2=2, w2=3),
              lambda x: reduce(x, "b h w c -> b c", "max"),
              lambda x: repeat(x, "b h w c -> b (h 2) w c")):
        np.testing.assert_allclose(f(X), f(np.asarray(X)), rtol=1e-6)
        np.testing.assert_allclose(jax.jit(f)(X), f(np.asarray(X)), rtol=1e-6)


def test_einsum_pack_and_gradients():
    w = jnp.ones((3, 5))
    np.testing.assert_allclose(einsum(X, w, "b h w c, c d -> b h w d"), X @ w, rtol=1e-5)
    packed, shapes = pack([X, X[:, 0]], "b * c")
    assert packed.shape == (2, 30, 3) and len(shapes) == 2
    grad = jax.grad(lambda x: reduce(x, "b h w c -> ", "sum"))(X)
    assert (grad == 1).all()
