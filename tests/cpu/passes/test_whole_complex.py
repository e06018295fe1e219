"""Complex numbers that are only moved travel as integers; those that are computed with do not."""

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp

X = (np.arange(60 * 50).reshape(60, 50) * (1 - 2j)).astype(np.complex64)
X[3, 4] = complex(np.nan, -0.0)
MOVED = {
    "transpose": lambda x: x.T,
    "reverse": lambda x: x[::-1, 3:],
    "gather": lambda x: x[np.array([3, 2, 59])],
    "two results": lambda x: (x.T, x[1:]),
}
COMPUTED = {
    "product": lambda x: x.T * 2,
    "pad": lambda x: jnp.pad(x, 1),
    "parts": lambda x: (x.T, x.real.T),
    "swapped": lambda x: nj.lax.complex(x.imag, x.real).T,
    "a literal": lambda x: jnp.concatenate([x.T, jnp.zeros((50, 3), "complex64")], 1),
}


def check(f) -> str:
    got, want = nj.jit(f)(X), f(jnp.asarray(X))
    for one, two in zip(*[x if isinstance(x, tuple) else (x,) for x in (got, want)], strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(two))
    return nj.jit(f).lower(X).as_text()


@pytest.mark.parametrize("name", MOVED)
def test_moved(name: str) -> None:
    text = check(MOVED[name])
    assert "i64" in text and "c64" not in text


def test_one_element_is_moved_and_computed_with() -> None:
    x = jnp.array([1 - 2j], "complex64")
    moved, largest = nj.jit(lambda x: (x[::-1], jnp.max(x.real + x.imag)))(x)
    assert moved[0] == 1 - 2j and largest == -1


@pytest.mark.parametrize("name", COMPUTED)
def test_computed(name: str) -> None:
    assert "c64" in check(COMPUTED[name])


def test_moved_to_a_place_that_it_holds_itself() -> None:
    x = jnp.array([2 - 1j, 5, 7 + 2j], "complex64")
    for run in (lambda f: f, nj.jit):
        assert run(lambda x: x[x[0].real.astype(int)])(x) == 7 + 2j
