"""Several processes under mpiexec: arrays, programs, collectives, checkpoints, data."""
from __future__ import annotations

import re
from pathlib import Path

import pytest
from mpi_launch import run

PROGRAMS = """
from numjet.experimental import multihost_utils as mu
n = nj.device_count()
mesh = nj.make_mesh((n,), ("x",), (AxisType.Auto,))
grid = nj.make_mesh((2, n // 2), ("x", "y"), (AxisType.Auto,) * 2)
N = lambda *spec: NamedSharding(mesh, P(*spec))
G = lambda *spec: NamedSharding(grid, P(*spec))
rng = np.random.default_rng(0)
A = rng.normal(size=(16, 8)).astype(np.float32)
B = rng.normal(size=(8, 8)).astype(np.float32)
ring = [(i, (i + 1) % n) for i in range(n)]
class S:
    # A shard_map, and the same by vmap on one process.
    def __init__(self, f, i, o):
        self.f, self.o = f, o
        self.on_all = nj.shard_map(f, mesh=mesh, in_specs=i, out_specs=o)
    def __call__(self, a, b):
        if isinstance(a, nj.Array) and self.whole:
            out = nj.vmap(self.f, (0, None), 0, axis_name="x")(a.reshape(n, -1, 8), b)
            if self.o == P():
                return out[0]
            at = self.o.index("x")
            return jnp.concatenate(list(out), at)
        return self.on_all(a, b)
    whole = False
programs = {
    "sum": (lambda a, b: a.sum(0), N("x"), N()),
    "product": (lambda a, b: jnp.tanh(a @ b), N("x"), N(None, "x")),
    "mean": (lambda a, b: a - a.mean(0, keepdims=True), N(None, "x"), N()),
    "sort": (lambda a, b: (jnp.sort(a, 0), jnp.cumsum(a, 1)), N("x"), N()),
    "softmax": (lambda a, b: nj.nn.softmax(a @ b, axis=0), N("x"), N("x")),
    "scan": (lambda a, b: lax.scan(lambda c, t: (c + t.sum() + c @ b, c.max()), a[0], a), N("x"),
             N("x")),
    "while": (lambda a, b: lax.while_loop(lambda c: c.sum() < 1e3, lambda c: jnp.abs(c) * 2 + 1, a),
              N("x"), N()),
    "gradient": (nj.grad(lambda a, b: (jnp.tanh(a @ b) ** 2).mean(), argnums=(0, 1)), N("x"), N()),
    "grid": (lambda a, b: a @ b + b.sum(1), G("x", "y"), G("y", None)),
    "columns": (nj.value_and_grad(lambda a, b: jnp.sin(a @ b).sum()), G("x"), G(None, "y")),
    "ring": (S(lambda a, b: lax.ppermute(a, "x", ring) + lax.psum(a, "x") @ b, (P("x"), P()),
               P("x")), N("x"), N()),
    "all_gather": (S(lambda a, b: lax.all_gather(a, "x", tiled=True) * lax.axis_index("x"),
                     (P("x"), P()), P("x")), N("x"), N()),
    "all_to_all": (S(lambda a, b: lax.all_to_all(a, "x", 1, 0, tiled=True), (P("x"), P()),
                     P(None, "x")), N("x"), N()),
    "scatter": (S(lambda a, b: lax.psum_scatter(a, "x", scatter_dimension=1, tiled=True),
                  (P("x"), P()), P("x")), N("x"), N()),
    "extremes": (S(lambda a, b: lax.pmax(a, "x") - lax.pmin(a, "x") + lax.pmean(a, "x"),
                   (P("x"), P()), P()), N("x"), N()),
    "derivative": (nj.grad(lambda a, b: S(lambda a, b: (lax.ppermute(a, "x", ring) * a
                   * lax.psum(a, "x")).sum(keepdims=True), (P("x"), P()), P("x"))(a, b).sum()),
                   N("x"), N()),
    "halves": (lambda a, b: (a.astype(jnp.bfloat16).sum(0), jnp.maximum.reduce(a)), N("x"), N()),
    "eager": (None, N("x"), N()),
}
def eager(a, b):
    c = jnp.tanh(a) @ b + 1
    return c.T[2:5], (c > 0).any(), c.reshape(-1)[::7], nj.vmap(jnp.dot)(c, c)
got = {}
for name, (f, la, lb) in programs.items():
    f, whole = (nj.jit(f), nj.jit(f)) if f else (eager, eager)
    out = f(nj.device_put(A, la), nj.device_put(B, lb))
    S.whole = True
    nj.clear_caches()
    want = whole(jnp.asarray(A), jnp.asarray(B))
    S.whole = False
    nj.clear_caches()
    for x, y in zip(nj.tree.leaves(mu.process_allgather(out)), nj.tree.leaves(want)):
        np.testing.assert_allclose(np.asarray(x, np.float32), np.asarray(y, np.float32), rtol=2e-2
                                   if name == "halves" else 2e-5, atol=2e-5, err_msg=name)
assert len(programs) == 18
"""

