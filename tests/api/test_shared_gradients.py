"""Gradients inside of `shard_map`: what does not vary along an axis counts once (check_vma)."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import P, lax
from numjet.api.maps import shared_gradients
from numjet.core.shared import Shared
from numjet.sharding import AxisType

ALL, CUT = P(), P("x")


pytestmark = pytest.mark.usefixtures("eight_devices")


def mapped(f: Callable, ins: Any, outs: Any, **more: Any) -> Callable:
    mesh = nj.make_mesh((2, 4), ("x", "y"), (AxisType.Auto,) * 2)
    return nj.shard_map(f, mesh=mesh, in_specs=ins, out_specs=outs, **more)


X = np.arange(1.0, 9.0, dtype=np.float32)


def whole(f: Callable) -> Callable:
    """A loss of all rows, as the sum of what each device computes."""
    return lambda *args: lax.psum(f(*args), "x")


def loss(w: Any, x: Any) -> Any:
    return jnp.sum(jnp.tanh(x * w) ** 2 + w * x)


@pytest.mark.parametrize("joins", [whole, lambda f: f], ids=["psum", "local"])
@pytest.mark.parametrize("stages", [lambda f: f, nj.jit], ids=["plain", "jit"])
def test_of_what_all_share_and_of_what_each_has(joins: Callable, stages: Callable) -> None:
    want_w, want_x = nj.grad(loss, (0, 1))(0.5, X)
    both = stages(nj.grad(joins(loss), (0, 1)))
    w, x = mapped(both, (ALL, CUT), (ALL, CUT))(0.5, X)
    np.testing.assert_allclose(w, want_w, rtol=1e-5)
    np.testing.assert_allclose(x, want_x, rtol=1e-5)


def test_means_and_several_axes() -> None:
    def mean(w: Any, x: Any) -> Any:
        return lax.pmean(jnp.mean((w * x) ** 2), ("x", "y"))

    rows = X.reshape(2, 4)
    got = mapped(nj.value_and_grad(mean), (ALL, P("x", "y")), (ALL, ALL))(0.5, rows)
    want = nj.value_and_grad(lambda w: jnp.mean((w * X) ** 2))(0.5)
    np.testing.assert_allclose(got, want, rtol=1e-6)
    # Cut over one axis and the same along the other.
    f = nj.grad(lambda w, x: lax.psum(jnp.sum(w * x), "y"))
    np.testing.assert_allclose(mapped(f, (CUT, P("x", "y")), CUT)(jnp.ones(2), rows), [10.0, 26.0])


def test_derivatives_of_gradients() -> None:
    f = whole(lambda w, x: jnp.sum(w**3 * x))
    for derive in (nj.hessian(f), nj.jacfwd(nj.grad(f)), nj.grad(nj.grad(f))):
        np.testing.assert_allclose(mapped(derive, (ALL, CUT), ALL)(2.0, X), 12 * X.sum())
    outside = nj.grad(lambda w: mapped(nj.grad(f), (ALL, CUT), ALL)(w, X))(2.0)
    np.testing.assert_allclose(outside, 12 * X.sum())
    of_sum = nj.grad(whole(nj.grad(lambda w, x: jnp.sum(w**3 * x))))
    np.testing.assert_allclose(mapped(of_sum, (ALL, CUT), ALL)(2.0, X), 2 * 12 * X.sum())


def test_pullbacks_of_several_results() -> None:
    def both(w: Any, x: Any) -> Any:
        _, pullback = nj.vjp(lambda w, x: (w * x, lax.psum(w * x, "x")), w, x)
        return pullback((x, jnp.ones_like(x)))

    w, x = mapped(both, (ALL, CUT), (ALL, CUT))(2.0, X)
    np.testing.assert_allclose(w, (X**2).sum() + X.sum())
    np.testing.assert_allclose(x, 2.0 * X + 2.0)


def test_collectives_that_move_values() -> None:
    turn = functools.partial(lax.ppermute, axis_name="x", perm=[(0, 1), (1, 0)])
    got = mapped(nj.grad(whole(lambda x: jnp.sum(turn(x) * x))), CUT, CUT)(X)
    np.testing.assert_allclose(got, 2 * np.roll(X, 4))
    got = mapped(nj.grad(whole(lambda x: jnp.sum(lax.all_gather(x, "x") ** 2))), CUT, CUT)(X)
    np.testing.assert_allclose(got, 2 * 2 * X)


def test_values_that_are_each_members_own() -> None:
    slope = nj.grad(lambda w, x: jnp.sum(w * x))
    own = mapped(lambda w, x: slope(lax.pcast(w, "x", to="varying"), x)[None], (ALL, CUT), CUT)
    np.testing.assert_allclose(own(2.0, X), [X[:4].sum(), X[4:].sum()])
    each = mapped(nj.grad(whole(lambda x: jnp.sum(x**2))), CUT, CUT, check_vma=False)
    np.testing.assert_allclose(each(X), 2 * 2 * X)


COLLECTIVES = {
    "psum": lambda t: lax.psum(t, "x"),
    "pmean": lambda t: lax.pmean(t, "x"),
    "all_gather": lambda t: lax.all_gather(t, "x"),
    "ppermute": lambda t: lax.ppermute(t, "x", [(0, 1)]),
    "psum_scatter": lambda t: lax.psum_scatter(t, "x", tiled=True),
    "all_to_all": lambda t: lax.all_to_all(t, "x", 0, 0, tiled=True),
}


def thrice(step: Callable, w: Any) -> Any:
    """Three steps of a loop, whose number tells branches apart."""
    for i in range(3):
        w = step(i, w)
    return w


LOOPS = {
    "scan": lambda step, w: lax.scan(lambda w, i: (step(i, w), None), w, jnp.arange(3))[0],
    "while": lambda step, w: lax.while_loop(
        lambda s: s[0] < 3, lambda s: (s[0] + 1, step(*s)), (0, w))[1],
    "branch": lambda step, w: lax.fori_loop(
        0, 3, lambda i, w: lax.cond(i > 9, lambda w: -w, lambda w: step(i, w), w), w),
    "jit": lambda step, w: nj.jit(lambda w: lax.fori_loop(0, 3, step, w))(w),
    "checkpoint": lambda step, w: thrice(nj.checkpoint(step), w),
}  # fmt: skip


@pytest.mark.parametrize("name", COLLECTIVES)
@pytest.mark.parametrize("joins", [whole, lambda f: f], ids=["psum", "local"])
def test_in_loops_as_in_straight_code(name: str, joins: Callable) -> None:
    def term(w: Any, x: Any) -> Any:
        return jnp.sum(COLLECTIVES[name](jnp.tanh(w * x)) ** 2)

    slope = nj.grad(joins(term))

    def device(w: Any, x: Any, loop: Callable) -> Any:
        return loop(lambda i, w: w - 0.01 * slope(w, x), w)

    w = np.linspace(0.3, 0.9, 4, dtype=np.float32)
    want = mapped(functools.partial(device, loop=thrice), (ALL, CUT), ALL)(w, X)
    for loop in LOOPS.values():
        got = mapped(functools.partial(device, loop=loop), (ALL, CUT), ALL)(w, X)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_in_loops_the_gradient_of_all_rows() -> None:
    f = nj.grad(whole(lambda w, x: jnp.sum(w * x)))
    steps = mapped(lambda w, x: lax.fori_loop(0, 2, lambda i, w: w - f(w, x), w), (ALL, CUT), ALL)
    np.testing.assert_allclose(steps(2.0, X), 2.0 - 2 * X.sum())
    # A carry that varies is each member's own.
    own = nj.grad(lambda w, x: jnp.sum(w**2 * x))
    grows = mapped(lambda w, x: lax.fori_loop(
        0, 2, lambda i, s: (s[0] + x.sum(), own(s[0], x)),
        lax.pcast((w, w), "x", to="varying"))[1][None],
        (ALL, CUT), CUT)  # fmt: skip
    sums = X.reshape(2, 4).sum(1)
    np.testing.assert_allclose(grows(2.0, X), 2 * (2.0 + sums) * sums)
    # What another thread does meanwhile is no concern of this thread's loops.
    inner = nj.jit(nj.grad(whole(lambda w, x: jnp.sum(jnp.sin(w) * x))))

    def body(i: Any, w: Any) -> Any:
        other = threading.Thread(target=lambda: mapped(inner, (ALL, CUT), ALL)(2.0, X))
        other.start()
        other.join()
        return w + 1

    assert lax.fori_loop(0, 3, body, 0) == 3


def test_what_is_gathered_is_each_members_own() -> None:
    """As in JAX: a loss of gathered values is computed, and counts, on each device."""
    got = mapped(nj.grad(lambda x: jnp.sum(lax.all_gather(x, "x") ** 2)), CUT, CUT)(X)
    np.testing.assert_allclose(got, 2 * 2 * X)
    joined = lambda x: jnp.sum(lax.all_gather(x, "x", to="invarying") ** 2)  # noqa: E731
    np.testing.assert_allclose(mapped(nj.grad(joined), CUT, CUT)(X), 2 * X)
    with pytest.raises(ValueError, match="can't be statically inferred"):
        mapped(lambda x: lax.all_gather(x, "x", tiled=True), CUT, ALL)(X)
    gathered = mapped(lambda x: lax.all_gather(x, "x", tiled=True), CUT, ALL, check_vma=False)(X)
    np.testing.assert_array_equal(gathered, X)


def test_transposes_of_collectives() -> None:
    def transposed(f: Callable, ct: Callable, ins: Any) -> Any:
        return mapped(lambda v: nj.linear_transpose(f, v)(ct(v))[0], ins, ins)(X)

    total = lambda v: lax.psum(v, "x")  # noqa: E731
    np.testing.assert_allclose(transposed(total, lambda v: jnp.full(4, 3.0), CUT), np.full(8, 3.0))
    np.testing.assert_allclose(transposed(total, lambda v: jnp.ones(8), ALL), np.full(8, 2.0))
    turn = lambda v: lax.ppermute(v, "x", [(0, 1)])  # noqa: E731
    np.testing.assert_allclose(transposed(turn, lambda v: v, CUT), [*X[4:], *np.zeros(4)])


def test_where_nobody_knows_it_is_refused() -> None:
    def apart(w: Any, x: Any) -> Any:
        f = nj.grad(whole(lambda w, x: jnp.sum(w * x)))
        return lax.custom_root(lambda v: v - f(v, x), w, lambda g, v: v, lambda g, v: v)

    with pytest.raises(NotImplementedError, match="check_vma=False"):
        mapped(apart, (ALL, CUT), ALL)(2.0, X)


def rules(style: str) -> Callable:
    """psum of sin(w x) with a rule of its own."""
    value = lambda w, x: lax.psum(jnp.sum(jnp.sin(w * x)), "x")  # noqa: E731
    f = nj.custom_vjp(value)
    if style == "pullback":
        f.defvjp(lambda w, x: nj.vjp(value, w, x), lambda pullback, ct: pullback(ct))
    elif style == "vjp":
        f.defvjp(lambda w, x: (value(w, x), (w, x)), lambda res, ct: nj.vjp(value, *res)[1](ct))
    else:

        def backward(res: tuple, ct: Any) -> tuple:
            w, x = res
            return lax.psum(jnp.sum(ct * jnp.cos(w * x) * x), "x"), ct * jnp.cos(w * x) * w

        f.defvjp(lambda w, x: (value(w, x), (w, x)), backward)
    return f


@pytest.mark.parametrize("style", ["pullback", "vjp", "psum"])
def test_rules_get_and_give_whole_cotangents(style: str) -> None:
    f = rules(style)
    slopes = np.cos(0.5 * X)
    for g in (f, nj.jit(f)):
        w, x = mapped(nj.grad(g, (0, 1)), (ALL, CUT), (ALL, CUT))(0.5, X)
        np.testing.assert_allclose(w, np.sum(slopes * X), rtol=1e-4)
        np.testing.assert_allclose(x, 0.5 * slopes, rtol=1e-4, atol=1e-6)
    # Where what is made of it varies, each member has its part in the cotangent.
    parts = mapped(nj.grad(lambda w, x: f(w, x) * jnp.sum(x)), (ALL, CUT), ALL)(0.5, X)
    np.testing.assert_allclose(parts, np.sum(slopes * X) * X.sum(), rtol=1e-4)
    # And from outside, over a mesh with an axis that nothing is cut over.
    outer = nj.grad(lambda w, x: jnp.sum(mapped(lambda w, x: f(w, x) * x, (ALL, CUT), CUT)(w, x)))
    np.testing.assert_allclose(outer(0.5, X), np.sum(slopes * X) * X.sum(), rtol=1e-4)


def test_avals_of_values_tell_what_varies() -> None:
    seen = []

    def told(x: Any) -> frozenset:
        assert x.aval == nj.typeof(x) and x.mat == x.aval.mat
        return x.aval.mat.varying

    def f(w: Any, x: Any) -> Any:
        rows = lax.psum(x, "x") if x.ndim else x
        seen.append([told(y) for y in (w, x, w * x, jnp.sin(x)[:1], rows, lax.axis_index("y"))])
        slope = nj.grad(lambda x: (seen.append(told(x)), jnp.sum(x))[1])(x)
        held = nj.vmap(lambda row: (seen.append(told(row)), row * 2)[1])(jnp.stack([x, x]))
        return w * x + slope + held[0] + rows

    run = mapped(f, (ALL, P("x", "y")), P("x", "y"))
    for way in (run, nj.jit(run)):
        seen.clear()
        way(0.5, X.reshape(2, 4))
        both = {"x", "y"}
        assert seen == [[set(), both, both, both, {"y"}, {"y"}], both, both]
    seen.clear()
    mapped(f, (ALL, P("x", "y")), P("x", "y"), check_vma=False)(0.5, X.reshape(2, 4))
    assert not any(seen[0])


def scanned(f: Callable, w: Any, x: Any) -> Any:
    return lax.scan(lambda c, _: (jnp.sin(f(w, x) * c), None), w, None, length=2)[0]


def branched(f: Callable, w: Any, x: Any) -> Any:
    return lax.cond(lax.psum(jnp.sum(x), "x") > 0, f, lambda w, x: w, w, x)


STEPS = {
    "fori": lambda f, w, x: lax.fori_loop(0, 2, lambda i, c: c * f(w, x), w),
    "scan": scanned,
    "cond": branched,
    "checkpoint": lambda f, w, x: nj.checkpoint(f)(w, x),
    "checkpoint in scan": lambda f, w, x: scanned(nj.checkpoint(f), w, x),
}


@pytest.mark.parametrize("name", STEPS)
def test_rules_with_collectives_in_loops_that_are_differentiated(name: str) -> None:
    f, run = rules("psum"), STEPS[name]
    plain = lambda w, x: jnp.sum(jnp.sin(w * x))  # noqa: E731

    def outer(w: Any, x: Any) -> Any:
        return jnp.sum(mapped(lambda w, x: run(f, w, x) * x, (ALL, CUT), CUT)(w, x))

    axis = lambda g: lambda w, x: nj.vmap(g, axis_name="x")(jnp.full(1, w), x[None])[0]  # noqa: E731
    want = nj.grad(lambda w, x: axis(lambda w, x: run(plain, w, x))(w, x), (0, 1))(0.5, X)
    got = mapped(nj.grad(lambda w, x: run(f, w, x), (0, 1)), (ALL, CUT), (ALL, CUT))(0.5, X)
    from_outside = nj.grad(lambda w, x: axis(lambda w, x: run(plain, w, x))(w, x) * jnp.sum(x))
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    for way in (outer, nj.jit(outer)):
        np.testing.assert_allclose(nj.grad(way)(0.5, X), from_outside(0.5, X), rtol=1e-4)


def square_of_sum(check: bool) -> Callable:
    """The sum of all devices' x, times theirs, with a rule whose cotangent is squared."""
    f = nj.custom_vjp(lambda x: lax.psum(x, "x"))
    cast = (lambda g: lax.pcast(g, "x", to="varying")) if check else lambda g: g
    f.defvjp(lambda x: (f(x), None), lambda _, g: (cast(g**2),))
    return lambda x: jnp.sum(mapped(lambda x: f(x) * x, CUT, CUT, check_vma=check)(x))


