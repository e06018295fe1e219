"""Running sums, products, extremes and log-sum-exps against JAX; zeros, ties; laws."""

from __future__ import annotations

import numpy as np
import pytest
from lax_cases import checks_of, sample

from numjet import lax
from numjet.api.derivatives.autodiff import grad

X = sample(3, 7)
ZEROS = np.array([2, 0, 3, 0, 4, 5], np.float32)
I = sample(3, 5, dtype=np.int32, low=-3, high=3)
OPS = ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp")
CASES = {
    **{
        f"{op} {axis} {reverse}": (f"lax.{op}(x, {axis}, {reverse})", X)
        for op in OPS
        for axis in (0, 1)
        for reverse in (False, True)
    },
    **{f"int {op}": (f"lax.{op}(x, 1)", I) for op in OPS[:-1]},
    "cumprod zeros": ("lax.cumprod(x)", ZEROS),
    "cumlogsumexp wide": ("lax.cumlogsumexp(x)", np.array([-200, 3, 100, -80, 300], np.float32)),
    "cumlogsumexp infinite": (
        "lax.cumlogsumexp(x)",
        np.array([-np.inf, -np.inf, 1, 2], np.float32),
    ),
    "one": ("lax.cumsum(x)", sample(1)),
    "empty": ("lax.cumsum(x)", np.zeros(0, np.float32)),
}


test_against_jax, test_laws = checks_of(
    CASES, only_values=["cumlogsumexp infinite"], laws_rtol=1e-4
)


def test_logsumexp_gradient_of_a_late_maximum_is_finite() -> None:
    x = np.array([-200.0, 3.0, 300.0], np.float32)
    first = grad(lambda x: lax.index_in_dim(lax.cumlogsumexp(x), 0, 0, False))(x)
    assert first.tolist() == [1, 0, 0]


def test_messages() -> None:
    with pytest.raises(ValueError, match="axis 2 is out of bounds"):
        lax.cumsum(X, 2)
    with pytest.raises(TypeError, match="cumlogsumexp does not accept dtype int32.*floating"):
        lax.cumlogsumexp(X.astype("int32"))


def test_running_extremes_share_the_derivative_of_equal_elements() -> None:
    """By pairs, as JAX does: at 7 equal ones each of the first 4 has a sixteenth."""
    for function in (lax.cummax, lax.cummin):
        by = grad(lambda v: function(v)[6])(np.ones(7, np.float32))
        np.testing.assert_array_equal(by, [0.0625] * 4 + [0.125] * 2 + [0.5])
        by = grad(lambda v: function(v, reverse=True)[0])(np.ones(5, np.float32))
        np.testing.assert_array_equal(by, [0.5] + [0.125] * 4)