# Arrays are global, their parts are local; the last script of a launch.
ARRAYS = """
from numjet.experimental import multihost_utils as mu
me, count = nj.process_index(), nj.process_count()
assert [d.process_index for d in nj.devices()] == [0, 0, 1, 1] and count == 2
assert [d.id for d in nj.local_devices()] == [2 * me, 2 * me + 1]
mesh = nj.make_mesh((4,), ("x",))
rows = NamedSharding(mesh, P("x"))
X = np.arange(8, dtype=np.float32)
x = nj.device_put(X, rows)
assert not x.is_fully_addressable and not x.is_fully_replicated
assert [s.index[0].start for s in x.addressable_shards] == [4 * me, 4 * me + 2]
assert [s.data is None for s in x.global_shards] == [me == 1] * 2 + [me == 0] * 2
np.testing.assert_array_equal(x.addressable_data(1), X[4 * me + 2:4 * me + 4])
try: np.asarray(x)
except RuntimeError as e: assert "non-addressable" in str(e) and "process_allgather" in str(e)
else: raise SystemExit("no error")
same = nj.make_array_from_callback((8,), rows, lambda i: X[i])
mine = nj.make_array_from_process_local_data(rows, X[4 * me:4 * me + 4])
parts = nj.make_array_from_single_device_arrays((8,), rows, [s.data for s in x.addressable_shards])
for y in (same, mine, parts):
    np.testing.assert_array_equal(mu.process_allgather(y), X)
    assert y.sharding == rows and y.shape == (8,)
assert float(nj.jit(jnp.sum)(mine)) == X.sum() == float(jnp.sum(x))
np.testing.assert_array_equal(mu.process_allgather(np.float32(me)), [0, 1])
assert mu.broadcast_one_to_all(np.float32(me)) == 0
assert mu.broadcast_one_to_all(np.float32(me), is_source=me == 1) == 1
mu.sync_global_devices("here"); mu.assert_equal(X, "X")
back = mu.global_array_to_host_local_array(x, mesh, P("x"))
np.testing.assert_array_equal(back, X[4 * me:4 * me + 4])
again = mu.host_local_array_to_global_array(back, mesh, P("x"))
np.testing.assert_array_equal(mu.process_allgather(again), X)
assert np.asarray(nj.device_put(x, NamedSharding(mesh, P()))).tolist() == X.tolist()
assert nj.process_indices() == [0, 1] and mesh.local_mesh.size == 2 and mesh.is_multi_process
nj.distributed.shutdown()
"""

