"""Operations on a device that wait and run together: what ran, and that nobody sees it."""
from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest
from together import together
from xla.plugin import device, needs_plugin

import numjet as nj
import numjet.numpy as jnp
from numjet.base import config
from numjet.base.errors import XlaError
from numjet.xla import deferral
from numjet.xla.buffers import DeviceBuffer
from tests import eager_programs

pytestmark = needs_plugin


def on_device(values):
    return nj.device_put(np.asarray(values, np.float32), device())


def waits(x):
    return type(x._buffer) is deferral.WaitingBuffer


def pieces_of(run):
    """What ran together while `run` did."""
    last = next(iter(nj.debug.eager()), None)
    run()
    found = nj.debug.eager()  # the latest first
    return found[:next((i for i, p in enumerate(found) if p is last), len(found))]


def programs():
    marks = deferral._SEEN, deferral._REFUSED
    return [value for value in deferral._programs.values() if value not in marks]


def chain(x, k=10):
    for _ in range(k):
        x = jnp.sin(x) * 1.5
    return x


def test_a_chain_is_one_program():
    x = on_device([0.1, 0.2, 0.3])
    np.asarray(chain(x))
    y = chain(x)
    assert waits(y)
    (piece,) = pieces_of(y.block_until_ready)
    assert type(y._buffer) is DeviceBuffer
    assert piece.operations == ("sin", "mul") * 10 and piece.kept == 1
    assert piece.how == "one program" and piece.why == "read"
    np.testing.assert_allclose(y, chain(jnp.asarray([0.1, 0.2, 0.3])), rtol=1e-5)


def test_what_is_held_is_computed_and_what_is_not_is_not():
    x = on_device([4.0])
    y = x + 1
    z = y * 2
    jnp.exp(z)
    (piece,) = pieces_of(lambda: np.testing.assert_array_equal(z, [10.0]))
    assert piece.kept == 2 and not waits(y) and piece.operations == ("add", "mul", "exp")
    assert not pieces_of(lambda: np.testing.assert_array_equal(y, [5.0]))


def test_numbers_of_the_host_are_arguments():
    x = on_device([1.0, 2.0])
    runs = []
    for k in range(6):
        y = jnp.cos(x) + float(k)
        runs += pieces_of(lambda y=y, k=k: np.testing.assert_allclose(
            y, np.cos([1.0, 2.0]) + k, rtol=1e-6))
    made = programs()
    np.asarray(jnp.cos(x) + 100.0)
    again = programs()
    assert len(made) == len(again) and {p.how for p in runs[1:]} == {"one program"}


def test_rows_that_keep_changing_run_one_by_one(monkeypatch):
    monkeypatch.setattr(deferral, "FIRST", 0)
    x = on_device([1.0])
    y = jnp.tanh(jnp.sinh(x) - 0.25)
    (piece,) = pieces_of(y.block_until_ready)
    assert piece.how == "one by one"
    y = jnp.tanh(jnp.sinh(x) - 0.25)
    (piece,) = pieces_of(y.block_until_ready)
    assert piece.how == "one program"


def test_rounds_of_a_loop_are_cut_alike(monkeypatch):
    monkeypatch.setattr(deferral, "SOFT", 8)
    x = on_device([0.5])

    def rounds():
        y = x
        for _ in range(30):
            y = jnp.sin(y) * 2.0
            y = y - 0.5
        return y.block_until_ready()

    rounds()
    found = pieces_of(rounds)
    assert "a round of a loop" in {p.why for p in found}
    assert len({p.operations for p in found}) <= 3 and {p.how for p in found} == {"one program"}


def test_deleted_and_donated_operands_were_read():
    x = on_device([1.0, 2.0])
    y = x + 1
    x.delete()
    np.testing.assert_array_equal(y, [2.0, 3.0])
    z = y * 3
    w = nj.jit(lambda v: v - 1, donate_argnums=0)(y)
    np.testing.assert_array_equal(z, [6.0, 9.0])
    np.testing.assert_array_equal(w, [1.0, 2.0])
    assert y.is_deleted()
    v = z + 1
    v.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        np.asarray(v)


