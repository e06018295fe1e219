"""Arithmetic primitives: values, derivatives and laws against JAX, edge cases, messages."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from lax_cases import checks_of, sample

from numjet import lax
from numjet.api.compiled.jit import jit
from numjet.api.derivatives.autodiff import grad

X, Y = sample(3, 4), sample(3, 4, seed=1)
C, D = sample(3, dtype=np.complex64), sample(3, seed=1, dtype=np.complex64)
I, J = sample(6, dtype=np.int32, low=-20, high=20), np.array([3, -4, 0, 7, -1, 5], np.int32)
U, V = sample(5, dtype=np.uint8, low=0, high=255), np.array([0, 1, 7, 255, 16], np.uint8)
H = sample(4).astype(ml_dtypes.bfloat16)
EDGES = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-30, 3e38, -1.5], np.float32)
S = np.float32(1.5)

CASES = {
    "add": ("lax.add(x, y)", X, Y),
    "sub": ("lax.sub(x, y)", X, Y),
    "mul": ("lax.mul(x, y)", X, Y),
    "div": ("lax.div(x, y)", X, Y),
    "rem": ("lax.rem(x, y)", X, Y),
    "add scalar": ("lax.add(x, y)", X, S),
    "sub scalar": ("lax.sub(y, x)", X, S),
    "mul scalar": ("lax.mul(x, y)", X, S),
    "div scalar": ("lax.div(y, x)", X, S),
    "mul python": ("lax.mul(2.0, lax.add(x, 1.0))", X),
    "neg": ("lax.neg(x)", X),
    "sign": ("lax.sign(x)", X),
    "abs": ("lax.abs(x)", X),
    "max": ("lax.max(x, y)", X, Y),
    "min": ("lax.min(x, y)", X, Y),
    "max ties": ("lax.max(x, y)", X, np.where(X > 0, X, Y)),
    "min scalar": ("lax.min(x, y)", X, S),
    "integer_pow": ("lax.integer_pow(x, 3)", X),
    "integer_pow -2": ("lax.integer_pow(x, -2)", X),
    "integer_pow 0": ("lax.integer_pow(x, 0)", X),
    "square": ("lax.square(x)", X),
    "reciprocal": ("lax.reciprocal(x)", X),
    "nextafter": ("lax.nextafter(x, y)", X, Y),
    "clamp": ("lax.clamp(-1.0, x, 1.0)", X),
    "clamp arrays": ("lax.clamp(x, y, z)", X - 1, Y, X + 1),
    "complex add": ("lax.add(x, y)", C, D),
    "complex mul": ("lax.mul(x, y)", C, D),
    "complex div": ("lax.div(x, y)", C, D),
    "complex abs": ("lax.abs(x)", C),
    "complex neg": ("lax.neg(x)", C),
    "complex square": ("lax.square(x)", C),
    "int add": ("lax.add(x, y)", I, J),
    "int div": ("lax.div(x, y)", I, J),
    "int rem": ("lax.rem(x, y)", I, J),
    "int mul": ("lax.mul(x, y)", I, J),
    "int abs": ("lax.abs(x)", I),
    "int sign": ("lax.sign(x)", I),
    "int max": ("lax.max(x, y)", I, J),
    "int pow": ("lax.integer_pow(x, 3)", I),
    "unsigned div": ("lax.div(x, y)", U, V),
    "unsigned rem": ("lax.rem(x, y)", U, V),
    "unsigned sub": ("lax.sub(x, y)", U, V),
    "unsigned neg": ("lax.neg(x)", U),
    "bfloat16 mul": ("lax.mul(x, x)", H),
    "bfloat16 div": ("lax.div(x, y)", H, H[::-1].copy()),
    "edges max": ("lax.max(x, y)", EDGES, EDGES[::-1].copy()),
    "edges min": ("lax.min(x, y)", EDGES, EDGES[::-1].copy()),
    "edges div": ("lax.div(x, y)", EDGES, np.roll(EDGES, 3)),
    "edges rem": ("lax.rem(x, y)", EDGES, np.roll(EDGES, 3)),
    "edges sign": ("lax.sign(x)", EDGES),
    "edges abs": ("lax.abs(x)", EDGES),
    "empty": ("lax.mul(x, x)", np.zeros((0, 3), np.float32)),
    "no dimensions": ("lax.mul(x, y)", np.float32(2), np.float32(3)),
}
SPECIAL_VALUES = [name for name in CASES if name.startswith("edges")]


test_against_jax, test_laws = checks_of(CASES, only_values=SPECIAL_VALUES)


def test_conventions_of_gradients() -> None:
    assert float(grad(lambda x: lax.max(x, 1.0))(1.0)) == 0.5
    assert float(grad(lax.abs)(0.0)) == 1.0
    assert float(grad(grad(lambda x: lax.integer_pow(x, 3)))(2.0)) == 12.0


def test_lowest_integer_over_minus_one_wraps() -> None:
    lowest = np.array([-(2**31)], np.int32)
    assert lax.div(lowest, np.array([-1], np.int32)).tolist() == [-(2**31)]
    assert lax.rem(lowest, np.array([-1], np.int32)).tolist() == [0]


@pytest.mark.parametrize(
    "call, words",
    [
        (
            lambda: lax.add(X, Y[:2]),
            r"add got incompatible shapes for broadcasting: float32\[3,4\].*float32\[2,4\]",
        ),
        (
            lambda: lax.mul(X, I),
            r"mul requires arguments to have the same dtypes.*float32\[3,4\].*int32\[6\].*convert",
        ),
        (lambda: lax.rem(C, D), r"rem does not accept dtype complex64.*floating"),
        (lambda: lax.neg(np.array([True])), r"neg does not accept dtype bool"),
        (
            lambda: lax.clamp(X[0], X, Y),
            r"clamp: min must have no dimensions or the operand's shape",
        ),
        (lambda: lax.add(X, [1.0]), r"Lists and tuples must be converted"),
    ],
)
def test_messages(call, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        call()


@pytest.mark.parametrize("operation", [lax.add, lax.max, lax.eq, lax.rem])
def test_a_scalar_is_not_cut_to_the_dtype_beside_it(operation):
    with pytest.raises(TypeError, match="same dtypes"):
        operation(I, 1.5)
    with pytest.raises(TypeError, match="same dtypes"):
        operation(X, 1)
    assert operation(X, 1.0).shape == X.shape


def test_integers_have_no_negative_powers():
    for f in (lambda x: lax.integer_pow(x, -1), jit(lambda x: lax.integer_pow(x, -2))):
        with pytest.raises(TypeError, match=r"cannot be raised to negative powers: .*int32 \*\* -"):
            f(I)


def test_a_cotangent_that_is_infinite_where_clamp_takes_a_bound() -> None:
    x = np.array([-np.inf, np.inf, 1.0], np.float32)
    weights = np.array([np.inf, np.inf, 2.0], np.float32)
    bar = grad(lambda x: lax.reduce_sum(lax.mul(lax.clamp(0.0, x, 6.0), weights), (0,)))(x)
    assert bar.tolist() == [0.0, 0.0, 2.0]