# Collectives, those along other axes than the first too, run without Python; types that MPI has no
# reduction of, and what fails, go through it.
NATIVELY = """
from numjet.core.cluster import Cluster
transport = Cluster.transport
n, me = nj.device_count(), nj.process_index()
mesh = nj.make_mesh((n,), ("x",))
ring = [(i, (i + 1) % n) for i in range(n - 1)]
X = np.random.default_rng(0).normal(size=(8 * n, 8, 12)).astype(np.float32)
x = nj.device_put(X, NamedSharding(mesh, P("x")))
def all_of_them(a):
    return (lax.psum(a, "x"), lax.pmax(a, "x"), lax.pmin(a, "x"),
            lax.all_gather(a, "x", axis=1), lax.all_gather(a, "x", axis=3, tiled=False),
            lax.all_to_all(a, "x", 1, 2, tiled=True), lax.all_to_all(a, "x", 0, 1, tiled=True),
            lax.psum_scatter(a, "x", tiled=True),
            lax.psum_scatter(a, "x", scatter_dimension=2, tiled=True),
            lax.ppermute(a, "x", ring), lax.ppermute(a, "x", [(0, 0)]), lax.pmean(a, "x"))
def member(a):
    return tuple([v[None] for v in all_of_them(a)])
f = nj.jit(nj.shard_map(member, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False))
def refuse(*args): raise SystemExit("a collective ran in Python")
kept, transport.run = transport.run, refuse
begun = transport.library.state.begun
outs = f(x)
assert transport.library.state.begun >= begun + 12
wanted = nj.vmap(all_of_them, axis_name="x", out_axes=0)(X.reshape(n, 8, 8, 12))
for k, (out, want) in enumerate(zip(outs, wanted)):
    mine = np.asarray(out.addressable_shards[0].data)[0]
    np.testing.assert_allclose(mine, np.asarray(want)[me], atol=1e-5, err_msg=str(k))
odd = nj.device_put(np.array([[1, np.nan], [np.nan, 2], [3, 4], [-0.5, 1]], np.float32),
                    NamedSharding(mesh, P("x")))
g = nj.jit(lambda v: (v.max(0), v.min(0)))
most, least = g(odd)
assert np.isnan(np.asarray([most, least])).all()
transport.run = kept
half = nj.jit(lambda v: v.astype(jnp.bfloat16).sum(0))(x)
np.testing.assert_allclose(np.asarray(half, np.float32), X.sum(0), atol=0.3)
"""

# Gradients without jit whose cotangents are laid out and whose operands are not.
BACKWARD = """
from numjet.experimental import multihost_utils as mu
mesh = nj.make_mesh((nj.device_count(),), ("x",), (nj.sharding.AxisType.Auto,))
X = np.arange(64, dtype=np.float32).reshape(16, 4)
w = nj.device_put(X, NamedSharding(mesh, P("x")))
f = nj.grad(lambda x: (jnp.sin(x).reshape(4, 16).reshape(16, 4) * w).sum())
for _ in range(14):  # rules of operations that come again are derived
    g = f(jnp.asarray(X))
    np.testing.assert_allclose(mu.process_allgather(g, tiled=True), np.cos(X) * X, rtol=1e-5)
"""

# What is longer than a part is reduced part by part.
PARTS = """
from numjet.cpu.runtime import collectives
collectives.PART = 64
n, me = nj.device_count(), nj.process_index()
mesh = nj.make_mesh((n,), ("x",))
X = np.random.default_rng(0).integers(-99, 99, size=(n, 1000)).astype(np.float64)
for dtype in (np.float32, np.int32, np.int8):
    x = nj.device_put(X.astype(dtype), NamedSharding(mesh, P("x")))
    for reduce, want in ((lax.psum, X.sum(0)), (lax.pmax, X.max(0)), (lax.pmin, X.min(0))):
        f = nj.jit(nj.shard_map(lambda v: reduce(v, "x"), mesh=mesh, in_specs=P("x"),
                                out_specs=P("x"), check_vma=False))
        got = np.asarray(f(x).addressable_shards[0].data)
        np.testing.assert_array_equal(got[0], want.astype(dtype), err_msg=str(dtype))
"""

