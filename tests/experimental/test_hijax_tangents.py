"""Values whose tangents are other arrays than theirs: fixed-point numbers, tangents of floats."""

from dataclasses import dataclass
from typing import Any

import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import lax
from numjet.experimental import hijax


@dataclass
class Fixed:
    digits: Any
    unit: Any


@dataclass(frozen=True)
class FixedType(hijax.HiType):
    shape: tuple

    def lo_ty(self):
        return [hijax.ShapedArray(self.shape, jnp.int16), hijax.ShapedArray((), jnp.float32)]

    def lower_val(self, value):
        return [value.digits, value.unit]

    def raise_val(self, digits, unit):
        return Fixed(digits, unit)

    def to_tangent_aval(self):
        return hijax.ShapedArray(self.shape, jnp.float32)


hijax.register_hitype(Fixed, lambda v: FixedType(v.digits.shape))


class Round(hijax.VJPHiPrimitive):
    def __init__(self, aval):
        self.in_avals, self.out_aval, self.params = (aval,), FixedType(aval.shape), {}
        super().__init__()

    def expand(self, x):
        return Fixed(jnp.round(x * 8).astype(jnp.int16), jnp.float32(0.125))

    def jvp(self, primals, tangents):
        return self(*primals), hijax.instantiate_zeros(tangents[0])

    def vjp_fwd(self, nonzeros, x):
        return self(x), None

    def vjp_bwd_retval(self, _, ct):
        return (ct * 10,)  # marked, to tell which rule was asked


class Read(hijax.VJPHiPrimitive):
    def __init__(self, ty):
        self.in_avals, self.params = (ty,), {}
        self.out_aval = hijax.ShapedArray(ty.shape, jnp.float32)
        super().__init__()

    def expand(self, value):
        return value.digits * value.unit

    def jvp(self, primals, tangents):
        return self(*primals), hijax.instantiate_zeros(tangents[0])

    def vjp_fwd(self, nonzeros, value):
        return self(value), None

    def vjp_bwd_retval(self, _, ct):
        return (ct,)


def rounded(x):
    return Round(nj.typeof(x))(x)


def read(value):
    return Read(nj.typeof(value))(value)


X = jnp.array([0.3, 1.0, -2.6])
NEAR = jnp.array([0.25, 1.0, -2.625])


@pytest.mark.parametrize("wrap", [lambda f: f, nj.jit])
def test_derivatives_pass_through(wrap):
    def f(x):
        return (read(rounded(x * 2)) ** 2).sum()

    near = jnp.array([0.625, 2.0, -5.25])
    for g in (f, wrap(f)):
        assert wrap(nj.grad(g))(X).tolist() == (40 * near).tolist()
        value, tangent = wrap(lambda x, g=g: nj.jvp(g, (x,), (X,)))(X)
        assert value == (near**2).sum()
        assert jnp.allclose(tangent, (4 * near * X).sum())
    rows = wrap(nj.vmap(nj.grad(f)))(jnp.stack([X, X + 1]))
    assert rows[0].tolist() == (40 * near).tolist()


@pytest.mark.parametrize("wrap", [lambda f: f, nj.jit])
def test_values_within_loops_branches_and_checkpoints(wrap):
    def loop(x):
        step = lambda v, _: (rounded(read(v) + x), read(v).sum())
        return lax.scan(step, rounded(x), None, length=2)[1].sum()

    expected = nj.grad(lambda x: straight(straight(x) + x).sum() + straight(x).sum())(X)
    assert wrap(nj.grad(loop))(X).tolist() == expected.tolist()

    def branch(x):
        value = lax.cond(x[0] > 0, lambda v: v, lambda v: rounded(read(v) * 2), rounded(x))
        return read(value).sum()

    assert wrap(nj.grad(branch))(X).tolist() == [10.0] * 3
    assert wrap(nj.grad(branch))(-X).tolist() == [200.0] * 3
    kept = nj.checkpoint(lambda x: (read(rounded(x)) ** 2).sum())
    assert wrap(kept)(X) == (NEAR**2).sum()
    assert wrap(nj.grad(kept))(X).tolist() == (2 * NEAR).tolist()


@nj.custom_vjp
def straight(x):
    return jnp.round(x * 8) / 8


straight.defvjp(lambda x: (straight(x), None), lambda _, ct: (ct * 10,))


@pytest.mark.parametrize("wrap", [lambda f: f, nj.jit])
def test_tangents_of_arguments_and_results(wrap):
    value = rounded(X)
    square = lambda v: (read(v) ** 2).sum()
    assert wrap(nj.grad(square))(value).tolist() == (2 * NEAR).tolist()
    out, pullback = nj.vjp(rounded, X)
    assert type(out) is Fixed and pullback(X)[0].tolist() == (10 * X).tolist()
    assert nj.vjp(read, value)[1](X)[0].tolist() == X.tolist()
    found, tangent = nj.jvp(wrap(read), (value,), (X,))
    assert found.tolist() == NEAR.tolist() and tangent.tolist() == X.tolist()
    assert nj.jvp(rounded, (X,), (2 * X,))[1].tolist() == (2 * X).tolist()
    with pytest.raises(TypeError, match="shape|structure"):
        nj.jvp(read, (value,), (value,))


def test_references_carry_derivatives():
    def f(x):
        ref = nj.new_ref(rounded(x))
        ref[...] = rounded(read(ref[...]) * 2)
        return read(nj.freeze(ref)).sum()

    assert nj.grad(f)(X).tolist() == [200.0] * 3


def test_maps_over_such_values_are_not_differentiated():
    @dataclass(frozen=True)
    class Axes(hijax.MappingSpec):
        axes: tuple

    values = rounded(jnp.stack([X, X]))
    with pytest.raises(NotImplementedError, match="Make them inside"):
        nj.grad(lambda x: nj.vmap(lambda v, y: y, (Axes((0, None)), 0))(rounded(x), X[:2]).sum())(
            jnp.stack([X, X])
        )
    assert type(values) is Fixed
