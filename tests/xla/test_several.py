"""Programs of several devices of XLA's CPU plugin: shardings, collectives, parts, maps."""
from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from xla.plugin import needs_plugin

import numjet as nj
import numjet.numpy as jnp
from numjet.xla import hlo, layouts

CODE = """
import contextlib, logging
import numpy as np, numjet as nj, numjet.numpy as jnp, pytest
from numjet import lax
from numjet.core.remote import RemoteArray
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
print("agree")
"""


@needs_plugin
def test_eight_devices():
    environment = {**os.environ, "NUMJET_PLATFORMS": "xla_cpu", "NUMJET_NUM_CPU_DEVICES": "8",
                   "NUMJET_DISK_CACHE": "0"}
    done = subprocess.run([sys.executable, "-c", CODE], env=environment, text=True,
                          capture_output=True, timeout=300, check=False)
    assert done.stdout == "agree\n", done.stderr


def test_annotations():
    class Device:
        pass

    d = tuple(Device() for _ in range(4))
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