# pmap takes and gives the slices of a process.
MAPPED = """
me, count, n = nj.process_index(), nj.local_device_count(), nj.device_count()
X = np.arange(3.0 * n, dtype=np.float32).reshape(n, 3)
mine = slice(me * count, (me + 1) * count)
def f(x, c, d):
    return x / lax.psum(x, "i") + c + d, {"i": lax.axis_index("i"), "s": lax.psum(x, "i")}
f = nj.pmap(f, axis_name="i", in_axes=(0, None, None), out_axes=(-1, {"i": 0, "s": None}),
            static_broadcasted_argnums=2)
for c, d in ((1.0, 2), (2.0, 2), (2.0, 3)):
    a, rest = f(X[mine], c, d)
    np.testing.assert_allclose(a, (X / X.sum(0) + c + d)[mine].T, rtol=1e-6)
    assert rest["i"].tolist() == list(range(n))[mine] and rest["i"].shape == (count,)
    np.testing.assert_allclose(rest["s"], X.sum(0))
    assert len(a.addressable_shards) == count and a.is_fully_addressable
rows = nj.make_array_from_process_local_data(
    NamedSharding(nj.make_mesh((n,), ("i",)), P("i")), X[mine])
np.testing.assert_allclose(nj.pmap(lambda x: 2 * x, axis_name="i")(rows), 2 * X[mine])
step = nj.pmap(lambda w, x: w - lax.pmean(nj.grad(lambda w: ((x * w) ** 2).sum())(w), "i"),
               axis_name="i", in_axes=(None, 0), out_axes=None)
np.testing.assert_allclose(step(np.ones(3), X[mine]), 1 - 2 * (X**2).mean(0), rtol=1e-5)
given, kept = jnp.array(X[mine]), jnp.array(X[mine])
taken = nj.pmap(lambda x, y: x + y, donate_argnums=0)(given, kept)
np.testing.assert_allclose(taken, 2 * X[mine])
assert given.is_deleted() and not kept.is_deleted()
"""

REFUSED = """
def says(f, kind, text):
    try: f()
    except kind as e: assert text in str(e), str(e)
    else: raise SystemExit(f"no {kind} {text}")
mesh = nj.make_mesh((4,), ("x",))
rows = NamedSharding(mesh, P("x"))
turned = nj.sharding.Mesh(np.array(nj.devices())[[0, 2, 1, 3]], ("x",))
says(lambda: nj.distributed.initialize(), RuntimeError, "only be called once")
says(lambda: nj.device_put(np.ones(8), NamedSharding(turned, P("x"))), NotImplementedError,
     "must be a block of the mesh")
says(lambda: nj.pmap(lambda x: x)(np.ones((4, 2))), ValueError, "slices as it has devices, 2")
if nj.process_index():
    says(lambda: nj.pmap(lambda x: x, devices=nj.devices()[:2])(np.ones((2, 2))), ValueError,
         "process 1 has none of its devices")
says(lambda: nj.jit(nj.pmap(lambda x: x))(np.ones((2, 2))), NotImplementedError, "shard_map")
says(lambda: nj.make_mesh((8,), ("x",)), ValueError, "4")
x = nj.device_put(np.ones(8), rows)
says(lambda: x + nj.device_put(np.ones(8), nj.local_devices()[1]), ValueError, "incompatible")
says(lambda: nj.make_array_from_process_local_data(rows, np.ones(3)), ValueError, "multiple")
"""

BITS = """
import zlib
mesh = nj.make_mesh((nj.device_count(),), ("x",))
X = np.random.default_rng(nj.process_index()).normal(size=(4, 10001)).astype(np.float32)
x = nj.make_array_from_process_local_data(NamedSharding(mesh, P("x")), X)
total = np.asarray(nj.jit(lambda x: jnp.exp(x).sum(0))(x))
print(f"bits<{zlib.crc32(total.tobytes())}>")
"""


