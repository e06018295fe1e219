"""vmap, collectives, and pmap over virtual devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import near
import numpy as np
import pytest
from cpu_devices import cpu_devices
from oracle import run_in_oracle
from python_process import printed

import numjet as nj
import numjet.numpy as jnp
from numjet import lax

x3 = jnp.array([0.5, -1.0, 2.0])
m = jnp.arange(12.0).reshape(4, 3)


def close(a: Any, b: Any, tolerance: float = 1e-6) -> None:
    near.close(a, b, tolerance)


# ------------------------------------------------------------------ axes
@pytest.mark.parametrize(
    "in_axes, out_axes", [(0, 0), (1, 0), (0, 1), (-1, -1), (1, 1), ((1,), (0))]
)
def test_axes_by_number(in_axes: Any, out_axes: Any) -> None:
    f = nj.vmap(lambda v: jnp.cumsum(v) * 2.0, in_axes, out_axes)
    axis = in_axes[0] if isinstance(in_axes, tuple) else in_axes
    want = np.moveaxis(np.cumsum(np.moveaxis(np.asarray(m), axis, 0), axis=1) * 2.0, 0, out_axes)
    close(f(m), want)
    close(nj.jit(f)(m), want)


def test_axes_as_trees() -> None:
    def f(p: Any, x: Any, *, k: Any) -> Any:
        return {"a": p["w"] @ x, "b": (p["b"], x * k), "c": 1.0}

    p = {"w": jnp.ones((2, 3, 4)), "b": jnp.arange(3.0)}
    out = nj.vmap(f, in_axes=({"w": 1, "b": None}, 0), out_axes={"a": 1, "b": (None, -1), "c": 0})(
        p, m[:3, :].repeat(2, 1)[:, :4], k=jnp.arange(3.0)
    )
    assert out["a"].shape == (2, 3) and out["b"][0].shape == (3,)
    assert out["b"][1].shape == (4, 3) and out["c"].shape == (3,)
    out = nj.vmap(f, in_axes=({"w": 1, "b": None}, 0), out_axes={"a": 1, "b": None, "c": None})
    with pytest.raises(ValueError, match="axis spec None"):
        out(p, m[:3, :].repeat(2, 1)[:, :4], k=jnp.arange(3.0))


def test_unmapped_arguments_and_axis_size() -> None:
    close(nj.vmap(lambda a, b: a + b, in_axes=(0, None))(x3, 1.0), x3 + 1.0)
    close(nj.vmap(lambda a: a * 2.0, in_axes=None, axis_size=3)(1.0), jnp.full(3, 2.0))
    close(nj.vmap(lambda: 1.0, axis_size=2)(), jnp.ones(2))
    close(nj.vmap(lambda a: None)(x3), None)


def test_nested_maps() -> None:
    outer = nj.vmap(nj.vmap(lambda a, b: a * b, (0, None)), (None, 0))
    close(outer(x3, jnp.arange(4.0)), np.outer(np.arange(4.0), x3))
    f = nj.vmap(nj.vmap(nj.vmap(lambda a: a + 1.0, 0), 1), 1)
    cube = jnp.arange(24.0).reshape(2, 3, 4)
    close(f(cube), np.asarray(cube).transpose(1, 2, 0) + 1.0)


def test_maps_of_derivatives_and_derivatives_of_maps() -> None:
    def f(w: Any, x: Any) -> Any:
        return jnp.tanh(w @ x / 16)  # where tanh is near 1, its derivatives are roundings

    per_example = nj.vmap(nj.grad(f), (None, 0))(x3, m)
    assert per_example.shape == (4, 3)
    close(per_example.sum(0), nj.grad(lambda w: nj.vmap(f, (None, 0))(w, m).sum())(x3))
    close(
        nj.jit(nj.vmap(nj.hessian(f), (None, 0)))(x3, m), nj.vmap(nj.hessian(f), (None, 0))(x3, m)
    )
    close(nj.vmap(nj.jit(nj.grad(f)), (None, 0))(x3, m), per_example)


def test_python_side_effects_happen_once() -> None:
    calls: list = []
    nj.vmap(lambda a: calls.append(a.shape))(m)
    assert calls == [(3,)]


def test_control_flow_under_vmap() -> None:
    limits = jnp.array([1.0, 5.0, 40.0])
    out, count = nj.vmap(
        lambda limit: lax.while_loop(
            lambda c: c[0] < limit, lambda c: (c[0] * 2.0, c[1] + 1), (1.0, 0)
        )
    )(limits)
    close(out, np.array([1.0, 8.0, 64.0]))
    close(count, np.array([0, 3, 6]))
    close(
        nj.vmap(lambda i: lax.switch(i, [jnp.sin, jnp.cos, jnp.negative], 1.0))(jnp.arange(3)),
        np.array([np.sin(1.0), np.cos(1.0), -1.0]),
    )
    close(nj.vmap(lambda a: lax.cond(a > 0, lambda: a, lambda: -a))(x3), np.abs(x3))
    close(
        nj.vmap(lambda a: lax.scan(lambda c, b: (c * a + b, c), a, x3)[1])(x3)[1],
        lax.scan(lambda c, b: (c * x3[1] + b, c), x3[1], x3)[1],
    )
    close(
        nj.vmap(lambda n: lax.fori_loop(0, n, lambda i, c: c + i, 0))(jnp.arange(5)),
        np.array([0, 0, 1, 3, 6]),
    )
    with nj.debug_nans():  # branches that are not taken may not disturb
        close(nj.vmap(lambda a: lax.cond(a > 0, lambda: a, lambda: 0.0))(x3), np.maximum(x3, 0))


# ------------------------------------------------------------------ collectives
COLLECTIVES = """
def collectives(jx, jnp, lax, map_):
    x = jnp.arange(12.0).reshape(4, 3)
    def run(f):
        return map_(f, axis_name="i")(x)
    perm = [(0, 1), (1, 2), (2, 3), (3, 0)]
    yield "psum", lambda: run(lambda a: lax.psum(a, "i"))
    yield "psum_tree", lambda: run(lambda a: lax.psum({"a": a, "b": 2.0}, "i")["b"] + a)
    yield "psum_one", lambda: run(lambda a: a / lax.psum(1, "i"))
    yield "pmean", lambda: run(lambda a: a - lax.pmean(a, "i"))
    yield "pmax", lambda: run(lambda a: lax.pmax(a * (-1.0) ** lax.axis_index("i"), "i"))
    yield "pmin", lambda: run(lambda a: lax.pmin(a, "i"))
    yield "axis_index", lambda: run(lambda a: lax.axis_index("i") + a[0])
    yield "all_gather", lambda: run(lambda a: lax.all_gather(a, "i"))
    yield "all_gather_axis", lambda: run(lambda a: lax.all_gather(a, "i", axis=1))
    yield "all_gather_tiled", lambda: run(lambda a: lax.all_gather(a, "i", tiled=True))
    yield "ppermute", lambda: run(lambda a: lax.ppermute(a, "i", perm))
    yield "all_to_all", lambda: map_(
        lambda a: lax.all_to_all(a, "i", 0, 1), axis_name="i")(jnp.arange(48.0).reshape(4, 4, 3))
    yield "psum_scatter", lambda: map_(
        lambda a: lax.psum_scatter(a, "i"), axis_name="i")(jnp.arange(48.0).reshape(4, 4, 3))
    yield "psum_scatter_tiled", lambda: map_(
        lambda a: lax.psum_scatter(a, "i", tiled=True), axis_name="i")(
            jnp.arange(96.0).reshape(4, 8, 3))
    yield "grad_inside", lambda: run(
        lambda a: jx.grad(lambda b: jnp.sum(b ** 2) * lax.axis_index("i"))(a))
    yield "jvp", lambda: jx.jvp(lambda y: map_(
        lambda a: lax.psum(jnp.sin(a), "i"), axis_name="i")(y), (x,), (x,))[1]
    yield "in_loop", lambda: run(lambda a: lax.fori_loop(
        0, 3, lambda i, c: lax.ppermute(c, "i", perm) + i, a))
    yield "in_jit", lambda: run(jx.jit(lambda a: lax.psum(a, "i") * lax.axis_index("i")))
    yield "jit_outside", lambda: jx.jit(lambda y: map_(
        lambda a: lax.pmean(a, "i"), axis_name="i")(y))(x)
