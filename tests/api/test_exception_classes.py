"""Wrong calls raise JAX's very classes, no subclasses: a program's `except` catches the same.

One call of each family; the classes were asked of JAX.
"""

from __future__ import annotations

import builtins

import numpy as np
import pytest

import numjet as nj
from numjet import lax, numpy as jnp, scipy as jsp

x = jnp.ones((2, 3))
NAMES = {
    "jnp": jnp, "jsp": jsp, "lax": lax, "np": np,
    "x": x, "x3": jnp.ones(3), "x34": jnp.ones((3, 4)), "s": jnp.float32(2.0),
    "i": jnp.ones((2, 3), int), "b": jnp.ones((2, 3), bool), "h": jnp.ones((2, 3), jnp.bfloat16),
    "h22": jnp.ones((2, 2), jnp.bfloat16), "key": nj.random.key(0),
    "keys": nj.random.split(nj.random.key(0), 3),
}  # fmt: skip
CASES = {
    "axis": {
        "ValueError": "jnp.sum(x, 5); jnp.cumsum(x, 5); jnp.nanmean(x, 5); jnp.average(x, 5); "
        "jnp.expand_dims(x, (0, 0)); jnp.moveaxis(x, 0, 5); jnp.fft.fft(x, axis=5); "
        "jnp.delete(x3, 7)",
        "IndexError": "jnp.mean(x, 5); jnp.var(x, (0, 5)); jnp.argmax(x, 5); jnp.unwrap(x, axis=5);"
        "jnp.swapaxes(x, 0, 5); jnp.split(x, 1, axis=5); jnp.linspace(0, 1, 3, axis=5); "
        "jnp.fft.hfft(x, axis=5); jnp.fft.fftshift(x, 5); jnp.packbits(b, 5); "
        "jnp.vecdot(x, x, axis=5); jnp.linalg.cross(x, x, axis=5); "
        "lax.slice_in_dim(x, 0, 1, axis=5); lax.dynamic_index_in_dim(x, 0, axis=5)",
        "TypeError": "jnp.sort(x, 1.5); jnp.flip(x, (0, 0))",
        "NameError": "jnp.max(x, 'a'); x.sum(axis='a'); jnp.mean(x, ('a', 0))",
        "NotImplementedError": "jnp.prod(x, 'a'); jnp.all(b, 'a')",
    },
    "shapes": {
        "TypeError": "jnp.add(x, x34); x * x34; jsp.special.xlogy(x, x34); "
        "jsp.special.zeta(x, x34)",
        "ValueError": "jnp.add(x, x[0, :2]); x + np.ones((4, 3, 2)); jnp.where(b, x, x34); "
        "jnp.sum(x, where=b[0, :2]); jnp.vecdot(x, jnp.ones((4, 3))); x[i, x34.astype(int)]; "
        "jsp.special.xlogy(x, x[0, :2]); jnp.sum(x, where=x)",
    },
    "keys": {
        "TypeError": "jnp.add(key, 1); key == 1; jnp.power(key, 1); jnp.round(key); "
        "jnp.reciprocal(key); lax.integer_pow(key, 2); jsp.special.xlogy(x, key)",
        "ValueError": "jnp.where(b, key, 1); jnp.matmul(x, keys); jnp.append(key, 1); "
        "jnp.signbit(key)",
    },
    "matrices": {
        "ValueError": "jnp.linalg.inv(x); jnp.linalg.det(x3); jnp.linalg.eig(x); lax.linalg.eig(x);"
        "jsp.linalg.cholesky(x); jsp.linalg.schur(x); jsp.linalg.sqrtm(x)",
        "TypeError": "jnp.linalg.cholesky(x); jnp.linalg.eigh(x3); jnp.linalg.eig(x3); "
        "jnp.linalg.qr(x3); jnp.linalg.svd(s); jsp.linalg.lu(x3); jsp.linalg.sqrtm(s); "
        "lax.linalg.cholesky(x); lax.linalg.tridiagonal(s); lax.linalg.lu(i); "
        "lax.linalg.householder_product(h, h)",
        "NotImplementedError": "jnp.linalg.inv(h22); jnp.linalg.qr(h); lax.linalg.cholesky(h22)",
    },
}


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (call.strip(), error)
        for family in CASES.values() for error, calls in family.items()
        for call in calls.split(";")
    ],
)  # fmt: skip
def test_wrong_calls_raise_the_very_class(call: str, error: str) -> None:
    with pytest.raises(getattr(builtins, error)) as caught:
        eval(call, dict(NAMES))
    assert type(caught.value) is getattr(builtins, error)
