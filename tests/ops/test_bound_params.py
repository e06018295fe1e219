"""Primitives bound with the params that JAX's equations show for them."""

from __future__ import annotations

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import lax

X = np.linspace(0.1, 0.9, 6, dtype=np.float32).reshape(3, 2)
CASES = {
    "tanh_p": ({"accuracy": None}, (X,), np.tanh(X)),
    "mul_p": ({"out_dtype": None}, (X, X), X * X),
    "iota_p": ({"dtype": np.dtype("int32"), "shape": (2, 3), "dimension": 1, "sharding": None}, (),
               np.arange(3)[None].repeat(2, 0)),
    "reshape_p": ({"new_sizes": (6,), "dimensions": None, "sharding": None}, (X,), X.ravel()),
    "convert_element_type_p": (
        {"new_dtype": np.dtype("int32"), "weak_type": False, "sharding": None}, (X,), X * 0),
    "broadcast_in_dim_p": ({"shape": (2, 3, 2), "broadcast_dimensions": (1, 2), "sharding": None},
                           (X,), np.stack([X, X])),
    "reduce_sum_p": ({"axes": (np.int64(1),), "out_sharding": None}, (X,), X.sum(1)),
    "dot_general_p": (
        {"dimension_numbers": (((1,), (1,)), ((), ())), "precision": None,
         "preferred_element_type": None, "out_sharding": None}, (X, X), X @ X.T),
}  # fmt: skip


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", CASES)
def test_params_that_say_nothing_are_left_out(name: str) -> None:
    params, operands, want = CASES[name]
    bind = lambda *args: getattr(lax, name).bind(*args, **params)
    for run in (bind, nj.jit(bind)):
        np.testing.assert_allclose(run(*map(jnp.asarray, operands)), want, rtol=1e-5)
    assert len(nj.make_jaxpr(bind)(*operands).eqns) == 1


def test_params_that_say_something_are_refused() -> None:
    with pytest.raises((TypeError, NotImplementedError), match="accuracy"):  # by whether
        # `extend.core` is loaded, which knows what JAX's params say
        lax.exp_p.bind(jnp.asarray(X), accuracy=lax.AccuracyMode.HIGHEST)
    with pytest.raises(TypeError, match="unexpected keyword argument 'kind'"):
        lax.iota_p.bind(dtype=np.dtype("int32"), shape=(2,), dimension=0, kind=None)
