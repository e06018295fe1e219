"""Deferred evaluation of large operations outside jit: what runs, when, and that none can tell."""
from __future__ import annotations

import copy
import os
import pickle
import threading

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet.api.eager import deferral, large as large_functions
from numjet.base import config
from numjet.core import evaluate
from numjet.core.array import ArrayImpl
from numjet.core.deferred import DeferredArray, Piece, pieces
from tests import eager_programs, python_process

N = evaluate.LARGE + 5
RNG = np.random.default_rng(0)
X = RNG.normal(size=N).astype(np.float32)


@pytest.fixture(autouse=True)
def fusion():
    before = config.eager_fusion.value
    config.eager_fusion.set(True)  # for all threads
    deferral.finish_here("a new test")
    deferral._counts.update(found=0, compiled=0)  # as many first sights are compiled as ever
    yield
    config.eager_fusion.set(before)


def large(values=X):
    return jnp.array(values)


def waits(x) -> bool:
    return type(x) is DeferredArray


def last() -> Piece:
    return pieces[-1].piece()


def test_a_chain_runs_as_one_program_when_it_is_read():
    x = large()
    y = jnp.sin(x) * 2 + 1
    z = jnp.exp(y)
    assert waits(y) and waits(z) and z.shape == (N,) and z.dtype == jnp.float32
    got = np.asarray(z)
    assert last().operations == ("sin", "mul", "add", "exp") and last().kept == 2
    assert type(y) is ArrayImpl and type(z) is ArrayImpl  # who was held has its value
    with config.eager_fusion(False):
        np.testing.assert_array_equal(got, jnp.exp(jnp.sin(x) * 2 + 1))
    del y
    jnp.exp(jnp.sin(x) * 2 + 1).block_until_ready()
    assert last().kept == 1  # nobody holds what is between
    jnp.exp(jnp.sin(x) * 2 + 1).block_until_ready()
    assert last().how == "found"


READS = {
    "numpy": np.asarray, "repr": repr, "str": str, "tolist": lambda x: x.tolist(),
    "item": lambda x: x[3].item(), "float": lambda x: float(x.sum()),
    "bool": lambda x: bool((x > 0).all()), "block": lambda x: x.block_until_ready(),
    "ready": lambda x: x.is_ready(), "format": lambda x: f"{x.sum():.3f}",
    "pickle": pickle.dumps, "deepcopy": copy.deepcopy,
    "dlpack": np.from_dlpack, "pointer": lambda x: x.unsafe_buffer_pointer(),
    "jit": nj.jit(lambda x: x + 1), "callback": lambda x: nj.pure_callback(np.sin, x, x),
    "device": lambda x: nj.device_get(x), "iterate": lambda x: next(iter(x)),
    "delete": lambda x: x.delete(), "loop": lambda x: nj.lax.fori_loop(0, 2, lambda i, v: v, x),
    "rows": lambda x: np.asarray(x[:3]),
}  # fmt: skip


@pytest.mark.parametrize("how", READS)
def test_who_asks_is_given_the_value(how):
    y = large() * 2
    assert waits(y)
    READS[how](y)
    assert not waits(y)
    assert y.is_deleted() == (how == "delete")
    if how != "delete":
        np.testing.assert_array_equal(y, X * 2)


def test_numpy_memory_is_read_before_it_can_be_written_to():
    for size in (N, 40 * N):  # copied, and read at once
        memory = np.linspace(0, 1, size, dtype=np.float32)
        x = jnp.asarray(memory, copy=False)
        y = x + 1
        z = y * 2
        memory[:] = -1
        np.testing.assert_array_equal(z, (np.linspace(0, 1, size, dtype=np.float32) + 1) * 2)
        np.testing.assert_array_equal(x + 0, memory)  # x is on that memory, as ever
    view = np.zeros((2, N), np.float32)
    y = jnp.asarray(view[0], copy=False) + 1
    view[:] = 5
    np.testing.assert_array_equal(y, np.ones(N, np.float32))


