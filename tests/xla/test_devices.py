"""Arrays on a device of a plugin: where they live, eager operations, jit, deletion, errors."""
from __future__ import annotations

import functools
import gc
import os
import subprocess
import sys
import time
import weakref

import numpy as np
import pytest
from python_process import printed
from xla.plugin import PLATFORM, device, needs_plugin

import numjet as nj
import numjet.numpy as jnp
from numjet.base.errors import XlaError
from numjet.core.remote import RemoteArray
from numjet.xla import client, dlpack, hlo, plugins

pytestmark = needs_plugin


def on_device(values, dtype=np.float32):
    return nj.device_put(np.asarray(values, dtype), device())


def test_operations_stay_on_the_device():
    x = on_device([[0.0, 1.0], [2.0, 3.0]])
    for y in (x + 1, jnp.sin(x), x @ x, x[0], x.sum(), jnp.where(x > 1, x, 0), x.at[0].set(5.0),
              nj.grad(lambda x: (x**2).sum())(x), nj.vmap(jnp.sum)(x), nj.jit(jnp.cos)(x)):
        assert type(y) is RemoteArray and y.devices() == {device()}
    np.testing.assert_allclose(np.asarray(x @ x), [[2, 3], [6, 11]])
    carry, ys = nj.lax.scan(lambda c, row: (c + row, c.sum()), jnp.zeros(2), x)
    assert carry.devices() == {device()}
    np.testing.assert_allclose(carry, [2, 4])
    np.testing.assert_allclose(ys, [0, 1])
    assert x.sharding == nj.sharding.SingleDeviceSharding(device()) and x.committed


def test_moving():
    x = on_device([1.0, 2.0])
    home = nj.device_put(x, nj.devices("cpu")[0])
    assert type(home) is not RemoteArray and home.devices() == {nj.devices("cpu")[0]}
    np.testing.assert_array_equal(home, [1, 2])
    np.testing.assert_array_equal(nj.device_get(x), [1, 2])
    assert x.copy_to_host_async() is None and x.block_until_ready() is x and x.is_ready()


def test_memories():
    d, single = device(), nj.sharding.SingleDeviceSharding
    kinds = [m.kind for m in d.addressable_memories()]
    assert kinds[0] == d.default_memory().kind == "device" and "pinned_host" in kinds
    assert d.memory("pinned_host") in d.addressable_memories()
    host = single(d, memory_kind="pinned_host")
    x = nj.device_put(np.arange(3.0, dtype=np.float32), host)
    stored = lambda x: x._buffer.in_memory("pinned_host") is x._buffer  # noqa: E731
    f = nj.jit(lambda x, y: x + y)
    near = on_device([0, 1, 2])
    for _ in range(3):  # the third goes the short way
        assert not stored(f(near, near))
    for y in (x, nj.device_put(near, host), nj.device_put(near, nj.memory.Space.Host),
              nj.jit(lambda x: x * 1, out_shardings=host)(near)):
        assert stored(y) and y.sharding == host and y.devices() == {d}
        np.testing.assert_array_equal(y, [0, 1, 2])
        for z in (f(y, near), y + near, nj.jit(lambda y: y * 2, donate_argnums=0)(y + 0)):
            assert not stored(z) and z.sharding == single(d)
            np.testing.assert_array_equal(z, [0, 2, 4])
        for z in (nj.device_put(y, d), nj.device_put(y, nj.memory.Space.Device)):
            assert not stored(z) and z.sharding == single(d)
    for error, wrong in ((ValueError, lambda: single(d, memory_kind="tape")),
                         (nj.errors.JaxRuntimeError, lambda: d.memory("tape"))):
        with pytest.raises(error, match="Could not find memory addressable by device .*pinned_hos"):
            wrong()


