"""What jaxprs, stages and exports say of meshes and shardings, as JAX 0.10.2 says it."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import numjet as nj
from numjet import P, errors, export, lax, numpy as jnp, random
from numjet.core.jaxpr import eval_jaxpr
from numjet.sharding import (
    AxisType,
    Mesh,
    NamedSharding,
    SingleDeviceSharding,
    auto_axes,
    explicit_axes,
)

pytestmark = pytest.mark.usefixtures("eight_devices")
m = np.arange(32.0, dtype=np.float32).reshape(8, 4)
AXES = "'x': 4, 'y': 2, axis_types=(Auto, Auto)"
ABSTRACT = f"AbstractMesh({AXES}, device_kind=cpu, num_cores=None, platform=cpu)"


def mesh(kind=AxisType.Auto):
    return nj.make_mesh((4, 2), ("x", "y"), (kind,) * 2)


def printed(f, *args, within=None):
    with nj.set_mesh(within or mesh(AxisType.Explicit)):
        return str(nj.make_jaxpr(f)(*args))


def test_constraints_show_the_mesh_around_them():
    by_axes = printed(lambda a: lax.with_sharding_constraint(a, P("x")), m, within=mesh())
    assert f"context_mesh={ABSTRACT}\n" in by_axes
    assert f"sharding=NamedSharding(mesh={ABSTRACT}, spec=P('x',))\n" in by_axes
    whole = NamedSharding(mesh(), P("x"))
    given = printed(lambda a: lax.with_sharding_constraint(a, whole), m, within=mesh())
    assert f"context_mesh={ABSTRACT}\n" in given and f"sharding={whole}\n" in given
    with pytest.deprecated_call(), mesh():
        entered = str(nj.make_jaxpr(lambda a: lax.with_sharding_constraint(a, P("x")))(m))
    assert f"context_mesh=Mesh({AXES})\n" in entered and f"sharding={whole}\n" in entered
    alone = str(nj.make_jaxpr(lambda a: lax.with_sharding_constraint(a, whole))(m))
    assert "context_mesh=Mesh()\n" in alone


def test_open_dimensions_are_printed():
    for spec, dims in ((P("x", P.UNCONSTRAINED), "1"), (P(P.UNCONSTRAINED, "x"), "0"), (P(), "")):
        f = lambda a, s=NamedSharding(mesh(), spec): lax.with_sharding_constraint(a, s)  # noqa: E731
        assert f"unconstrained_dims=frozenset({{{dims}}})" in str(nj.make_jaxpr(f)(m))


def test_printed_constraints_may_be_run():
    with nj.set_mesh(mesh()):
        closed = nj.make_jaxpr(lambda a: lax.with_sharding_constraint(a * 2, P("x")))(m)
        run = lambda a: eval_jaxpr(closed.jaxpr, closed.consts, a)[0]  # noqa: E731
        for out in (run(jnp.asarray(m)), nj.jit(run)(m)):
            assert out.sharding.spec == P("x") and (out == 2 * m).all()
        assert (nj.grad(lambda a: run(a).sum())(m) == 2).all()
        assert (nj.vmap(run)(m[None]) == 2 * m).all()


def test_jitted_calls_show_the_mesh_around_them():
    for kind in (AxisType.Auto, AxisType.Explicit):
        text = printed(nj.jit(lambda a: a * 2), m, within=mesh(kind))
        assert f"name=<lambda>\n      ctx_mesh={mesh(kind)}\n      jaxpr=" in text
    assert "ctx_mesh" not in str(nj.make_jaxpr(nj.jit(lambda a: a * 2))(m))


def test_what_is_made_over_a_mesh_is_printed_as_one_equation():
    zeros = printed(lambda: jnp.zeros((8,), out_sharding=P("x")))
    assert zeros == "{ lambda ; . let a:f32[8@x] = broadcast_in_dim 0.0:f32[] in (a,) }"
    x = nj.device_put(jnp.arange(8.0), NamedSharding(mesh(AxisType.Explicit), P("x")))
    assert "b:f32[8@x] = broadcast_in_dim 0.0:f32[] in" in printed(jnp.zeros_like, x)
    wide = printed(lambda a: lax.broadcast_in_dim(a, (8, 8), (0,), out_sharding=P("x", "y")), x)
    assert "b:f32[8@x,8@y] = broadcast_in_dim[broadcast_dimensions=(0,)] a\n" in wide
    made = printed(lambda: jnp.arange(8, out_sharding=P("x")))
    assert "reshard" not in made and "spec=P('x',))" in made


def test_casts_between_types_of_axes_are_printed_as_reshards():
    x = nj.device_put(m, NamedSharding(mesh(AxisType.Explicit), P("x")))
    text = printed(auto_axes(lambda a: a * 2, out_sharding=P("x")), x)
    assert "b:f32[8,4] = reshard a\n" in text and "d:f32[8@x,4] = reshard c\n" in text
    text = printed(explicit_axes(lambda a: a * 2, in_sharding=P("x")), m, within=mesh())
    assert "b:f32[8@x,4] = reshard a\n" in text and "d:f32[8,4] = reshard c\n" in text


def test_generators_are_printed_by_name():
    key = np.zeros(4, np.uint32)
    text = str(nj.make_jaxpr(lambda x: lax.rng_bit_generator(x, (2,)))(key))
    assert "algorithm=RNG_DEFAULT\n" in text and "out_sharding=None\n" in text


def test_stages_tell_of_the_mesh_of_the_arguments():
    over = NamedSharding(mesh(AxisType.Explicit), P("x"))
    lowered = nj.jit(lambda a: a + 1).lower(nj.ShapeDtypeStruct((8,), "float32", sharding=over))
    assert lowered.out_info.sharding == over
    rows = NamedSharding(mesh(), P("x"))
    compiled = nj.jit(lambda a, b: a, in_shardings=(rows, None)).lower(m, m).compile()
    assert compiled.input_shardings == ((rows, None), {})


def test_exported_results_lie_as_they_were_asked_for():
    rows, columns = NamedSharding(mesh(), P("x")), NamedSharding(mesh(), P(None, "y"))
    made = export.export(nj.jit(lambda a: (a * 2, 1), out_shardings=(columns, None)))(m)
    for e in (made, export.deserialize(made.serialize())):
        out, one = e.call(nj.device_put(m, rows))
        assert out.sharding == columns and (out == 2 * m).all() and one == 1
        with pytest.raises(ValueError, match="was exported for 8 devices"):
            e.call(m)


def test_programs_are_over_the_same_devices():
    """A constraint over other devices was passed over without a word."""
    half = nj.make_mesh((4,), ("x",), (AxisType.Auto,), devices=nj.devices()[:4])
    turned = Mesh(np.array(nj.devices()[::-1]).reshape(4, 2), ("x", "y"))
    rows, few = NamedSharding(mesh(), P("x")), NamedSharding(half, P("x"))
    x, constrain = nj.device_put(m, rows), lax.with_sharding_constraint
    jitted = nj.jit(lambda a: constrain(a, few))
    mapped = nj.shard_map(lambda a: a, mesh=half, in_specs=P("x"), out_specs=P("x"))
    for f in (lambda: jitted(x), lambda: jitted.lower(x), lambda: nj.jit(mapped)(x),
              lambda: mapped(x), lambda: constrain(x, few),
              lambda: nj.jit(lambda a: nj.device_put(a, few))(x),
              lambda: nj.jit(lambda a: nj.jit(lambda b: b, out_shardings=few)(a))(x),
              lambda: nj.jit(lambda a: constrain(constrain(a, few), rows))(m),
              lambda: nj.jit(lambda a: constrain(a, NamedSharding(turned, P("x"))))(x),
              lambda: nj.jit(lambda a: constrain(a, few), out_shardings=rows)(m)):  # fmt: skip
        with pytest.raises(ValueError, match="incompatible devices"):
            f()
    for context in (half, turned):
        with nj.set_mesh(context):
            for f in (lambda: x + 1, lambda: jnp.sin(x), lambda: x[0], lambda: nj.jit(jnp.sin)(x),
                      lambda: nj.jit(jnp.sin).lower(x), lambda: nj.grad(lambda a: a.sum())(x),
                      lambda: nj.jit(jnp.sin, out_shardings=rows)(m),
                      lambda: nj.jit(jnp.sin, in_shardings=rows)(m)):  # fmt: skip
                with pytest.raises(ValueError, match="incompatible devices"):
                    f()
            assert nj.device_put(x, P("x")).sharding.mesh == context
            np.testing.assert_array_equal(x, m)
    assert jitted(m).sharding == few and (nj.jit(jnp.negative)(x) == -m).all()


def test_arrays_on_several_devices_have_no_address():
    with pytest.raises(errors.JaxRuntimeError, match="only for unsharded arrays"):
        nj.device_put(m, NamedSharding(mesh(), P("x"))).unsafe_buffer_pointer()


def _rule(backward):
    """x * y, whose derivative in x is what `backward` says."""
    f = nj.custom_vjp(lambda x, y: x * y)
    f.defvjp(lambda x, y: (x * y, x), lambda x, g: (backward(g), g * x))
    alone = nj.custom_vjp(lambda x: x)
    alone.defvjp(lambda x: (x, None), lambda _, g: (backward(g),))
    return f, alone


@pytest.mark.parametrize("backward, shared, alone", [
    (lambda g: lax.psum(g, "i"), 288, 224), (lambda g: jnp.clip(g, -1, 1), 8, 7),
    (lambda g: jnp.ones_like(g), 8, 8), (lambda g: lax.pmean(g, "i"), 36, 28),
    (lambda g: g * lax.axis_index("i"), 168, 140),
    (lambda g: jnp.clip(lax.psum(g, "i"), -10, 10), 80, 80),
])  # fmt: skip
def test_rules_run_once_a_device_for_what_devices_have_in_common(backward, shared, alone):
    """One rule ran for all, on a part of the cotangent."""
    over = nj.make_mesh((8,), ("i",), (AxisType.Auto,))
    f, g = _rule(backward)
    y, w = jnp.arange(8.0), jnp.arange(1.0, 9.0)
    for f, ys, want in ((f, (y, w), shared), (lambda x, _: g(x), (y, y), alone)):
        own = lambda x, y, w, f=f: f(x, y.sum()) * w  # noqa: E731
        mapped = nj.shard_map(own, mesh=over, in_specs=(P(), P("i"), P("i")), out_specs=P("i"),
                              check_vma=False)  # fmt: skip
        for way in (mapped, nj.pmap(own, "i", in_axes=(None, 0, 0))):
            for total in (lambda x: way(x, *ys).sum(), nj.jit(lambda x: way(x, *ys).sum())):  # noqa: B023
                assert nj.grad(total)(np.float32(3)) == want


def test_rules_give_cotangents_that_vary_as_their_arguments_do():
    """The gradient was too large, without a word."""
    over = nj.make_mesh((8,), ("i",), (AxisType.Auto,))
    specs = {"mesh": over, "in_specs": (P(), P("i")), "out_specs": P("i")}
    y = jnp.arange(8.0)
    _, times_place = _rule(lambda g: g * lax.axis_index("i"))
    _, summed = _rule(lambda g: lax.psum(g, "i"))
    vary = lambda x: lax.pcast(x, "i", to="varying")  # noqa: E731
    for own in (lambda x, y: times_place(x) * y, lambda x, y: summed(vary(x)) * y):
        with pytest.raises(ValueError, match="the same type as the args tuple"):
            nj.grad(lambda x: nj.shard_map(own, **specs)(x, y).sum())(3.0)  # noqa: B023
        with pytest.raises(ValueError, match="the same type as the args tuple"):
            nj.shard_map(nj.grad(lambda x, y: own(x, y).sum()), **specs)(3.0, y)  # noqa: B023


def test_carries_and_branches_vary_alike_over_axes_of_shard_map():
    """They began to vary without a word, where JAX asks for a cast."""
    over = nj.make_mesh((8,), ("i",), (AxisType.Auto,))
    y, zero = jnp.arange(8.0), jnp.zeros(())
    vary = lambda x: lax.pcast(x, "i", to="varying")  # noqa: E731
    loops = (
        lambda y, c: lax.scan(lambda c, _: (c + y.sum(), None), c, None, length=2)[0],
        lambda y, c: lax.scan(lambda c, x: (c + x, None), c, y)[0],
        lambda y, c: lax.fori_loop(0, 2, lambda _, c: c + y.sum(), c),
        lambda y, c: lax.fori_loop(0, 2 + c.astype(int) * 0, lambda _, c: c + y.sum(), c),
        lambda y, c: lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, c[1] + y.sum()),
                                    (0, c))[1],
        lambda y, c: lax.cond(c > 1, lambda: y.sum(), lambda: c + 1),
        lambda y, c: lax.switch(2, [lambda: y.sum(), lambda: y.sum(), lambda: c + 1]),
    )  # fmt: skip
    for f in loops:
        run = lambda c, f=f, **more: nj.shard_map(  # noqa: E731
            lambda y: f(y, c())[None], mesh=over, in_specs=P("i"), out_specs=P("i"), **more
        )
        for call in (run(lambda: zero), nj.jit(run(lambda: zero)), nj.grad(lambda y: run(lambda: zero)(y).sum())):  # noqa: B023, E501
            with pytest.raises(TypeError, match="manual axis types do not match"):
                call(y)
        assert run(lambda: vary(zero))(y).shape == (8,)
        assert run(lambda: zero, check_vma=False)(y).shape == (8,)


def test_none_is_no_out_spec():
    f = lambda x: (x, lax.psum(x, "x"))  # noqa: E731
    with pytest.raises(ValueError, match="shard_map out_specs"):
        nj.shard_map(f, mesh=mesh(), in_specs=P("x"), out_specs=(P("x"), None))(m)
    kept = nj.shard_map(lambda x, y: (x * y, None), mesh=mesh(), in_specs=(P("x"), None),
                        out_specs=(P("x"), None))  # fmt: skip
    assert (kept(m, 2.0)[0] == 2 * m).all()


def test_open_ends_of_specs_are_of_any_rank():
    rows = NamedSharding(mesh(), P("x", None, None))
    assert rows.shard_shape((8, 4)) == (2, 4) and rows.shard_shape((8,)) == (2,)
    assert rows.devices_indices_map((8,))[nj.devices()[2]] == (slice(2, 4, None),)
    for beyond in (P("x", "y"), P(None, "y")):
        with pytest.raises(IndexError):
            NamedSharding(mesh(), beyond).shard_shape((8,))


def test_what_was_asked_for_is_shown_under_transformations():
    rows = P("x", None)
    x = nj.device_put(m, NamedSharding(mesh(), P("x", "y")))
    twice = nj.shard_map(lambda a: a * 2, mesh=mesh(), in_specs=rows, out_specs=rows)
    keys = nj.device_put(nj.random.split(nj.random.key(0), 8), NamedSharding(mesh(), P("x")))
    for found, want in (
        (nj.grad(lambda a: twice(a).sum())(x), rows), (nj.jvp(twice, (x,), (x,))[1], rows),
        (nj.vmap(twice)(m[None]), P(None, "x", None)), (nj.random.key_data(keys), P("x", None)),
        (nj.grad(lambda a: lax.with_sharding_constraint(a, NamedSharding(mesh(), rows)).sum())(m),
         rows),
    ):  # fmt: skip
        assert found.sharding == NamedSharding(mesh(), want) and repr(want) in repr(found.sharding)


def test_results_within_set_mesh_are_committed():
    with nj.set_mesh(mesh(AxisType.Explicit)):
        for x in (lax.fori_loop(0, 3, lambda i, c: c + 1, 0), nj.grad(lambda x: x**2)(3.0)):
            assert x.committed and x.sharding.mesh == mesh(AxisType.Explicit)
    assert not nj.grad(lambda x: x**2)(3.0).committed


def test_the_first_of_several_devices_holds_what_was_put_there():
    """Results of operations on it were nobody's, and met arrays over other devices."""
    first = nj.devices()[0]
    z, o = nj.device_put(np.float32(1), first), nj.device_put(np.float32(1), nj.devices()[1])
    over = nj.device_put(m, NamedSharding(mesh(), P("x")))
    for x in (z + 1, jnp.sin(z), z[None], nj.jit(jnp.sin)(z), nj.grad(jnp.sin)(z),
              jnp.sum(nj.device_put(over, first)),
              nj.jit(jnp.sin, out_shardings=SingleDeviceSharding(first))(1.0),
              over.addressable_shards[0].data + 1):  # fmt: skip
        assert x.committed and x.sharding.device_set == {first}
        for other in (o, over):
            with pytest.raises(ValueError, match="incompatible devices"):
                jnp.add(x.ravel()[0], other)
    with pytest.raises(ValueError, match="incompatible devices"):
        jnp.concatenate([over[:, 0], z[None] + 0])


