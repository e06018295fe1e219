"""jaxtyping after its documentation: annotations checked at run time."""
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from beartype import beartype
from jaxtyping import Array, Float, Int, PyTree, jaxtyped


@jaxtyped(typechecker=beartype)
def product(a: Float[Array, "n m"], b: Float[Array, "m k"]) -> Float[Array, "n k"]:
    return a @ b


def test_shapes_that_fit_and_that_do_not():
    assert product(jnp.ones((2, 3)), jnp.ones((3, 4))).shape == (2, 4)
    with pytest.raises(Exception, match="product"):
        product(jnp.ones((2, 3)), jnp.ones((4, 3)))


def test_isinstance():
    assert isinstance(jnp.ones((2, 3)), Float[Array, "2 3"])
    assert not isinstance(jnp.ones((2, 3)), Int[Array, "2 3"])
    assert isinstance({"a": jnp.ones(3)}, PyTree[Float[Array, "3"]])


@jaxtyped(typechecker=beartype)
def loss(weights: Float[Array, "n m"], x: Float[Array, "*batch m"]) -> Float[Array, ""]:
    return jnp.mean(jnp.tanh(x @ weights.T) ** 2)


def test_annotations_hold_under_transformations():
    weights, x = jnp.full((3, 2), 0.5), jnp.linspace(-1, 1, 40).reshape(4, 5, 2)
    slope = jax.jit(jax.grad(loss))(weights, x)
    assert slope.shape == (3, 2)
    each = jax.vmap(jax.value_and_grad(loss), (None, 0))(weights, x)
    np.testing.assert_allclose(each[1].mean(0), slope, rtol=1e-5)
    np.testing.assert_allclose(each[0].mean(), loss(weights, x), rtol=1e-5)
    with pytest.raises(Exception, match="loss"):
        jax.jit(loss)(weights, x[..., :1])


@jaxtyped(typechecker=beartype)
def running_mean(xs: Float[Array, "time n"]) -> Float[Array, "time n"]:
    def step(
        carry: tuple[Float[Array, " n"], Int[Array, ""]], x: Float[Array, " n"]
    ) -> tuple[tuple[Float[Array, " n"], Int[Array, ""]], Float[Array, " n"]]:
        total, count = carry
        total, count = total + x, count + 1
        return (total, count), total / count

    return jax.lax.scan(step, (jnp.zeros(xs.shape[1]), jnp.array(0)), xs)[1]


def test_dimensions_bind_inside_of_loops():
    xs = jnp.arange(12.0).reshape(4, 3)
    np.testing.assert_allclose(jax.jit(running_mean)(xs)[-1], xs.mean(0), rtol=1e-6)