MESHES = """
devices = np.array(nj.devices())
meshes = [nj.sharding.Mesh(devices.reshape(2, 2), ("x", "y")), nj.sharding.Mesh(devices, ("i",)),
          nj.sharding.Mesh(devices[::-1], ("i",)), nj.make_mesh((2, 2), ("x", "y"))]
X = np.arange(64.0).reshape(8, 8)
places = [NamedSharding(m, spec) for m in meshes
          for spec in (P(), P(None, m.axis_names[-1]), P(tuple(m.axis_names)))]
for here in places:
    a = nj.device_put(X, here)
    for there in places:
        got, want = nj.device_put(a, there), nj.device_put(X, there)
        assert got.sharding == there and nj.typeof(got) == nj.typeof(want), (here, there)
        for p, q in zip(got.addressable_shards, want.addressable_shards, strict=True):
            np.testing.assert_array_equal(p.data, q.data)
            assert p.index == q.index
# Operands over different meshes of the same devices, as on the virtual devices of one process.
grid = nj.sharding.Mesh(devices.reshape(2, 2), ("x", "y"))
row = nj.sharding.Mesh(devices, ("i",))
a = nj.device_put(X, NamedSharding(grid, P("x", "y")))
b = nj.device_put(X, NamedSharding(row, P("i")))
for f in (jnp.add, nj.jit(lambda a, b: a @ b)):
    for both in ((a, b), (b, a)):
        got, want = f(*both), f(X.astype(np.float32), X.astype(np.float32))
        assert got.sharding.mesh == both[0].sharding.mesh
        for p in got.addressable_shards:
            np.testing.assert_allclose(p.data, want[p.index])
turned = nj.jit(lambda a: a.T, out_shardings=NamedSharding(row, P("i")))(a)
assert turned.sharding == NamedSharding(row, P("i"))
for p in turned.addressable_shards:
    np.testing.assert_array_equal(p.data, X.T[p.index])
"""

SEVERAL = """
from numjet.experimental.multihost_utils import process_allgather
blocks = NamedSharding(nj.make_mesh((2, 2), ("x", "y"), (AxisType.Auto,) * 2), P(("x", "y")))
X = np.arange(16, dtype=np.float32).reshape(4, 4)  # a row for each
def each(f, x=X.ravel()):
    mapped = nj.shard_map(f, mesh=blocks.mesh, in_specs=blocks.spec, out_specs=blocks.spec)
    found = nj.jit(mapped)(nj.device_put(x, blocks))
    return process_allgather(found, tiled=True).reshape(4, -1)
sent = each(lambda x: lax.ppermute(x, ("x", "y"), [(0, 3), (3, 1)]))
np.testing.assert_array_equal(sent, [[0] * 4, X[3], [0] * 4, X[0]])
np.testing.assert_array_equal(each(lambda x: lax.all_to_all(x, ("x", "y"), 0, 0)), X.T)
np.testing.assert_array_equal(
    each(lambda x: lax.psum_scatter(x, ("x", "y"), tiled=True)), X.sum(0)[:, None])
np.testing.assert_array_equal(each(lambda x: lax.psum(x, (0, "y"))[None])[:, 0],
                              np.repeat(X.reshape(2, -1).sum(1), 2))
"""

PENDING = """
from numjet.sharding import reshard
n = nj.device_count()
mesh = nj.make_mesh((n,), ("x",))
put = lambda v, *spec: nj.device_put(v, NamedSharding(mesh, P(*spec)))
V = np.arange(n * 16, dtype=np.float32).reshape(n * 4, 4)
U, whole = P(None, None, unreduced={"x"}), P(None, None)
with nj.set_mesh(mesh):
    a, w = put(V, "x", None), put(np.ones((4, 4), np.float32), None, None)
    g = nj.jit(lambda a: jnp.dot(a.T, a, out_sharding=U))(a)
    assert str(nj.typeof(g)) == "float32[4,4]{U:x}" and g.sharding.spec == U, g
    np.testing.assert_allclose(reshard(g, whole), V.T @ V, rtol=1e-6)
    loss = nj.jit(nj.grad(lambda w: jnp.sin(a @ w).sum()))
    found = loss(reshard(w, P(None, None, reduced={"x"})))
    assert found.sharding.spec == U, found
    np.testing.assert_allclose(reshard(found, whole), loss(w), rtol=1e-6)
    taken = nj.shard_map(lambda b: lax.psum(b, "x"), in_specs=U, out_specs=whole)
    np.testing.assert_allclose(nj.jit(taken)(g), V.T @ V, rtol=1e-6)
    turned = nj.shard_map(lambda b: lax.psum((b + b).T, "x"), in_specs=U, out_specs=whole)
    np.testing.assert_allclose(nj.jit(turned)(g), 2 * V.T @ V, rtol=1e-6)
    try:
        nj.jit(nj.shard_map(jnp.sin, in_specs=U, out_specs=U))(g)
    except NotImplementedError:
        pass
    else:
        raise AssertionError("a part of a sum was read")
    given = nj.shard_map(lambda b: lax.pcast(b.T @ b, "x", to="unreduced"),
                         in_specs=P("x", None), out_specs=U)
    np.testing.assert_allclose(reshard(nj.jit(given)(a), whole), V.T @ V, rtol=1e-6)
    parts = [nj.device_put(np.ones((2, 2), np.float32), d) for d in nj.local_devices()]
    made = nj.make_array_from_single_device_arrays((2, 2), NamedSharding(mesh, U), parts)
    np.testing.assert_array_equal(reshard(made, whole), np.full((2, 2), n))
"""

