"""Programs of several devices of XLA's CPU plugin: shardings, collectives, parts, maps."""
from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from xla.plugin import PLATFORM, needs_plugin

import numjet as nj
import numjet.numpy as jnp
from numjet.xla import hlo, layouts

CODE = """
import contextlib, logging
import numpy as np, numjet as nj, numjet.numpy as jnp, pytest
from numjet import lax
from numjet.core.remote import RemoteArray
from numjet.base.errors import ShardingTypeError
from numjet.sharding import Mesh, NamedSharding, PartitionSpec as P

@contextlib.contextmanager
def caplog():
    lines = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    logging.getLogger("numjet").addHandler(handler)
    yield lines

devices = nj.devices()
mesh = Mesh(np.array(devices).reshape(4, 2), ("x", "y"))
on = lambda *spec: NamedSharding(mesh, P(*spec))
X = np.arange(64, dtype=np.float32).reshape(16, 4)
W = np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8)
near = dict(rtol=1e-5, atol=1e-5)

# Parts of an array, there and back.
a = nj.device_put(X, on("x", "y"))
assert type(a) is RemoteArray and a.devices() == set(devices) and len(a.addressable_shards) == 8
np.testing.assert_array_equal(a, X)
for shard in a.addressable_shards:
    np.testing.assert_array_equal(shard.data, X[shard.index])
    assert shard.data.devices() == {shard.device}
np.testing.assert_array_equal(nj.device_put(a, on(("y", "x"))), X)

# Parts in another memory of their devices; programs have their operands moved.
held = nj.device_put(X, on("x").with_memory_kind("pinned_host"))
kinds = lambda x: [s.data.sharding.memory_kind for s in x.addressable_shards]
stored = lambda x: [getattr(s.data._buffer, "kind", None) for s in x.addressable_shards]
assert kinds(held) == stored(held) == ["pinned_host"] * 8
moved = nj.device_put(held, nj.memory.Space.Device)
assert kinds(moved) == ["device"] * 8 and stored(moved) == [None] * 8 and moved.sharding == on("x")
twice = nj.jit(lambda x: 2 * x)(held)
assert twice.sharding == on("x") and stored(twice) == [None] * 8
twice = nj.jit(lambda x: 2 * x, out_shardings=held.sharding)(moved)
assert twice.sharding == held.sharding and stored(twice) == ["pinned_host"] * 8
np.testing.assert_array_equal(twice, 2 * X)
for place in (held.sharding, nj.memory.Space.Host):
    put, kept = nj.jit(lambda x: (nj.device_put(2 * x, place), x + 1))(moved)
    assert put.sharding == held.sharding and stored(put) == ["pinned_host"] * 8
    assert stored(kept) == [None] * 8
    np.testing.assert_array_equal(put, 2 * X)
with pytest.raises(ValueError, match="Got jit memory kind: device, arg memory kind: pinned_host"):
    nj.jit(lambda x: x, in_shardings=on("x"))(held)

# Extremes along a cut axis are collectives.
for axis in (0, 1, None):
    got = nj.jit(lambda x: (x.max(axis), x.min(axis)))(nj.device_put(X, on("x", "y")))
    np.testing.assert_array_equal(got[0], X.max(axis))
    np.testing.assert_array_equal(got[1], X.min(axis))

# Programs follow their arguments, constraints, and what jit is told.
a = nj.device_put(X, on("x"))
f = lambda w, a: jnp.tanh(a @ w).sum()
y = nj.jit(lambda a, w: jnp.tanh(a @ w))(a, jnp.asarray(W))
assert y.sharding.is_equivalent_to(on("x"), 2)
np.testing.assert_allclose(y, np.tanh(X @ W), **near)
np.testing.assert_allclose(nj.jit(nj.grad(f))(jnp.asarray(W), a), nj.grad(f)(W, X), **near)
g = nj.jit(lambda a, w: (a @ w, a.sum(0)), in_shardings=(on("x"), on(None, "y")),
           out_shardings=(on("x", "y"), None))
o, s = g(X, W)
assert o.sharding.is_equivalent_to(on("x", "y"), 2) and o.addressable_shards[0].data.shape == (4, 4)
np.testing.assert_allclose(o, X @ W, **near)
np.testing.assert_allclose(s, X.sum(0), **near)
z = nj.jit(lambda x: lax.with_sharding_constraint(x * 2, on(("x", "y"))))(X)
assert z.sharding.is_equivalent_to(on(("x", "y")), 2)
np.testing.assert_array_equal(z, 2 * X)
np.testing.assert_array_equal(a + 1, X + 1)
c, rows = lax.scan(lambda c, r: (c + r, c.sum()), jnp.zeros(4), a)
np.testing.assert_allclose(c, X.sum(0), **near)

# One place of an array that a program cuts.
for name, change in (("multiply", np.multiply), ("add", np.add), ("set", lambda x, y: y)):
    for cut in (on("x"), on("y"), on(("x", "y"))):
        f = nj.jit(lambda x, k: getattr(lax.with_sharding_constraint(x, cut).at[k], name)(0.5))
        for k in (0, 7, 8, 15, -1, 16):
            want = X[:, 0].copy()
            if k < 16:
                want[k] = change(want[k], np.float32(0.5))
            np.testing.assert_array_equal(f(nj.device_put(X[:, 0], on()), np.int32(k)), want)

# Edges, of a whole array whose result is cut: XLA leaves out what does not change the shape.
V = np.arange(1, 17, dtype=np.float32)
behind, around = np.concatenate([[0], V[:-1]]), np.pad(V, (4, 8))
for f, want in (
    (lambda x: lax.pad(x, np.float32(0), [(1, -1, 0)]), behind),
    (lambda x: lax.pad(x, np.float32(0), [(1, -1, 0)]) + x, behind + V),
    (lambda x: jnp.pad(x, (4, 8))[:16], around[:16]),
    (lambda x: lax.pad(x, np.float32(0), [(-2, -13, 1)]),
     np.kron(V, [1, 0])[2:18]),
    (jnp.cumsum, np.cumsum(V)),
    (lambda x: lax.cummax(x[::-1], reverse=True), V[::-1]),
):
    for cut in (on("x"), on("y"), on(("x", "y"))):
        if want.size % 8 == 0:
            got = nj.jit(lambda x: lax.with_sharding_constraint(f(x), cut))(V)
            np.testing.assert_allclose(got, want)
    np.testing.assert_allclose(nj.jit(f)(V), want)

# Collectives by name.
ring = [(i, (i + 1) % 8) for i in range(8)]
@nj.pmap
def alone(x):
    return x * 2
np.testing.assert_array_equal(alone(np.arange(8.0)), 2 * np.arange(8.0))
def many(x):
    return (lax.psum(x, "i"), lax.pmax(x, "i"), lax.ppermute(x, "i", ring), lax.all_gather(x, "i"),
            lax.axis_index("i"))
V = np.arange(24, dtype=np.float32).reshape(8, 3)
got = nj.pmap(many, axis_name="i")(V)
want = nj.vmap(many, axis_name="i")(V)
for one, other in zip(got, want):
    assert one.devices() == set(devices)
    np.testing.assert_allclose(one, other, **near)
turned, whole = nj.pmap(lambda x, y: (x + y, 2 * y), in_axes=(1, None), out_axes=(-1, None))(
    V.T, V[0])
np.testing.assert_allclose(turned, V.T + V[0][:, None], **near)
np.testing.assert_allclose(whole, 2 * V[0], **near)
with nj.log_compiles(), caplog() as lines:
    nj.pmap(lambda x: x - lax.psum(x, "k"), axis_name="k")(V)
assert sum(["Compiling for 8 devices" in line for line in lines]) == 1, lines
part = nj.shard_map(lambda a: lax.psum(a.sum(), ("x", "y")) + a, mesh=mesh, in_specs=P("x", "y"),
                    out_specs=P("x", "y"))
np.testing.assert_allclose(part(X), X + X.sum(), **near)
out = nj.jit(part)(nj.device_put(X, on("x", "y")))
assert out.devices() == set(devices)
np.testing.assert_allclose(out, X + X.sum(), **near)

# Mistakes, donation, and an array of one device among those of several.
with pytest.raises(ValueError, match="incompatible devices"):
    nj.jit(jnp.add)(a, nj.device_put(X, devices[2]))
b = nj.device_put(X, on("x"))
nj.jit(lambda x: x + 1, donate_argnums=0)(b)
assert b.is_deleted()
jnp.zeros(3) + nj.device_put(np.ones(3, np.float32), on())

# Explicit axes: types say how arrays are cut, in single operations and in programs.
explicit = nj.make_mesh((4, 2), ("x", "y"))
at = lambda *spec: NamedSharding(explicit, P(*spec))
e = nj.device_put(X, at("x"))
typed = lambda x: (str(nj.typeof(x)), type(x) is RemoteArray)
assert typed(e) == ("float32[16@x,4]", True)
row = nj.device_put(X[0], at("y"))
for f, want in [
    (lambda e: jnp.sin(e) + 1, "float32[16@x,4]"), (lambda e: e + row, "float32[16@x,4@y]"),
    (lambda e: e.sum(0), "float32[4]"), (lambda e: e.T, "float32[4,16@x]"),
    (nj.grad(lambda e: (e * e).sum()), "float32[16@x,4]"),
    (lambda e: lax.fori_loop(0, 3, lambda i, c: 2 * c, e), "float32[16@x,4]"),
    (lambda e: nj.reshard(e, at(None, "y")), "float32[16,4@y]"),
    (lambda e: nj.shard_map(lambda a: lax.psum(a, "x"), mesh=explicit, in_specs=P("x"),
                            out_specs=P(None))(e), "float32[4,4]"),
]:
    one, other = f(e), nj.jit(f)(e)
    assert typed(one) == typed(other) == (want, True), (one, other, want)
    np.testing.assert_allclose(one, other, **near)
    for out in (one, other):
        assert tuple(out.aval.sharding.spec) == tuple(out.sharding.spec) + (None,) * (
            out.ndim - len(out.sharding.spec))
for f in (lambda e: e + nj.device_put(X, at("y")), lambda e: e.T @ e, lambda e: jnp.sort(e, 0)):
    for run in (f, nj.jit(f)):
        with pytest.raises(ShardingTypeError):
            run(e)
with nj.set_mesh(explicit):
    out = nj.sharding.auto_axes(lambda x: x.T @ x, out_sharding=P("y"))(e)
    assert typed(out) == ("float32[4@y,4]", True)
    assert typed(jnp.zeros((8, 2), out_sharding=P("x"))) == ("float32[8@x,2]", True)
with nj.set_mesh(nj.make_mesh((8,), ("x",))):
    with pytest.raises(ValueError, match="context mesh"):
        e + 1
v = np.asarray(nj.device_put(np.ones(1 << 16, np.float32), on("x")).addressable_shards[0].data)
w = nj.device_put(np.ones(1 << 18, np.float32), on("x"))
buffer, seen = w._buffer, np.asarray(w.addressable_shards[1].data)
w.delete()
assert v.sum() == v.size and seen.sum() == seen.size == 1 << 16 and buffer.shown == 1
import pickle
again = pickle.loads(pickle.dumps(e.sharding))
assert again == e.sharding
made = nj.jit(lambda x: x.T, in_shardings=on("x")).lower(X).compile()
assert made(X).sharding.is_equivalent_to(on(None, "x"), 2)
assert made.output_shardings.is_equivalent_to(on(None, "x"), 2)
with pytest.raises(ValueError, match="disagree"):
    made(nj.device_put(X, on("y")))

# Keys of several words are cut as their arrays are.
for impl in ("rbg", "unsafe_rbg"):
    keys = nj.random.split(nj.random.key(1, impl=impl), 8)
    draw = nj.vmap(lambda k: nj.random.uniform(k, (6,)))
    cut = nj.device_put(keys, on("x"))
    assert cut.addressable_shards[0].data.shape == (2,)
    np.testing.assert_array_equal(nj.random.key_data(cut), nj.random.key_data(keys))
    drawn = nj.jit(draw, out_shardings=on("x", "y"))(cut)
    assert drawn.sharding == on("x", "y")
    np.testing.assert_array_equal(drawn, draw(keys))
    turned = nj.jit(lambda k: nj.lax.with_sharding_constraint(k[::-1], on("y")),
                    out_shardings=on("y"))(cut)
    np.testing.assert_array_equal(nj.random.key_data(turned), nj.random.key_data(keys[::-1]))
# Sums that are pending by their types: the first device along the axes holds them.
with nj.set_mesh(explicit):
    waiting = P(None, None, unreduced={"x"})
    dots = nj.jit(lambda e: jnp.dot(e.T, e, out_sharding=waiting))(e)
    assert typed(dots) == ("float32[4,4]{U:x}", True) and dots.sharding.spec == waiting
    np.testing.assert_allclose(nj.reshard(dots, P(None, None)), X.T @ X, **near)
    held = sum(np.asarray(s.data) for s in dots.addressable_shards)
    np.testing.assert_allclose(held, 2 * (X.T @ X), **near)  # along y they hold the same
    summed = nj.shard_map(lambda b: lax.psum(b, "x"), in_specs=waiting, out_specs=P(None, None))
    np.testing.assert_allclose(nj.jit(summed)(dots), X.T @ X, **near)
print("agree")
"""


