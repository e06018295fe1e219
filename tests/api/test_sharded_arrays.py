"""Results keep the layouts that JAX's keep: `.sharding` after eager operations, jit and maps."""
from __future__ import annotations

import numpy as np
import pytest
from oracle import run_in_oracle

import numjet as nj
import numjet.numpy as jnp
from numjet import lax
from numjet.base import config
from numjet.base.errors import IndivisibleError
from numjet.core.hooks import Sharded
from numjet.core.sharded import ShardedArray
from numjet.sharding import AxisType, NamedSharding, SingleDeviceSharding

P = nj.P

# Each line is one expression of a laid out array `x`, read by both libraries.
EXPRESSIONS = """
x + 1 | x.T | x.sum(0) | x.sum() | x.max(1) | jnp.sin(x) * 2 | x @ w | x @ x | x.T @ x
x.reshape(64) | x.reshape(2, 4, 8) | x.reshape(4, 2, 8) | x.reshape(8, 2, 4)
x[:4] | x[0] | x[:, None] | x[::-1]
jnp.sort(x, 1) | jnp.cumsum(x, 1) | jnp.argmax(x, 1) | jax.nn.softmax(x) | jnp.where(x > 0, x, 0)
x.mean(1, keepdims=True) | jnp.broadcast_to(x, (3, 8, 8)) | jnp.take(x, jnp.array([0, 1]), axis=0)
x.astype(int) | x.at[0].set(1) | jnp.tril(x) | jnp.einsum('ij,kj->ik', x, x) | jnp.stack([x, x])
jnp.trace(x) | jnp.linalg.norm(x) | jax.nn.logsumexp(x, axis=0) | x.ravel()
(x > 0).any() | x * 1j | jnp.swapaxes(x, 0, 1)
x @ jnp.ones(8) | jnp.ones(8) @ x | jnp.copy(x) | jax.vmap(lambda r: r * 2)(x)
jax.lax.scan(lambda c, t: (c + t, c * t), jnp.zeros(8), x)[1]
jax.lax.scan(lambda c, t: (c + t, c * t), jnp.zeros(8), x)[0]
jax.lax.fori_loop(0, 3, lambda i, c: c * 2, x)
jax.lax.cond(True, lambda v: v * 2, lambda v: v, x)
jax.grad(lambda v: (v**2).sum())(x) | jax.grad(lambda v: (v @ w).sum())(x) | jax.jit(lambda v: v)(x)
jax.jit(lambda v: v.sum(0))(x) | jax.jit(lambda v: jnp.tanh(v) @ w)(x)
jax.jit(lambda v: v * 2, out_shardings=N('y'))(x) | jax.jit(lambda v: v * 2, in_shardings=N('y'))(v)
jax.jit(lambda v: jax.lax.with_sharding_constraint(v * 2, N('y')))(x)
jax.device_put(x, N(None, 'x'))
jax.lax.with_sharding_constraint(x, N(None, 'y')) | jax.jit(lambda a: a @ a, out_shardings=N())(x)
S(lambda a: a.sum(keepdims=True), in_specs=P('x', 'y'), out_specs=P('x', 'y'))(v)
S(lambda a: jax.lax.psum(a, ('x', 'y')), in_specs=P('x', 'y'), out_specs=P())(v)
jax.pmap(lambda a: a * 2)(v) | jax.pmap(lambda a: a, in_axes=1, out_axes=1)(v) + 1
"""
CASES = [case.strip() for line in EXPRESSIONS.split("\n") for case in line.split(" | ") if case]
SETUP = """
m = jax.make_mesh((4, 2), ('x', 'y'), axis_types=(AxisType.Auto,) * 2)
S = lambda f, **specs: jax.shard_map(f, mesh=m, **specs)
N = lambda *spec: jax.NamedSharding(m, P(*spec))
v = np.arange(64, dtype=np.float32).reshape(8, 8) / 64
x = jax.device_put(v, N('x', 'y'))
w = jax.device_put(np.ones((8, 4), np.float32), N('y'))
"""
DESCRIBE = """
def describe(a):
    spec = getattr(a.sharding, 'spec', None)
    spec = [None if e is None else e if isinstance(e, str) else list(e) for e in spec or ()]
    while spec and spec[-1] is None:
        spec.pop()
    parts = [(s.device.id, [(i.start, i.stop) for i in s.index], s.replica_id, s.data.shape)
             for s in sorted(a.addressable_shards, key=lambda s: s.device.id)]
    return repr((spec, a.committed, a.is_fully_replicated, a.is_fully_addressable, parts))
"""