def test_calls_that_come_again():
    x, y = on_device([1, 2]), on_device([3, 4])
    scale = on_device([10, 20])

    @functools.partial(nj.jit, static_argnames=("n",))
    def f(tree, z, n, *, w):
        return {"a": [tree["p"][0] * n + scale, None], "b": (z + w,)}

    def check(p, z, n, w):
        out = f({"p": (p, {"q": p})}, z, n, w=w)
        assert all(type(v) is RemoteArray for v in nj.tree.leaves(out)) and out["a"][1] is None
        np.testing.assert_array_equal(out["a"][0], np.asarray(p) * n + [10, 20])
        np.testing.assert_array_equal(out["b"][0], np.asarray(z) + np.asarray(w))
        assert type(out) is dict and type(out["a"]) is list and type(out["b"]) is tuple

    for _ in range(4):
        for n in (2, 3):
            check(x, y, n, y)
    check(x, np.float32(1), 2, jnp.ones(2))  # what does not lie there goes the complete way
    check(on_device([1, 2, 3])[:2], y, 3, y)  # as does what waits to be computed
    g = nj.jit(lambda x: x + 1)
    kept = [g(x) for _ in range(4)]
    assert kept[0].sharding == kept[3].sharding and kept[3].committed
    assert kept[3]._buffer.source.line == kept[0]._buffer.source.line
    kept[3].delete()
    assert kept[3].is_deleted()
    with pytest.raises(RuntimeError, match="deleted"):
        g(kept[3])
    with pytest.raises(TypeError):
        g(x, x)
    ref = weakref.ref(g(x)._buffer)
    assert ref() is None  # nothing keeps a result


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_extremes_of_rows(dtype):
    rows = np.random.default_rng(0).standard_normal((7, 33)).astype(dtype)
    rows[1, 4], rows[2, 0], rows[3, 32], rows[4] = np.nan, -np.nan, np.nan, np.nan
    rows[5], rows[6] = -np.inf, np.inf
    x = on_device(rows, dtype)
    for axis in (0, 1, None):
        for f in (jnp.max, jnp.min):
            np.testing.assert_array_equal(nj.jit(lambda x: f(x, axis))(x), f(rows, axis))
    if PLATFORM == "xla_cpu":  # whose compiler makes no vectors of its own maximum
        closed = nj.make_jaxpr(lambda x: x.max(1))(rows.astype(np.float32))
        assert "stablehlo.maximum" not in hlo.module(closed, devices=(device(),)).text
        assert "stablehlo.maximum" in hlo.module(closed).text


def test_clients():
    client = device().client
    assert device() in client.devices() == client.local_devices() == nj.devices(PLATFORM)
    assert client.device_count() == client.local_device_count() == len(nj.devices(PLATFORM))
    assert client.process_index() == 0 and client.platform_version


CALLS = """
    import os, sys, numjet as nj, numjet.numpy as jnp
    from numjet.xla import client
    device, called = nj.devices(sys.argv[1])[0], []
    x = nj.device_put(jnp.ones(3), device)
    program = nj.jit(lambda x: x + 1).lower(x).compile()
    plugin = device.client.plugin
    plugin.call = lambda name, **_: called.append(name)

    def let_go():
        global x, program
        x.delete()
        del x, program
        device.client.let_go()
"""


@needs_plugin
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_has_no_clients_of_its_parent():
    """A plugin's threads are not there."""
    assert printed(CALLS + """
    child = os.fork()
    if child == 0:
        let_go()
        os._exit(3 if not called and not client._clients else 4)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), device.client.alive, flush=True)
    os._exit(0)
    """, PLATFORM) == "3 True\n"


@needs_plugin
def test_nothing_is_given_back_when_the_process_ends():
    assert printed(CALLS + """
    import atexit
    atexit._run_exitfuncs()
    let_go()
    print(called)
    """, PLATFORM) == "[]\n"



