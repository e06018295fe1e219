"""Programs call compiled functions of others themselves, from the second call of a place on."""

from __future__ import annotations

import ctypes
import gc
import threading

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import ffi
from numjet.base import ffi_structs as structs
from numjet.core import ffi_api, ffi_targets
from numjet.cpu.builder.records import Pointer
from numjet.cpu.runtime.code.foreign import foreign
from numjet.cpu.runtime.foreign import Described
from numjet.errors import JaxRuntimeError

SPEC = nj.ShapeDtypeStruct
_alive = []  # callbacks, which targets keep no reference of
_TYPES = {1: np.bool_, 4: np.int32, 11: np.float32, 12: np.float64}


def register(fun):
    """The name of a target that is `fun(frame, operands, results)`; it returns the handler's error.
    """

    def array(address):
        found = structs.Buffer.from_address(address)
        assert found.data % 64 == 0
        shape = (ctypes.c_int64 * found.rank).from_address(found.dims) if found.rank else ()
        dtype = np.dtype(_TYPES[found.dtype])
        memory = (ctypes.c_char * (int(np.prod(shape)) * dtype.itemsize)).from_address(found.data)
        return np.frombuffer(memory, dtype).reshape(tuple(shape))

    def arrays(of):
        return [*map(array, (ctypes.c_void_p * of.size).from_address(of.items) if of.size else ())]

    def run(address):
        frame = structs.Frame.from_address(address)
        if frame.extension:
            asked = structs.Extension.from_address(frame.extension)
            structs.Metadata.from_address(asked.metadata).version.minor = structs.VERSION[1]
            return None
        return fun(frame, arrays(frame.operands), arrays(frame.results))

    made = structs.HANDLER(run)
    _alive.append(made)
    name = f"test_native_{len(_alive)}"
    ffi.register_ffi_target(name, ffi.pycapsule(made))
    return name


def table(frame, name, args):
    """Call a function of the table that a frame has."""
    api = structs.Api.from_address(frame.api)
    return structs.HANDLER(getattr(api, name))(ctypes.addressof(args))


def double(frame, ins, outs):
    outs[0][...] = 2 * ins[0]


@pytest.fixture
def in_python(monkeypatch):
    """The shapes of the results of calls that go through Python."""
    seen, former = [], ffi_targets.Site.__call__

    def call(self, operands, shapes, results, aliases):
        seen.append([of.shape for of in results])
        return former(self, operands, shapes, results, aliases)

    monkeypatch.setattr(ffi_targets.Site, "__call__", call)
    return seen


def doubled(name, **options):
    return nj.jit(lambda x: ffi.ffi_call(name, SPEC(x.shape, x.dtype), **options)(x))


@pytest.mark.parametrize("n", [1, 7, 1000, 5000])
def test_the_second_call_does_not_go_through_python(n, in_python):
    run = doubled(register(double))
    for k in range(4):
        x = np.arange(n, dtype=np.float32) + k
        np.testing.assert_array_equal(run(jnp.asarray(x)), 2 * x)
    assert len(in_python) == 1


def test_arrays_that_are_not_aligned(in_python):
    run = doubled(register(double))
    for n, calls in ((100, 1), (100_000, 2)):
        memory = np.zeros(4 * n + 128, np.uint8)
        start = -memory.__array_interface__["data"][0] % 64 + 8
        x = memory[start : start + 4 * n].view(np.float32)
        x[:] = np.arange(n)
        executable = run.lower(x).compile()
        in_python.clear()
        for _ in range(2):
            np.testing.assert_array_equal(executable(x), 2 * x)
        assert len(in_python) in (1, calls)  # larger ones are copied by Python


def test_arrays_without_elements_and_packed_ones_stay_with_python(in_python):
    name = register(lambda frame, ins, outs: None)
    run = nj.jit(lambda x: ffi.ffi_call(name, SPEC((0, 3), x.dtype))(x))
    for _ in range(3):
        assert run(jnp.ones((2, 3))).shape == (0, 3)
    assert len(in_python) == 3


def test_operands_that_share_their_memory_with_results(in_python):
    def add(frame, ins, outs):
        assert ins[1].ctypes.data == outs[0].ctypes.data
        outs[0][...] += ins[0]
        outs[1][...] = 7

    name = register(add)
    run = nj.jit(lambda x, y: ffi.ffi_call(
        name, [SPEC(y.shape, y.dtype), SPEC((), np.int32)],
        input_output_aliases={1: 0})(x, y))
    x, y = jnp.arange(40.0), jnp.ones(40)
    for _ in range(3):
        z, seven = run(x, y)
        np.testing.assert_array_equal(z, np.arange(40) + 1)
        np.testing.assert_array_equal(y, np.ones(40))
        assert int(seven) == 7
    assert len(in_python) == 1


def test_errors_and_what_comes_after_them(in_python):
    failing = [False]

    def refuse(frame, ins, outs):
        outs[0][...] = ins[0]
        if failing[0]:
            return table(frame, "error_create", structs.NewError(
                structs.NewError.counted, None, b"not today", structs.INVALID_ARGUMENT))

    run = doubled(register(refuse))
    x = jnp.arange(3.0)
    for failing[0] in (False, False, True, True, False, True):
        if failing[0]:
            with pytest.raises(JaxRuntimeError, match="INVALID_ARGUMENT: not today"):
                run(x)
        else:
            np.testing.assert_array_equal(run(x), x)
    assert len(in_python) == 1 and not ffi_api._errors


