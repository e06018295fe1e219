"""The Array: immutability, NumPy interchange, DLPack, copies, life of the buffer; promotion."""

from __future__ import annotations

import copy
import pickle
import sys
from typing import Any

import numpy as np
import pytest
from oracle import run_in_oracle

import numjet as nj
import numjet.numpy as jnp

x = jnp.arange(6.0).reshape(2, 3)


def test_attributes() -> None:
    assert (x.shape, x.ndim, x.size, x.itemsize, x.nbytes, len(x)) == ((2, 3), 2, 6, 4, 24, 2)
    assert x.dtype == np.float32 and not x.weak_type and jnp.asarray(1.0).weak_type
    assert isinstance(x, nj.Array) and not isinstance(np.ones(2), nj.Array)
    assert repr(jnp.arange(3)) == "Array([0, 1, 2], dtype=int32)"
    assert repr(jnp.zeros((0, 2))) == "Array([], shape=(0, 2), dtype=float32)"
    assert str(x[0]) == "[0. 1. 2.]" and f"{jnp.float32(1.25):.1f}" in ("1.2", "1.3")
    assert [float(v) for v in x[1]] == [3.0, 4.0, 5.0] and [r.shape for r in x] == [(3,), (3,)]
    assert x.T.shape == (3, 2) and x.at[0, 1].get() == 1.0


def test_scalars_convert() -> None:
    one = jnp.array(1)
    assert (int(one), float(one), complex(one), bool(one), [5, 6][one], one.item()) == (
        1, 1.0, 1 + 0j, True, 6, 1)  # fmt: skip
    assert x.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]] and x.item(4) == 4.0
    assert x.tobytes() == np.asarray(x).tobytes()


def test_numbers_in_f_strings_are_numpys() -> None:
    # As in JAX: a number is formatted as its NumPy scalar, whose empty format has all digits.
    for value in (np.float32(0.1), np.float16(0.1), np.float64(3), np.int8(3), np.True_, 1 + 2j):
        x = jnp.asarray(value)
        for spec in ("", ">24") if x.dtype != bool else ("",):
            assert f"{x:{spec}}" == f"{np.asarray(x)[()]:{spec}}"
    assert f"{jnp.float32(0.1)}" == "0.10000000149011612" and str(jnp.float32(0.1)) == "0.1"
    assert f"{jnp.float32(2) / 3:.3f}" == "0.667" and f"{jnp.arange(3)}" == "[0 1 2]"
    with pytest.raises(TypeError, match="unsupported format string"):
        f"{jnp.arange(3):.2f}"
    key = nj.random.key(0)
    assert f"{key}" == str(key)


def test_shards_show_their_device() -> None:
    shard = jnp.arange(2).addressable_shards[0]
    assert repr(shard).startswith(f"Shard(device={shard.device!r}, index=(slice(")


def test_numpy_shares_the_memory() -> None:
    a = np.asarray(x)
    assert a.ctypes.data == x.unsafe_buffer_pointer() and not a.flags.writeable
    assert np.shares_memory(np.asarray(x), a)
    assert memoryview(np.asarray(x)).readonly
    copied = np.array(x)
    copied[0, 0] = 9.0
    assert float(x[0, 0]) == 0.0
    assert np.asarray(x, np.float64).dtype == np.float64
    assert np.sin(x).shape == (2, 3) and (np.ones(3) + x).dtype == np.float32
    assert isinstance(np.ones(3) * x, nj.Array)
    for count, shared in ((3, False), (300_000, True)):
        source = np.zeros(count, np.float32)
        taken = jnp.asarray(source)
        assert (taken.unsafe_buffer_pointer() == source.ctypes.data) == shared
        assert jnp.array(source).unsafe_buffer_pointer() != source.ctypes.data
        back = jnp.asarray(np.asarray(taken))  # which nobody can write to
        assert back.unsafe_buffer_pointer() == taken.unsafe_buffer_pointer()


def test_a_buffer_that_is_filled_again_leaves_arrays_of_it_alone() -> None:
    buffer = np.zeros(4, np.float32)
    seen = []
    for step in range(3):
        buffer[:] = step
        seen.append(jnp.asarray(buffer))
    assert [float(s[0]) for s in seen] == [0.0, 1.0, 2.0]


