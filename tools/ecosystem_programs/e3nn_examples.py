"""e3nn-jax after its documentation: equivariance of spherical harmonics and products."""
import e3nn_jax as e3nn
import jax
import jax.numpy as jnp
import numpy as np


def test_spherical_harmonics_are_equivariant():
    x = e3nn.IrrepsArray("1o", jnp.array([[1.0, 2.0, -0.5]]))
    rotation = e3nn.rand_matrix(jax.random.key(0))
    f = lambda v: e3nn.spherical_harmonics("0e + 1o + 2e", v, normalize=True)
    left, right = f(x.transform_by_matrix(rotation)), f(x).transform_by_matrix(rotation)
    np.testing.assert_allclose(left.array, right.array, atol=1e-4)


def test_tensor_products():
    x = e3nn.normal("2x0e + 1o", jax.random.key(1))
    y = e3nn.tensor_product(x, x)
    assert y.irreps.dim == x.irreps.dim**2
    assert e3nn.Irreps("1o + 0e").dim == 4
