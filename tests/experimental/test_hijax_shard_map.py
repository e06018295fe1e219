"""Values that are no arrays in `shard_map`: specs of the arrays that they hold."""

from dataclasses import dataclass
from typing import Any

import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import P, lax
from numjet.experimental import hijax
from numjet.sharding import AxisType

pytestmark = pytest.mark.usefixtures("eight_devices")


@dataclass
class Split:
    head: Any
    rest: Any


@dataclass(frozen=True)
class SplitType(hijax.HiType):
    head: Any
    rest: Any

    def lo_ty(self):
        return [self.head, self.rest]

    def lower_val(self, value):
        return [value.head, value.rest]

    def raise_val(self, head, rest):
        return Split(head, rest)

    def to_tangent_aval(self):
        return self


hijax.register_hitype(Split, lambda v: SplitType(nj.typeof(v.head), nj.typeof(v.rest)))


@dataclass(frozen=True)
class Cut(hijax.HiPspec):
    head: Any
    rest: Any

    def to_lo(self):
        return self.head, self.rest


class Make(hijax.VJPHiPrimitive):
    def __init__(self, head, rest):
        self.in_avals, self.out_aval, self.params = (head, rest), SplitType(head, rest), {}
        super().__init__()

    def expand(self, head, rest):
        return Split(head, rest)

    def vjp_fwd(self, nonzeros, head, rest):
        return make(head, rest), None

    def vjp_bwd_retval(self, _, ct):
        return part(ct, 0), part(ct, 1)


class Part(hijax.VJPHiPrimitive):
    def __init__(self, ty, i):
        self.in_avals, self.out_aval, self.params = (ty,), ty.lo_ty()[i], {"i": i}
        super().__init__()

    def expand(self, value):
        return (value.head, value.rest)[self.i]

    def vjp_fwd(self, nonzeros, value):
        return self(value), value

    def vjp_bwd_retval(self, value, ct):
        cts = [0 * part(value, 0), 0 * part(value, 1)]  # which vary as the arrays do
        cts[self.i] = ct
        return (make(*cts),)


def make(head, rest):
    return Make(nj.typeof(head), nj.typeof(rest))(head, rest)


def part(value, i):
    return Part(nj.typeof(value), i)(value)


def mapped(f, ins, outs):
    mesh = nj.make_mesh((2,), ("i",), (AxisType.Auto,))
    return nj.shard_map(f, mesh=mesh, in_specs=ins, out_specs=outs)


A, B = jnp.arange(6.0), jnp.arange(3.0)
CUT = Cut(P("i"), P())


@pytest.mark.parametrize("wrap", [lambda f: f, nj.jit])
def test_arguments_and_results_are_cut_as_their_specs_say(wrap):
    whole = make(A, B)
    found = wrap(mapped(lambda v: make(part(v, 1), part(v, 0)), CUT, Cut(P(), P("i"))))(whole)
    assert (found.head.tolist(), found.rest.tolist()) == (B.tolist(), A.tolist())
    shapes = []

    def f(d, x):
        shapes.append((part(d["v"], 0).shape, part(d["v"], 1).shape))
        return part(d["v"], 0) * x

    assert wrap(mapped(f, ({"v": CUT}, P("i")), P("i")))({"v": whole}, A).tolist() == (
        A * A
    ).tolist()
    assert shapes[0] == ((3,), (3,))
    g = mapped(lambda v: make(lax.psum(part(v, 0), "i"), part(v, 1)), CUT, Cut(P(), P()))
    assert wrap(g)(whole).head.tolist() == [3.0, 5.0, 7.0]


@pytest.mark.parametrize("wrap", [lambda f: f, nj.jit])
def test_derivatives_are_such_values(wrap):
    f = mapped(lambda v: part(v, 0) ** 2 * part(v, 1).sum(), CUT, P("i"))
    found = wrap(nj.grad(lambda v: f(v).sum()))(make(A, B))
    assert found.head.tolist() == (A * 6).tolist() and found.rest.tolist() == [55.0] * 3


def test_specs_that_do_not_fit():
    @dataclass(frozen=True)
    class One(hijax.HiPspec):
        def to_lo(self):
            return (P(),)

    with pytest.raises(ValueError, match="is given for an array"):
        mapped(lambda x: x, CUT, P("i"))(A)
    with pytest.raises(ValueError, match="gives 1 PartitionSpecs for a value of 2"):
        mapped(lambda v: part(v, 0), One(), P("i"))(make(A, B))
    with pytest.raises(NotImplementedError, match="to_lo"):
        mapped(lambda v: part(v, 0), hijax.HiPspec(), P("i"))(make(A, B))