def test_rules_that_are_not_linear_get_what_the_types_say() -> None:
    """With check_vma a result that does not vary has one cotangent, without it one a device."""
    total, of_each = X[:4] + X[4:], np.tile(X[:4] + X[4:], 2)
    for stages in (lambda f: f, nj.jit):
        got = nj.grad(stages(square_of_sum(True)))(X)
        np.testing.assert_allclose(got, np.tile(total**2, 2) + of_each, rtol=1e-5)
        got = nj.grad(stages(square_of_sum(False)))(X)
        # Four devices along "y" have a quarter each of a cotangent.
        np.testing.assert_allclose(got, X**2 / 4 + of_each, rtol=1e-5)


def test_a_rule_that_gives_a_varying_cotangent_of_what_does_not_vary() -> None:
    f = nj.custom_vjp(lambda w, x: w * x)
    f.defvjp(lambda w, x: (w * x, (w, x)), lambda res, g: (jnp.sum(g * res[1]), g * res[0]))
    run = mapped(lambda w, x: f(w, x), (ALL, CUT), CUT)
    with pytest.raises(ValueError, match="the manual axis types do not match"):
        nj.grad(lambda w: jnp.sum(run(w, X)))(0.5)
    total = nj.custom_vjp(lambda x: lax.psum(x, "x"))
    total.defvjp(lambda x: (total(x), None), lambda _, g: (g,))
    run = mapped(total, CUT, ALL)
    with pytest.raises(ValueError, match="does not vary over the axis 'x' of shard_map where"):
        nj.grad(lambda x: jnp.sum(run(x)))(X)


