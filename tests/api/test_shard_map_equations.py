"""`make_jaxpr` shows `shard_map` as one equation, whose jaxpr says along which axes values vary, as
JAX 0.10.2 writes it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numjet as nj
from numjet import P, lax, numpy as jnp
from numjet.extend.core import jaxpr_as_fun
from numjet.sharding import AxisType, ManualAxisType

pytestmark = pytest.mark.usefixtures("eight_devices")

X = np.arange(32, dtype=np.float32).reshape(4, 8)
W = np.ones((8, 8), np.float32)


@functools.cache
def mesh(kind: Any = AxisType.Auto) -> Any:
    return nj.make_mesh((2, 4), ("x", "y"), (kind,) * 2)


def product(x: Any, w: Any) -> Any:
    return nj.shard_map(
        lambda a, b: (lax.psum(a @ b, "y"), 2 * a), mesh=mesh(),
        in_specs=(P("x", "y"), P("y", None)), out_specs=(P("x", None), P("x", "y")),
    )(x, w)  # fmt: skip


def test_the_equation_is_printed() -> None:
    assert str(nj.make_jaxpr(product)(X, W)) == """\
{ lambda ; a:f32[4,8] b:f32[8,8]. let
    c:f32[4,8] d:f32[4,8] = shard_map[
      check_vma=True
      in_specs=(P('x', 'y'), P('y', None))
      jaxpr={ lambda ; e:f32[2,2]{V:(x,y)} f:f32[2,8]{V:y}. let
          g:f32[2,8]{V:(x,y)} = pvary[axes=('x',)] f
          h:f32[2,8]{V:(x,y)} = dot_general[
            dimension_numbers=(([1], [0]), ([], []))
            preferred_element_type=float32
          ] e g
          i:f32[2,8]{V:x} = psum_invariant[axes=('y',)] h
          j:f32[]{V:(x,y)} = pvary[axes=('x', 'y')] 2.0:f32[]
          k:f32[2,2]{V:(x,y)} = mul j e
        in (i, k) }
      mesh=Mesh('x': 2, 'y': 4, axis_types=(Auto, Auto))
      newly_manual_axes=AXES
      out_specs=(P('x', None), P('x', 'y'))
    ] a b
  in (c, d) }""".replace("AXES", str(frozenset({"x", "y"})))


def step(a: Any, w: Any) -> Any:
    """Gradients, loops, branches and constants within a shard_map."""
    scale = jnp.sin(w.sum())

    def body(a: Any, w: Any) -> Any:
        g = nj.grad(lambda w: lax.pmean(jnp.tanh(a @ w).sum(), "x"))(w)
        c = lax.scan(lambda c, _: (c * scale + lax.axis_index("x"), None), a, None, length=3)[0]
        c = lax.cond(lax.axis_index("y") > 1, jnp.sin, jnp.cos, c)
        c = lax.while_loop(lambda c: c.sum() < 0, lambda c: c + 1, c)
        return g, nj.jit(lambda v: v + 1)(c), nj.checkpoint(jnp.tanh)(c)

    return nj.shard_map(
        body, mesh=mesh(), in_specs=(P("x"), P()), out_specs=(P(), *[P(("x", "y"))] * 2)
    )(a, w)


def nested(x: Any, w: Any) -> Any:
    def inner(b: Any) -> Any:
        return lax.psum(b, "y")

    def outer(a: Any) -> Any:
        return nj.shard_map(inner, in_specs=P(None, "y"), out_specs=P(), axis_names={"y"})(a)

    return nj.shard_map(
        outer, mesh=mesh(), in_specs=P("x"), out_specs=P("x"), axis_names={"x"}
    )(x)  # fmt: skip


def unchecked(x: Any, w: Any) -> Any:
    return nj.shard_map(lambda a: lax.ppermute(a, "x", [(0, 1), (1, 0)]), mesh=mesh(),
                        in_specs=P("x"), out_specs=P("x"), check_vma=False)(x)  # fmt: skip


def explicit(x: Any, w: Any) -> Any:
    there = mesh(AxisType.Explicit)
    x = nj.reshard(x, nj.NamedSharding(there, P("x", None)))
    return nj.shard_map(lambda a: lax.psum(a, "x"), mesh=there, out_specs=P())(x)


FUNCTIONS: list[Callable] = [product, step, nested, unchecked, explicit]


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("jit", [False, True])
def test_the_equation_means_the_function(f: Callable, jit: bool) -> None:
    shown = nj.make_jaxpr(nj.jit(f) if jit else f)(X, W)
    assert "shard_map[" in str(shown)
    want = nj.tree.leaves(f(X, W))
    for run in (jaxpr_as_fun(shown), nj.jit(jaxpr_as_fun(shown))):
        for got, value in zip(run(X, W), want, strict=True):
            np.testing.assert_allclose(got, value, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("f", [product, step], ids=lambda f: f.__name__)
def test_the_equation_is_transformed(f: Callable) -> None:
    run = jaxpr_as_fun(nj.make_jaxpr(f)(X, W))
    loss = lambda g: lambda x, w: sum(jnp.sum(jnp.sin(v)) for v in g(x, w))  # noqa: E731
    if f is product:  # a while_loop has no reverse mode
        for got, want in zip(nj.grad(loss(run), (0, 1))(X, W), nj.grad(loss(f), (0, 1))(X, W)):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
        whole = nj.make_jaxpr(nj.grad(nj.jit(loss(f)), (0, 1)))(X, W)
        for got, want in zip(jaxpr_as_fun(whole)(X, W), nj.grad(loss(f), (0, 1))(X, W)):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    both = np.stack([X, 2 * X])
    for got, want in zip(nj.vmap(run, (0, None))(both, W), nj.vmap(f, (0, None))(both, W)):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    tangents = nj.jvp(run, (X, W), (X, W))[1], nj.jvp(f, (X, W), (X, W))[1]
    for got, want in zip(*tangents, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def mapped_equation(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
    """The equation of the mapped product, and the function that the jaxpr is."""
    closed = nj.make_jaxpr(nj.vmap(product, *args, **kwargs))(np.stack([X] * 4), W)
    (eqn,) = closed.eqns
    assert eqn.primitive.name == "shard_map"
    return eqn, jaxpr_as_fun(closed)


def test_a_mapped_function_is_one_equation() -> None:
    both, want = np.stack([X] * 4), nj.vmap(product, (0, None))(np.stack([X] * 4), W)
    eqn, run = mapped_equation((0, None))
    assert eqn.params["in_specs"] == (P(None, "x", "y"), P("y", None))
    assert eqn.params["out_specs"] == (P(None, "x", None), P(None, "x", "y"))
    assert eqn.params["jaxpr"].invars[0].aval.shape == (4, 2, 2)
    for one, other in zip(run(both, W), want, strict=True):
        np.testing.assert_allclose(one, other)
    closed = nj.make_jaxpr(nj.vmap(nj.vmap(lambda x: product(x, W)), 1, 1))(both[None])
    (eqn,) = [eqn for eqn in closed.eqns if eqn.primitive.name == "shard_map"]
    assert sorted(eqn.params["jaxpr"].outvars[0].aval.shape) == [1, 2, 4, 8]


def test_a_map_over_axes_of_the_mesh_leaves_each_device_its_examples() -> None:
    rows = lambda x: nj.shard_map(jnp.sin, mesh=mesh(), in_specs=P("x"), out_specs=P("x"))(x)  # noqa: E731
    closed = nj.make_jaxpr(nj.vmap(rows, spmd_axis_name="y"))(np.stack([X] * 4))
    (eqn,) = closed.eqns
    assert eqn.params["in_specs"] == eqn.params["out_specs"] == (P("y", "x"),)
    (x,) = eqn.params["jaxpr"].invars
    assert x.aval.shape == (1, 2, 8) and x.aval.mat.varying == {"x", "y"}
    with pytest.raises(ValueError, match="spmd_axis_name cannot appear in shard_map in_specs"):
        nj.make_jaxpr(nj.vmap(rows, spmd_axis_name="x"))(np.stack([X] * 4))


def test_types_in_loops_and_branches() -> None:
    (eqn,) = [e for e in nj.make_jaxpr(step)(X, W).eqns if e.primitive.name == "shard_map"]
    assert eqn.params["in_specs"] == (P(), P("x"), P()) and eqn.params["check_vma"]
    inside = {e.primitive.name: e for e in eqn.params["jaxpr"].eqns}
    kind = lambda v: v.aval.manual_axis_type  # noqa: E731
    x, both = ManualAxisType(varying={"x"}), ManualAxisType(varying={"x", "y"})
    scan = inside["scan"].params["jaxpr"].jaxpr
    assert [kind(v) for v in scan.invars] == [ManualAxisType(), x]
    assert kind(scan.outvars[0]) == x
    (branch, _), last = inside["cond"].params["branches"], inside["cond"].outvars[0]
    assert kind(branch.jaxpr.outvars[0]) == x and kind(last) == both
    assert [kind(v) for v in inside["while"].params["body_jaxpr"].jaxpr.invars] == [both]
    assert kind(inside["jit"].params["jaxpr"].jaxpr.outvars[0]) == both


def test_mistakes_are_told_as_in_programs() -> None:
    make = lambda f, ins, outs, x=X, **more: nj.make_jaxpr(  # noqa: E731
        nj.shard_map(f, mesh=mesh(), in_specs=ins, out_specs=outs, **more))(x)
    with pytest.raises(ValueError, match="inferred to be possibly varying over"):
        make(lambda a: a, P("x"), P())
    with pytest.raises(ValueError, match="must be a multiple of 2"):
        make(lambda a: a, P("x"), P("x"), X[:3])
    with pytest.raises(ValueError, match="which has rank 0"):
        make(lambda a: a.sum(), P("x"), P("x"))
    with pytest.raises(ValueError, match="out_specs refers to 'y'"):
        make(lambda a: a, P("x"), P("y"), axis_names={"x"})


def test_programs_are_made_of_operations_on_whole_arrays() -> None:
    assert "shard_map[" not in str(nj.jit(product).trace(X, W).program)
    nj.make_jaxpr(nj.jit(product))(X, W)
    np.testing.assert_allclose(nj.jit(product)(X, W)[0], X @ W)


@pytest.mark.parametrize("name", ["all_gather", "ppermute", "psum_scatter", "psum"])
def test_types_say_nothing_of_what_varies_where_it_is_not_checked(name: str) -> None:
    calls = {
        "all_gather": lambda x: lax.all_gather(x, "x", tiled=True)[:1],
        "ppermute": lambda x: lax.ppermute(x, "x", [(0, 1)]),
        "psum_scatter": lambda x: lax.psum_scatter(jnp.tile(x, 8), "x", tiled=True),
        "psum": lambda x: lax.psum(x, "x"),
    }
    mesh = nj.make_mesh((8,), ("x",), (AxisType.Auto,))
    f = nj.shard_map(calls[name], mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)
    text = str(nj.make_jaxpr(f)(jnp.arange(8.0)))
    assert "{V:" not in text and "pvary" not in text
