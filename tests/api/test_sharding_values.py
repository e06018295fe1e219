"""Meshes, specs and shardings as values, and what is refused when one is made or used."""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import lax
from numjet.sharding import AxisType, Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

P = PartitionSpec


pytestmark = pytest.mark.usefixtures("eight_devices")


def mesh(kind: AxisType = AxisType.Auto) -> Mesh:
    return nj.make_mesh((8,), ("x",), (kind,))


def rows(kind: AxisType = AxisType.Auto) -> NamedSharding:
    return NamedSharding(mesh(kind), P("x"))


def test_a_spec_is_a_sequence_and_no_tuple() -> None:
    spec = P("x", None, ["y", "z"])
    assert not isinstance(spec, tuple) and spec != ("x", None, ("y", "z"))
    assert [*spec] == ["x", None, ("y", "z")] == [spec[0], spec[1], spec[-1]]
    assert len(spec) == 3 and "x" in spec and spec.index(("y", "z")) == 2 and spec.count("q") == 0
    assert spec[1:] == (None, ("y", "z")) and spec.partitions == tuple(spec)
    assert ("a",) + P("x") == P("a", "x") == P("a") + ("x",) and P("a") + P("x") == P("a", "x")
    assert P("x") != P("x", None) and hash(P("x")) == hash(P(("x",)))
    with pytest.raises(TypeError):
        P("x") < P("y")  # noqa: B015
    with pytest.raises(TypeError):
        P("x") * 2
    for other in (copy.copy(spec), copy.deepcopy(spec), pickle.loads(pickle.dumps(spec))):
        assert other == spec
    assert nj.tree.leaves({"a": P("x"), "b": P()}) == [P("x"), P()]


def test_a_spec_of_sums() -> None:
    assert repr(P(reduced={"y"})) == "P(reduced={'y'})" and repr(P("x")) == "P('x',)"
    with pytest.raises(ValueError, match="cannot overlap"):
        P("x", reduced={"y"}, unreduced={"y"})
    with pytest.raises(ValueError, match="cannot contain None"):
        P("x", unreduced={None})
    with pytest.raises(ValueError, match="only refer to mesh axes that is of type `Explicit`"):
        NamedSharding(mesh(), P(unreduced={"x"}))
    with pytest.raises(ValueError, match="not found in mesh.axis_names"):
        NamedSharding(mesh(), P(unreduced={"q"}))


def test_meshes_as_values() -> None:
    with pytest.raises(ValueError, match="cannot be None"):
        Mesh(np.array(nj.devices()[:1]), (None,))
    with pytest.raises(ValueError, match="read-only"):
        mesh().devices[0] = nj.devices()[1]
    with nj.set_mesh(mesh()) as entered:
        assert entered is None and nj.sharding.get_mesh() == mesh()
        with pytest.raises(ValueError, match="only be used outside"):
            nj.jit(lambda x: (nj.sharding.get_mesh(), x)[1])(1.0)
    assert repr(nj.sharding.get_mesh()) == "Mesh(axis_sizes=(), axis_names=())"
    abstract = NamedSharding(mesh().abstract_mesh, P("x"))
    assert abstract.num_devices == 8
    with pytest.raises(ValueError, match="not implemented for AbstractMesh"):
        _ = abstract.is_fully_addressable


def test_with_mesh_is_for_constraints_and_pjit() -> None:
    x = jnp.arange(8.0)
    with pytest.deprecated_call(match="set_mesh"), mesh():
        assert nj.sharding.get_mesh().empty and nj.sharding.get_abstract_mesh().empty
        assert lax.with_sharding_constraint(x, P("x")).sharding == rows()
        with pytest.deprecated_call(match="pjit has been deprecated"):
            from numjet.experimental.pjit import pjit
        with warnings.catch_warnings(action="error"):
            f = pjit(lambda x: x + 1, in_shardings=P("x"))
        assert f(x).sharding == rows()
        with pytest.raises(RuntimeError, match="non-empty mesh"):
            nj.jit(lambda x: x + 1, in_shardings=P("x"))(x)
        with pytest.raises(ValueError, match="context mesh cannot be empty"):
            nj.shard_map(lambda x: x, in_specs=P("x"), out_specs=P("x"))(x)


def test_layouts_that_are_none_are_refused_when_jit_is_called() -> None:
    for what in ("in_shardings", "out_shardings"):
        for bad in ("x", 3, nj.devices()[0]):
            with pytest.raises(TypeError, match=f"{what} leaf specifications"):
                nj.jit(lambda x: x, **{what: bad})
        with pytest.raises(ValueError, match="should not be specified"):
            nj.jit(lambda x: x, backend="cpu", **{what: rows()})
    with pytest.warns(DeprecationWarning, match="backend and device argument"):
        placed = nj.jit(lambda x: x + 1, device=nj.devices()[1])(jnp.arange(2))
    assert placed.sharding == SingleDeviceSharding(nj.devices()[1])
    with pytest.raises(TypeError, match="must be a PartitionSpec"):
        NamedSharding(mesh(), "x")


