"""quax after its documentation: array-like values with rules of their own."""
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import quax
from quax.examples import lora


def test_lora_of_a_linear_layer():
    linear = eqx.nn.Linear(10, 12, key=jax.random.key(0))
    vector = jnp.arange(10.0)
    low_rank = lora.loraify(linear, rank=3, key=jax.random.key(1))

    @eqx.filter_jit
    def run(model, x):
        return quax.quaxify(model)(x)

    np.testing.assert_allclose(run(low_rank, vector), linear(vector), rtol=1e-4, atol=1e-4)


def test_a_value_of_our_own():
    class Doubled(quax.ArrayValue):
        array: jax.Array

        def aval(self):
            return jax.core.ShapedArray(self.array.shape, self.array.dtype)

        def materialise(self):
            return 2 * self.array

    @quax.register(jax.lax.add_p)
    def _(x: Doubled, y: Doubled):
        return Doubled(x.array + y.array)

    out = quax.quaxify(lambda a, b: a + b)(Doubled(jnp.ones(3)), Doubled(jnp.ones(3)))
    assert isinstance(out, Doubled) and out.materialise().tolist() == [4, 4, 4]