"""
scope: dict[str, Any] = {}
exec(COLLECTIVES, scope)
NAMES = [name for name, _ in scope["collectives"](nj, jnp, lax, nj.vmap)]


@pytest.fixture(scope="module")
def expected() -> dict:
    return run_in_oracle(
        COLLECTIVES
        + """
from jax import lax
for name, case in collectives(jax, jnp, lax, jax.vmap):
    out[name] = case()
"""
    )


@pytest.mark.oracle
@pytest.mark.parametrize("name", NAMES)
def test_collectives_of_vmap_agree_with_the_oracle(name: str, expected: dict) -> None:
    got = dict(scope["collectives"](nj, jnp, lax, nj.vmap))[name]()
    assert got.dtype == expected[name].dtype
    np.testing.assert_allclose(np.asarray(got), expected[name], rtol=1e-6, atol=1e-6)


@pytest.mark.oracle
@pytest.mark.parametrize("name", NAMES)
def test_collectives_of_pmap_agree_with_the_oracle(
    name: str, expected: dict, four_devices: None
) -> None:
    got = dict(scope["collectives"](nj, jnp, lax, nj.pmap))[name]()
    np.testing.assert_allclose(np.asarray(got), expected[name], rtol=1e-6, atol=1e-6)


def test_devices_that_get_nothing_get_zeros() -> None:
    out = nj.vmap(lambda a: lax.ppermute(a, "i", [(0, 1), (1, 2)]), axis_name="i")(x3)
    close(out, np.array([0.0, 0.5, -1.0]))


def test_two_named_axes() -> None:
    f = nj.vmap(nj.vmap(lambda a: (lax.psum(a, "i"), lax.psum(a, "j"), lax.psum(a, ("i", "j"))),
                        axis_name="j"), axis_name="i")  # fmt: skip
    i, j, both = f(m)
    close(i, np.broadcast_to(np.asarray(m).sum(0), (4, 3)))
    close(j, np.broadcast_to(np.asarray(m).sum(1)[:, None], (4, 3)))
    close(both, np.full((4, 3), np.asarray(m).sum()))


def test_the_gradient_of_a_mapped_sum() -> None:
    def loss(y: Any) -> Any:
        return nj.vmap(lambda a: lax.psum(a**2, "i"), axis_name="i")(y).sum()

    close(nj.grad(loss)(x3), 2 * 3 * x3)


# ------------------------------------------------------------------ pmap
@pytest.fixture
def four_devices() -> Any:
    with cpu_devices(4):
        yield


def test_pmap_maps_over_devices(four_devices: None) -> None:
    assert nj.device_count() == 4 and len({d.id for d in nj.devices()}) == 4
    f = nj.pmap(
        lambda a, b: {"sum": a + b, "total": lax.psum(a, "d")}, axis_name="d", in_axes=(0, None)
    )
    out = f(m, 1.0)
    close(out["sum"], np.asarray(m) + 1.0)
    close(out["total"], np.broadcast_to(np.asarray(m).sum(0), (4, 3)))
    shards = out["sum"].addressable_shards
    assert [s.device for s in shards] == nj.devices()
    close(shards[2].data, m[2:3] + 1.0)
    assert out["sum"].devices() == set(nj.devices())
    assert out["sum"].sharding.shard_shape((4, 3)) == (1, 3)
    close(f(out["sum"], 0.0)["sum"], np.asarray(m) + 1.0)  # results go in again
    two = nj.pmap(jnp.sin, devices=nj.devices()[:2])(m[:2])
    assert two.devices() == set(nj.devices()[:2])


def test_pmap_says_what_is_wrong(four_devices: None) -> None:
    x = np.ones((4, 2), np.float32)
    f = lambda *xs, **kw: xs[0]  # noqa: E731
    for call, words in (
        (lambda: nj.pmap(f, in_axes=None)(x), "pmap requires at least one argument with a mapped"),
        (lambda: nj.pmap(lambda: 1.0)(), "pmap requires at least one argument with a mapped axis"),
        (lambda: nj.pmap(f)(1.0), "pmap was requested to map its argument along axis 0"),
        (lambda: nj.pmap(f)(x, x[:2]), "pmap got inconsistent sizes for array axes to be mapped"),
        (lambda: nj.pmap(f, axis_size=2)(x), "axis_size 2 doesn't match received axis_size 4"),
        (lambda: nj.pmap(f, devices=[]), "'devices' argument to pmap must be non-empty, or None"),
        (lambda: nj.pmap(f, donate_argnums=1, static_broadcasted_argnums=(0, 1)),
         r"`static_argnums` \[0, 1\] and `donate_argnums` \[1\] cannot intersect"),
        (lambda: nj.P("x", unreduced={"x"}), "partitions cannot overlap with unreduced axes"),
        (lambda: nj.AbstractMesh((2, 2), ("x", "x")), "axis names must differ"),
        (lambda: nj.make_mesh((2, 2), ("x", "x")), "axis names must differ"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
    with pytest.raises(TypeError, match="pmap in_axes must be an int, None, or"):
        nj.pmap(f, in_axes="a")(x)


def test_pmap_options(four_devices: None) -> None:
    f = nj.pmap(lambda n, a: a**n, static_broadcasted_argnums=0)
    close(f(3, m), np.asarray(m) ** 3)
    close(nj.pmap(lambda a: a.sum(), in_axes=1, out_axes=0)(m), np.asarray(m).sum(0))
    close(nj.pmap(lambda a: a, out_axes=1)(m), np.asarray(m).T)
    first = nj.pmap(lambda a: (a, a.sum(), lax.psum(a, "i")), "i", out_axes=(None, 0, None))
    close(first(m), (m[0], np.asarray(m).sum(1), np.asarray(m).sum(0)))
    assert first(m)[0].sharding.is_fully_replicated
    close(nj.pmap(nj.vmap(jnp.sin))(m), np.sin(m))
    close(nj.pmap(nj.grad(lambda a: jnp.sum(a**2)))(m), 2 * np.asarray(m))
    close(nj.grad(lambda y: nj.pmap(jnp.sin)(y).sum())(m), np.cos(m))
    close(nj.vmap(nj.pmap(jnp.sin))(m[:, :, None]), np.sin(m)[:, :, None])
    with pytest.raises(ValueError, match="size 5.*4 devices"):
        nj.pmap(jnp.sin)(jnp.ones(5))
    with pytest.raises(ValueError, match="sizes of mapped axes"):
        nj.pmap(jnp.add)(jnp.ones(2), jnp.ones(3))


def test_data_parallel_step_equals_the_whole_batch(four_devices: None) -> None:
    def loss(w: Any, x: Any) -> Any:
        return jnp.mean(jnp.tanh(x @ w) ** 2)

    x, w = jnp.sin(jnp.arange(24.0)).reshape(8, 3), x3
    step = nj.pmap(
        lambda w, x: nj.tree.map(lambda g: lax.pmean(g, "d"), nj.value_and_grad(loss)(w, x)),
        axis_name="d", in_axes=(None, 0), out_axes=None)  # fmt: skip
    value, g = step(w, x.reshape(4, 2, 3))
    want, g_want = nj.value_and_grad(loss)(w, x)
    close((value, g), (want, g_want))


def test_cotangents_of_what_is_one_value_are_shared_out(four_devices: None) -> None:
    x = jnp.sin(jnp.arange(4.0))
    mesh = nj.make_mesh((4,), ("i",), (nj.sharding.AxisType.Auto,))
    spec = nj.P("i")
    maps = {
        "differs": lambda a: 3 * a,
        "alike": lambda a: lax.psum(a * a, "i"),
    }
    want = {"differs": np.full(4, 0.75), "alike": 2 * np.asarray(x)}
    for name, f in maps.items():
        whole = nj.pmap(f, axis_name="i", out_axes=None)
        part = nj.shard_map(f, mesh=mesh, in_specs=spec, out_specs=nj.P(), check_vma=False)
        for g in (whole, lambda v: part(v).sum()):
            for run in (g, nj.jit(g)):
                close(nj.grad(run)(x), want[name])
    assert float(nj.pmap(maps["differs"], out_axes=None)(x)) == 0.0
    tangent = nj.jvp(nj.pmap(maps["differs"], out_axes=None), (x,), (x + 1,))[1]
    close(tangent, np.float32(3))
    batched = nj.vmap(nj.grad(lambda v: nj.pmap(maps["differs"], out_axes=None)(v)))
    close(batched(jnp.ones((2, 4))), np.full((2, 4), 0.75))


def test_devices_from_the_environment() -> None:
    script = """