def test_what_shard_map_does_not_map_stays_cut():
    """Axes of the mesh that are not mapped were given up: the constraint was lost."""
    def own(a):
        return lax.with_sharding_constraint(a * 2, P(None, "y"))

    some = {"mesh": mesh(), "in_specs": P("x"), "out_specs": P("x"), "axis_names": {"x"}}
    both = NamedSharding(mesh(), P("x", "y"))
    assert nj.jit(nj.shard_map(own, **some))(m).sharding == both
    columns = nj.device_put(m, NamedSharding(mesh(), P(None, "y")))
    assert nj.jit(nj.shard_map(lambda a: a * 2, **some))(columns).sharding == both
    assert nj.jit(nj.shard_map(lambda a: a * 2, **some))(m).sharding.spec == P("x")


def test_constraints_within_an_entered_mesh_name_auto_axes():
    with pytest.deprecated_call(), mesh(AxisType.Explicit):
        with pytest.raises(ValueError, match="can only refer to Auto axes"):
            lax.with_sharding_constraint(jnp.ones((8, 2)), P("x"))


def test_repeating_along_a_cut_axis_needs_a_layout():
    with nj.set_mesh(mesh(AxisType.Explicit)):
        x = jnp.ones((8, 2), out_sharding=P("x"))
        for f in (lambda x: jnp.repeat(x, 2, axis=0), lambda x: jnp.repeat(x, 2)):
            for call in (f, nj.jit(f)):
                with pytest.raises(ValueError, match="`out_sharding` parameter"):
                    call(x)
        assert jnp.repeat(x, 2, axis=1).sharding.spec == P("x", None)
        assert jnp.repeat(x, 2, axis=0, out_sharding=P("x")).shape == (16, 2)