@pytest.mark.parametrize("processes, devices, names", [
    (2, 1, ["PROGRAMS", "PARTS", "BACKWARD"]),
    (4, 1, ["PROGRAMS", "NATIVELY", "MESHES", "SEVERAL"]),
    (2, 2, ["PROGRAMS", "MAPPED", "REFUSED", "ARRAYS", "PENDING"]),
])
def test_scripts_run_on_processes(processes: int, devices: int, names: list[str]) -> None:
    """One launch for several scripts, which have names of their own."""
    parts = [f"exec(compile({globals()[name]!r}, '<{name}>', 'exec'), dict(globals()))\n"
             f"print('<{name}> is right')\n" for name in names]
    out = run("".join(parts), processes, devices)
    for name in names:
        assert out.count(f"<{name}> is right") == processes, out


SAVED = """
from numjet import checkpoints
from numjet.experimental import multihost_utils as mu
n = nj.device_count()
mesh = nj.make_mesh((n,), ("x",))
rows = NamedSharding(mesh, P("x"))
X = np.arange(24, dtype=np.float32).reshape(8, 3)
like = {"w": nj.device_put(X * 0, rows), "b": nj.device_put(X[0] * 0, NamedSharding(mesh, P())),
        "n": 0, "h": jnp.zeros(2, jnp.bfloat16), "k": nj.random.key(0)}
"""


def test_checkpoints_on_another_number_of_processes(tmp_path: Path) -> None:
    run(SAVED + f"""
state = {{"w": nj.device_put(X, rows), "b": nj.device_put(X[0], NamedSharding(mesh, P())), "n": 5,
         "h": jnp.ones(2, jnp.bfloat16), "k": nj.random.key(7)}}
for step in (1, 2, 3, 4):
    checkpoints.save({str(tmp_path)!r}, state, step, keep=2)
assert checkpoints.steps({str(tmp_path)!r}) == [3, 4]
""", 4)
    assert len(list((tmp_path / "step_4").glob("4_*.bin"))) == 4  # each its rows
    assert len(list((tmp_path / "step_4").glob("*.bin"))) == 8
    for processes in (1, 2):
        out = run(SAVED + f"""
got = checkpoints.restore({str(tmp_path)!r}, like)
assert got["w"].sharding == rows and int(got["n"]) == 5 and got["h"].tolist() == [1, 1]
np.testing.assert_array_equal(mu.process_allgather(got["w"], tiled=True), X)
assert float(nj.random.uniform(got["k"])) == float(nj.random.uniform(nj.random.key(7)))
print("restored", checkpoints.latest({str(tmp_path)!r}))
""", processes)
        assert out.count("restored 4") == processes


FAULTS = """
mesh = nj.make_mesh((nj.device_count(),), ("x",))
x = nj.device_put(np.ones((4 * nj.device_count(), 3), np.float32), NamedSharding(mesh, P("x")))
step, other = nj.jit(lambda x: x.sum(0)), nj.jit(lambda x: (2 * x).sum(0))
for i in range(10**6):
    if i == 5 and nj.process_index() == 1:
        FAULT
    step(x)
"""