pytestmark = pytest.mark.usefixtures("eight_devices")


@pytest.mark.oracle
def test_results_are_laid_out_as_jaxs() -> None:
    script = (
        "from jax.sharding import AxisType, PartitionSpec as P\n" + SETUP + DESCRIBE
        + f"for i, case in enumerate({CASES!r}):\n"
        "    a = eval(case)\n"
        "    out[f'd{i}'] = np.array(describe(a)); out[f'v{i}'] = np.asarray(a)\n"
    )  # fmt: skip
    want = run_in_oracle(script, devices=8)
    scope = {"jax": nj, "jnp": jnp, "np": np, "P": P, "AxisType": AxisType}
    exec(SETUP + DESCRIBE, scope)
    wrong = []
    for i, case in enumerate(CASES):
        a = eval(case, scope)
        if scope["describe"](a) != str(want[f"d{i}"]):  # type: ignore[operator]
            wrong.append((case, scope["describe"](a), str(want[f"d{i}"])))  # type: ignore[operator]
        np.testing.assert_allclose(np.asarray(a), want[f"v{i}"], rtol=1e-5, atol=1e-6)
    assert not wrong, "\n".join(f"{c}\n  {a}\n  {b}" for c, a, b in wrong)


def mesh() -> nj.sharding.Mesh:
    return nj.make_mesh((4, 2), ("x", "y"), (AxisType.Auto,) * 2)


X = np.arange(64, dtype=np.float32).reshape(8, 8)


def test_gradients_of_every_call_are_laid_out() -> None:
    x, w = jnp.asarray(X), nj.device_put(X, NamedSharding(mesh(), P("x")))
    f = nj.grad(lambda x: (jnp.sin(x).reshape(4, 16).reshape(8, 8) * w).sum())
    assert {f(x).sharding for _ in range(14)} == {f(x).sharding} != {x.sharding}


def test_what_does_not_fit_is_refused() -> None:
    m = mesh()
    rows, columns = NamedSharding(m, P("x")), NamedSharding(m, P("y"))
    x = nj.device_put(X, rows)
    with pytest.raises(IndivisibleError, match=r"path a is incompatible.*multiple of 4"):
        nj.jit(lambda a: a, in_shardings=rows)(np.ones((6, 8)))
    with pytest.raises(ValueError, match="rank at least 2"):
        nj.jit(lambda a: a, in_shardings=NamedSharding(m, P("x", "y")))(np.ones(8))
    with pytest.raises(ValueError, match="does not match the sharding on the respective arg"):
        nj.jit(lambda a: a, in_shardings=columns)(x)
    with pytest.raises(ValueError, match="tree prefix of the positional arguments"):
        nj.jit(lambda a, b: a, in_shardings=(rows,))(X, X)
    with pytest.raises(ValueError, match="must be a tree prefix"):
        nj.jit(lambda a: a["k"], in_shardings=({"q": rows},))({"k": X})
    with pytest.raises(ValueError, match="must be a tree prefix"):
        nj.jit(lambda a: (a, a), out_shardings=(rows,))(X)
    with pytest.raises(ValueError, match="One of pjit outputs with pytree key path result"):
        nj.jit(lambda a: a.sum(), out_shardings=rows)(X)
    with pytest.raises(ValueError, match="does not support kwargs"):
        nj.jit(lambda a: a, in_shardings=rows)(a=X)
    with pytest.raises(RuntimeError, match="non-empty mesh"):
        nj.jit(lambda a: a, in_shardings=P("x"))(X)
    with pytest.raises(ValueError, match="incompatible devices"):
        x + nj.device_put(X, nj.devices()[3])
    with pytest.raises(ValueError, match="incompatible devices"):
        nj.jit(jnp.add)(nj.device_put(X, nj.devices()[1]), nj.device_put(X, nj.devices()[2]))
    with pytest.raises(ValueError, match="possibly varying over"):
        nj.shard_map(lambda a: a, mesh=m, in_specs=P("x"), out_specs=P())(X)
    with pytest.raises(ValueError, match="subset of the mesh"):
        nj.shard_map(lambda a: a, mesh=m, axis_names={"q"}, in_specs=P(), out_specs=P())(X)
    with pytest.raises(ValueError, match="in_specs refers to 'y'"):
        nj.shard_map(lambda a: a, mesh=m, axis_names={"x"}, in_specs=P("y"), out_specs=P())(X)
    with pytest.raises(TypeError, match="type Explicit"):
        nj.shard_map(lambda a: a, mesh=m, out_specs=P("x"))(X)