def test_errors_at_a_read_name_the_program():
    @nj.jit
    def doubled(x):
        return 2 * x

    x = on_device([1, 2])
    for y in (doubled(x), doubled(x), doubled(x)):  # the third goes the short way
        error = y._buffer._explained(XlaError("RESOURCE_EXHAUSTED: no room.", 8))
        assert "made by doubled at" in str(error) and "Out of memory in doubled." in str(error)


def test_functions_for_the_platform():
    per = {device().client.platform: lambda x: 2 * x}
    f = lambda x: nj.lax.platform_dependent(x, **per, default=lambda x: 3 * x)  # noqa: E731
    looped = lambda x: nj.lax.fori_loop(0, 2, lambda _, x: f(x), x)  # noqa: E731
    g, inner, loop = nj.jit(f), nj.jit(lambda x: nj.jit(f)(x)), nj.jit(looped)
    near, home = on_device([1, 2]), jnp.array([1.0, 2.0])
    for x, factor in (home, 3), (near, 2), (home, 3), (near, 2), (near, 2):
        for y in (f(x), g(x), inner(x), nj.vmap(f)(x), nj.vmap(g)(x),
                  nj.vmap(nj.vmap(f))(x[None])[0],
                  nj.jvp(f, (x,), (x,))[1], nj.checkpoint(f)(x),
                  nj.lax.cond(True, f, f, x), nj.grad(lambda x: (f(x) * x).sum())(x) / 2,
                  nj.grad(lambda x: (g(x) * x).sum())(x) / 2, nj.jit(nj.vmap(g))(x)):
            np.testing.assert_array_equal(y, [factor, 2 * factor])
        for y in (looped(x), loop(x), nj.grad(lambda x: (looped(x) * x).sum())(x) / 2):
            np.testing.assert_array_equal(y, [factor**2, 2 * factor**2])
    with pytest.warns(DeprecationWarning, match="backend and device"):
        made = nj.jit(f, backend=PLATFORM)
    np.testing.assert_array_equal(made(home), [2, 4])
    np.testing.assert_array_equal(g.lower(near).compile()(near), [2, 4])


def test_transfers_are_guarded():
    x, f = on_device([1.0, 2.0]), nj.jit(lambda x: x + 1)
    host = np.ones(2, np.float32)
    with nj.transfer_guard("disallow"):
        y = f(x) + x.sum() * nj.grad(lambda x: (x * x).sum())(x)
        z = nj.device_put(host, device())
        np.testing.assert_array_equal(nj.device_get(y), [8, 15])
        nj.copy_to_host_async(z)
    for call in (lambda: x + 1, lambda: x + host, lambda: f(host), lambda: x[0]):
        with pytest.raises(RuntimeError, match="Disallowed host-to-dev"), nj.transfer_guard(
                "disallow"):
            call()
    for read in (np.asarray, repr, lambda x: x.tolist(), lambda x: float(x[0])):
        made = f(x)
        with pytest.raises(RuntimeError, match="Disallowed device-to-host"), (
                nj.transfer_guard_device_to_host("disallow")):
            read(made)
    for explicit in (nj.device_get, nj.copy_to_host_async):
        made = f(x)
        with pytest.raises(RuntimeError, match="explicit"), nj.transfer_guard("disallow_explicit"):
            explicit(made)


def test_jit_names_a_device():
    with pytest.warns(DeprecationWarning, match="backend and device"):
        f = nj.jit(lambda x, y: x * 2 + y, backend=PLATFORM)
    out = f(jnp.ones(3), np.arange(3.0, dtype=np.float32))
    assert out.devices() == {device()}
    np.testing.assert_array_equal(out, [2, 3, 4])
    with nj.default_device(device()):
        assert jnp.ones(3).devices() == (jnp.ones(3) + 1).devices() == {device()}
        assert nj.jit(jnp.sin)(np.ones(2, np.float32)).devices() == {device()}
    assert (jnp.ones(3) + 1).devices() == {nj.devices("cpu")[0]}