@pytest.mark.parametrize("fault, message", [
    ("os.kill(os.getpid(), 9)",
     "rank 1 .* has ended without a word|so has rank 1 .* and one of them ended the rest"),
    ("raise ValueError('bad data')", "rank 1 .* failed: ValueError: bad data"),
    ("other(x)", "do not run the same program .call 6.: ranks? 0.*; rank 1: "),
    ("time.sleep(60)", "did not end in 3 s .NUMJET_COLLECTIVE_TIMEOUT.. Missing: rank 1"),
], ids=["killed", "raised", "disagrees", "hangs"])  # fmt: skip
def test_faults_end_all_processes_with_a_sentence(fault: str, message: str) -> None:
    out = run(FAULTS.replace("FAULT", fault), 2, fails=True, timeout=60,
              NUMJET_COLLECTIVE_TIMEOUT="3")
    assert re.search(message, out, re.S), out


LEFT = r"rank 1 .process \d+ on .*. has left after {} programs?, while rank 0 waits for it in {},"
AGREEMENT = "the agreement of ranks to run '<lambda>'"


@pytest.mark.parametrize("fault, checks, message", [
    ("sys.exit(0)", "1", LEFT.format(5, AGREEMENT)),
    ("break", "1", LEFT.format(5, AGREEMENT)),
    ("""try:
            step(np.ones(3), 'one too many')
        except TypeError:
            continue""", "1", LEFT.format(7, AGREEMENT)),
    ("sys.exit(3)", "0", LEFT.format(5, r"psum.float32.3..")),
    ("sys.exit(0)", "0", LEFT.format(5, r"psum.float32.3..")),
], ids=["exits", "returns", "catches", "fails unchecked", "exits unchecked"])  # fmt: skip
def test_a_rank_that_leaves_is_named_at_once(fault: str, checks: str, message: str) -> None:
    out = run(FAULTS.replace("FAULT", fault).replace("10**6", "8"), 2, fails=True, timeout=60,
              NUMJET_COLLECTIVE_TIMEOUT="0", NUMJET_COLLECTIVE_CHECKS=checks)
    assert re.search(message, out, re.S), out


def test_a_rank_that_never_comes_is_not_waited_for() -> None:
    out = run("""
import os, sys
if os.environ.get("PMI_RANK", os.environ.get("OMPI_COMM_WORLD_RANK")) == "1":
    sys.exit(0)
import numjet as nj
nj.distributed.initialize(initialization_timeout=1)
""", 2, fails=True, timeout=60, head="")
    assert re.search(r"rank 0 waited 1 s in distributed.initialize\(\) for the others", out), out


SHUT = """
if nj.process_index() == 1:
    sys.exit(0)
WAITS
"""


@pytest.mark.parametrize("waits, operation", [
    ("nj.distributed.shutdown()", "distributed.shutdown"),
    ("from numjet.experimental import multihost_utils as mu\nmu.sync_global_devices('end')",
     "an exchange of values"),
], ids=["shutdown", "values"])  # fmt: skip
def test_a_rank_that_leaves_before_a_meeting_is_named(waits: str, operation: str) -> None:
    out = run(SHUT.replace("WAITS", waits), 2, fails=True, timeout=60,
              NUMJET_COLLECTIVE_TIMEOUT="0")
    assert re.search(LEFT.format(0, operation), out, re.S), out


def test_ranks_that_leave_while_others_compute_alone_harm_none() -> None:
    out = run(FAULTS.replace("FAULT", "pass").replace("10**6", "6") + """
if nj.process_index() == 0:
    time.sleep(1.5)
    print(float(nj.jit(lambda x: x + 1)(np.ones(3, np.float32))[0]), "is right")
""", 2)
    assert "2.0 is right" in out, out


def test_a_hang_inside_a_program_is_seen() -> None:
    out = run(FAULTS.replace("FAULT", "time.sleep(60)"), 2, fails=True, timeout=60,
              NUMJET_COLLECTIVE_TIMEOUT="3", NUMJET_COLLECTIVE_CHECKS="0")
    assert re.search(r"psum.float32.3.. of program .* did not end in 3 s", out), out
    assert "Missing: rank 1" in out and "rank 0: waits in psum[float32[3]] for" in out, out


def test_sums_have_the_same_bits_in_every_run() -> None:
    outs = [run(BITS, 4) for _ in range(2)]
    bits = [b for out in outs for b in re.findall(r"bits<(-?\d+)>", out)]
    assert len(bits) == 8 and len(set(bits)) == 1, outs
