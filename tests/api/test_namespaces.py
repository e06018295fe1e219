"""Namespaces that programs import from: custom batching, shardings, stages and others."""

from __future__ import annotations

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet.base.errors import DuplicateSpecError
from numjet.custom_batching import custom_vmap, sequential_vmap
from numjet.sharding import Mesh, NamedSharding, PartitionSpec as P, SingleDeviceSharding


# ------------------------------------------------------------------ custom batching
def counted():
    seen = []

    @custom_vmap
    def f(x, y):
        return {"sin": jnp.sin(x) * y, "y": y}

    @f.def_vmap
    def rule(axis_size, in_batched, x, y):
        seen.append((axis_size, tuple(in_batched)))
        return {"sin": jnp.sin(x) * y, "y": y}, {"sin": True, "y": in_batched[1]}

    return f, seen


def test_custom_vmap_runs_its_rule():
    f, seen = counted()
    x = jnp.arange(3.0)
    assert f(1.0, 2.0)["y"] == 2.0 and not seen
    for fun in (nj.vmap(f, (0, None)), nj.jit(nj.vmap(f, (0, None)))):
        out = fun(x, 2.0)
        np.testing.assert_allclose(out["sin"], 2 * np.sin(x), rtol=1e-6)
        np.testing.assert_array_equal(out["y"], [2, 2, 2])
    assert seen == [(3, (True, False))] * 2


def test_custom_vmap_differentiates():
    f, seen = counted()
    x = jnp.arange(3.0)
    grad = nj.grad(lambda x: nj.vmap(f, (0, None))(x, 2.0)["sin"].sum())
    np.testing.assert_allclose(grad(x), 2 * np.cos(x), rtol=1e-6)
    inner = nj.vmap(lambda x: nj.jvp(lambda x: f(x, 2.0)["sin"], (x,), (1.0,))[1])
    np.testing.assert_allclose(inner(x), 2 * np.cos(x), rtol=1e-6)
    assert len(seen) == 2
    np.testing.assert_allclose(
        nj.vmap(nj.grad(lambda x: f(x, 2.0)["sin"]))(x), 2 * np.cos(x), rtol=1e-6
    )


def test_custom_vmap_refuses_wrong_rules():
    f = custom_vmap(lambda x: x)
    with pytest.raises(AttributeError, match="def_vmap"):
        nj.vmap(f)(jnp.ones(2))
    f.def_vmap(lambda n, b, x: x)
    with pytest.raises(ValueError, match="pair"):
        nj.vmap(f)(jnp.ones(3))
    f.def_vmap(lambda n, b, x: (x, True, None))
    with pytest.raises(ValueError, match="pair"):
        nj.vmap(f)(jnp.ones(2))
    f.def_vmap(lambda n, b, x: (x[0], True))
    with pytest.raises(ValueError, match=r"expected an output of shape \(2,\)"):
        nj.vmap(f)(jnp.ones(2))


def test_sequential_vmap():
    f = sequential_vmap(lambda x, y: x @ y)
    np.testing.assert_array_equal(nj.vmap(f, (0, None))(jnp.ones((2, 3)), jnp.ones(3)), [3, 3])
    both = nj.jit(nj.vmap(nj.vmap(f)))
    x = jnp.ones((2, 2, 3))
    np.testing.assert_array_equal(both(x, x), 3 * np.ones((2, 2)))


# ------------------------------------------------------------------ custom derivatives, stages
def test_linear_call_transposes_with_its_rule():
    from numjet.custom_derivatives import linear_call

    f = lambda x: linear_call(lambda r, v: r * v, lambda r, ct: 10.0 * r * ct, 2.0, x)  # noqa: E731
    assert f(3.0) == 6.0 and nj.grad(f)(3.0) == 20.0


def test_stages_are_the_types_of_the_stages():
    traced = nj.jit(jnp.sin).trace(1.0)
    assert isinstance(traced, nj.stages.Traced)
    assert isinstance(traced.lower(), nj.stages.Lowered)
    assert isinstance(traced.lower().compile(), nj.stages.Compiled)