VIEWS = {
    "expand_dims": lambda a: jnp.expand_dims(a, 0), "ravel": jnp.ravel, "squeeze": jnp.squeeze,
    "transpose": jnp.transpose, "swapaxes": lambda a: jnp.swapaxes(a, 0, 1), "flip": jnp.flip,
    "moveaxis": lambda a: jnp.moveaxis(a, 0, 1), "atleast_3d": jnp.atleast_3d,
    "broadcast_to": lambda a: jnp.broadcast_to(a, a.shape), "rot90": jnp.rot90,
    "matrix_transpose": jnp.matrix_transpose, "rollaxis": lambda a: jnp.rollaxis(a, 1),
    "astype": lambda a: jnp.astype(a, jnp.float32),
    "broadcast_arrays": lambda a: jnp.broadcast_arrays(a, a)[0],
}  # fmt: skip


@pytest.mark.parametrize("name", VIEWS)
def test_so_do_functions_that_only_turn_it(name: str) -> None:
    buffer = np.zeros((2, 3), np.float32)
    y = VIEWS[name](buffer)
    buffer[:] = 1.0
    assert float(y.sum()) == 0.0


def test_dlpack_both_ways() -> None:
    out = np.from_dlpack(x)
    assert out.ctypes.data == x.unsafe_buffer_pointer()
    np.testing.assert_array_equal(out, np.asarray(x))
    source = np.arange(4.0, dtype=np.float32)
    back = jnp.from_dlpack(source)
    assert back.unsafe_buffer_pointer() == source.ctypes.data
    assert jnp.from_dlpack(x) is x and jnp.from_dlpack(x, copy=True) is not x
    np.testing.assert_array_equal(np.asarray(jnp.from_dlpack(x * 2.0)), np.asarray(x) * 2)
    assert x.__dlpack_device__() == (1, 0)


@pytest.mark.parametrize("value", [
    jnp.arange(3), jnp.float32(2.0), jnp.zeros((0, 2)), jnp.ones(3, jnp.bfloat16), jnp.asarray(1.5),
    nj.random.key(3), jnp.array([1 + 2j])], ids=lambda v: str(v.aval.str_short()))  # fmt: skip
def test_pickling_and_copies(value: Any) -> None:
    for other in (pickle.loads(pickle.dumps(value)), copy.copy(value), copy.deepcopy(value)):
        assert other.aval is value.aval
        assert other._value.tobytes() == value._value.tobytes()
    assert copy.deepcopy({"a": [value]})["a"][0] is not value


def test_updates_return_new_arrays() -> None:
    y = x.at[0, 1].set(9.0)
    assert float(y[0, 1]) == 9.0 and float(x[0, 1]) == 1.0
    for method, want in (("add", 6.0), ("multiply", 5.0), ("min", 1.0), ("max", 5.0),
                         ("subtract", -4.0), ("divide", 0.2), ("power", 1.0)):  # fmt: skip
        assert float(getattr(x.at[0, 1], method)(5.0)[0, 1]) == pytest.approx(want), method
    assert float(x.at[1].apply(jnp.negative)[1, 2]) == -5.0
    np.testing.assert_array_equal(x.at[5].set(7.0), x)  # out of bounds: dropped
    assert float(x.at[7, 0].get(mode="fill", fill_value=-1.0)) == -1.0
    twice = jnp.zeros(3).at[jnp.array([0, 0, 2])].add(1.0)
    assert twice.tolist() == [2.0, 0.0, 1.0]


def test_life_of_the_buffer() -> None:
    y = x + 1.0
    assert y.traceback is None  # where it was made is not recorded
    assert y.block_until_ready() is y and y.is_ready() and not y.is_deleted()
    y.copy_to_host_async()
    assert nj.block_until_ready({"a": [y]})["a"][0] is y
    assert isinstance(nj.device_get({"a": y})["a"], np.ndarray)
    y.delete()
    y.delete()
    assert y.is_deleted()
    for use in (
        lambda: y + 1.0,
        lambda: np.asarray(y),
        lambda: nj.jit(jnp.sin)(y),
        lambda: repr(y),
    ):
        with pytest.raises(RuntimeError, match="deleted"):
            use()
    waits = (y.block_until_ready, lambda: nj.block_until_ready([y]), y.unsafe_buffer_pointer)
    for wait in waits:
        with pytest.raises(nj.errors.JaxRuntimeError, match="deleted"):
            wait()


