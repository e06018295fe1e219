"""jaxtyping after its documentation: annotations checked at run time."""
import jax.numpy as jnp
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