def test_single_devices_are_kept() -> None:
    third = nj.devices()[3]
    y = nj.device_put(X, third)
    for out in (y + 1, nj.jit(jnp.sin)(y), nj.grad(lambda a: (a**2).sum())(y), y.T[0]):
        assert out.sharding == SingleDeviceSharding(third) and out.committed
    assert (y + jnp.ones(8)).devices() == {third}
    assert not (jnp.ones(3) + 1).committed


def test_jit_with_layouts_inside_other_transformations() -> None:
    m = mesh()
    rows = NamedSharding(m, P("x"))
    f = nj.jit(lambda a: jnp.sin(a) * 2, in_shardings=rows, out_shardings=NamedSharding(m, P("y")))
    np.testing.assert_allclose(nj.grad(lambda a: f(a).sum())(X), 2 * np.cos(X), rtol=1e-5)
    outer = nj.jit(lambda a: f(a) + 1)
    assert outer(X).sharding.spec == P("y")
    np.testing.assert_allclose(nj.vmap(f)(X.reshape(1, 8, 8))[0], f(X), rtol=1e-6)
    with nj.set_mesh(m):
        turned = nj.jit(lambda a: a, in_shardings=P("x"), out_shardings=P("y"))(X)
        assert turned.sharding.spec == P("y")


def test_donated_arrays_are_gone() -> None:
    x = nj.device_put(X, NamedSharding(mesh(), P("x")))
    out = nj.jit(lambda a: a + 1, donate_argnums=0)(x)
    assert x.is_deleted() and type(out) is ShardedArray
    with pytest.raises(RuntimeError, match="deleted"):
        np.asarray(x)
    np.testing.assert_array_equal(out, X + 1)


def test_arrays_of_the_default_device_may_be_computed_with_elsewhere() -> None:
    two, three = nj.devices()[2], nj.devices()[3]
    there = nj.device_put(jnp.ones(2), three)
    with nj.default_device(two):
        made = [jnp.ones(2), jnp.arange(2), jnp.array([1, 2]), nj.random.key(0),
                nj.random.PRNGKey(0), nj.device_put(np.ones(2)), jnp.arange(2) + 1]  # fmt: skip
        inside = jnp.ones(2) + there
    for x in made:
        assert x.devices() == {two} and not x.committed, x
        assert type(x.sharding) is SingleDeviceSharding
    assert inside.devices() == (made[0] + there).devices() == {three}
    assert nj.jit(lambda a, b: a + b)(made[0], there).committed
    assert not (made[0] * 2).committed and nj.device_put(made[0], two).committed