def test_futures_scratch_memory_states_and_the_numbers_of_runs(in_python):
    register_type = structs.TypeRegistration
    numbers, runs, pending = [], [], []

    def ask(frame, ins, outs):
        run = structs.RunArgs(structs.RunArgs.counted, None, frame.context, 0)
        assert not table(frame, "run_id", run)
        runs.append(run.run)
        block = structs.Allocation(structs.Allocation.counted, None, frame.context, 100, 64, None)
        assert not table(frame, "memory_allocate", block) and block.data % 64 == 0
        name = ctypes.create_string_buffer(b"test_native_type")
        number = ctypes.c_int64()
        kind = register_type(register_type.counted, None, structs.Text(ctypes.addressof(name), 16),
                             ctypes.addressof(number), None)
        assert not table(frame, "type_register", kind)
        numbers.append(number.value)
        state = structs.StateArgs(structs.StateArgs.counted, None, frame.context,
                                  structs.EXECUTE, ctypes.addressof(number), 4711)
        assert not table(frame, "state_set", state)  # of this call only
        future = structs.FutureArgs(structs.FutureArgs.counted, None, None)
        assert not table(frame, "future_create", future)
        frame.future = future.future
        later = threading.Timer(0.01, end, (frame.api, future.future, outs[0]))
        pending.append(later)
        later.start()

    def end(api, future, out):
        out[...] = 5
        args = structs.FutureArgs(structs.FutureArgs.counted, None, future)
        found = structs.Api.from_address(api)
        structs.HANDLER(found.future_available)(ctypes.addressof(args))

    run = doubled(register(ask))
    for _ in range(4):
        np.testing.assert_array_equal(run(jnp.zeros(3)), np.full(3, 5))
    assert len({*runs}) == 4 and len({*numbers}) == 1 and len(in_python) == 1
    assert not ffi_api._futures
    assert not any(context.blocks for context in ffi_api._contexts.values())


def test_threads_and_handlers_that_call_the_program_again():
    inside = []

    def again(frame, ins, outs):
        outs[0][...] = 2 * ins[0]
        if ins[0].max() > 100:
            inside.append(np.asarray(run(jnp.asarray(ins[0] - 100))).copy())

    run = doubled(register(again))
    for _ in range(2):
        np.testing.assert_array_equal(run(jnp.arange(5.0)), 2 * np.arange(5))
    np.testing.assert_array_equal(run(jnp.arange(5.0) + 200), 2 * np.arange(5) + 400)
    assert [list(x) for x in inside] == [[0, 2, 4, 6, 8], [200, 202, 204, 206, 208]]
    wrong = []

    def work(k):
        for i in range(50):
            x = np.arange(5, dtype=np.float32) + k + i
            if not np.array_equal(run(jnp.asarray(x)), 2 * x):
                wrong.append((k, i))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_other_threads_run_while_a_handler_waits():
    met = threading.Event()

    def wait(frame, ins, outs):
        outs[0][...] = met.wait(20)

    run = doubled(register(wait))
    met.set()
    run(jnp.zeros(2))
    run(jnp.zeros(2))
    met.clear()
    threading.Timer(0.05, met.set).start()
    np.testing.assert_array_equal(run(jnp.zeros(2)), np.ones(2))


def test_frames_end_with_their_programs():
    before = len(ffi_api._contexts)
    run = doubled(register(double))
    for _ in range(3):
        run(jnp.arange(3.0))
    assert len(ffi_api._contexts) == before + 1
    del run
    nj.clear_caches()
    gc.collect()
    assert len(ffi_api._contexts) <= before


@pytest.mark.parametrize("shift", [0, 4])
def test_the_code_as_python(shift):
    """The native function, run as Python, on memory that is aligned and on memory that is not."""
    called, failures = [], []

    def refuse(frame, ins, outs):
        if ins[0][0] < 0:
            return table(frame, "error_create", structs.NewError(
                structs.NewError.counted, None, b"negative", structs.INVALID_ARGUMENT))
        outs[0][...] = 2 * ins[0]

    shape = ffi_targets.Shape((3,), np.dtype(np.float32), (0,))
    site = ffi_targets.Site(register(refuse), [], 4, None)
    python = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(lambda _: called.append(1) or 0)
    described = Described(ctypes.cast(python, ctypes.c_void_p).value, failures.append)
    memory = np.zeros(256, np.uint8)
    start = -memory.__array_interface__["data"][0] % 64 + shift
    x = memory[start : start + 12].view(np.float32)
    y = memory[start + 128 : start + 140].view(np.float32)
    given = (ctypes.c_void_p * 4)(described.address, x.ctypes.data, y.ctypes.data, 1)
    at = Pointer(ctypes.addressof(given))
    foreign(at)
    assert called == [1] and given[3] == 1
    described.prepare(site.prepared([shape], [shape], []))
    for first, status in ((1.0, None), (-1.0, 1), (2.0, None)):
        x[:], given[3] = [first, 5, 6], 1
        foreign(at)
        assert given[3] == status and called == [1]
        if status is None:
            assert [*y] == [2 * first, 10, 12]
    (error,) = failures
    assert isinstance(error, JaxRuntimeError)