import numjet as nj, numjet.numpy as jnp
from numjet import lax
assert nj.device_count() == nj.local_device_count() == 3, nj.devices()
out = nj.pmap(lambda a: lax.psum(a, "i"), axis_name="i")(jnp.arange(3.0))
assert out.tolist() == [3.0, 3.0, 3.0], out
x = nj.device_put(jnp.ones(2), nj.devices()[2])
assert x.devices() == {nj.devices()[2]}
r = nj.device_put_replicated(jnp.ones(2), nj.devices())
assert r.shape == (3, 2) and len(r.addressable_shards) == 3
# Training loops take a replicated value off its devices so, and hand it to `pmap` (brax).
assert r.addressable_shards[2].data.squeeze(0).shape == (2,)
assert r.sharding == nj.pmap(lambda a: a)(r).sharding
parts = nj.device_put_sharded([{"a": 1.0}, {"a": 2.0}, {"a": 3.0}], nj.devices())["a"]
assert parts.shape == (3,) and parts.addressable_shards[1].data.tolist() == [2.0]
print("done")
"""
    assert printed(script, NUMJET_NUM_CPU_DEVICES="3") == "done\n"


SAMPLES: dict[str, Callable] = {
    "where": lambda a: jnp.where(a > 0, a, 0.0),
    "sort": lambda a: jnp.sort(a),
    "argsort": lambda a: jnp.argsort(a),
    "cumsum": lambda a: jnp.cumsum(a),
    "at": lambda a: a.at[0].set(a[1]),
    "at_dynamic": lambda a: a.at[(a[0] > 3).astype(int)].add(1.0),
    "take": lambda a: jnp.take(a, jnp.array([2, 0])),
    "dynamic_slice": lambda a: lax.dynamic_slice(a, (jnp.argmax(a) - 1,), (2,)),
    "dynamic_update_slice": lambda a: lax.dynamic_update_slice(a, a[:1], (jnp.argmin(a),)),
    "einsum": lambda a: jnp.einsum("i,j->ij", a, a),
    "solve": lambda a: jnp.linalg.solve(jnp.diag(a + 1.0), a),
    "conv": lambda a: jnp.convolve(a, a[::-1]),
    "fft": lambda a: jnp.abs(jnp.fft.fft(a)),
    "searchsorted": lambda a: jnp.searchsorted(a, 4.0),
    "pad": lambda a: jnp.pad(a, 2, mode="edge"),
    "random": lambda a: nj.random.normal(
        nj.random.fold_in(nj.random.key(0), a[0].astype(int)), (2,)),
    "choice": lambda a: nj.random.permutation(nj.random.key(1), a),
    "top_k": lambda a: lax.top_k(a, 2)[0],
    "logsumexp": lambda a: nj.nn.logsumexp(a),
    "cond": lambda a: lax.cond(a[0] > 3.0, lambda b: b * 2.0, lambda b: b, a),
    "associative_scan": lambda a: lax.associative_scan(jnp.multiply, a),
}  # fmt: skip


@pytest.mark.parametrize("name", SAMPLES)
def test_vmap_is_stacked_calls(name: str) -> None:
    f = SAMPLES[name]
    want = np.stack([np.asarray(f(row)) for row in m])
    close(np.asarray(nj.vmap(f)(m)), want, 1e-5)
    close(
        np.asarray(nj.jit(nj.vmap(f, in_axes=1, out_axes=-1))(m.T)), np.moveaxis(want, 0, -1), 1e-5
    )


@pytest.mark.parametrize("tiled, words", [(False, "must equal"), (True, "must be a multiple of")])
def test_psum_scatter_refuses_sizes_that_do_not_fit(tiled, words) -> None:
    with pytest.raises(ValueError, match=f"psum_scatter: axis 0 of float32.3. {words} the size 2"):
        nj.vmap(lambda a: lax.psum_scatter(a, "i", tiled=tiled), axis_name="i")(np.ones((2, 3)))


def test_mapped_values_can_be_looked_at():
    seen = []
    nj.vmap(lambda x, y: seen.append((x.val, (x * y).val)), in_axes=(0, None))(
        jnp.arange(4.0), 3.0)  # fmt: skip
    np.testing.assert_array_equal(seen[0][0], [0, 1, 2, 3])
    np.testing.assert_array_equal(seen[0][1], [0, 3, 6, 9])


def test_maps_over_devices_made_anew_trace_once():
    counts = []

    def f(x, scale=1.0):
        counts.append(1)
        return scale * x

    x = jnp.ones(1)
    for _ in range(2):
        for options in ({}, {"axis_name": "i"}, {"out_axes": None}, {"in_axes": -1}):
            nj.pmap(f, **options)(x)
    assert len(counts) == 4
    nj.pmap(f)(jnp.ones((1, 2)))
    assert len(counts) == 5
    nj.pmap(f, static_broadcasted_argnums=1)(x, 3.0)
    assert float(nj.pmap(f, static_broadcasted_argnums=1)(x, 5.0)[0]) == 5.0