def test_deleted_arrays_tell_their_types_and_sharding_alone() -> None:
    there = nj.sharding.SingleDeviceSharding(nj.devices()[1])
    for sharding in (None, there, NamedSharding(mesh(), P("x"))):
        x = jnp.asarray(X) if sharding is None else nj.device_put(X, sharding)
        assert x.format.layout.major_to_minor == (0, 1) and x.format.sharding == x.sharding
        before = x.sharding
        x.delete()
        assert x.sharding == before and x.shape == (8, 8) and x.format.layout is None
        for ask in (lambda x: x.devices(), lambda x: x.device, lambda x: x.addressable_shards,
                    lambda x: x.global_shards, lambda x: x.addressable_data(0),
                    lambda x: x.copy_to_host_async()):  # fmt: skip
            with pytest.raises(RuntimeError, match=r"deleted with shape=float32\[8,8\]\."):
                ask(x)
        with pytest.raises(nj.errors.JaxRuntimeError, match="on deleted or donated buffer"):
            x.block_until_ready()


def test_cotangents_of_shard_map_lie_as_its_arguments_are_cut() -> None:
    m = nj.make_mesh((2, 2), ("x", "y"), (AxisType.Auto,) * 2)
    specs = P("x", "y"), P("y"), P()
    f = nj.shard_map(lambda a, b, c: lax.psum(a @ b, "y") * c, mesh=m, in_specs=specs,
                     out_specs=P("x"))  # fmt: skip
    args = jnp.asarray(X), jnp.asarray(X[:, :2]), jnp.float32(2)
    g = nj.grad(lambda *args: f(*args).sum(), (0, 1, 2))
    for found in (g(*args), nj.jit(g)(*args), nj.vjp(f, *args)[1](f(*args))):
        assert [x.sharding for x in found] == [NamedSharding(m, s) for s in specs]
    places = nj.jit(g).lower(*args).compile().output_shardings
    assert places == tuple([NamedSharding(m, s) for s in specs])
    assert nj.jit(f).lower(*args).compile().output_shardings == NamedSharding(m, P("x"))


def test_programs_lowered_for_shapes_say_where_results_are_asked_for():
    over = NamedSharding(nj.make_mesh((8,), ("x",)), P("x"))
    shape = nj.ShapeDtypeStruct((8, 4), "float32")
    one = nj.jit(lambda a: a, out_shardings=over).lower(shape).compile()
    assert one.output_shardings == over


def test_transformed_jitted_functions_lay_results_out_as_the_function_does() -> None:
    m = mesh()
    rows = NamedSharding(m, P("x"))
    mapped = nj.jit(nj.shard_map(lambda a, b: jnp.tanh(a @ b), mesh=m, in_specs=(P("x"), P()),
                                 out_specs=P("x")))  # fmt: skip
    told = nj.jit(lambda a, b: lax.with_sharding_constraint(jnp.tanh(a @ b), rows))
    a, b = jnp.asarray(X), jnp.asarray(X)
    for f in (mapped, told):
        y, pull = nj.vjp(f, a, b)
        assert y.sharding == rows == nj.jvp(f, (a, b), (a, b))[1].sharding
        assert nj.vmap(f, (0, None))(jnp.stack([a, a]), b).sharding.spec == P(None, "x")
        assert all(isinstance(x.sharding, NamedSharding) for x in pull(jnp.ones_like(a)))
    found = nj.grad(lambda a, b: mapped(a, b).sum(), (0, 1))(a, b)
    assert [x.sharding for x in found] == [rows, NamedSharding(m, P())]