def test_dtypes_cross_unchanged():
    for dtype in (np.bool_, np.int8, np.uint16, np.int32, np.uint32, np.float16, np.float32,
                  np.complex64, jnp.bfloat16, jnp.float8_e4m3fn):
        x = np.array([[0, 1], [2, 3]]).astype(dtype)
        y = nj.device_put(x, device())
        assert y.dtype == x.dtype
        np.testing.assert_array_equal(np.asarray(y), x)
    key = nj.device_put(nj.random.key(7), device())
    want = nj.random.uniform(nj.random.key(7), (5,))
    np.testing.assert_array_equal(nj.random.uniform(key, (5,)), want)
    for shape in ((), (0, 3), (2, 0)):
        assert np.asarray(nj.device_put(np.ones(shape, np.float32), device()) + 1).shape == shape


@pytest.mark.parametrize("impl", ["rbg", "unsafe_rbg", "threefry2x32"])
def test_keys_of_each_generator(impl):
    def draws(key):
        keys = nj.random.split(key, (2, 3))
        last, drawn = nj.lax.scan(
            lambda k, i: (nj.random.fold_in(k, i), nj.random.bits(k, (2,))), key, jnp.arange(3))
        chosen = nj.lax.cond(drawn[0, 0] > 5, lambda k: k[0, 1], lambda k: k[1, 1], keys)
        return (nj.random.uniform(key, (5,)), drawn, nj.random.key_data(last),
                nj.random.key_data(keys[1, ::-1]), keys == keys[0, 0], nj.random.bits(chosen),
                nj.random.key_data(nj.random.clone(last)))

    key = nj.random.key(7, impl=impl)
    there = nj.device_put(key, device())
    assert there.dtype == key.dtype and there.shape == () and there.devices() == {device()}
    np.testing.assert_array_equal(nj.random.key_data(nj.device_put(there, nj.devices("cpu")[0])),
                                  nj.random.key_data(key))
    want = nj.jit(draws)(key)
    for got in (nj.jit(draws)(there), draws(there)):
        for a, b in zip(got, want, strict=True):
            assert a.devices() == {device()}
            np.testing.assert_array_equal(a, b)
    held = nj.jit(lambda x: nj.random.uniform(key, (3,)) + x)(on_device([0.0]))
    np.testing.assert_array_equal(held, nj.random.uniform(key, (3,)))
    data = nj.device_put(nj.random.key_data(key), device())
    wrapped = nj.random.wrap_key_data(data, impl=impl)
    assert wrapped.devices() == {device()} and bool(wrapped == there)


def test_deletion_and_donation():
    x = on_device([1.0, 2.0])
    x.delete()
    assert x.is_deleted()
    with pytest.raises(RuntimeError, match="has been deleted"):
        x + 1
    y = on_device([1.0, 2.0])
    out = nj.jit(lambda y: y + 1, donate_argnums=0)(y)
    assert y.is_deleted() and not out.is_deleted()


def test_mistakes_are_explained():
    with pytest.raises(RuntimeError, match=r"Unknown backend abacus. Available backends are \['c"):
        nj.devices("abacus")
    if plugins.library("cuda") is None:
        with pytest.raises(RuntimeError, match="'gpu' requested, but no platforms that are instan"):
            nj.devices("gpu")
        with pytest.raises(RuntimeError, match="It needs a PJRT plugin that is not installed: pip"):
            nj.local_devices(backend="cuda")
    with pytest.raises(XlaError, match="nonsense"):
        device().client.compile("module { nonsense }", client.options_for((device(),)), (device(),))


def test_programs_can_be_written_down():
    loaded = device().client.compile(
        nj.jit(lambda x: x + 1).lower(np.ones(3, np.float32)).as_text("stablehlo"),
        client.options_for((device(),)), (device(),),
    )
    again = device().client.load(loaded.serialize(), (device(),))
    (out,) = again([on_device([1.0, 2.0, 3.0])._buffer])
    np.testing.assert_array_equal(out.result(), [2, 3, 4])
    assert loaded.memory_analysis()["argument_size_in_bytes"] == 12
    assert loaded.cost_analysis()["flops"] == 3