def test_what_shard_map_refuses_and_takes() -> None:
    x, spec = jnp.arange(8.0), P("x")
    for options, message in (
        ({"axis_names": "x"}, "should be of type `frozenset` or `set`"),
        ({"mesh": "x"}, "requires a `Mesh`"),
        ({"in_specs": "x"}, "in_specs argument must be a pytree"),
        ({"out_specs": ("x",)}, "out_specs argument must be a pytree"),
    ):
        with pytest.raises(TypeError, match=message):
            nj.shard_map(
                lambda x: x, **{"mesh": mesh(), "in_specs": spec, "out_specs": spec, **options}
            )(x)
    f = nj.shard_map(lambda x: 2 * x, mesh=mesh().abstract_mesh, in_specs=spec, out_specs=spec)
    assert f(nj.device_put(x, rows())).sharding == rows()
    with pytest.raises(ValueError, match="with a `NamedSharding` as input"):
        f(x)
    for collective, kind in (
        (lambda x: lax.all_gather(x, "x", axis=5), ValueError),
        (lambda x: lax.all_to_all(jnp.ones(8), "x", 0, 4, tiled=True), IndexError),
        (lambda x: lax.psum_scatter(x, "x", scatter_dimension=2), IndexError),
    ):
        with pytest.raises(kind, match="out of (range|bounds)"):
            nj.shard_map(collective, mesh=mesh(), in_specs=spec, out_specs=spec)(x)


def test_arrays_of_one_array_a_device() -> None:
    parts = [nj.device_put(jnp.array([i]), d) for i, d in enumerate(nj.devices())]
    make = nj.make_array_from_single_device_arrays
    assert make((8,), rows(), parts[::-1]).tolist() == [*range(8)]
    with pytest.raises(ValueError, match="distinct devices"):
        make((8,), rows(), [jnp.array([i]) for i in range(8)])
    with pytest.raises(TypeError, match="Unsupported type for elements"):
        make((8,), rows(), [np.array([i]) for i in range(8)])
    asked: list = []
    whole = NamedSharding(mesh(), P())
    nj.make_array_from_callback((2,), whole, lambda i: (asked.append(i), np.zeros(2))[1])
    assert len(asked) == 1
    with pytest.raises(ValueError, match="may_alias and donate"):
        nj.device_put(parts[0], whole, donate=True, may_alias=True)


def test_reshard_takes_layouts_over_explicit_axes() -> None:
    with pytest.raises(TypeError, match="only supports instances of `NamedSharding`"):
        nj.reshard(jnp.arange(8), SingleDeviceSharding(nj.devices()[0]))
    with nj.set_mesh(mesh(AxisType.Explicit)):
        with pytest.raises(ValueError, match=r"cannot contain `P.UNCONSTRAINED`"):
            nj.reshard(jnp.arange(8), P(P.UNCONSTRAINED))


def test_constraints_of_mapped_values_lay_out_each_time() -> None:
    x = jnp.arange(64.0).reshape(8, 8)
    for f, spec in ((nj.vmap(lambda r: lax.with_sharding_constraint(r, rows())), P(None, "x")),
                    (nj.vmap(lambda r: nj.device_put(r, rows())), P("x"))):  # fmt: skip
        for _ in range(3):
            assert f(x).sharding.spec == spec


def test_layouts_are_told_once() -> None:
    """An operation on arrays laid out over devices looks up how they lie: nothing is walked over
    again in each call."""
    x = nj.device_put(np.ones((8, 4), np.float32), rows())
    layout = x.sharding
    assert layout.layout(2) is layout.layout(2) == (("x",), ())
    assert layout.mesh.explicit_axes is layout.mesh.explicit_axes


def test_what_is_no_mesh_and_no_device_is_refused() -> None:
    for made in (lambda: NamedSharding(None, P("x")), lambda: NamedSharding(8, P("x"))):
        with pytest.raises(TypeError, match="mesh must be a Mesh"):
            made()
    with pytest.raises(TypeError, match="device must be a Device, got None"):
        SingleDeviceSharding(None)
    with pytest.raises(ValueError, match="must be there once"):
        nj.pmap(lambda x: x, devices=nj.devices()[:1] * 2)
    with pytest.raises(ValueError, match="must have matching dtypes, got int32, and float32"):
        nj.make_array_from_callback(
            (8,), rows(), lambda i: np.ones(1, np.float32 if i[0].start else np.int32))


def test_no_mesh_may_be_set() -> None:
    with nj.set_mesh(mesh(AxisType.Explicit)):
        with nj.set_mesh(None):
            assert nj.sharding.get_mesh().empty and nj.typeof(jnp.zeros(8)).sharding.mesh.empty
        assert nj.sharding.get_mesh().axis_names == ("x",)