def test_nested_and_partial_maps() -> None:
    m = mesh()

    def inner(b: nj.Array) -> nj.Array:
        return b * lax.axis_index("y") + lax.psum(b, "y")

    def outer(a: nj.Array) -> nj.Array:
        whole = nj.shard_map(
            inner, in_specs=P(None, "y"), out_specs=P(None, "y"), axis_names={"y"}
        )(a)
        return whole + lax.axis_index("x")

    f = nj.shard_map(outer, mesh=m, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
    left, right = X[:, :4], X[:, 4:]
    both = np.concatenate([left + right, right + left + right], 1)
    np.testing.assert_allclose(f(X), both + np.repeat(np.arange(4), 2)[:, None])


@pytest.mark.parametrize("name, options", [
    ("psum", {}), ("pmean", {}), ("pmax", {}), ("pmin", {}), ("all_gather", {}),
    ("all_gather", {"axis": 1, "tiled": True}), ("all_to_all", {"split_axis": 0, "concat_axis": 1}),
    ("all_to_all", {"split_axis": 1, "concat_axis": 0, "tiled": True}), ("psum_scatter", {}),
    ("psum_scatter", {"scatter_dimension": 1, "tiled": True}),
])  # fmt: skip
def test_collectives_within_groups(name: str, options: dict) -> None:
    """Groups are what the collective is over an axis of its own."""
    x = np.random.default_rng(0).normal(size=(8, 2, 4)).astype(np.float32)
    groups = [[0, 5], [4, 1], [2, 3], [7, 6]]
    call = getattr(lax, name)
    got = nj.vmap(lambda a: call(a, "i", axis_index_groups=groups, **options), axis_name="i")(x)
    for group in groups:
        want = nj.vmap(lambda a: call(a, "i", **options), axis_name="i")(x[np.array(group)])
        np.testing.assert_allclose(np.asarray(got)[group], want, rtol=1e-6)
    with pytest.raises(ValueError, match="each of the 8 members"):
        nj.vmap(lambda a: call(a, "i", axis_index_groups=[[0, 1]], **options), axis_name="i")(x)


def test_meshes_print_their_axes_and_types() -> None:
    mesh = nj.make_mesh((2, 2), ("x", "y"))
    assert str(mesh) == "Mesh('x': 2, 'y': 2, axis_types=(Explicit, Explicit))"
    assert repr(mesh).startswith("Mesh(axis_sizes=(2, 2), axis_names=('x', 'y'), axis_types=")
    assert "device_kind=" in str(mesh.abstract_mesh) and "x" in repr(mesh.abstract_mesh)


def test_specs_are_put_over_the_current_mesh() -> None:
    x = np.arange(8.0, dtype=np.float32).reshape(4, 2)
    with pytest.raises(ValueError, match="set_mesh"):
        nj.device_put(x, P("x"))
    mesh = nj.make_mesh((2, 2), ("x", "y"))
    with nj.set_mesh(mesh):
        a, b = nj.device_put((x, x), (P("x", "y"), P()))
    assert a.sharding == NamedSharding(mesh, P("x", "y")) and b.sharding.is_fully_replicated
    np.testing.assert_array_equal(a, x)


def test_none_among_the_values_is_no_entry_of_a_prefix() -> None:
    m = mesh()
    rows, whole = NamedSharding(m, P("x")), NamedSharding(m, P())
    tree = {"a": None, "b": X, "c": X}
    prefix = {"a": None, "b": rows, "c": whole}
    for out in (
        nj.device_put(tree, prefix),
        lax.with_sharding_constraint(tree, prefix),
        nj.jit(lambda t: t, in_shardings=(prefix,), out_shardings=prefix)(tree),
        nj.jit(lambda t: t, out_shardings={"a": rows, "b": rows, "c": None})(tree),
    ):
        assert out["a"] is None and out["b"].sharding == rows and out["c"].sharding != rows
    specs = {"a": None, "b": P("x"), "c": P("x")}
    out = nj.shard_map(lambda t: t, mesh=m, in_specs=(specs,), out_specs=specs)(tree)
    assert out["a"] is None and out["b"].sharding == rows


def test_specs_and_abstract_meshes_are_those_of_the_current_mesh() -> None:
    m = mesh()
    abstract = NamedSharding(m.abstract_mesh, P("x"))
    with pytest.raises(ValueError, match="set a mesh"):
        nj.device_put(X, P("x"))
    with pytest.raises(ValueError, match="no devices"):
        nj.device_put(X, abstract)
    with pytest.raises(ValueError, match="requires the input passed should be a `jax.Array`"):
        lax.with_sharding_constraint(X, abstract)
    with nj.set_mesh(m):
        for out in (
            nj.device_put(X, P("x")),
            nj.device_put({"k": X}, {"k": P("x")})["k"],
            lax.with_sharding_constraint(X, abstract),
            nj.jit(lambda a: lax.with_sharding_constraint(a * 2, abstract))(X),
            nj.jit(lambda a: a * 2, out_shardings=abstract)(X),
        ):
            assert out.sharding == NamedSharding(m, P("x"))
            np.testing.assert_array_equal((out + 1).shape, X.shape)


def test_arrays_like_another_lie_as_it_does() -> None:
    m = mesh()
    x = nj.device_put(X, NamedSharding(m, P("x")))
    for out in (jnp.zeros_like(x), jnp.ones_like(x, int), jnp.full_like(x, 2.0)):
        assert out.sharding == x.sharding
    assert not isinstance(jnp.zeros_like(x, shape=(3,)), ShardedArray)


@pytest.mark.parametrize("spec", [P("x"), P(None, "y")])
def test_large_composite_functions_are_one_program(spec: P, monkeypatch) -> None:
    mesh = nj.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    values = np.random.default_rng(0).normal(size=(512, 256)).astype(np.float32)
    x = nj.device_put(values, NamedSharding(mesh, spec))
    for function in (nj.nn.softmax, jnp.var, lambda a: a.std(0), lambda a: jnp.diff(a, axis=1)):
        with config.eager_compile(False):
            wanted = function(x)
        with monkeypatch.context() as none_alone:
            none_alone.setattr(Sharded, "evaluate", None)
            got = function(x)
        assert got.sharding == wanted.sharding and type(got) is type(wanted)
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


def test_mapped_and_partial_maps_show_every_entry_of_a_spec() -> None:
    m = nj.make_mesh((8,), ("x",), (AxisType.Auto,))
    v = jnp.arange(64.0).reshape(8, 8)
    total = nj.shard_map(lambda x: lax.psum(x, "x"), mesh=m, in_specs=P("x"), out_specs=P())
    each = nj.shard_map(lambda x: x * 2, mesh=m, in_specs=P("x"), out_specs=P("x"))
    assert nj.vmap(total)(v).sharding.spec == P(None)
    assert nj.vmap(nj.vmap(total))(v[None]).sharding.spec == P(None, None)
    assert nj.vmap(each, in_axes=1)(v).sharding.spec == P(None, "x")
    assert nj.jit(nj.vmap(total))(v).sharding.spec == P()
    assert total(v).sharding == NamedSharding(m, P())
    e = nj.make_mesh((4, 2), ("x", "y"), (AxisType.Explicit,) * 2)
    one = {"mesh": e, "in_specs": P("x"), "axis_names": {"x"}}
    assert nj.shard_map(lambda x: x, out_specs=P("x"), **one)(v).sharding.spec == P("x", None)
    g = nj.shard_map(lambda x: lax.psum(x, "x"), out_specs=P(), **one)
    assert g(v).sharding.spec == P(None, None)


def test_cotangents_of_pmap_lie_as_its_arguments_do() -> None:
    v = jnp.arange(8.0)
    f = nj.pmap(lambda x: lax.psum(x, "i"), "i")
    for g in (nj.vjp(f, v)[1](v)[0], nj.grad(lambda x: f(x).sum())(v)):
        assert g.sharding.spec == P("i") and len(g.sharding.device_set) == 8


def test_parts_know_their_place_and_are_cut_when_asked_for() -> None:
    m = nj.make_mesh((4, 2), ("x", "y"), (AxisType.Auto,) * 2)
    v = np.arange(64.0, dtype=np.float32).reshape(8, 8)
    for spec in (P("x", "y"), P("y"), P(None, ("y", "x")), P()):
        x = nj.device_put(v, NamedSharding(m, spec))
        shards, places = x.addressable_shards, x.sharding.devices_indices_map(x.shape)
        seen = []
        for s in shards:
            assert s.index == places[s.device] and s.replica_id == seen.count(s.index)
            assert np.array_equal(s.data, v[s.index]) and s.data is s.data
            assert s.data.sharding == SingleDeviceSharding(s.device) and s.data.committed
            seen.append(s.index)
        places.clear()  # the caller's own
        assert len(x.sharding.devices_indices_map(x.shape)) == 8
    (alone,) = jnp.ones(3).addressable_shards
    assert alone.index == (slice(None),) and not alone.data.committed
    with pytest.raises(IndivisibleError, match="evenly divide"):
        NamedSharding(m, P("x")).devices_indices_map((6,))


def test_gradients_lie_alike_however_often_they_are_taken() -> None:
    s = NamedSharding(nj.make_mesh((8,), ("x",), (AxisType.Auto,)), P("x"))
    v = jnp.arange(8.0)
    f = nj.shard_map(jnp.sin, mesh=s.mesh, in_specs=s.spec, out_specs=s.spec)
    for g in (
        lambda: nj.grad(lambda x: lax.with_sharding_constraint(x * x, s).sum())(v),
        lambda: nj.vjp(lambda x: lax.with_sharding_constraint(x * x, s), v)[1](v)[0],
        lambda: nj.grad(lambda x: f(x).sum())(v),
    ):
        assert {g().sharding for _ in range(14)} == {s}


def test_cotangents_come_back_to_where_arrays_were() -> None:
    v, third = jnp.arange(8.0), nj.devices()[3]
    g = nj.grad(lambda x: (nj.device_put(x, third) ** 2).sum())(v)
    assert g.devices() == {nj.devices()[0]} and g.committed
    g = nj.grad(lambda x: (nj.device_put(x, third) ** 2).sum())(nj.device_put(v, nj.devices()[5]))
    assert g.devices() == {nj.devices()[5]}


def test_counts_and_searches_lie_where_what_is_searched_does() -> None:
    s = NamedSharding(nj.make_mesh((8,), ("x",), (AxisType.Auto,)), P("x"))
    whole = s.update(spec=P())
    x = nj.device_put(jnp.arange(8.0), s)
    assert jnp.searchsorted(x, 3.5).sharding == jnp.searchsorted(x, jnp.ones(4)).sharding == whole
    assert jnp.searchsorted(jnp.arange(8.0), x).sharding == s
    assert jnp.searchsorted(nj.device_put(jnp.ones(3), nj.devices()[2]), 3.5).devices() == {
        nj.devices()[2]
    }
    found = [*jnp.nonzero(x), jnp.flatnonzero(x), jnp.bincount(x.astype(int))]
    assert all(y.sharding == whole for y in found)


def test_what_is_made_goes_to_one_place() -> None:
    s = NamedSharding(nj.make_mesh((8,), ("x",)), P("x"))
    both = {"device": nj.devices()[0], "out_sharding": s}
    for make in (jnp.zeros, jnp.ones, jnp.empty, jnp.arange, lambda n, **to: jnp.full(n, 1.0, **to),
                 lambda n, **to: jnp.array(np.ones(n), **to),
                 lambda n, **to: jnp.zeros_like(np.ones(n), **to)):  # fmt: skip
        with pytest.raises(ValueError, match="Only one of `device` or `out_sharding` can be set"):
            make(8, **both)
    with pytest.raises(ValueError, match="devices do not match"):
        nj.make_array_from_single_device_arrays(
            (8,), SingleDeviceSharding(nj.devices()[2]), [jnp.ones(8)]
        )


def test_constraints_within_partial_maps_cut_the_parts() -> None:
    m = nj.make_mesh((4, 2), ("x", "y"), (AxisType.Auto,) * 2)
    v = jnp.arange(32.0).reshape(8, 4)
    one = {"mesh": m, "in_specs": P("x"), "out_specs": P("x"), "axis_names": {"x"}}
    for spec, whole in ((P("y"), P(("x", "y"))), (P(None, "y"), P("x", "y"))):
        f = nj.shard_map(lambda x, s=spec: lax.with_sharding_constraint(x, s) * 2, **one)
        for found in (f(v), nj.jit(f)(v)):
            assert found.sharding == NamedSharding(m, whole) and np.array_equal(found, v * 2)