def test_want_of_memory_names_the_largest_arrays():
    kept = on_device(np.ones((500, 100)))
    huge = nj.jit(lambda y: jnp.broadcast_to(y, (1 << 45, 3)) + 1)
    told = f"200,000 bytes: float32\\[500,100\\] on {device()}"
    with pytest.raises(XlaError, match=told) as caught:
        huge(on_device(np.ones(3)))
    assert caught.value.code == 8 and "donate_argnums" in str(caught.value)
    assert "made at " + __file__ in str(caught.value) and "(on_device)" in str(caught.value)
    assert not kept.is_deleted()


def test_arrays_know_the_line_that_made_them():
    f, x = nj.jit(lambda x: x + 1), on_device([1.0, 2.0])
    made = [f(x), f(x), f(x), f(x), jnp.sin(x)]  # the later calls take the short way
    first = made[0]._buffer.source.line
    assert all(y._buffer.source.line == first for y in made)
    assert "test_arrays_know_the_line" in str(made[-1]._buffer.source)


def test_stages_say_what_the_plugin_knows():
    x = on_device(np.ones((8, 8)))
    compiled = nj.jit(lambda x: x @ x + 1).lower(x).compile()
    assert compiled.cost_analysis()["flops"] >= 8 * 8 * 15
    assert compiled.memory_analysis().argument_size_in_bytes == 256
    assert compiled.output_shardings.device_set == compiled(x).devices() == {device()}
    with pytest.raises(NotImplementedError, match="HloModuleProto"):
        compiled.as_text()
    assert len(compiled.runtime_executable().program.optimized()) > 100
    with pytest.warns(DeprecationWarning, match="backend and device"):
        text = nj.jit(jnp.sin, backend=PLATFORM).lower(x).as_text()
    assert "stablehlo.sine" in text


def test_programs_are_kept_for_other_processes(tmp_path):
    code = """
import numjet as nj, numjet.numpy as jnp
nj.config.update("log_compiles", True)
print(float(nj.jit(lambda x: jnp.tanh(x) * 2)(jnp.arange(5.0)).sum()))
"""
    environment = {**os.environ, "NUMJET_PLATFORMS": PLATFORM, "NUMJET_CACHE_DIR": str(tmp_path)}
    first, second = [
        subprocess.run([sys.executable, "-c", code], env=environment, text=True,
                       capture_output=True, timeout=300, check=True) for _ in range(2)]
    assert f"Compiling for {PLATFORM}:0" in first.stderr
    assert "Compiling" not in second.stderr and first.stdout == second.stdout


@pytest.mark.parametrize("count", ["1", "8"] if PLATFORM == "xla_cpu" else ["1"])
def test_a_process_whose_platform_it_is(count):
    code = """
import numjet as nj, numjet.numpy as jnp, numpy as np
import sys
assert nj.default_backend() == sys.argv[2] and len(nj.devices()) == int(sys.argv[1])
x = jnp.arange(6.0).reshape(2, 3)
assert x.devices() == {nj.devices()[0]} == (x + 1).devices() == nj.jit(jnp.sin)(x).devices()
assert nj.random.normal(nj.random.key(0), (2,)).devices() == {nj.devices()[0]}
np.testing.assert_allclose(nj.grad(lambda w: jnp.tanh(x @ w).sum())(jnp.zeros(3)), [3, 5, 7])
if len(nj.devices()) > 1:
    y = nj.device_put(x, nj.devices()[5])
    assert (y * 2).devices() == {nj.devices()[5]}
    assert not x.committed and y.committed and (x + y).devices() == y.devices()
    try:
        nj.device_put(x, nj.devices()[3]) + y
        raise AssertionError
    except ValueError as error:
        assert "incompatible devices" in str(error)
print("agree")
"""
    environment = {**os.environ, "NUMJET_PLATFORMS": PLATFORM, "NUMJET_NUM_CPU_DEVICES": count}
    name = "gpu" if PLATFORM == "cuda" else PLATFORM
    done = subprocess.run([sys.executable, "-c", code, count, name], env=environment, text=True,
                          capture_output=True, timeout=300, check=False)
    assert done.stdout == "agree\n", done.stderr


