"""The row of numbers that stands for a program: native code writes the one that Python writes."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import numjet as nj
import numjet.numpy as jnp
from numjet import lax
from numjet.core import hooks
from numjet.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Literal, Var
from numjet.core.primitive import REGISTRY
from numjet.cpu.graph import forms as module
from numjet.cpu.graph.forms import LITERAL, Forms
from numjet.native import operators as fast_native

x = jnp.ones((4, 4), jnp.float32)


@pytest.fixture(scope="module", autouse=True)
def native():
    if not fast_native.possible():
        pytest.skip("No native code here.")
    if not fast_native.usable():
        fast_native._build()
    assert hooks.describe is not None


def both(closed):
    """The forms of a program as native code and as Python walk over it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_WORTH_NATIVE", 0)
        first = Forms.of_jaxpr(closed)
        assert first._of is None  # nobody has walked over it yet
        patch.setattr(hooks, "describe", None)
        return first, Forms.of_jaxpr(closed)


def traced(fun, *args):
    return nj.jit(fun).trace(*args).program


def same(closed):
    first, second = both(closed)
    assert first.content() == second.content()
    assert first.uncacheable == second.uncacheable and first.loose == second.loose
    assert (first.of, first.firsts, first.numbers) == (second.of, second.firsts, second.numbers)
    return first.content()


STEPS = {
    "product": lambda a, b: a @ b,
    "sine": lambda a, b: jnp.sin(a) + b,
    "literal": lambda a, b: a * 2.0 - b,
    "other literal": lambda a, b: a * 3.0 - b,
    "negative zero": lambda a, b: a + -0.0,
    "zero": lambda a, b: a + 0.0,
    "integer": lambda a, b: (a > b).astype(jnp.int32) * 1,
    "sum": lambda a, b: a.sum(0) + b,
    "other sum": lambda a, b: a.sum(1) + b,
    "scan": lambda a, b: lax.scan(lambda c, r: (c + r.sum(), c), 0.0, a)[1] + b,
    "call": lambda a, b: nj.jit(lambda c: jnp.tanh(c) * 2.0)(a) + b,
    "constant": lambda a, b: a + np.arange(4.0, dtype=np.float32),
    "eigenvectors": lambda a, b: jnp.linalg.eigh(a)[1] @ b,
    "callback": lambda a, b: nj.pure_callback(np.tanh, x, a) + b,
}


def program(names):
    def run(a, b):
        for name in names:
            a, b = STEPS[name](a, b).astype(jnp.float32) * jnp.ones_like(x), a
        return a, 1.5, b

    return run


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(sorted(STEPS)), max_size=6))
def test_native_code_writes_what_python_writes(names):
    same(traced(program(names), x, x))


@pytest.mark.parametrize("name", sorted(STEPS))
def test_each_step_alone(name):
    same(traced(program([name]), x, x))


def test_different_programs_have_different_rows():
    assert len({same(traced(program([name]), x, x)) for name in STEPS}) == len(STEPS)


def test_gradients_and_batches():
    loss = lambda a, b: jnp.tanh(a @ b).sum()  # noqa: E731
    same(traced(nj.vmap(nj.value_and_grad(loss), (0, None)), jnp.ones((3, 4, 4)), x))


def test_params_are_one_by_content_and_not_by_object():
    """What a program's params are made of may depend on what was traced before."""
    sin, aval = REGISTRY["reduce_sum"], x.aval

    def made(*params):
        first = names = Var(aval)
        eqns = []
        for p in params:
            out = Var(aval)
            eqns.append(Eqn([names], [out], sin, p))
            names = out
        return ClosedJaxpr(Jaxpr([], [first], [names], eqns), [])

    axes = {"axes": (0,)}
    shared = same(made(axes, axes))
    assert same(made({"axes": (0,)}, {"axes": (0,)})) == shared
    assert same(made({"axes": (0,)}, {"axes": (1,)})) != shared
    assert same(made({}, {})) != shared