def test_layouts_are_shown_as_jax_shows_them(capsys):
    def shown(shape, spec, **how):
        nj.debug.visualize_sharding(shape, NamedSharding(mesh(), spec), **how)
        return capsys.readouterr().out.splitlines()

    middle = "│  CPU 0   │  CPU 1   │"
    wide = shown((16, 16), P("x", "y"))
    assert wide[:3] == ["┌──────────┬──────────┐", middle, "├──────────┼──────────┤"]
    assert len(wide) == 9 and wide[-1] == "└──────────┴──────────┘"
    assert shown((8,), P("x", None), min_width=2)[1] == "│CPU 0,1│CPU 2,3│CPU 4,5│CPU 6,7│"
    rows = shown((8, 8), P("y"))
    assert len(rows) == 11 and rows[2] == "│" + "CPU 0,2,4,6".center(23) + "│"
    assert max(map(len, shown((2, 64), P("y")))) == 80
    assert [len(shown((8, 8), P("y"), scale=s)) for s in (0.5, 1.5, 3.0)] == [5, 15, 31]


def test_constraints_inside_of_shard_map_know_its_axes():
    some = {"mesh": mesh(), "in_specs": P("x"), "out_specs": P("x")}
    constrain = lambda a: lax.with_sharding_constraint(a, NamedSharding(mesh(), P("x")))  # noqa: E731
    with pytest.raises(ValueError, match="contains a manual axes"):
        nj.shard_map(constrain, **some)(m)
    with pytest.raises(ValueError, match="no more entries than its value has axes"):
        nj.shard_map(lambda a: a, mesh=mesh(), in_specs=P("x", "x"), out_specs=P("x"))(m[:, 0])