def test_doctor_lists_it():
    done = subprocess.run([sys.executable, "-m", "numjet.doctor"], capture_output=True, text=True,
                          timeout=120, check=True)
    told = f"{device()!r}: {device().device_kind}"
    assert told in done.stdout and "numjet's own compiler" in done.stdout


def test_padded_arrays_are_not_written_beyond_their_end():
    """What XLA's newer emitters do in the CPU plugin, which ends the process sooner or later."""
    code = """
import numpy as np, numjet as nj, numjet.numpy as jnp
nj.config.update("enable_x64", True)
for rows in (16, 20, 15):
    x = jnp.asarray(np.arange(4.0 * rows).reshape(rows, 4))
    f = nj.jit(lambda x: jnp.pad(x, ((0, 1), (0, 0))))
    for k in range(1500):
        y = f(x).block_until_ready()
        kept = [bytearray(32 * rows + 32 + k % 64) for _ in range(20)]
    assert (np.asarray(y)[:-1] == np.asarray(x)).all() and not np.asarray(y)[-1].any()
"""
    environment = {**os.environ, "NUMJET_PLATFORMS": PLATFORM, "NUMJET_NUM_CPU_DEVICES": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, text=True,
                          capture_output=True, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_nothing_of_it_is_loaded_unless_asked_for():
    code = "import sys, numjet.numpy as j; j.ones(3) + 1; print('numjet.xla' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.skipif(PLATFORM != "xla_cpu", reason="its memory is the host's")
def test_memory_of_the_host_is_used_where_it_lies():
    here, count = device(), 1 << 16
    made = nj.jit(lambda k: jnp.arange(count, dtype=jnp.float32) + k)(1.0)
    address, want = made._value.ctypes.data, np.asarray(made).copy()
    assert address % 64 == 0  # of the pool
    x = nj.device_put(made, here)
    assert x.unsafe_buffer_pointer() == address
    # Neither side overwrites what the other sees.
    nj.jit(lambda v: v * 2, donate_argnums=0)(made)
    y = nj.jit(lambda v: v * 3, donate_argnums=0)(x)
    np.testing.assert_array_equal(y, want * 3)
    assert x.is_deleted() and made.is_deleted()
    # Read where it lies, as long as somebody sees it; nobody may write to it.
    seen = np.asarray(y)
    assert seen.ctypes.data == y.unsafe_buffer_pointer() and not seen.flags.writeable
    y.delete()
    np.testing.assert_array_equal(seen, want * 3)
    z = nj.device_put(want, here)
    for see in (np.asarray, np.from_dlpack):
        other = nj.jit(lambda v: v + 1)(z)
        buffer, seen = other._buffer, see(other)
        other.delete()
        is_deleted = here.client.plugin.call("Buffer_IsDeleted", buffer=buffer.handles[0]).deleted
        assert not is_deleted and seen[-1] == want[-1] + 1
        del seen, other
        assert buffer.shown == 0
    seen = np.asarray(z)
    again = nj.jit(lambda v: v + 1, donate_argnums=0)(z)
    np.testing.assert_array_equal(seen, want)
    np.testing.assert_array_equal(again, want + 1)
    # What its owner can write to is copied.
    raw = np.zeros(4 * count + 64, np.uint8)
    mine = raw[-raw.ctypes.data % 64 :][: 4 * count].view(np.float32)
    x = nj.device_put(mine, here)
    mine[0] = 7
    assert x[0] == 0 and x.unsafe_buffer_pointer() != mine.ctypes.data
    # The memory lives as long as programs read it, and is given back then.
    made = nj.jit(lambda k: jnp.arange(count, dtype=jnp.float32) + k)(2.0)
    alive, x = weakref.ref(made._value), nj.device_put(made, here)
    y = x
    for _ in range(20):
        y = nj.jit(lambda a, b: jnp.sin(a) + b)(y, x)
    del x, made
    y.block_until_ready()
    del y
    gc.collect()
    here.client.let_go()
    assert alive() is None and not here.client.ending


on_cpu = pytest.mark.skipif(PLATFORM != "xla_cpu", reason="NumPy sees the memory of the host")


@on_cpu
def test_dlpack_gives_memory_of_the_device():
    x = on_device([[1.0, 2.0, 3.0]]) + 1
    assert x.__dlpack_device__() == (1, 0)
    seen = np.from_dlpack(x)
    assert seen.ctypes.data == x.unsafe_buffer_pointer() and not seen.flags.writeable
    x.delete()  # the memory stays while somebody looks at it
    others = [on_device(np.zeros((1, 3))) for _ in range(20)]
    np.testing.assert_array_equal(seen, [[2, 3, 4]])
    held = len(dlpack._given)
    del seen, others
    assert len(dlpack._given) == held - 1
    nj.dlpack.to_dlpack(on_device([1.0]))  # nobody takes it
    assert len(dlpack._given) == held - 1
    for dtype in (np.int8, np.uint16, np.complex64, np.bool_, np.float16):
        y = np.from_dlpack(on_device([0.0, 1.0], dtype))
        assert y.dtype == dtype and list(y) == [0, 1]
    with pytest.raises(BufferError, match="element type"):
        nj.dlpack.to_dlpack(nj.device_put(jnp.zeros(2, jnp.float8_e4m3fn), device()))
    with pytest.raises(BufferError, match="device_put"):
        on_device([1.0]).__dlpack__(dl_device=(2, 0))


@on_cpu
def test_dlpack_takes_memory_as_it_is():
    room = np.zeros(64 * 5, np.uint8)
    first = -room.ctypes.data % 64
    source = room[first : first + 256].view(np.float32).reshape(8, 8)
    source[...] = np.arange(64).reshape(8, 8)
    x = nj.dlpack.from_dlpack(source, device=device())
    assert x.unsafe_buffer_pointer() == source.ctypes.data and x.devices() == {device()}
    np.testing.assert_array_equal(x @ jnp.eye(8), source)
    held, latest = len(dlpack._taken), time.monotonic() + 60
    x.delete()
    while len(dlpack._taken) == held and time.monotonic() < latest:
        time.sleep(0.01)  # the plugin gives memory back when what used it has ended
    assert len(dlpack._taken) == held - 1
    np.testing.assert_array_equal(nj.dlpack.from_dlpack(source[:, ::2], device=device()),
                                  source[:, ::2])
    for bad in (source[:, ::2], room[first + 4 : first + 12].view(np.float32)):
        with pytest.raises(BufferError):
            nj.dlpack.from_dlpack(bad, device=device(), copy=False)
    y = nj.dlpack.from_dlpack(source, device=device(), copy=True)
    assert y.unsafe_buffer_pointer() != source.ctypes.data
    assert nj.dlpack.from_dlpack(y) is y
    assert nj.dlpack.from_dlpack(y, device=nj.devices("cpu")[0]).devices() != {device()}


def test_a_device_has_jaxs_names(monkeypatch):
    name = device().client.platform
    assert str(device()) == f"{name}:{device().id}"
    monkeypatch.setattr(device().client, "platform", "cuda")
    assert device().platform == "gpu" and repr(device()) == f"CudaDevice(id={device().id})"