def test_small_operands_of_numpys_are_copied():
    bias = np.ones(4, np.float32)
    y = large(X[: N // 4 * 4].reshape(-1, 4)) + jnp.asarray(bias, copy=False)
    assert waits(y)
    bias[:] = 7
    np.testing.assert_array_equal(y, X[: N // 4 * 4].reshape(-1, 4) + 1)


def test_deletion_and_donation():
    x = large()
    y = x + 1
    x.delete()
    np.testing.assert_array_equal(y, X + 1)
    x = large() * 3
    x.block_until_ready()
    y = x + 1
    nj.jit(lambda v: v * 2, donate_argnums=0)(x).block_until_ready()
    assert x.is_deleted()
    np.testing.assert_array_equal(y, X * 3 + 1)
    with pytest.raises(RuntimeError, match="deleted"):
        x + 1


def test_small_arrays_wait_only_for_what_waits():
    a = jnp.ones(10) * 2
    assert not waits(a)
    total = large().sum()
    assert waits(total) and waits(total * 2) and waits(a + total)
    assert float(total * 2) == pytest.approx(2 * X.sum(dtype=np.float64), rel=1e-3)


def test_errors_come_at_the_line_and_checks_run_at_once():
    x = large()
    y = x + 1
    with pytest.raises((TypeError, ValueError), match="shapes"):
        y + x[:-1]
    with pytest.raises(TypeError):
        y + "text"
    with nj.debug_nans(True), pytest.raises(FloatingPointError, match="nan"):
        jnp.log(-jnp.abs(y))
    with nj.disable_jit():
        assert not waits(x * 2)


def test_threads_read_each_others():
    x = large()
    y = x * 2
    found = []

    def work():
        z = y + 1  # which waits for the value of y, of another thread's tape
        found.append((type(y), waits(z), np.asarray(z), jnp.exp(x)))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for kind, waited, z, e in found:
        assert kind is ArrayImpl and waited
        np.testing.assert_array_equal(z, X * 2 + 1)
        np.testing.assert_allclose(e, np.exp(X), rtol=1e-6)


def test_one_thread_writes_while_others_read():
    x = large()
    made, stop = [], threading.Event()

    def read():
        while not stop.is_set() or made:
            try:
                k, y = made.pop()
            except IndexError:
                continue
            np.testing.assert_array_equal(np.asarray(y)[:9], X[:9] * np.float32(k))

    readers = [threading.Thread(target=read) for _ in range(2)]
    for t in readers:
        t.start()
    for k in range(200):
        made.append((k, x * float(k)))
    stop.set()
    for t in readers:
        t.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_has_values():
    y = large() + 1
    child = os.fork()
    if not child:
        good = not waits(y) and bool(np.asarray(y)[0] == X[0] + 1)
        os._exit(0 if good and float((y * 2)[0]) == (X[0] + 1) * 2 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_what_was_run_is_told():
    y = jnp.sin(large()) * 2
    assert "sin" not in nj.debug.eager()[:1]
    float(y.sum())
    piece = nj.debug.eager()[0]
    assert piece.operations == ("sin", "mul", "reduce_sum") and piece.kept == 2
    assert piece.why == "read" and piece.how in ("compiled", "found")


def test_public_functions_are_one_operation():
    x = large()
    y = jnp.clip(nj.nn.log_softmax(x), -12, -11) + nj.random.normal(nj.random.key(0), (N,))
    quotient, rest = jnp.divmod(x, 0.3)
    assert waits(y) and waits(quotient) and waits(rest)
    got = [np.asarray(v) for v in (y, quotient, rest)]
    assert last().operations == ("log_softmax", "max", "min", "normal", "add", "divmod")
    with config.eager_fusion(False):
        want = [jnp.clip(nj.nn.log_softmax(x), -12, -11) + nj.random.normal(nj.random.key(0), (N,))]
        want += jnp.divmod(x, 0.3)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_repeated_and_turned_operands_are_read_where_they_lie():
    a = jnp.array(X[:300 * 200].reshape(300, 200)) * 1.0
    a.block_until_ready()
    bias = jnp.array(X[:300])
    y = jnp.dot(a, a.T) + jnp.broadcast_to(bias, (300, 300)) * a.T.sum(0)
    assert waits(y)
    np.testing.assert_allclose(
        y, np.asarray(a) @ np.asarray(a).T + X[:300] * np.asarray(a).sum(1), rtol=1e-4, atol=1e-3
    )


def test_a_jitted_function_is_called_the_short_way():
    f = nj.jit(lambda x: x + 1)
    for _ in range(20):
        y = f(large() * 2)
    np.testing.assert_array_equal(y, X * 2 + 1)


@pytest.mark.parametrize("dtype", ["float16", "float32", "int32", "bool"])
def test_numbers_take_the_type_of_what_they_meet(dtype):
    x = jnp.array(X).astype(dtype)
    numbers = [jnp.sqrt(2.0), 2.0, 3, True, jnp.float16(2), jnp.asarray(3), jnp.float32(1.5)]
    for _ in range(2):
        for number in numbers:
            got = [x + number, number * x, x / number, x - (x * number).mean(), x > number]
            with config.eager_fusion(False):
                want = [x + number, number * x, x / number, x - (x * number).mean(), x > number]
            for a, b in zip(got, want, strict=True):
                assert a.aval is b.aval
                np.testing.assert_allclose(a, b, atol=1e-2 if dtype == "float16" else 1e-4)


@pytest.mark.parametrize("name", ["array", "copy", "ravel", "reshape", "index"])
def test_functions_that_change_nothing_give_another_array(name):
    y = large() * 2
    z = {
        "array": jnp.array, "copy": lambda x: x.copy(), "ravel": jnp.ravel,
        "reshape": lambda x: x.reshape(-1), "index": lambda x: x[...],
    }[name](y)  # fmt: skip
    assert z is not y and waits(z)
    y.delete()
    np.testing.assert_array_equal(z, X * 2)


def test_views_stay_views():
    y = large() * 2
    a, b = y.reshape(1, N), jnp.broadcast_to(y, (1000, N))
    assert waits(a) and waits(b)
    assert np.shares_memory(np.asarray(a), np.asarray(y))
    assert np.shares_memory(np.asarray(b), np.asarray(y))  # and not a thousand copies


def test_transformations_are_deferred():
    x = large()

    def f(v):
        return jnp.sum(jnp.tanh(v) ** 2)

    value, grad = nj.value_and_grad(f)(x)
    assert waits(value) and waits(grad)
    t = np.tanh(X.astype(np.float64))
    np.testing.assert_allclose(grad, 2 * t * (1 - t * t), rtol=1e-4, atol=1e-6)
    assert not waits(value)
    out, tangent = nj.jvp(jnp.sin, (x,), (x,))
    assert waits(out) and waits(tangent)
    np.testing.assert_allclose(tangent, np.cos(X) * X, rtol=1e-5, atol=1e-6)
    rows = nj.vmap(lambda v: v - v.sum())(large(X[: N // 4 * 4].reshape(4, -1)))
    assert waits(rows)


def test_a_loop_is_cut_alike():
    x = large()
    before = dict(deferral._counts)
    for _ in range(500):
        x = x * 0.5
        x = x + 1
    assert waits(x)
    x.block_until_ready()
    made = deferral._counts["compiled"] - before["compiled"]
    assert made <= 3 and deferral._counts["found"] > before["found"]
    np.testing.assert_allclose(x, 2, rtol=1e-6)


def test_what_only_a_tape_keeps_is_bounded():
    with config.eager_fusion_bytes(16 * N):
        total = large()
        for _ in range(20):
            total = total + large()
        assert total._pending.record.bytes <= 16 * N * 2
    np.testing.assert_allclose(total, X * 21, rtol=1e-5, atol=1e-5)


def test_rows_that_change_each_time_are_not_compiled(monkeypatch):
    monkeypatch.setattr(deferral, "FIRST", 0)
    monkeypatch.setattr(deferral, "_counts", {"found": 0, "compiled": 0})
    x = large()
    y = x * 2
    for _ in range(17):
        y = jnp.cos(y) - x
    want = np.asarray(y)
    assert last().how == "one by one"
    y = x * 2
    for _ in range(17):
        y = jnp.cos(y) - x
    np.testing.assert_array_equal(y, want)
    assert last().how == "compiled"


def test_an_interrupt_leaves_what_is_written_down(monkeypatch):
    y = large() * 2

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as m:
        m.setattr(deferral, "_run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            np.asarray(y)
    np.testing.assert_array_equal(y, X * 2)


def test_new_sizes_compile_nothing_new():
    def chain(x, y):
        z = jnp.where(x > 0, jnp.exp(x) * y, (x - 0.5).astype(jnp.float16))
        return z, (z * 2).astype(jnp.int32)

    def check(n):
        x, y = jnp.array(np.resize(X, n)), jnp.array(np.linspace(0, 1, n, dtype=np.float32))
        got = [np.asarray(v) for v in chain(x, y)]
        how = last().how
        with config.eager_fusion(False):
            for a, b in zip(got, chain(x, y), strict=True):
                np.testing.assert_array_equal(a, b)
        return how

    first = check(N)
    assert first in ("compiled", "found")
    assert check(N + 1) in ("compiled for any size", "found for any size")
    for n in (N + 2, N + 1000, 2 * N - 100, 131071):
        assert check(n) == "found for any size"
    for _ in range(deferral.USES_OF_ONE_SIZE + 1):
        how = check(N + 7)
    assert how == "compiled" and check(N + 7) == "found"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", range(0, 240, 24))
def test_programs_cannot_tell(first):
    for seed in range(first, first + 24):
        assert not eager_programs.differences(seed, 20), seed


@pytest.mark.filterwarnings("ignore")
def test_programs_that_add_in_the_same_order_see_the_same_bits():
    for seed in range(30, 42):
        assert not eager_programs.differences_in_bits(seed, 25), seed


def test_broadcasts_of_memory_of_the_user_are_views_of_it_as_if_run_at_once():
    def run():
        found = []
        for size in (10, N):
            for _ in range(4):  # native code knows the later ones
                memory = np.ones(size, np.float32)
                first = jnp.sin(large())  # so that it can go on
                x, shape = jnp.asarray(memory, copy=False), (2 * N // size, size)
                nj.lax.broadcast_in_dim(first[:size], shape, (1,))  # an operation that is known
                y = nj.lax.broadcast_in_dim(x, shape, (1,))
                z = nj.lax.broadcast_in_dim(x * 1, shape, (1,))
                memory[...] = 7
                found += [float(np.asarray(y)[0, 0]), float(np.asarray(z)[0, 0])]
                first.block_until_ready()
        return found

    got = run()
    with config.eager_fusion(False):
        assert run() == got == [7, 1] * 8


def test_programs_that_are_kept_are_bounded_by_their_bytes(monkeypatch):
    x = large()
    deferral._programs.drop(len(deferral._programs))
    (jnp.sin(x) * 2).block_until_ready()
    one = deferral._programs.weight
    assert one >= 1 << 14
    monkeypatch.setattr(deferral._programs, "most", 3 * one)
    monkeypatch.setattr(deferral, "FIRST", 1000)
    for n in range(8):
        y = large(np.ones((N + n, 2), np.float32))
        assert float(jnp.sum(jnp.cos(y))) == pytest.approx(2 * (N + n) * np.cos(1), rel=1e-4)
    assert deferral._programs.weight <= 3 * one and 1 <= len(deferral._programs) < 8


def test_operations_of_two_ranks_ask_what_they_may_repeat():
    x, row = large(X[: 600 * 100].reshape(600, 100)) * 2, jnp.ones(100)
    x = jnp.concatenate([x, x])
    for _ in range(2):
        np.testing.assert_array_equal(x - row, np.asarray(x) - 1)
    with nj.numpy_rank_promotion("raise"), pytest.raises(ValueError, match="rank"):
        x + 1.0 - row


def test_large_results_of_small_operands_wait():
    points = X[:900].reshape(300, 3)
    x, users = jnp.array(points), points[:, :1].copy()
    norms = (points * points).sum(-1)
    for _ in range(3):
        column, row = jnp.asarray(users), x[None, :, 0]
        between, product = column - row, x @ x.T
        assert waits(between) and waits(product) and waits(product * -2.0 + column)
        users[:] = 0
        np.testing.assert_array_equal(between, points[:, :1] - points[:, 0])
        np.testing.assert_allclose(product, points @ points.T, rtol=1e-5, atol=1e-5)
        users[:] = points[:, :1]
        s = (x * x).sum(-1)
        distances = s[:, None] + s[None, :] - 2 * (x @ x.T)
        np.testing.assert_allclose(
            distances, norms[:, None] + norms - 2 * points @ points.T, atol=1e-4)
    assert not waits(row + x[:, 0]) and not waits(x @ x.T[:, :3])


def test_arrays_of_weak_types_are_read_as_they_are():
    x, weak = large(), jnp.array(3.0)
    assert weak.aval.weak_type
    for _ in range(3):
        y = x * 2.0
        outs = [y / weak, weak - y, (y.sum() * 0 + weak) * y, weak + 1 - y]
        assert all(map(waits, outs)) and not any([out.aval.weak_type for out in outs])
        names = [form.name for form, *_ in deferral._local.open.tape.rows]
        assert "convert_element_type" not in names
    for got, want in zip(outs, [2 * X / 3, 3 - 2 * X, 6 * X, 4 - 2 * X], strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_what_comes_together_is_written_down_together():
    x = large(X[: 256 * 256].reshape(256, 256))
    with config.eager_fusion(False):
        wanted = [x - x.mean(-1, keepdims=True), jnp.tanh(x), x.max(0, keepdims=True) * x]
    for _ in range(4):
        y = x * 1.0
        outs = [y - y.mean(-1, keepdims=True), jnp.tanh(y), y.max(0, keepdims=True) * y]
        assert all(map(waits, outs))
        names = [form.primitive.name for form, *_ in deferral._local.open.tape.rows]
        for got, want in zip(outs, wanted, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)
    assert names.count("broadcast_in_dim") >= 2 and names.count("reduce_max") == 1
    with nj.debug_nans(True), pytest.raises(FloatingPointError):
        jnp.log(y * 0 - 1)


def by_hand(x):
    e = jnp.exp(x - jnp.max(x, axis=-1, keepdims=True))
    return e / jnp.sum(e, axis=-1, keepdims=True)


def normed(x):
    mean = jnp.mean(x, axis=-1, keepdims=True)
    return (x - mean) / jnp.sqrt(jnp.mean((x - mean) ** 2, axis=-1, keepdims=True) + 1e-5) * X[:64]


ROWS = {
    "softmax": by_hand, "layer norm": normed, "nn.softmax": nj.nn.softmax,
    "sums": lambda x: jnp.sum(x * x, axis=1),
    "unit": lambda x: x / jnp.sum(jnp.abs(x), axis=1)[:, None],
    "planes": lambda x: by_hand(x.reshape(-1, 8, 8)),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_new_numbers_of_rows_compile_nothing_new(name):
    sizes = [1100, 1101, 1203, 1500, 1999]
    for n in sizes:
        x = large(np.resize(X, (n, 64)) + np.arange(n, dtype=np.float32)[:, None] / n)
        got = np.asarray(ROWS[name](x))
        how = last().how
        with config.eager_fusion(False):
            np.testing.assert_allclose(got, ROWS[name](x), rtol=2e-5, atol=1e-6)
        if n > 1101:
            # A public function is written down as what it is made of from its second size on.
            seen = name == "nn.softmax" and n == 1203
            assert how == "found for any size" or seen and how == "compiled for any size", how


def test_what_depends_on_other_rows_is_compiled_for_its_size():
    for n in (1100, 1101, 1203):
        x = large(np.resize(X, (n, 64)))
        np.testing.assert_allclose(x - jnp.sum(x, axis=0), x - np.asarray(x).sum(0), 1e-4, 1e-4)
        assert "any size" not in last().how
        y = jnp.exp(x)[::-1] * 2.0  # the rows, turned
        np.testing.assert_allclose(y, np.exp(np.asarray(x))[::-1] * 2, rtol=1e-5)
        assert "any size" not in last().how


def test_gradients_of_indexing_are_written_down():
    x = large(X[: 1 << 16].reshape(512, 128))
    rows = jnp.array([1, 0, 1, 5])

    def loss(x):
        return (jnp.tanh(x @ x.T)[rows] * 2).sum() + (jnp.exp(x)[rows, rows] ** 2).sum()

    with config.eager_fusion(False):
        wanted = nj.grad(loss)(x)
    for _ in range(20):
        got = nj.grad(loss)(x)
        assert waits(got)
        # 1 - tanh² of large products cancels: both are within 1e-4 of float64's sums, of up to 34.
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)
    assert last().operations.count("scatter-add") == 2


def test_a_product_larger_than_its_operands_waits_though_it_is_the_first_operation():
    program = (
        "import numjet as nj, numjet.numpy as jnp\n"
        "x = jnp.ones((300, 4)); y = jnp.ones((4, 300))\n"
        "z = x @ y\n"
        "z.block_until_ready()\n"
        "print([p.operations for p in nj.debug.eager()])"
    )
    done = python_process.run("-c", program)
    assert done.stdout.strip() == "[('dot_general',)]", done.stderr


def test_functions_of_rows_are_written_down_as_their_operations_from_the_third_call_on(monkeypatch):
    x = large(X[: 1 << 16].reshape(1024, 64))
    wanted = np.var(np.asarray(x), -1, ddof=1, keepdims=True)
    for _ in range(4):
        y = jnp.var(x, -1, ddof=1, keepdims=True) * 2
        assert waits(y)
        np.testing.assert_allclose(y, 2 * wanted, rtol=1e-5)
    assert "var" not in last().operations and "square" in last().operations
    monkeypatch.setattr(large_functions._Program, "__call__", None)
    np.testing.assert_allclose(jnp.var(x, -1, ddof=1, keepdims=True), wanted, rtol=1e-5)
    assert jnp.var(x, -1, ddof=1, keepdims=True).shape == (1024, 1)
    monkeypatch.undo()
    for ddof in (0, 2):  # another argument
        wanted = np.var(np.asarray(x), -1, ddof=ddof)
        np.testing.assert_allclose(jnp.var(x, -1, ddof=ddof), wanted, rtol=1e-5)


def test_an_array_that_is_deleted_while_it_is_made_says_so(monkeypatch):
    y = jnp.sin(large()) * 2
    tape = type(y._pending.record)
    finish = tape.finish
    monkeypatch.setattr(tape, "finish", lambda self, why: (finish(self, why), y.delete()))
    with pytest.raises(RuntimeError, match="deleted"):
        y._value  # noqa: B018


def test_an_array_that_waits_is_its_own_stop_gradient():
    """So that deleting the one deletes the other, whether it waits or not."""
    x = jnp.ones(evaluate.LARGE) * 2
    assert type(x) is DeferredArray
    assert nj.lax.stop_gradient(x) is x
    assert nj.lax.stop_gradient(x.block_until_ready()) is x