def test_other_threads_read_and_write_down():
    x = on_device(np.arange(5.0))
    wrong = []

    def work(k):
        try:
            for i in range(20):
                y = shared * 2 + k
                if i % 3:
                    np.testing.assert_allclose(y, (np.arange(5.0) + 1) * 2 + k)
        except Exception as error:
            wrong.append(error)

    for _ in range(3):
        shared = x + 1
        threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert not wrong


def test_errors_come_at_once_and_at_the_right_array(monkeypatch):
    x = on_device([1.0])
    with pytest.raises(TypeError):
        x + jnp.ones((2, 2)) @ jnp.ones(3)
    execute = deferral.execute

    def broken(program, buffers):
        if program.name in ("eager", "log"):
            raise XlaError("no log today", 13)
        return execute(program, buffers)

    monkeypatch.setattr(deferral, "execute", broken)
    good, bad = x + 2, jnp.log(x + 1)
    after = bad * 2
    np.testing.assert_array_equal(good, [3.0])
    for y in (bad, after, bad):
        with pytest.raises(XlaError, match="no log today"):
            np.asarray(y)


def test_flags_make_operations_run_at_once():
    x = on_device([1.0])
    with config.eager_fusion(False):
        assert not waits(x + 1)
    with nj.debug_nans(True), pytest.raises(FloatingPointError, match="log"):
        jnp.log(x - 2)
    with config.eager_fusion_bytes(0):
        y = x + 1
        z = y + 1
        assert waits(z) and not waits(y)


def test_threads_that_end_keep_nothing():
    seen = []

    def work():
        x = on_device(np.arange(1000.0))
        seen.append(weakref.ref(x._buffer))
        x + 1  # which nobody reads

    one = threading.Thread(target=work)
    one.start()
    one.join()
    del one
    gc.collect()
    assert seen[0]() is None


def test_is_ready_ends_waiting():
    y = on_device([1.0]) + 1
    y.block_until_ready()
    z = y * 2
    while not z.is_ready():
        pass
    assert not waits(z)


@pytest.mark.parametrize("seed", range(12))
def test_random_programs(seed):
    want = eager_programs.run(seed, 20, False, device())
    assert not eager_programs.same(eager_programs.run(seed, 20, True, device()), want)


def test_a_finalizer_may_read_what_is_running(monkeypatch):
    """A finalizer that reads an array of the rows that run has them run first: others may have its
    buffer by then, which stays."""
    x = on_device([1, 2, 3])
    y, z = x + 1, x * 2
    run, seen = deferral._results, []

    def results(tape, outs):
        monkeypatch.setattr(deferral, "_results", run)
        y._buffer.tape.finish("a finalizer")
        seen.append(y._buffer.handles)
        return run(tape, outs)

    monkeypatch.setattr(deferral, "_results", results)
    np.testing.assert_array_equal(z, [2, 4, 6])
    assert seen and y._buffer.handles is seen[0]
    np.testing.assert_array_equal(y, [2, 3, 4])


def test_an_operand_that_comes_while_rows_run_is_not_theirs(monkeypatch):
    x, other = on_device([1, 2, 3]), on_device([4, 5])
    y = x + 1
    tape, run = y._buffer.tape, deferral._results

    def results(taken, outs):
        tape.operand(other._buffer, other.aval)  # the thread whose it is goes on
        return run(taken, outs)

    monkeypatch.setattr(deferral, "_results", results)
    np.testing.assert_array_equal(y, [2, 3, 4])


def test_many_threads_read_one_array():
    x = on_device(np.arange(4000))
    for k in range(20):
        y = x + k
        y.copy_to_host_async()
        want = np.arange(4000) + k
        together(lambda _, y=y, want=want: np.testing.assert_array_equal(y, want), range(3))


def test_an_array_of_a_cycle_is_there_for_its_finalizers():
    """Finalizers of a cycle run in any order: buffers were destroyed before they were read."""
    got = []

    class Model:
        def __init__(self, x):
            self.x, self.me = x, self

        def __del__(self):
            got.append(self.x)

    for k in range(5):
        x = nj.device_put(np.full(100, k, np.float32), device())
        Model(x)
        del x
        gc.collect()
        np.testing.assert_array_equal(got[-1] + 1, np.full(100, k + 1))