IDENTITY = {
    "jit": nj.jit,
    "checkpoint": nj.checkpoint,
    "scan": lambda f: lambda w: lax.scan(lambda c, _: (f(c), None), w, None, length=1)[0],
    "cond": lambda f: lambda w: lax.cond(jnp.sum(w) > 0, f, lambda w: w, w),
}


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("name", IDENTITY)
def test_a_rule_with_collectives_for_a_function_without(name: str, check: bool) -> None:
    """The identity, whose cotangents are added up: nothing else says that it uses the axis."""
    f = nj.custom_vjp(lambda w: w)
    f.defvjp(lambda w: (w, None), lambda _, g: (lax.psum(g, "x"),))
    held = IDENTITY[name](f)
    run = mapped(lambda w, x: held(w) * x, (ALL, CUT), CUT, check_vma=check)
    got = nj.grad(lambda w: jnp.sum(nj.jit(run)(w, X)))(jnp.ones(4))
    np.testing.assert_allclose(got, 2 * (X[:4] + X[4:]), rtol=1e-6)


def test_linear_functions_inside_take_tangents_that_vary_as_their_point_does() -> None:
    def f(x: Any, cast: bool) -> Any:
        point = jnp.ones(4)
        point = lax.pcast(point, "x", to="varying") if cast else point
        return nj.linearize(jnp.sin, point)[1](x)

    with pytest.raises(ValueError, match="inconsistent with the original primal values.*pcast"):
        mapped(lambda x: f(x, False), CUT, CUT)(X)
    np.testing.assert_allclose(mapped(lambda x: f(x, True), CUT, CUT)(X), np.cos(1) * X, rtol=1e-6)


