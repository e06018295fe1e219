"""What types over Explicit axes have to say before `shard_map`, loops, branches, indices, reshapes
and operations of several arrays take them. What is asked here was compared with JAX 0.10.2 over
eight CPU devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numjet as nj
from numjet import lax, numpy as jnp, random
from numjet.base.errors import IndivisibleError, ShardingTypeError
from numjet.errors import JaxRuntimeError
from numjet.sharding import AxisType, NamedSharding, auto_axes, explicit_axes, reshard

pytestmark = pytest.mark.usefixtures("eight_devices")
P = nj.P
Auto, Explicit = AxisType.Auto, AxisType.Explicit


def grid(*kinds: Any) -> Any:
    return nj.make_mesh((4, 2), ("x", "y"), kinds)


def explicit() -> Any:
    return grid(Explicit, Explicit)


def auto() -> Any:
    return grid(Auto, Auto)


def array(mesh: Any = None, *spec: Any, shape: tuple = (8, 2)) -> Any:
    value = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    return jnp.asarray(value) if mesh is None else (
        nj.device_put(value, NamedSharding(mesh, P(*spec)))
    )


def twice(mesh: Any, spec: Any, **options: Any) -> Callable:
    return nj.shard_map(lambda v: v * 2, mesh=mesh, in_specs=spec, out_specs=spec, **options)


def typed(x: Any) -> str:
    return str(nj.typeof(x))


WAYS: dict[str, Callable] = {
    "eager": lambda f, x: f(x),
    "jit": lambda f, x: nj.jit(f)(x),
    "make_jaxpr": lambda f, x: nj.make_jaxpr(f)(x),
    "eval_shape": lambda f, x: nj.eval_shape(f, x),
}


@pytest.mark.parametrize("way", list(WAYS))
def test_in_specs_say_what_types_say(way: str) -> None:
    run, mesh = WAYS[way], explicit()
    plain, rows, both = array(), array(mesh, "x"), array(mesh, "x", "y")
    for spec, x in ((P("x"), rows), (P("x", None), rows), (P(), plain), (P("x", "y"), both)):
        run(twice(mesh, spec), x)
    for spec, x in ((P("x"), plain), (P(), rows), (P("x"), both), (P("x", "y"), rows),
                    (P("x"), array(auto(), "x")), (P(("x", "y")), rows)):  # fmt: skip
        with pytest.raises(ValueError, match=r"in_specs passed to shard_map: .* does not match"):
            run(twice(mesh, spec), x)
    # Where not all axes are Explicit, or not all are mapped, arguments are laid out so.
    for kinds in ((Auto, Auto), (Explicit, Auto)):
        for x in (plain, rows, both):
            run(twice(grid(*kinds), P("x")), x)
    for x in (plain, rows, both):
        run(twice(mesh, P("x"), axis_names={"x"}), x)


def test_in_specs_of_arrays_over_other_axes_of_the_same_devices() -> None:
    line = nj.make_mesh((8,), ("x",))
    np.testing.assert_array_equal(twice(line, P("x"))(array(explicit(), "x")), 2 * array())
    with nj.set_mesh(grid(Explicit, Auto)):
        x = reshard(array(), P("x"))
        for spec in (P(), P("x"), P("x", "y"), P(None, "y")):
            np.testing.assert_array_equal(twice(None, spec)(x), 2 * array())
            np.testing.assert_array_equal(nj.jit(twice(None, spec))(x), 2 * array())


def test_the_current_mesh_is_that_of_shard_map() -> None:
    mesh, other, line = explicit(), auto(), nj.make_mesh((8,), ("x",))
    with nj.set_mesh(mesh):
        for given in (None, mesh, mesh.abstract_mesh):
            twice(given, P())(array())
            nj.jit(twice(given, P()))(array())
        for given in (other, other.abstract_mesh, line):
            for run in (twice(given, P()), nj.jit(twice(given, P()))):
                with pytest.raises(ValueError, match="context mesh .* should match the mesh"):
                    run(array())
        with pytest.raises(ValueError, match="should match the mesh passed"):
            twice(None, P())(array(other, "x"))
        # Types of axes count: within these functions they are others.
        free = auto_axes(lambda v: twice(other, P("x"))(v), out_sharding=P("x"))
        assert typed(free(array())) == "float32[8@x,2]"
        with pytest.raises(ValueError, match="should match the mesh passed"):
            auto_axes(lambda v: twice(mesh, P("x"))(v), out_sharding=P("x"))(array())
    with nj.set_mesh(other):
        explicit_axes(twice(mesh, P("x")), in_sharding=P("x"))(array())
        with pytest.raises(ValueError, match="does not match the specs"):
            explicit_axes(twice(None, P("x")), in_sharding=P())(array())
    inner = lambda mesh: nj.shard_map(  # noqa: E731
        lambda v: v * 2, mesh=mesh, in_specs=P(None, "y"), out_specs=P(None, "y"), axis_names={"y"}
    )
    outer = lambda mesh: nj.jit(nj.shard_map(  # noqa: E731
        inner(mesh), mesh=other, in_specs=P("x"), out_specs=P("x"), axis_names={"x"}))
    np.testing.assert_array_equal(outer(None)(array()), 2 * array())
    with pytest.raises(ValueError, match="should match the mesh passed"):
        outer(other)(array())


LOOPS: dict[str, Callable] = {
    "fori_loop": lambda x, a: lax.fori_loop(0, 2, lambda i, c: c + x, a),
    "while_loop": lambda x, a: lax.while_loop(lambda c: c.max() < 40, lambda c: c + x, a),
    "scan": lambda x, a: lax.scan(lambda c, _: (c + x, None), a, None, length=2)[0],
    "cond": lambda x, a: lax.cond(a.sum() > 0, lambda: a + x + x, lambda: a),
    "switch": lambda x, a: lax.switch(1, [lambda: a, lambda: a + 2 * x, lambda: x]),
}


@pytest.mark.parametrize("name", list(LOOPS))
def test_what_nobody_placed_is_laid_out_as_it_comes_back(name: str) -> None:
    f, x, a = LOOPS[name], array(explicit(), "x"), array()
    for run in (f, nj.jit(f)):
        out = run(x, a)
        assert typed(out) == "float32[8@x,2]"
        np.testing.assert_array_equal(out, 3 * a)
    if name != "while_loop":
        grads = nj.jit(nj.grad(lambda x, a: f(x, a).sum(), (0, 1)))(x, a)
        for found, want in zip(grads, (2, 1), strict=True):
            np.testing.assert_array_equal(found, np.full((8, 2), want))
    with pytest.raises(TypeError, match="equal (output )?types"):
        f(x, array(explicit(), None, "y"))


def test_cases_and_parts_lie_alike() -> None:
    mesh, plain = explicit(), array()
    rows, both = array(mesh, "x"), array(mesh, "x", "y")
    for good in (lambda: lax.select(rows > 1, rows, plain), lambda: jnp.where(plain > 1, rows, 0.0),
                 lambda: jnp.where(both > 1, rows, 0.0), lambda: jnp.where(rows > 1, both, 0.0),
                 lambda: jnp.concatenate([rows, plain]), lambda: lax.dynamic_update_slice(
                     plain, plain[:2], (0, 0))):  # fmt: skip
        good()
    for bad in (lambda: lax.select(rows > 1, rows, both),
                lambda: lax.select(both > 1, rows, rows), lambda: jnp.concatenate([rows, both]),
                lambda: jnp.stack([rows, both]), lambda: lax.dynamic_update_slice(
                    rows, plain, (0, 0)), lambda: lax.dynamic_update_slice(rows, both, (0, 0)),
                nj.jit(lambda: lax.dynamic_update_slice(rows, plain, (0, 0)))):  # fmt: skip
        with pytest.raises(ShardingTypeError, match=r"the same sharding|equal to update sharding"):
            bad()


def test_parts_of_a_cut_axis_are_read_where_a_layout_is_told() -> None:
    x = array(explicit(), "x")
    for index in (slice(4), slice(4, None), slice(None, None, 2), 0, (0, 0)):
        with pytest.raises(ShardingTypeError, match="get"):
            x[index]
    assert typed(x[:, :1]) == typed(x[0:8, ::2]) == "float32[8@x,1]"
    assert typed(lax.slice(x, (0, 0), (4, 2))) == typed(nj.jit(lambda v: v[:4])(x))
    with nj.set_mesh(explicit()):
        assert typed(x.at[:4].get(out_sharding=P("x"))) == "float32[4@x,2]"


SHAPES = [
    ((8, 6), ("x",), (4, 2, 6), "[4@x,2,6]"),
    ((8, 6), ("x",), (8, 2, 3), "[8@x,2,3]"),
    ((8, 6), ("x",), (48,), "[48@x]"),
    ((8, 2, 1), ("x",), (1, 8, 1, 2), "[1,8@x,1,2]"),
    ((8, 2, 4), ("x", "y"), (64,), "[64@(x,y)]"),
    ((8, 2, 4), ("x", None, "y"), (16, 4), "[16@x,4@y]"),
    ((8, 6), ("x",), (4, 12), None),
    ((8, 6), ("x",), (4, 2, 3, 2), None),
    ((8, 2, 4, 2), ("x",), (16, 8), None),
    ((8, 2, 4), ("x",), (16, 2, 2), None),
    ((8, 2, 4), (None, "y"), (16, 4), None),
]


@pytest.mark.parametrize(("old", "spec", "new", "want"), SHAPES)
def test_reshapes_of_one_axis(old: tuple, spec: tuple, new: tuple, want: str | None) -> None:
    x = array(explicit(), *spec, shape=old)
    if want is None:
        with pytest.raises(ShardingTypeError, match="reshape is not supported"):
            x.reshape(new)
    else:
        assert typed(x.reshape(new)) == typed(nj.jit(lambda v: v.reshape(new))(x)) == (
            f"float32{want}"
        )


def test_arrays_of_arrays_keep_their_layouts() -> None:
    for x in (array(explicit(), "x"), array(auto(), "x")):
        for parts in ([x, x], (x, array()), [x, np.ones((8, 2), np.float32)]):
            made = jnp.array(parts)
            assert made.sharding.spec[:2] == (None, "x") and typed(made) == typed(jnp.stack(parts))
            np.testing.assert_array_equal(made, np.stack(parts))
    assert typed(jnp.array([[array(explicit(), "x")]] * 2)) == "float32[2,1,8@x,2]"
    with pytest.raises(ShardingTypeError, match="same sharding"):
        jnp.array([array(explicit(), "x"), array(explicit(), "y")])


def test_fourier_transforms_keep_layouts() -> None:
    x = array(explicit(), "y", "x", shape=(4, 8))
    for f in (jnp.fft.fft, jnp.fft.ifft, jnp.fft.fft2, lambda v: jnp.fft.fft(v, axis=0)):
        for run in (f, nj.jit(f)):
            assert typed(run(x)) == "complex64[4@y,8@x]"
            np.testing.assert_allclose(run(x), f(jnp.asarray(np.asarray(x))), atol=1e-4)


def test_a_layout_that_a_result_has_is_not_asked_for() -> None:
    x = array(explicit(), "x")
    with nj.set_mesh(explicit()):
        text = str(nj.make_jaxpr(lambda v: jnp.dot(v, v.T, out_sharding=P("x", None)))(x))
        assert "float32[8@x,8]" in text.replace("f32", "float32") and "reshard" not in text
        text = str(nj.make_jaxpr(lambda v: jnp.dot(v, v.T, out_sharding=P(None, "x")))(x))
        assert "reshard" in text


def test_tile_keeps_axes_that_are_not_repeated() -> None:
    x = array(explicit(), "x")
    assert typed(jnp.tile(x, (1, 2))) == "float32[8@x,4]"
    np.testing.assert_array_equal(jnp.tile(x, (1, 2)), np.tile(x, (1, 2)))
    for reps in (3, (2, 1), (2, 2), (2, 1, 1), (1, 3, 2)):
        np.testing.assert_array_equal(jnp.tile(array(), reps), np.tile(array(), reps))


def test_operands_lie_over_one_mesh() -> None:
    rows, free = array(explicit(), "x"), array(auto(), "x")
    mixed = array(grid(Explicit, Auto), "x", "y")
    for x, y in ((rows, free), (free, rows), (mixed, free), (mixed, rows)):
        for run in (lambda a, b: a + b, nj.jit(lambda a, b: a * b)):
            with pytest.raises(ValueError, match="Mesh for all inputs should be equal"):
                run(x, y)
    nj.jit(lambda a, b: (a, b))(rows, free)
    turned = nj.make_mesh((8,), ("i",), (Auto,))
    np.testing.assert_array_equal(free + array(turned, "i"), 2 * array())
    with nj.set_mesh(nj.make_mesh((8,), ("i",))), pytest.raises(ValueError, match="context mesh"):
        jnp.sin(free)


OUT_SHARDING: dict[str, Callable] = {
    "ones": lambda s: jnp.ones((8, 2), out_sharding=s),
    "arange": lambda s: jnp.arange(8, out_sharding=s),
    "dot": lambda s: jnp.dot(array(), array().T, out_sharding=s),
    "einsum": lambda s: jnp.einsum("ij,kj->ik", array(), array(), out_sharding=s),
    "reshape": lambda s: array().reshape(16, out_sharding=s),
    "get": lambda s: array().at[jnp.arange(4)].get(out_sharding=s),
    "set": lambda s: array().at[0].set(1.0, out_sharding=s),
    "normal": lambda s: nj.random.normal(nj.random.key(0), (8, 2), out_sharding=s),
}


@pytest.mark.parametrize("name", list(OUT_SHARDING))
def test_out_sharding_names_axes_of_types(name: str) -> None:
    f = OUT_SHARDING[name]
    with nj.set_mesh(explicit()):
        assert f(P("x")).sharding.spec[0] == "x"
    with nj.set_mesh(auto()):
        for run in (f, nj.jit(f, static_argnums=0)):
            with pytest.raises(ValueError, match="cannot contain axis names that are of type Auto"):
                run(P("x"))
        f(P())
    with nj.set_mesh(grid(Auto, Explicit)), pytest.raises(ValueError, match="of type Auto"):
        f(P("x"))


def test_layouts_of_new_arrays_over_auto_axes() -> None:
    there = NamedSharding(auto(), P("x"))
    for made in (jnp.ones(8, device=there), lax.full((8,), 1.0, sharding=there),
                 jnp.full((8,), 1.0, device=there)):  # fmt: skip
        assert made.sharding.spec == P("x") and not made.weak_type
    assert jnp.full((8,), 1.0).weak_type


def test_errors_of_sizes_that_axes_do_not_divide() -> None:
    x, over = jnp.ones((7, 2)), NamedSharding(explicit(), P("x"))
    for put in (nj.device_put, nj.jit(nj.device_put, static_argnums=1), reshard):
        with pytest.raises(ValueError, match="partitioned 4 times") as info:
            put(x, over)
        assert info.type is ValueError
    for ask in (lambda: nj.device_put(x, NamedSharding(auto(), P("x"))),
                lambda: over.shard_shape((7, 2)),
                lambda: nj.jit(lambda v: v, out_shardings=over)(x),
                lambda: nj.pmap(jnp.add)(jnp.ones(4), jnp.ones(3)),
                lambda: nj.pmap(jnp.sin)(jnp.ones(9))):  # fmt: skip
        with pytest.raises(IndivisibleError):
            ask()
    for short in (jnp.ones(8), jnp.ones(0)):  # of which 4 parts can be made
        with pytest.raises(ValueError) as info:
            nj.pmap(jnp.add)(jnp.ones(4), short)
        assert info.type is ValueError
    with pytest.raises(ValueError) as info:
        nj.pmap(jnp.sin)(jnp.ones(16))
    assert info.type is ValueError
    assert nj.pmap(jnp.sin)(jnp.ones(0)).shape == (0,)


def test_cotangents_lie_as_results_do() -> None:
    mesh = explicit()
    pull = nj.vjp(lambda v: v * 2, array(mesh, "x"))[1]
    assert typed(pull(array(mesh, "x"))[0]) == typed(pull(array())[0]) == "float32[8@x,2]"
    with pytest.raises(ValueError, match="unexpected JAX type"):
        pull(array(mesh, "x", "y"))
    nj.vjp(lambda v: v * 2, array())[1](array(mesh, "x"))
    turned = nj.linear_transpose(lambda v: v * 2, array(mesh, "x"))
    for good in (array(), array(mesh, "x")):
        np.testing.assert_array_equal(turned(good)[0], 2 * array())
    with pytest.raises(TypeError, match="does not match function output"):
        turned(array(mesh, "x", "y"))


def test_shardings_are_compared_for_a_rank() -> None:
    short, long = (NamedSharding(auto(), P(*s)) for s in (("x", "y"), ("x", "y", None)))
    assert short.is_equivalent_to(long, 2) and long.is_equivalent_to(short, 2)
    assert not long.is_equivalent_to(NamedSharding(auto(), P("x")), 2)


def test_deleted_arrays_over_a_mesh() -> None:
    mesh = explicit()
    x = array(mesh, "x")
    x.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        twice(mesh, P("x"))(x)
    for y in (x, jnp.ones(3)):
        y.delete()
        with pytest.raises(JaxRuntimeError, match="BlockHostUntilReady"):
            y.block_until_ready()


def test_the_old_name_of_shard_map_warns() -> None:
    with pytest.deprecated_call():
        from numjet.experimental.shard_map import shard_map
    f = shard_map(lambda v: lax.psum(v, "x"), auto(), P("x"), P())
    np.testing.assert_array_equal(f(jnp.arange(4.0)), [6.0])


def test_arrays_have_one_type_by_name() -> None:
    over = {type(x).__name__ for x in (array(), array(explicit(), "x"), nj.pmap(jnp.sin)(array()))}
    assert over == {"ArrayImpl"}


def test_values_that_nobody_placed_need_a_mesh_in_scope() -> None:
    mesh = explicit()
    rows, place = array(mesh, "x"), NamedSharding(mesh, P("x"))
    calls = (
        lambda: nj.grad(lambda x: (x * x).sum())(rows), lambda: rows.at[:, 0].set(1.0),
        lambda: nj.value_and_grad(lambda w: (w * rows).sum())(2.0),
        lambda: random.normal(random.key(0), (8,), out_sharding=place),
        lambda: jnp.ones(8, out_sharding=place), lambda: jnp.arange(8, out_sharding=place),
        lambda: jnp.broadcast_to(jnp.ones(2), (8, 2), out_sharding=place),
        lambda: lax.broadcasted_iota(int, (8, 2), 0, out_sharding=place),
    )
    for call in calls:
        with pytest.raises(ValueError, match="is not equal to the size of the mesh 8"):
            call()
        with nj.set_mesh(mesh):
            call()
    with pytest.raises(ValueError, match="Context mesh cannot be empty"):
        explicit_axes(lambda x: x, in_sharding=P("x"))(rows)
    # What knows the mesh from an operand does not.
    np.testing.assert_array_equal(nj.jit(nj.grad(lambda x: (x * x).sum()))(rows), 2 * array())
    assert typed(nj.vjp(jnp.sin, rows)[1](rows)[0]) == typed(rows)
    assert typed(jnp.zeros_like(rows)) == typed(rows)
    assert jnp.ones(8, device=place).sharding == place


def test_in_shardings_of_arguments_that_lay_nowhere_when_it_was_compiled() -> None:
    place = NamedSharding(explicit(), P("x"))
    f = nj.jit(lambda x: (2 * x, x.sum(0), x.T), in_shardings=place)
    for given in (array(), nj.ShapeDtypeStruct((8, 2), np.float32)):
        compiled = f.lower(given).compile()
        want = [P("x"), P(), P(None, "x")]
        assert [s.spec for s in compiled.output_shardings] == want
        for x in (array(), array(explicit(), "x")):
            outs = compiled(x)
            assert [y.sharding.spec for y in outs] == want
            np.testing.assert_array_equal(outs[0], 2 * array())


def test_a_part_of_a_cut_axis_is_updated_where_a_layout_is_told() -> None:
    with nj.set_mesh(explicit()):
        x = reshard(array(shape=(16, 16)), P("x", "y"))
        part = reshard(array(shape=(16, 4)), P("x", "y"))
        for update in (lambda v: v.at[:, :4].add(1.0), lambda v: v.at[:, :4].set(part)):
            for way in (update, nj.jit(update)):
                with pytest.raises(ShardingTypeError, match="out_sharding="):
                    way(x)
        told = x.at[:, :4].add(1.0, out_sharding=P("x", "y"))
        np.testing.assert_array_equal(told, np.asarray(x) + (np.arange(16) < 4))
        rows = reshard(x, P("x"))
        assert typed(rows.at[:, :4].set(reshard(part, P("x")))) == typed(rows)


def test_whole_results_over_axes_of_both_types_say_so_of_each_axis() -> None:
    mesh = grid(Explicit, Auto)
    x, z = (
        nj.device_put(array(shape=(8, 4)), NamedSharding(mesh, P(*s))) for s in ("x", (None, "y"))
    )
    for way in (lambda f: f, nj.jit):
        total = way(lambda v: v.sum(0))
        assert total(x).sharding.spec == P(None) != P()
        assert total(z).sharding.spec == P("y")
        assert way(lambda v: v.sum(1))(z).sharding.spec == P(None)
        assert way(lambda v: v.T)(z).sharding.spec == P("y")
        assert way(lambda v: v.sum())(x).sharding.spec == P()