@needs_plugin
@pytest.mark.skipif(PLATFORM != "xla_cpu", reason="it makes devices of the CPU")
def test_eight_devices():
    environment = {**os.environ, "NUMJET_PLATFORMS": "xla_cpu", "NUMJET_NUM_CPU_DEVICES": "8",
                   "NUMJET_DISK_CACHE": "0"}
    done = subprocess.run([sys.executable, "-c", CODE], env=environment, text=True,
                          capture_output=True, timeout=300, check=False)
    assert done.stdout == "agree\n", done.stderr


def test_annotations():
    class Device:
        def __init__(self, number):
            self.id = number

    d = tuple(Device(i) for i in range(4))
    table = np.empty(4, object)
    table[:] = d
    mesh = nj.sharding.Mesh(table.reshape(2, 2), ("rows", "columns"))
    sharding = nj.sharding.NamedSharding(mesh, nj.P(("columns", "rows"), None))
    layout = layouts.layout_of(sharding, 2, d)
    assert layout == ((("a0", 2), ("a1", 2)), None, (("a1", "a0"), ()))
    turned = layouts.layout_of(sharding, 2, (d[1], d[0], d[3], d[2]))
    assert turned.order == (1, 0, 3, 2)
    with pytest.raises(ValueError, match="incompatible devices"):
        layouts.layout_of(sharding, 2, d[:2])
    closed = nj.make_jaxpr(lambda x: jnp.sin(x))(np.zeros((4, 3), np.float32))
    text = hlo.module(closed, devices=d, ins=[layout], outs=[turned]).text
    assert '#sdy.mesh<["a0"=2, "a1"=2], device_ids=[1, 0, 3, 2]>, sym_name = "mesh1"' in text
    assert 'sdy.sharding = #sdy.sharding<@mesh0, [{"a1", "a0"}, {}]>' in text
    open_ = nj.sharding.NamedSharding(mesh, nj.P(nj.P.UNCONSTRAINED, "rows"))
    assert layouts.layout_of(open_, 2, d).dims == (None, ("a0",))
