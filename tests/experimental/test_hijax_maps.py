"""Values that are no arrays under `vmap`, as carries whose weak types change, and in references."""

from dataclasses import dataclass
from typing import Any

import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import lax
from numjet.experimental import hijax


@dataclass
class Interval:
    low: Any
    high: Any


@dataclass(frozen=True)
class IntervalType(hijax.HiType):
    low: Any
    high: Any

    def lo_ty(self):
        return [self.low, self.high]

    def lower_val(self, value):
        return [value.low, value.high]

    def raise_val(self, low, high):
        return Interval(low, high)

    def to_tangent_aval(self):
        return self

    def normalize(self):
        return IntervalType(self.low.normalize(), self.high.normalize())

    def dec_rank(self, size, spec):
        return IntervalType(self.low.dec_rank(size, spec.low), self.high.dec_rank(size, spec.high))


hijax.register_hitype(Interval, lambda v: IntervalType(nj.typeof(v.low), nj.typeof(v.high)))


@dataclass(frozen=True)
class Axes(hijax.MappingSpec):
    low: Any
    high: Any


class Make(hijax.VJPHiPrimitive):
    def __init__(self, low, high):
        self.in_avals, self.out_aval, self.params = (low, high), IntervalType(low, high), {}
        super().__init__()

    def expand(self, low, high):
        return Interval(low, high)

    def jvp(self, primals, tangents):
        return make(*primals), make(*map(hijax.instantiate_zeros, tangents))

    def vjp_fwd(self, nonzeros, low, high):
        return make(low, high), None

    def vjp_bwd_retval(self, _, ct):
        return end(ct, 0), end(ct, 1)


class End(hijax.VJPHiPrimitive):
    def __init__(self, ty, i):
        self.in_avals, self.out_aval, self.params = (ty,), ty.lo_ty()[i], {"i": i}
        super().__init__()

    def expand(self, value):
        return (value.low, value.high)[self.i]

    def vjp_fwd(self, nonzeros, value):
        return self(value), None

    def vjp_bwd_retval(self, _, ct):
        ends = [jnp.zeros(a.shape, a.dtype) for a in self.in_avals[0].lo_ty()]
        ends[self.i] = ct
        return (make(*ends),)


def make(low, high):
    return Make(nj.typeof(low), nj.typeof(high))(low, high)


def end(value, i):
    return End(nj.typeof(value), i)(value)


def width(value):
    return end(value, 1) - end(value, 0)


A, B = jnp.arange(4.0), jnp.arange(4.0) * 3 + 1


@pytest.mark.parametrize("wrap", [lambda f: f, nj.jit])
def test_arguments_and_results_are_mapped(wrap):
    f = nj.vmap(lambda v, x: (make(end(v, 0) * x, width(v)), x), (Axes(0, 0), 0), (Axes(0, 0), 0))
    found, x = wrap(f)(make(A, B), A)
    assert type(found) is Interval and found.low.tolist() == (A * A).tolist()
    assert found.high.tolist() == (B - A).tolist() and x.tolist() == A.tolist()
    swapped = nj.vmap(
        lambda v: make(end(v, 1), end(v, 0)), (Axes(1, None),), Axes(None, 0), axis_size=4
    )
    found = wrap(swapped)(make(jnp.arange(8.0).reshape(2, 4), 5.0))
    assert found.low == 5.0 and found.high.shape == (4, 2)


def test_maps_within_maps():
    inner = nj.vmap(lambda v: make(end(v, 0) + 1, width(v)), Axes(0, 0), Axes(0, 0), axis_size=2)
    outer = nj.vmap(inner, Axes(1, 1), Axes(1, 1), axis_size=4)
    x = jnp.arange(8.0).reshape(2, 4)
    found = outer(make(x, x * x))
    assert found.low.tolist() == (x + 1).tolist() and found.high.tolist() == (x * x - x).tolist()


def test_maps_are_differentiated():
    def total(value):
        return nj.vmap(lambda v: end(v, 0) * end(v, 1), Axes(0, 0), axis_size=4)(value).sum()

    for f in (nj.grad(total), nj.jit(nj.grad(total))):
        found = f(make(A, B))
        assert found.low.tolist() == B.tolist() and found.high.tolist() == A.tolist()
    found = nj.vmap(nj.grad(lambda x: end(make(x, x * x), 1)))(A)
    assert found.tolist() == (2 * A).tolist()


def test_specs_that_do_not_fit_are_refused():
    value = make(A, B)
    with pytest.raises(ValueError, match="axis_size must be specified"):
        nj.vmap(lambda v: 0, Axes(0, 0))(value)
    with pytest.raises(ValueError, match="which is an array"):
        nj.vmap(lambda v: 0, Axes(0, 0), axis_size=4)(A)
    with pytest.raises(ValueError, match="got axis spec Axes"):
        nj.vmap(lambda x: make(x, 1.0), out_axes=Axes(0, 0))(A)
    with pytest.raises(TypeError, match="no array to map over"):
        nj.vmap(lambda v: 0)(value)


def test_carries_become_strong():
    value = make(1.0, 2.0)
    found, _ = lax.scan(lambda v, x: (make(end(v, 1) + x, end(v, 0) + x), None), value, A)
    assert [found.low, found.high] == [7.0, 8.0]
    found = lax.fori_loop(0, 3, lambda i, v: make(end(v, 1), end(v, 0) + A[i]), value)
    assert [found.low, found.high] == [3.0, 3.0]


def test_empty_references():
    r = nj.empty_ref(nj.typeof(make(A, B)))
    r[...] = make(B, A)
    assert nj.freeze(r).low.tolist() == B.tolist()


@pytest.mark.parametrize("wrap", [lambda f: f, nj.jit])
def test_references_take_values_of_weak_numbers(wrap):
    def f():
        ref = nj.new_ref(make(1.0, 2.0))
        ref[...] = make(3.0, jnp.float32(4))
        return nj.freeze(ref)

    found = wrap(f)()
    assert (found.low, found.high) == (3.0, 4.0)
