"""penzai after its documentation: named axes, selectors, a small network."""
import jax
import jax.numpy as jnp
import numpy as np
from penzai import pz


def test_named_axes():
    x = pz.nx.wrap(jnp.arange(6.0).reshape(2, 3)).tag("a", "b")
    y = (x + pz.nx.wrap(jnp.ones(3)).tag("b")).untag("a", "b").unwrap()
    np.testing.assert_array_equal(y, np.arange(6.0).reshape(2, 3) + 1)
    total = pz.nx.nmap(jnp.sum)(x.untag("b"))
    np.testing.assert_array_equal(total.unwrap("a"), [3, 12])


def test_selectors():
    tree = {"a": jnp.ones(2), "b": [jnp.zeros(3), 4]}
    changed = pz.select(tree).at_instances_of(jax.Array).apply(lambda x: x + 1)
    assert changed["a"].tolist() == [2, 2] and changed["b"][1] == 4


def test_a_network():
    layer = pz.nn.Linear.from_config("layer", jax.random.key(0), {"in": 3}, {"out": 2})
    out = layer(pz.nx.wrap(jnp.ones((4, 3))).tag("batch", "in"))
    assert dict(out.named_shape) == {"batch": 4, "out": 2}