def test_references_are_made_where_a_function_is_staged() -> None:
    def f(x: Any) -> Any:
        held = nj.new_ref(x)
        held[...] += 1
        return held[...]

    with pytest.raises(ValueError, match="Eager shard_map cannot return a `jax.Ref`"):
        mapped(f, CUT, CUT)(X)
    for way in (nj.jit(mapped(f, CUT, CUT)), mapped(nj.jit(f), CUT, CUT)):
        np.testing.assert_allclose(way(X), X + 1)


def test_a_rule_without_collectives_in_a_loop() -> None:
    cube = nj.custom_vjp(lambda x: x**3)
    cube.defvjp(lambda x: (x**3, x), lambda x, ct: (3 * x**2 * ct,))
    plain = lambda x: lax.fori_loop(0, 2, lambda i, c: c + jnp.sum(cube(x)), 0.0 * x[0])  # noqa: E731
    np.testing.assert_allclose(mapped(nj.grad(plain), CUT, CUT)(X), 6 * X**2)


def test_what_a_trace_noted_is_kept_where_a_rule_raises(monkeypatch) -> None:
    """The function that calls it may catch that, and go on."""
    trace = SimpleNamespace(effects=frozenset({"before"}), flows=None)
    monkeypatch.setattr(shared_gradients, "unknown", lambda name: trace)
    token = Shared.axes.set((("x", 2),))
    try:
        with pytest.raises(ZeroDivisionError):
            shared_gradients.run_rule(lambda: 1 // 0, "f")
    finally:
        Shared.axes.reset(token)
    assert trace.effects == {"before"}


def test_gradients_of_weak_types_stay_weak() -> None:
    mesh = nj.make_mesh((8,), ("x",), nj.sharding.AxisType.Auto)
    f = nj.shard_map(
        lambda v, w: nj.grad(lambda t: (v * t).sum())(w), mesh=mesh, in_specs=(nj.P("x"), nj.P()),
        out_specs=nj.P(),
    )  # fmt: skip
    x = jnp.arange(8.0)
    assert f(x, 2.0).weak_type and not f(x, jnp.float32(2)).weak_type
    assert float(f(x, 2.0)) == 28