def test_devices_of_arrays() -> None:
    assert x.devices() == {nj.devices()[0]} and x.device == nj.devices()[0]
    assert x.sharding.shard_shape((2, 3)) == (2, 3) and x.is_fully_replicated
    assert x.addressable_shards[0].data.shape == (2, 3)
    y = nj.device_put({"a": np.ones(2), "b": 3}, nj.devices()[0])
    assert isinstance(y["a"], nj.Array) and y["b"].dtype == np.int32


def test_the_global_flags_of_width() -> None:
    with nj.enable_x64():
        assert jnp.ones(2).dtype == np.float64 and jnp.arange(2).dtype == np.int64
        assert jnp.asarray(np.float64(1.0)).dtype == np.float64
    assert jnp.asarray(np.ones(2)).dtype == np.float32
    assert jnp.asarray(np.int64(3)).dtype == np.int32
    with pytest.raises(OverflowError, match="enable_x64"):
        x + 2**40


def test_strict_promotion_and_ranks() -> None:
    with nj.numpy_dtype_promotion("strict"):
        with pytest.raises(Exception, match="strict"):
            jnp.ones(2) + jnp.arange(2)
        assert (jnp.ones(2) + 1).dtype == np.float32
    with nj.numpy_rank_promotion("raise"), pytest.raises(ValueError, match="rank"):
        x + jnp.ones(3)
    with nj.numpy_rank_promotion("warn"), pytest.warns(UserWarning, match="rank"):
        x + jnp.ones(3)


# ------------------------------------------------------------------ promotion
PROMOTION = """
def pairs(jnp):
    kinds = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
             "bfloat16", "float16", "float32", "float64", "complex64", "complex128"]
    values = {k: jnp.ones((), k) for k in kinds}
    values.update({"True": True, "1": 1, "1.0": 1.0, "1j": 1j})
    for a in values:
        for b in values:
            yield f"{a}+{b}", values[a], values[b]
"""
scope: dict[str, Any] = {}
exec(PROMOTION, scope)


@pytest.mark.oracle
@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_promotion_table_is_the_oracles(x64: bool) -> None:
    want = run_in_oracle(
        PROMOTION
        + """
import warnings
warnings.simplefilter("ignore")
names, dtypes = [], []
for name, a, b in pairs(jnp):
    c = jax.eval_shape(jnp.add, a, b)
    names.append(name); dtypes.append(f"{c.dtype} {c.weak_type} {jnp.result_type(a, b)}")
out["names"], out["dtypes"] = np.array(names), np.array(dtypes)
""",
        x64=x64,
    )
    table = dict(zip(want["names"].tolist(), want["dtypes"].tolist(), strict=True))
    wrong = {}
    with nj.enable_x64(x64):
        for name, a, b in scope["pairs"](jnp):
            c, s = jnp.add(a, b), nj.eval_shape(jnp.add, a, b)
            got = f"{c.dtype.name} {c.weak_type} {np.dtype(jnp.result_type(a, b)).name}"
            if got != table[name] or s.dtype != c.dtype:
                wrong[name] = got, table[name]
    assert not wrong


@pytest.mark.parametrize("leave", [
    lambda x: x.copy(), jnp.copy, jnp.array, lambda x: jnp.asarray(x, copy=True), lambda x: +x,
    nj.jit(lambda x: x), lambda x: nj.device_put(x, may_alias=False), jnp.ravel, jnp.real,
    lambda x: x.real, jnp.conj, jnp.squeeze, jnp.clip, copy.copy, copy.deepcopy,
])  # fmt: skip
def test_what_functions_leave_as_it_is_lives_on(leave) -> None:
    x = jnp.arange(6.0)
    y = leave(x)
    x.delete()
    np.testing.assert_array_equal(y, np.arange(6))
    assert copy.copy(y) is not y


def test_bytes_of_arrays_are_those_of_their_elements():
    for x in (jnp.arange(5), jnp.array([[1.5, -2.0]]), jnp.array([True, False]), jnp.array(2.5),
              jnp.zeros((0, 3)), jnp.ones(3, jnp.bfloat16), jnp.arange(4)[::2] + 1):  # fmt: skip
        assert bytes(x) == np.asarray(x).tobytes()
    assert bytes(jnp.arange(1 << 17) * 2) == (np.arange(1 << 17, dtype=np.int32) * 2).tobytes()
    assert bytes(jnp.int32(3)) == bytes(3)
    if sys.version_info >= (3, 12):
        assert memoryview(jnp.arange(3)).tobytes() == bytes(jnp.arange(3))