def test_names_change_nothing():
    @nj.named_scope("inner")
    def f(x):
        with nj.named_scope("block"):
            return x * 2

    assert nj.jit(f)(2.0) == 4.0
    assert nj.named_call(f, name="g").__name__ == "g"
    with nj.profiler.TraceAnnotation("step"):
        assert f(1) == 2
    with pytest.raises(TypeError, match="string"):
        nj.named_scope(3)


# ------------------------------------------------------------------ shardings
@pytest.mark.usefixtures("eight_devices")
def test_named_sharding_labels_parts():
    mesh = nj.make_mesh((4, 2), ("x", "y"))
    assert dict(mesh.shape) == {"x": 4, "y": 2} and mesh.size == 8
    sharding = NamedSharding(mesh, P("x", None))
    a = nj.device_put(np.arange(16.0).reshape(8, 2), sharding)
    assert a.sharding == sharding and len(a.devices()) == 8
    assert sharding.shard_shape((8, 2)) == (2, 2)
    np.testing.assert_array_equal(a.addressable_shards[2].data, np.asarray(a)[2:4])
    np.testing.assert_array_equal(nj.jit(lambda x: x + 1)(a), np.asarray(a) + 1)
    both = NamedSharding(mesh, P(("y", "x")))
    starts = [index[0].start for _, index in both.indices((16,))]
    assert starts == [0, 8, 2, 10, 4, 12, 6, 14]
    assert sharding.is_equivalent_to(NamedSharding(mesh, P("x")), 2)
    assert not sharding.is_equivalent_to(NamedSharding(mesh, P("y")), 2)
    assert NamedSharding(mesh, P()).is_fully_replicated


@pytest.mark.usefixtures("eight_devices")
def test_shardings_that_do_not_fit_are_refused():
    mesh = Mesh(np.array(nj.devices()), ("x",))
    with pytest.raises(ValueError, match="Resource axis: z of"):
        NamedSharding(mesh, P("z"))
    with pytest.raises(DuplicateSpecError, match="duplicate entries"):
        NamedSharding(mesh, P("x", "x"))
    with pytest.raises(ValueError, match="multiple of 8"):
        nj.device_put(np.ones(9), NamedSharding(mesh, P("x")))
    with pytest.raises(ValueError, match="needs 16 devices"):
        nj.make_mesh((16,), ("x",))
    with pytest.raises(ValueError, match="ndim of its first argument"):
        Mesh(np.array(nj.devices()), ("x", "y"))


@pytest.mark.usefixtures("eight_devices")
def test_constraints_and_the_current_mesh():
    mesh = Mesh(np.array(nj.devices()), ("x",))
    constrain = nj.lax.with_sharding_constraint
    with pytest.raises(RuntimeError, match="non-empty mesh"):
        constrain(jnp.ones(8), P("x"))
    with pytest.deprecated_call(match="set_mesh"), mesh:
        assert nj.sharding.get_mesh().empty
        assert constrain(jnp.ones(8), P("x")).sharding.spec == P("x")
        assert nj.jit(lambda x: constrain(x * 2, P("x")).sum())(jnp.ones(8)) == 16
    with nj.set_mesh(mesh):
        assert nj.sharding.get_abstract_mesh().shape == mesh.shape
    assert nj.sharding.get_mesh().empty
    assert isinstance(jnp.ones(3).sharding, SingleDeviceSharding)


# ------------------------------------------------------------------ the rest
def test_what_is_not_there_says_so():
    assert not nj.distributed.is_initialized()
    with pytest.raises(NotImplementedError, match="no server for profiles"):
        nj.profiler.register_subprocess(1, 9999)