def test_reshard_leaves_auto_axes_as_they_are():
    auto = mesh(AxisType.Auto)
    x = nj.device_put(m, NamedSharding(auto, P("x")))
    whole = NamedSharding(auto, P())
    assert nj.reshard(x, whole).sharding.spec == P("x")
    assert nj.jit(lambda x: nj.reshard(x, whole))(x).sharding.spec == P("x")
    assert len(nj.jit(lambda x: nj.reshard(x, whole))(jnp.ones(2)).devices()) == 1
    both = nj.make_mesh((4, 2), ("x", "y"), (AxisType.Explicit, AxisType.Auto))
    y = nj.device_put(m, NamedSharding(both, P("x", "y")))
    assert nj.reshard(y, NamedSharding(both, P(None, None))).sharding.spec == P(None, "y")
    z = nj.device_put(m, NamedSharding(both, P("y")))
    assert nj.reshard(z, NamedSharding(both, P("x"))).sharding.spec == P(("x", "y"), None)


def test_shapes_tell_the_mesh_of_the_arguments_they_come_from():
    over = mesh(AxisType.Explicit)
    x = nj.device_put(m, NamedSharding(over, P("x")))
    f = nj.jit(lambda x: (x.sum(0), x, jnp.ones(3)))
    sums, same, ones = f.lower(x).out_info
    assert sums.sharding == NamedSharding(over, P(None)) and ones.sharding is None
    assert same.sharding == NamedSharding(over, P("x", None))
    for found in (f.trace(x).out_info[0], nj.eval_shape(lambda x: x.sum(0), x)):
        assert found.sharding == NamedSharding(over.abstract_mesh, P(None))
    x = nj.device_put(m, NamedSharding(mesh(), P("x")))
    assert [s.sharding for s in f.lower(x).out_info] == [None] * 3


