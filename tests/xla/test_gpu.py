"""What only a GPU can show: memory shared with PyTorch and CuPy, memory that is not taken in
advance and that runs out, and products as exact as they were asked for."""
from __future__ import annotations

import gc

import numpy as np
import pytest
from xla.plugin import PLATFORM, device, needs_plugin

import numjet as nj
import numjet.numpy as jnp
from numjet.base.errors import XlaError

pytestmark = [
    needs_plugin, pytest.mark.gpu,
    pytest.mark.skipif(PLATFORM != "cuda", reason="NUMJET_TEST_PLATFORM=cuda runs these"),
]


def on_device(values, dtype=np.float32):
    return nj.device_put(np.asarray(values, dtype), device())


def test_a_gpu_has_its_names():
    assert device().platform == "gpu" and str(device()) == f"cuda:{device().id}"
    assert device() in nj.devices("gpu") and "NVIDIA" in device().device_kind


def test_memory_is_taken_as_it_is_needed():
    stats = device().memory_stats()
    assert stats is not None and stats["bytes_in_use"] < stats["bytes_limit"] // 4
    before = stats["bytes_in_use"]
    x = nj.device_put(np.ones(1 << 26, np.float32), device())
    x.block_until_ready()
    assert device().memory_stats()["bytes_in_use"] - before >= 1 << 28
    x.delete()
    gc.collect()
    assert device().memory_stats()["bytes_in_use"] - before < 1 << 27


def test_want_of_memory_is_told():
    size = device().memory_stats()["bytes_limit"] // 4 * 2
    with pytest.raises(XlaError, match="Out of memory"):
        y = nj.jit(lambda x: jnp.broadcast_to(x, (size,)) + jnp.arange(size) % 7)(on_device(1.0))
        y.block_until_ready()
    np.testing.assert_array_equal(on_device([1.0]) + 1, [2.0])  # others go on


@pytest.mark.parametrize("name", ["torch", "cupy"])
def test_memory_is_shared_with_other_libraries(name):
    other = pytest.importorskip(name)
    x = on_device(np.arange(6.0).reshape(2, 3)) * 2
    theirs = other.from_dlpack(x)
    address = theirs.data_ptr() if name == "torch" else theirs.data.ptr
    assert address == x.unsafe_buffer_pointer() and tuple(theirs.shape) == (2, 3)
    assert float(theirs.sum()) == 30.0
    x.delete()  # the memory stays while they look at it
    junk = [on_device(np.full((2, 3), k)) for k in range(20)]
    assert float(theirs.sum()) == 30.0
    del junk
    made = (other.arange(6, device="cuda", dtype=other.float32) if name == "torch"
            else other.arange(6, dtype="float32")) + 1
    ours = nj.dlpack.from_dlpack(made)
    assert ours.devices() == {device()}
    assert ours.unsafe_buffer_pointer() == (made.data_ptr() if name == "torch" else made.data.ptr)
    np.testing.assert_array_equal(ours * 2, [2, 4, 6, 8, 10, 12])
    np.testing.assert_array_equal(nj.jit(jnp.cumsum)(ours), [1, 3, 6, 10, 15, 21])
    if name == "torch":
        half = nj.dlpack.from_dlpack(made.to(other.bfloat16))
        assert half.dtype == jnp.bfloat16
        assert other.from_dlpack(half + 1).dtype == other.bfloat16


def test_products_are_as_exact_as_asked_for():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 512, 512)).astype(np.float32)
    want = a.astype(np.float64) @ b
    error = lambda p: float(np.abs(np.asarray(  # noqa: E731
        nj.jit(lambda a, b: jnp.matmul(a, b, precision=p))(on_device(a), on_device(b))
    ) - want).max())
    assert error("highest") < 1e-3 and error("default") < 0.5


def test_training_on_a_gpu():
    rng = np.random.default_rng(0)
    x = on_device(rng.standard_normal((256, 8)))
    y = on_device(np.sin(np.asarray(x).sum(1)))
    params = [on_device(rng.standard_normal(s) * 0.3) for s in ((8, 32), (32,), (32, 1))]

    def loss(p):
        return ((jnp.tanh(x @ p[0] + p[1]) @ p[2]).squeeze() - y).var()

    step = nj.jit(lambda p: [w - 0.1 * g for w, g in zip(p, nj.grad(loss)(p), strict=True)])
    first = float(loss(params))
    for _ in range(200):
        params = step(params)
    assert float(loss(params)) < first / 4 and params[0].devices() == {device()}