def test_long_programs_use_native_code_and_short_ones_do_not():
    short, long = (traced(program(["sine"] * n), x, x) for n in (2, 12))
    assert Forms.of_jaxpr(short)._of is not None
    assert Forms.of_jaxpr(long)._of is None


def test_what_native_code_leaves_to_python():
    tanh, aval = REGISTRY["tanh"], x.aval
    a, b = Var(aval), Var(aval)
    good = ClosedJaxpr(Jaxpr([], [a], [b], [Eqn([a], [b], tanh, {})]), [])
    tuples = ClosedJaxpr(Jaxpr([], [a], [b], [Eqn((a,), (b,), tanh, {})]), [])
    assert same(good) == Forms.of_jaxpr(tuples).content()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_WORTH_NATIVE", 0)
        assert Forms.of_jaxpr(tuples)._of is not None
        with pytest.raises(KeyError):
            Forms.of_jaxpr(ClosedJaxpr(Jaxpr([], [a], [b], [Eqn([Var(aval)], [b], tanh, {})]), []))
        # More operands than there is room for.
        wide = ClosedJaxpr(Jaxpr([], [a], [b], [Eqn([a] * 100, [b], tanh, {})]), [])
        assert Forms.of_jaxpr(wide)._of is not None


def test_an_exception_on_the_way_is_raised():
    class Strange:
        def __array__(self, *_args, **_kwargs):
            raise ZeroDivisionError

    a, b = Var(x.aval), Var(x.aval)
    literal = Literal(x, x.aval)
    literal.value = Strange()
    eqn = Eqn([literal], [b], REGISTRY["tanh"], {})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_WORTH_NATIVE", 0)
        with pytest.raises(ZeroDivisionError):
            Forms.of_jaxpr(ClosedJaxpr(Jaxpr([], [a], [b], [eqn]), []))


def test_numbers_of_literals_are_none_of_variables():
    a, b = Var(x.aval), Var(x.aval)
    two = jnp.float32(2.0)
    eqn = Eqn([a, Literal(two, two.aval)], [b], REGISTRY["mul"], {})
    first, _ = both(ClosedJaxpr(Jaxpr([], [a], [b], [eqn]), []))
    assert numbers(first._row) == [0, -1, 2, 0, LITERAL, 1, 0, 1, -1]


def numbers(row):
    """What `native.code.walk` says a row is."""
    found, at = [], 0
    while at < len(row):
        (byte,) = struct.unpack_from("b", row, at)
        if byte == -128:
            (byte,) = struct.unpack_from("=i", row, at + 1)
            at += 4
        found.append(byte)
        at += 1
    return found


@pytest.mark.parametrize("distance", [126, 127, 128, 129, 300])
def test_numbers_that_are_no_bytes(distance):
    """Operands of a program with many, and results that stand far before."""
    args = [Var(x.aval) for _ in range(distance)]
    tanh, add = REGISTRY["tanh"], REGISTRY["add"]
    outs = [Var(x.aval) for _ in range(distance)]
    eqns = [Eqn([a], [b], tanh, {}) for a, b in zip(args, outs, strict=True)]
    last = Var(x.aval)
    eqns.append(Eqn([outs[0], args[-1]], [last], add, {}))
    closed = ClosedJaxpr(Jaxpr([], args, [last, outs[0]], eqns), [])
    first, second = both(closed)
    assert first._row == second._row
    tail = [1, -1, 2, -distance, distance - 1, 1, 0, 2, -1, -distance - 1]
    assert numbers(first._row)[-len(tail) :] == tail


def test_unroll_changes_no_code():
    def looped(unroll):
        return lambda x: lax.scan(lambda c, r: (c + r, c * r), x[0], x, unroll=unroll)

    one, two, other = [traced(looped(u), x) for u in (1, 2, 2)]
    assert same(one) == same(two) == same(other)
    assert same(one) != same(traced(lambda x: lax.scan(lambda c, r: (c * r, c), x[0], x), x))