def test_types_tell_the_kinds_of_their_axes():
    over = nj.make_mesh((4, 2), ("x", "y"), (AxisType.Explicit, AxisType.Auto))
    aval = nj.typeof(nj.device_put(m, NamedSharding(over, P("x", "y"))))
    assert aval.str_short(True, mesh_axis_types=True) == (
        "f32[8@x,4]({Explicit: ('x',), Auto: ('y',)})"
    )
    assert nj.typeof(jnp.ones(3)).str_short(mesh_axis_types=True) == "float32[3]({})"


def test_copies_name_each_dimension_over_explicit_axes():
    x = nj.device_put(m, NamedSharding(mesh(AxisType.Explicit), P("x")))
    for f in (jnp.copy, jnp.array, jnp.positive, jnp.real, copy.copy, copy.deepcopy):
        assert tuple(f(x).sharding.spec) == ("x", None), f
    assert tuple(lax.stop_gradient(x).sharding.spec) == ("x",)
    y = nj.device_put(m, NamedSharding(mesh(), P("x")))
    assert tuple(jnp.copy(y).sharding.spec) == ("x",)


# What JAX's partitioner gives for functions of x, of 8 rows that are cut four ways, or eight ways
# over two axes.
@pytest.mark.parametrize(("f", "four", "eight"), [
    (lambda x: x[2:6], P("x"), P("x")),
    (lambda x: x[::-2], P("x"), P("x")),
    (lambda x: x[1:], P(), P()),
    (lambda x: x[1:].sum(1), P(), P()),
    (lambda x: x[:4].sum(1), P("x"), P("x")),
    (lambda x: jnp.concatenate([x, x]), P("x"), P(("x", "y"))),
    (lambda x: jnp.concatenate([x, jnp.ones((8, 4))]), P("x"), P(("x", "y"))),
    (lambda x: jnp.concatenate([x, x]).reshape(4, 4, 4), P("x"), P("x", "y")),
    (lambda x: jnp.concatenate([x, x[:4]]).reshape(4, 3, 4), P("x"), P("x")),
    (lambda x: jnp.roll(x, 1, 0), P("x"), P(("x", "y"))),
    (lambda x: jnp.split(x, 2)[1], P("x"), P("x")),
    (lambda x: jnp.pad(x, ((4, 4), (0, 0))), P("x"), P(("x", "y"))),
    (lambda x: jnp.pad(x, 1), P(), P()),
    (lambda x: jnp.pad(x[2:] - 2 * x[1:-1] + x[:-2], ((1, 1), (0, 0))), P("x"), P(("x", "y"))),
    (lambda x: lax.dynamic_slice(x, (2, 0), (4, 4)), P("x"), P("x")),
    (lambda x: lax.dynamic_slice(x, (x[0, 0].astype(int), 0), (4, 4)), P(), P()),
    (lambda x: lax.reduce_window(x, 0.0, lax.add, (3, 1), (1, 1), "SAME"), P("x"), P(("x", "y"))),
    (lambda x: lax.conv(x.T[None], jnp.ones((4, 4, 3)), (2,), "SAME"), P(None, None, "x"),
     P(None, None, "x")),
    (lambda x: jnp.fft.fft(x, axis=0), P("x"), P(("x", "y"))),
    (lambda x: lax.fori_loop(0, 3, lambda _, x: jnp.roll(x, 1, 0), x), P("x"), P(("x", "y"))),
    (lambda x: jnp.sort(x[:, 0]), P(), P()),
    (lambda x: jnp.argsort(x, 0), P("x"), P(("x", "y"))),
    (lambda x: x.at[x[0, 0].astype(int)].set(0.0), P("x"), P(("x", "y"))),
    (lambda x: x.at[jnp.array([0, 3])].multiply(2.0), P("x"), P(("x", "y"))),
    (lambda x: lax.fori_loop(0, 3, lambda i, x: x.at[i].add(1.0), x), P("x"), P(("x", "y"))),
    (nj.grad(lambda x: (x[1:5] ** 2).sum()), P("x"), P(("x", "y"))),
    (nj.vmap(lambda x: jnp.roll(x, 1), in_axes=1), P(None, "x"), P(None, ("x", "y"))),
])  # fmt: skip
def test_programs_hand_layouts_on_where_parts_read_beyond_their_ends(f, four, eight):
    for cut, spec in ((P("x"), four), (P(("x", "y")), eight)):
        x = nj.device_put(m, NamedSharding(mesh(), cut))
        out = nj.jit(f)(x)
        assert out.sharding.spec == spec
        np.testing.assert_allclose(out, nj.jit(f)(m), rtol=1e-5, atol=1e-5)
        for shard in out.addressable_shards:
            np.testing.assert_array_equal(shard.data, np.asarray(out)[shard.index])


def test_operations_hand_layouts_on_but_slices():
    x = nj.device_put(m, NamedSharding(mesh(), P("x")))
    assert jnp.concatenate([x, x]).sharding.spec == jnp.vstack([x, m]).sharding.spec == P("x")
    assert lax.pad(x, 0.0, ((0, 8, 0), (0, 0, 0))).sharding.spec == P("x")
    assert x.at[jnp.array([0, 3])].set(0.0).sharding.spec == P("x")
    assert jnp.sort(x[:, 0]).sharding.spec == P()
    assert x[2:6].sharding.spec == P()  # of one device's rows, read at places known when it is run


def test_keys_over_auto_axes_name_each_dimension():
    def specs(keys):
        fs = (lambda k: random.split(k[0]), nj.vmap(random.split), lambda k: k.reshape(4, 2))
        return [tuple(g(keys).sharding.spec) for f in fs for g in (f, nj.jit(f))]

    for spec, row in ((P(), None), (P("x"), "x")):
        keys = nj.device_put(random.split(random.key(0), 8), NamedSharding(mesh(), spec))
        assert specs(keys) == [(None,)] * 2 + [(row, None)] * 4
