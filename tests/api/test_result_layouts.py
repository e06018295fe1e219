"""`out_sharding` of lax, random and nn.initializers: results have the layout that was asked for."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from asked_layouts import check

import numjet.numpy as jnp
from numjet import lax, random
from numjet.nn import initializers

X = np.arange(16, dtype=np.float32).reshape(4, 4)
ROWS = (((1,), (0,)), ((), ()))
FUNCTIONS = {
    "full": lambda x, s: lax.full((4,), 2.0, sharding=s),
    "full_like": lambda x, s: lax.full_like(x, 2.0, sharding=s),
    "empty": lambda x, s: lax.empty((4,), jnp.float32, out_sharding=s),
    "broadcast": lambda x, s: lax.broadcast(x, (2,), out_sharding=s),
    "broadcast_in_dim": lambda x, s: lax.broadcast_in_dim(x, (2, 4, 4), (1, 2), out_sharding=s),
    "broadcasted_iota": lambda x, s: lax.broadcasted_iota(jnp.int32, (4, 2), 0, out_sharding=s),
    "reshape": lambda x, s: lax.reshape(x, (16,), out_sharding=s),
    "dot": lambda x, s: lax.dot(x, x, out_sharding=s),
    "dot_general": lambda x, s: lax.dot_general(x, x, ROWS, out_sharding=s),
    "reduce_sum": lambda x, s: lax.reduce_sum(x, (0,), out_sharding=s),
    "reduce": lambda x, s: lax.reduce(x, 0.0, lax.add, (0,), s),
    "conv": lambda x, s: lax.conv_general_dilated(
        x[:, None], x[:2, None], (1,), "SAME", out_sharding=s),
    "zeros": lambda x, s: initializers.zeros(random.key(0), (4,), None, s),
    "ones": lambda x, s: initializers.ones(random.key(0), (4,), None, s),
    "constant": lambda x, s: initializers.constant(2.0)(random.key(0), (4,), None, s),
    "normal weights": lambda x, s: initializers.normal()(random.key(0), (4,), None, s),
    "he": lambda x, s: initializers.he_normal()(random.key(0), (4, 4), None, s),
    "orthogonal": lambda x, s: initializers.orthogonal()(random.key(0), (4, 4), None, s),
    "delta": lambda x, s: initializers.delta_orthogonal()(random.key(0), (4, 2, 2), None, s),
    "permutation": lambda x, s: random.permutation(random.key(0), x, out_sharding=s),
    **{
        name: lambda x, s, name=name: getattr(random, name)(
            random.key(0), shape=(4,), out_sharding=s)
        for name in ("bits", "cauchy", "exponential", "gumbel", "laplace", "logistic", "maxwell",
                     "normal", "rademacher", "uniform")
    },
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_have_the_layout_that_was_asked_for(name: str) -> None:
    check(FUNCTIONS[name], jnp.asarray(X))


def test_what_draws_can_be_pickled() -> None:
    for name in ("normal", "permutation", "categorical"):
        f = getattr(random, name)
        assert pickle.loads(pickle.dumps(f)) is f
