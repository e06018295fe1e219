"""What programs over many devices answer, as JAX 0.10.2 does: where values lie after they were put
somewhere, which arguments are given away, and what is refused."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import numjet as nj
from numjet import P, export, lax, numpy as jnp
from numjet.experimental import custom_partitioning, multihost_utils
from numjet.sharding import AxisType, NamedSharding, SingleDeviceSharding, explicit_axes

pytestmark = pytest.mark.usefixtures("eight_devices")
x8 = np.arange(8.0, dtype=np.float32)
m = np.arange(32.0, dtype=np.float32).reshape(8, 4)
AUTO, EXPLICIT = AxisType.Auto, AxisType.Explicit


def mesh(kind=AUTO):
    return nj.make_mesh((4, 2), ("x", "y"), (kind,) * 2)


def over(*spec, kind=AUTO):
    return NamedSharding(mesh(kind), P(*spec))


def put(x, *spec, kind=AUTO):
    return nj.device_put(x, over(*spec, kind=kind))


def mapped(f, **options):
    given = {"in_specs": P("x"), "out_specs": P("x"), **options}
    return nj.shard_map(f, mesh=mesh(), **given)


# ------------------------------------------------------------------ device_put
def test_device_put_in_a_program_moves_nothing():
    for f in (nj.jit(lambda x: nj.device_put(x, over("x"))),
              nj.jit(lambda x: nj.device_put({"a": x}, over("x"))["a"])):  # fmt: skip
        assert f(x8).sharding == over() and f(put(x8, "y")).sharding.spec == P("y")
    host = SingleDeviceSharding(nj.devices()[0], memory_kind="pinned_host")
    assert nj.jit(lambda x: nj.device_put(x, host))(x8).sharding == host
    on_host = over("x").with_memory_kind("pinned_host")
    f = nj.jit(lambda x: nj.device_put(x, on_host))
    assert f(x8).sharding == over().with_memory_kind("pinned_host")
    with pytest.raises(ValueError, match="must be a multiple of 4"):
        nj.jit(lambda x: nj.device_put(x, over("x")))(x8[:7])
    with pytest.raises(ValueError, match="incompatible devices"):
        nj.jit(lambda x: nj.device_put(x, over("x")))(nj.device_put(x8, nj.devices()[1]))


def test_device_put_is_an_equation():
    shown = str(nj.make_jaxpr(lambda x: nj.device_put({"a": x, "b": x}, nj.devices()[1]))(x8))
    assert "b:f32[8] c:f32[8] = device_put[\n" in shown
    assert "devices=(CpuDevice(id=1), CpuDevice(id=1))\n" in shown
    assert "copy_semantics=(ArrayCopySemantics.REUSE_INPUT, " in shown
    shown = str(nj.make_jaxpr(lambda x: nj.device_put(x, may_alias=False))(x8))
    assert "ALWAYS_COPY" in shown and "devices=(None,)" in shown
    back = str(nj.make_jaxpr(nj.grad(lambda x: nj.device_put(x, nj.devices()[1])))(1.0))
    assert "srcs=(CpuDevice(id=1),)" in back


def test_device_put_under_transformations_puts():
    there = nj.devices()[1]
    assert nj.vmap(lambda r: nj.device_put(r, there))(m).sharding._device is there
    assert nj.vmap(lambda r: nj.device_put(r, over("x")))(m).sharding == over("x")
    value, _ = nj.value_and_grad(lambda x: nj.device_put(x, there).sum())(x8)
    assert value.sharding._device is there
    _, tangent = nj.jvp(lambda x: nj.device_put(x, there), (x8,), (x8,))
    assert tangent.sharding._device is there
    y = nj.device_put(x8, there)
    assert nj.device_put(y, there) is not y
    assert nj.device_put(y) is y and nj.device_put(y, SingleDeviceSharding(there)) is y


def test_device_put_leaves_nothing_open():
    open_ = over("x", P.UNCONSTRAINED, kind=AUTO)
    for f in (lambda x: nj.device_put(x, open_), nj.jit(lambda x: nj.device_put(x, open_))):
        with pytest.raises(ValueError, match="UNCONSTRAINED"):
            f(m)
    with pytest.raises(ValueError, match="when no mesh axis_types are `Auto`"):
        over("x", P.UNCONSTRAINED, kind=EXPLICIT)


def test_device_put_within_shard_map():
    for place in (nj.devices()[0], over()):
        with pytest.raises(ValueError, match="not allowed within shard_map"):
            mapped(lambda x, p=place: nj.device_put(x, p))(m)
        with pytest.raises(ValueError, match="not allowed within shard_map"):
            mapped(lambda x, p=place: x + nj.device_put(np.ones(4), p))(m)
    for place in (over(), over("x"), over("y")):
        with pytest.raises(ValueError, match="of type `Manual`"):
            nj.jit(mapped(lambda x, p=place: nj.device_put(x, p)))(m)
    for wrap in (nj.jit, lambda f: f):
        with pytest.raises(ValueError, match="set a mesh"):
            wrap(mapped(lambda x: nj.device_put(x, P())))(m)
        np.testing.assert_array_equal(wrap(mapped(nj.device_put))(m), m)
    f = mapped(lambda x: nj.device_put(x, nj.devices()[1]) + nj.device_put(1.0, nj.devices()[1]))
    np.testing.assert_array_equal(nj.jit(f)(m), m + 1)


# ------------------------------------------------------------------ shard_map over some axes
@pytest.mark.parametrize("wrap", [lambda f: f, nj.jit], ids=["eager", "jit"])
def test_axes_not_mapped_cut_results_as_they_did(wrap):
    def specs(f, x, ins=P("x"), outs=P("x")):
        return wrap(nj.shard_map(f, mesh=mesh(), in_specs=ins, out_specs=outs,
                                 axis_names={"x"}))(x).sharding.spec  # fmt: skip

    x, y, z = put(m, "x", "y"), put(m, None, "y"), put(m, "y", "x")
    assert specs(lambda a: a * 2, x) == P("x", "y") == specs(lambda a: a, x)
    assert specs(lambda a: lax.psum(a, "x"), x, outs=P()) == P(None, "y")
    assert specs(lambda a: a.T, x, outs=P(None, "x")) == P("y", "x")
    assert specs(lambda a: a.sum(1), x) == P("x")
    assert specs(lambda a: a * 2, y) == P("x", "y")
    assert specs(lambda a: a * 2, y, P(), P()) == P(None, "y")
    assert specs(lambda a: a * 2, z, P(None, "x"), P(None, "x")) == P("y", "x")
    assert specs(lambda a: a * 2, z) == P("x") == specs(lambda a: a * 2, put(m, "y"))
    assert specs(lambda a: a * 2, put(m, ("x", "y"))) == P(("x", "y"))
    assert specs(lambda a: a * 2, put(m, ("y", "x"))) == P("x")


def test_gradients_of_maps_over_some_axes():
    f = nj.shard_map(lambda a: a * a, mesh=mesh(), in_specs=P("y"), out_specs=P("y"),
                     axis_names={"y"})  # fmt: skip
    for wrap in (lambda f: f, nj.jit):
        g = wrap(nj.grad(lambda a: f(a).sum()))(put(m, "x", "y"))
        np.testing.assert_array_equal(g, 2 * m)
        assert g.sharding.spec == P("y")


def test_refusals_of_shard_map():
    with pytest.raises(ValueError, match="inside of shard_map"):
        mapped(lambda x: lax.psum(x, ("x", "y")))(m)
    with pytest.raises(ValueError, match="inside of shard_map"):
        mapped(lambda x: lax.pmean(x, ("x", "y")), in_specs=P("y"), out_specs=P("y"))(m)
    pairs = [[0, 1], [2, 3]]
    with pytest.raises(NotImplementedError, match="check_vma=False"):
        mapped(lambda x: lax.psum(x, "x", axis_index_groups=pairs))(m)
    np.testing.assert_array_equal(
        mapped(lambda x: lax.psum(x, "x", axis_index_groups=pairs), check_vma=False)(x8),
        [2, 4, 2, 4, 10, 12, 10, 12],
    )
    mapping = nj.shard_map(lambda x: x, mesh=mesh(), in_specs=P(), out_specs=P(), axis_names="x")
    with pytest.raises(TypeError, match="`axis_names` argument"):
        mapping(m)
    with pytest.deprecated_call():
        from numjet.experimental.shard_map import shard_map as old
    with pytest.raises(TypeError, match="auto"):
        old(lambda x: x, mesh(), P("x"), P("x"), auto=frozenset({"y"}))
    sum_ = mapped(lambda x: lax.psum(x, "x"), out_specs=P())
    with pytest.raises(ValueError, match="cannot appear in shard_map in_specs"):
        nj.vmap(sum_, spmd_axis_name="x")(m.T)
    assert nj.vmap(sum_, spmd_axis_name="y")(m.T).shape == (4, 2)
    sizes = np.zeros(8, np.int32)
    with pytest.raises(RuntimeError, match="within a mapped context"):
        lax.ragged_all_to_all(x8, x8, sizes, sizes, sizes, sizes, axis_name="i")


# ------------------------------------------------------------------ donation
def test_arguments_that_are_given_away():
    f = nj.jit(lambda x: x + 1, donate_argnums=0, out_shardings=over("x"))
    for x, gone in ((put(x8, "x"), True), (put(x8, "y"), False), (jnp.asarray(x8), False)):
        if gone:
            f(x)
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                f(x)
        assert x.is_deleted() is gone
    turned = nj.jit(lambda x: x.T, donate_argnums=0, out_shardings=over("x"))
    x = put(m, "x")
    turned(x)
    assert x.is_deleted()
    g = nj.jit(lambda x: (x + 1, x.sum()), donate_argnums=0)
    for place in (over("x"), over("x", kind=EXPLICIT), nj.devices()[2]):
        x = nj.device_put(x8, place)
        g(x)
        assert x.is_deleted()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of several devices nobody says beforehand what is of use
        x = put(x8, "x")
        nj.jit(lambda x, y: x.sum() + y, donate_argnums=0)(x, 1.0)
    with pytest.warns(UserWarning, match="not usable"):
        nj.jit(lambda x: x + 1, donate_argnums=0, out_shardings=over("x"))(put(x8, "y"))
    h = nj.pmap(lambda x: x + 1, donate_argnums=0)
    x = jnp.asarray(x8)
    y = h(x)
    h(y)
    assert not x.is_deleted() and y.is_deleted()


# ------------------------------------------------------------------ other refusals
def test_layouts_of_mapped_axes():
    constraint = lambda r: lax.with_sharding_constraint(r, over("x"))  # noqa: E731
    with pytest.raises(ValueError, match="cannot appear in with_sharding_constraint spec"):
        nj.jit(nj.vmap(constraint, spmd_axis_name="x"))(m)
    assert nj.jit(nj.vmap(constraint, spmd_axis_name="y"))(m).sharding.spec == P("y", "x")
    with nj.set_mesh(mesh(EXPLICIT)):
        x = jnp.arange(8.0, out_sharding=P("x"))
        assert nj.vmap(lambda a: a, spmd_axis_name="x")(x).sharding.spec == P("x")
        with pytest.raises(ValueError, match="Only one of spmd_axis_name"):
            nj.vmap(lambda a: a, spmd_axis_name="y")(x)


def test_exports_are_called_on_as_many_devices():
    placed = export.export(nj.jit(lambda x: x * 2, out_shardings=over("x")))(x8)
    assert placed.nr_devices == 8 and placed.call(put(x8, "x")).sharding == over("x")
    for given in (x8, nj.device_put(x8, nj.devices()[1])):
        with pytest.raises(ValueError, match="was exported for 8 devices"):
            placed.call(given)
    alone = export.export(nj.jit(lambda x: x * 2))(x8)
    assert alone.nr_devices == 1
    np.testing.assert_array_equal(alone.call(put(x8, "x")), 2 * x8)


def test_what_is_refused():
    with pytest.raises(ValueError, match="Number of axis names"):
        nj.make_mesh((4, 2), ("x", "y"), (AUTO,))
    with pytest.raises(TypeError, match="which is no array"):
        nj.make_array_from_callback((8,), over("x"), lambda i: [1.0, 2.0])
    for read in (lambda x: x.__dlpack__(), lambda x: x.__dlpack_device__(), np.from_dlpack):
        with pytest.raises(BufferError, match="over 8 devices"):
            read(put(x8, "x"))
    np.testing.assert_array_equal(np.from_dlpack(nj.device_put(x8, nj.devices()[1])), x8)
    with pytest.raises(ValueError, match="does not support kwargs"):
        nj.jit(lambda x, n: x * n, in_shardings=(over("x"),), static_argnames="n")(x8, n=2)
    with pytest.raises(ValueError, match="`None` is not a valid input"):
        multihost_utils.host_local_array_to_global_array(x8, mesh(), None)
    with pytest.raises(ValueError, match="must be a str or CompoundFactor"):
        custom_partitioning.ArrayMapping("i", 3)
    with pytest.raises(ValueError, match="at least two factors"):
        custom_partitioning.CompoundFactor("i")
    f = custom_partitioning.custom_partitioning(lambda x: x)
    with pytest.raises(ValueError, match="There is no -> in rule"):
        f.def_partition(partition=lambda *a: None, sharding_rule="i -> ->")


# ------------------------------------------------------------------ layouts that nobody asked for
def test_axes_that_operands_cut_differently_are_whole():
    x, y, z = put(m, "x"), put(m, "y"), put(m, "y", "x")
    xy, yx = put(m, ("x", "y")), put(m, ("y", "x"))
    for add in (lambda a, b: a + b, nj.jit(lambda a, b: a + b)):
        for a, b, spec in ((x, y, P()), (x, xy, P(("x", "y"))), (x, yx, P()), (y, xy, P()),
                           (x, z, P(None, "x")), (y, z, P("y", "x")), (xy, z, P(None, "x")),
                           (yx, z, P(("y", "x")))):  # fmt: skip
            assert add(a, b).sharding.spec == spec == add(b, a).sharding.spec
    columns, turned = put(m, None, "x"), put(m.T, None, "x")
    assert (columns @ turned).sharding.spec == P(None, "x")
    assert (x @ put(m.T, "x")).sharding.spec == P("x")


def test_constraints_over_another_mesh_of_the_same_devices():
    """A program that read arrays over another mesh ended in a KeyError."""
    other = nj.device_put(m, NamedSharding(nj.make_mesh((8,), ("q",), (AUTO,)), P("q")))
    rows = over("x")
    constrained = nj.jit(lambda x, q: lax.with_sharding_constraint(x + q, rows))
    assert constrained(m, other).sharding == rows
    assert nj.jit(lambda q: nj.shard_map(
        lambda x: x + q.sum(), mesh=mesh(), in_specs=P("x"), out_specs=P("x"))(m)
    )(other).sharding == rows  # fmt: skip


def test_arguments_on_one_device_are_moved_to_another():
    there = SingleDeviceSharding(nj.devices()[2])
    f = nj.jit(lambda x: x * 2, in_shardings=there)
    assert f(nj.device_put(x8, nj.devices()[1])).sharding == there == f(x8).sharding
    with pytest.raises(ValueError, match="does not match the sharding"):
        f(put(x8, "x"))


def test_arguments_that_are_not_read_lie_anywhere():
    first, last = (nj.device_put(x8, d) for d in nj.devices()[5:7])
    rows = put(x8, "x")
    f = nj.jit(lambda a, b: a * 2)
    assert f(first, last).sharding == first.sharding == f(first, rows).sharding
    assert f(rows, first).sharding == rows.sharding
    here = SingleDeviceSharding(nj.devices()[0])
    assert f(x8, rows).sharding == here == nj.jit(lambda a: jnp.zeros(8))(rows).sharding
    with nj.set_mesh(mesh()):
        assert f(rows, first).sharding == rows.sharding
    with pytest.raises(ValueError, match="incompatible devices"):
        nj.jit(jnp.add)(first, last)


def test_jitted_functions_hold_values_that_lie_nowhere():
    """Where arrays lie that a jitted function closes over says nothing of its results."""
    here, there = SingleDeviceSharding(nj.devices()[0]), nj.device_put(x8, nj.devices()[1])
    rows, spread = put(x8, "x"), put(x8)
    for held in (rows, there):
        assert nj.jit(lambda h=held: h * 2)().sharding == here
        add = nj.jit(lambda a, h=held: a + h)
        for given, lies in ((x8, here), (put(x8, "y"), over("y")), (spread, over())):
            np.testing.assert_array_equal(add(given), 2 * x8)
            assert add(given).sharding == lies
    assert nj.jit(lambda a: a + rows)(there).sharding == there.sharding
    assert nj.vmap(lambda a: a * rows)(m.reshape(4, 8)).sharding.spec == P(None, "x")


def test_costs_are_those_of_a_device():
    x = put(m, "x")
    compiled = nj.jit(lambda x: x @ x.T).lower(x).compile()
    assert compiled.cost_analysis()["flops"] == 128
    told = compiled.memory_analysis()
    assert told.argument_size_in_bytes == 32 and told.output_size_in_bytes == 64
    assert "flops" not in nj.jit(lambda x: x.T).lower(x).compile().cost_analysis()
    lowered = nj.jit(lambda x: x * 2).lower(m)
    assert lowered.compile().memory_analysis().argument_size_in_bytes == 128


def test_where_arguments_are_expected():
    x, rows = put(x8, "x"), over("x")
    expected = lambda f, *args: nj.jit(f).lower(*args).compile().input_shardings[0]  # noqa: E731
    assert expected(lambda x, y: (x + y, y), x, x8) == (rows, rows)
    assert expected(lambda x, y: x.sum() + y, x, x8) == (rows, over())
    assert expected(lambda x, b: x + b, put(m, "x", "y"), m[0]) == (over("x", "y"), over("y"))
    assert expected(lambda x, y: x, x, put(x8, "y")) == (rows, None)
    here = SingleDeviceSharding(nj.devices()[0])
    assert expected(lambda x, y: x, x8, x8) == (here, None)
    kept = nj.jit(lambda x, y: x, keep_unused=True).lower(x8, x8).compile()
    assert kept.input_shardings == ((here, here), {})
    formats = nj.jit(lambda x, y: x).lower(x8, x8).compile().input_formats[0]
    assert formats[0].sharding == here and formats[1].sharding is formats[1].layout is None


def test_the_first_of_replicas_is_the_value():
    parts = [nj.device_put(np.full(2, i, np.float32), d) for i, d in enumerate(nj.devices())]
    made = nj.make_array_from_single_device_arrays((8,), over("x"), parts)
    np.testing.assert_array_equal(made, [0, 0, 2, 2, 4, 4, 6, 6])


# ------------------------------------------------------------------ jaxprs
def test_jaxprs_show_tiles_and_meshes():
    def shown(f):
        return str(nj.make_jaxpr(f, axis_env=[("i", 4)])(x8))

    gathered = shown(lambda x: lax.all_gather(x, "i", tiled=True))
    assert gathered.count("=") == 6 and "b:f32[32] = all_gather[\n" in gathered
    assert "tiled=True\n" in gathered and "reshape" not in gathered
    scattered = shown(lambda x: lax.psum_scatter(x, "i", tiled=True))
    assert "b:f32[2] = reduce_scatter[" in scattered and "axis_size=4\n" in scattered
    assert "tiled=True\n" in scattered and "reshape" not in scattered
    exchanged = shown(lambda x: lax.all_to_all(x, "i", 0, 0, tiled=True))
    assert "b:f32[8] = all_to_all[" in exchanged and "reshape" not in exchanged
    assert "tiled=False\n" in shown(lambda x: lax.all_gather(x, "i"))
    cast = mapped(lambda x: lax.psum_scatter(x, "x", tiled=True), in_specs=P())
    within = str(nj.make_jaxpr(cast)(x8))
    assert "d:f32[8]{V:x} = pvary[axes=('x',)] c" in within and "reshape" not in within
    for kind in (AUTO, EXPLICIT):
        with nj.set_mesh(mesh(kind)):
            f = nj.shard_map(lambda x: x * 2, in_specs=P("x"), out_specs=P("x"))
            whole = "mesh=AbstractMesh('x': 4, 'y': 2, axis_types="
            assert whole in str(nj.make_jaxpr(f)(put(x8, "x", kind=kind)))
            back = str(nj.make_jaxpr(nj.grad(lambda a: (a * a).sum()))(put(m, "x", kind=kind)))
            assert "c:f32[] = reshard 1.0:f32[]\n" in back
    assert "reshard" not in str(nj.make_jaxpr(nj.grad(lambda a: (a * a).sum()))(m))


def test_types_of_meshes_some_of_whose_axes_are_explicit():
    mixed = nj.make_mesh((4, 2), ("x", "y"), (AUTO, EXPLICIT))
    assert nj.reshard(m, NamedSharding(mixed, P("y"))).sharding.spec == P("y", None)
    with nj.set_mesh(mixed):
        assert jnp.zeros((8, 4), out_sharding=P("y")).sharding.spec == P("y", None)
        with pytest.raises(ValueError, match="of type Auto or Manual"):
            nj.reshard(m, P("x"))
    with nj.set_mesh(mesh()):
        double = explicit_axes(lambda a: a * 2, in_sharding=P("x"))
        for given in (m, put(m, "x")):
            assert double(given).sharding == nj.jit(double)(given).sharding == over("x")


def test_sharding_rules_that_contradict_themselves() -> None:
    parts = custom_partitioning
    for text, sizes, told in (
        ("a ... b -> a", {}, "Ellipsis can only be used at the beginning"),
        ("a b -> a b", {"c": 2}, "Factor c is not used in the rule, but size is provided"),
        ("a -> (a c)", {}, "Factor c is only used in compound factors; must specify its size"),
        ("(a c) -> a c", {"a": 2}, "Factor a represents a whole dimension; do not specify its"),
        ("a (b ...) -> a", {"b": 3}, "Ellipsis can't be used in a compound factor"),
    ):
        with pytest.raises(ValueError, match=told):
            parts.custom_partitioning(lambda x: x).def_partition(
                lambda *_: None, sharding_rule=text, **sizes
            )
    with pytest.raises(ValueError, match="Factor q in reduction_factors is not used in the rule"):
        parts.SdyShardingRule((("a",),), (("a",),), reduction_factors=("q",))
    with pytest.raises(ValueError, match="Each element of CompoundFactor must be a str, but got"):
        parts.CompoundFactor("a", 3)
    rule = parts.SdyShardingRule(
        (("a", parts.CompoundFactor("b", "c")),), (("a",),), reduction_factors=("b",), b=2, c=4
    )
    assert rule.factor_sizes == {"b": 2, "c": 4}