def test_small_namespaces():
    heard = []
    nj.monitoring.register_event_listener(lambda event, **kw: heard.append((event, kw)))
    nj.monitoring.record_event("started", step=1)
    nj.monitoring.clear_event_listeners()
    assert heard == [("started", {"step": 1})]
    foreign = np.arange(3.0, dtype=np.float32)
    np.testing.assert_array_equal(nj.dlpack.from_dlpack(foreign), foreign)
    assert nj.version.__version__ == nj.__version__
    from numjet.experimental import multihost_utils

    assert multihost_utils.process_allgather(jnp.ones(2)).shape == (1, 2)
    assert set(nj._LAZY) <= set(dir(nj))
    for name in nj._LAZY:
        assert getattr(nj, name) is not None


@pytest.mark.parametrize(
    ("record", "listener", "values"),
    [
        ("record_event", "event", ()),
        ("record_event_duration_secs", "event_duration", (0.5,)),
        ("record_event_time_span", "event_time_span", (1.0, 2.5)),
        ("record_scalar", "scalar", (3,)),
    ],
)
def test_listeners_hear_of_their_kind_of_event(record: str, listener: str, values: tuple) -> None:
    monitoring, heard = nj.monitoring, []

    def listen(*args, **kwargs):
        heard.append((args, kwargs))

    title = listener.replace("duration", "duration_secs")
    getattr(monitoring, f"register_{title}_listener")(listen)
    for kind, given in (
        ("record_event", ()),
        ("record_event_duration_secs", (0.5,)),
        ("record_event_time_span", (1.0, 2.5)),
        ("record_scalar", (3,)),
    ):
        getattr(monitoring, kind)("saved", *given, path="x")
    assert heard == [(("saved", *values), {"path": "x"})]
    forget = getattr(monitoring, f"unregister_{listener}_listener")
    forget(listen)
    getattr(monitoring, record)("saved", *values)
    assert len(heard) == 1
    with pytest.raises(ValueError, match="not registered"):
        forget(listen)


# ------------------------------------------------------------------ shard_map
@pytest.mark.usefixtures("eight_devices")
def test_shard_map_cuts_and_joins():
    mesh = nj.make_mesh((4, 2), ("x", "y"), nj.sharding.AxisType.Auto)
    a = np.arange(64.0, dtype=np.float32).reshape(8, 8)
    b = np.arange(48.0, dtype=np.float32).reshape(8, 6)

    def product(a, b):
        assert a.shape == (2, 4) and b.shape == (4, 6)
        return nj.lax.psum(a @ b, "y")

    f = nj.shard_map(product, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x"))
    for fun in (f, nj.jit(f)):
        np.testing.assert_allclose(fun(a, b), a @ b, rtol=1e-6)
    grad = nj.grad(lambda a: f(a, b).sum())(jnp.asarray(a))
    np.testing.assert_allclose(grad, np.broadcast_to(b.sum(1), (8, 8)), rtol=1e-6)

    same = nj.shard_map(lambda x: x, mesh=mesh, in_specs=P(("y", "x")), out_specs=P(("y", "x")))
    np.testing.assert_array_equal(same(a), a)
    tree = nj.shard_map(
        lambda d: {"sum": nj.lax.psum(d["v"].sum(), ("x", "y")), "i": nj.lax.axis_index("x")[None]},
        mesh=mesh,
        in_specs=({"v": P("x", "y")},),
        out_specs={"sum": P(), "i": P("x")},
    )({"v": a})
    assert tree["sum"] == a.sum()
    np.testing.assert_array_equal(tree["i"], [0, 1, 2, 3])


@pytest.mark.usefixtures("eight_devices")
def test_shard_map_refuses_what_does_not_fit():
    mesh = nj.make_mesh((8,), ("x",), nj.sharding.AxisType.Auto)
    f = nj.shard_map(lambda x: x, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    with pytest.raises(ValueError, match="multiple of 8"):
        f(jnp.ones(9))
    with pytest.raises(ValueError, match="Pass mesh"):
        nj.shard_map(lambda x: x, in_specs=P("x"), out_specs=P("x"))(jnp.ones(8))
    with pytest.raises(ValueError, match="out_specs"):
        nj.shard_map(lambda x: x.sum(), mesh=mesh, in_specs=P("x"), out_specs=P("x"))(jnp.ones(8))
