"""Calls of compiled functions by name: handlers here are callbacks that ctypes compiles."""

from __future__ import annotations

import ctypes
import gc
import threading

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import ffi, lax
from numjet.base import ffi_structs as structs
from numjet.core.avals import ShapedArray
from numjet.errors import JaxRuntimeError
from numjet.experimental.layout import Layout
from numjet.extend.core import Primitive
from numjet.interpreters import mlir

SPEC = nj.ShapeDtypeStruct
_DTYPES = {number: name for name, number in structs.DTYPES.items()}
_alive = []  # callbacks, which targets keep no reference of


def _pointers(address, size):
    return [*(ctypes.c_void_p * size).from_address(address)] if size else []


def _buffer(address):
    """A buffer of whole bytes as an array that shares its memory."""
    found = structs.Buffer.from_address(address)
    shape = tuple((ctypes.c_int64 * found.rank).from_address(found.dims)) if found.rank else ()
    dtype = np.dtype(jnp.dtype(_DTYPES[found.dtype]))
    assert found.data % 64 == 0
    size = int(np.prod(shape)) * dtype.itemsize
    memory = (ctypes.c_char * max(size, 1)).from_address(found.data)
    return np.frombuffer(memory, np.uint8, size).view(dtype).reshape(shape)


def _attributes(found):
    kinds = (ctypes.c_int * found.size).from_address(found.types) if found.size else ()
    names = [structs.text_at(structs.Text.from_address(p))
             for p in _pointers(found.names, found.size)]
    return {
        name: _attribute(kind, address)
        for kind, name, address in zip(kinds, names, _pointers(found.items, found.size))
    }


def _attribute(kind, address):
    if kind == structs.STRING:
        return structs.text_at(structs.Text.from_address(address))
    if kind == structs.DICTIONARY:
        return _attributes(structs.Attributes.from_address(address))
    if kind == structs.SCALAR:
        found = structs.Scalar.from_address(address)
        data, size = found.value, 1
    else:
        found = structs.Numbers.from_address(address)
        data, size = found.data, found.size
    dtype = np.dtype(_DTYPES[found.dtype])
    memory = (ctypes.c_char * (size * dtype.itemsize)).from_address(data)
    values = np.frombuffer(memory, dtype).copy()
    return values[0] if kind == structs.SCALAR else values


class Refused(Exception):
    """What a handler tells: a code and a message."""


def handler(fun, version=structs.VERSION, state_type=0):
    """`fun(frame, operands, results, attributes)` as a handler, in a capsule."""

    def run(address):
        frame = structs.Frame.from_address(address)
        if frame.extension:
            asked = structs.Extension.from_address(frame.extension)
            told = structs.Metadata.from_address(asked.metadata)
            told.version.major, told.version.minor = version
            told.state_type = state_type
            return None
        ins = [_buffer(p) for p in _pointers(frame.operands.items, frame.operands.size)]
        outs = [_buffer(p) for p in _pointers(frame.results.items, frame.results.size)]
        try:
            fun(frame, ins, outs, _attributes(frame.attributes))
        except Refused as error:
            code, message = error.args
            return table(frame, "error_create", structs.NewError(
                structs.NewError.counted, None, message.encode(), code))
        return None

    made = structs.HANDLER(run)
    _alive.append(made)
    return ffi.pycapsule(made)


def table(frame, name, args):
    """Call a function of the table that a frame has."""
    api = structs.Api.from_address(frame.api)
    return structs.HANDLER(getattr(api, name))(ctypes.addressof(args))


def registered(name, fun, **stages):
    ffi.register_ffi_target(name, {"execute": handler(fun), **stages} if stages else handler(fun))


# Of the session: a target is registered once, in whichever order tests come.
@pytest.fixture(scope="session", autouse=True)
def targets():
    def scale(frame, ins, outs, attributes):
        outs[0][...] = ins[0] * attributes["by"]

    def total(frame, ins, outs, attributes):
        if not ins[0].ndim:
            raise Refused(structs.INVALID_ARGUMENT, "expected an axis")
        outs[0][...] = ins[0].sum(-1) + ins[1].sum(-1)

    registered("test_scale", scale)
    registered("test_total", total)


def scale(x, by=2.0, **options):
    return ffi.ffi_call("test_scale", SPEC(x.shape, x.dtype), **options)(x, by=np.float32(by))


def test_a_handler_computes_eagerly_in_programs_and_in_loops():
    x = jnp.arange(6, dtype=jnp.float32).reshape(2, 3)
    np.testing.assert_array_equal(scale(x), 2 * np.asarray(x))
    np.testing.assert_array_equal(nj.jit(lambda x: scale(x + 1, 3.0) - 1)(x), 3 * (x + 1) - 1)
    last, _ = lax.scan(lambda c, _: (scale(c), None), x, None, length=4)
    np.testing.assert_array_equal(last, 16 * np.asarray(x))
    chosen = nj.jit(lambda p, x: lax.cond(p, scale, lambda x: x, x))
    np.testing.assert_array_equal(chosen(True, x), 2 * np.asarray(x))
    np.testing.assert_array_equal(chosen(False, x), np.asarray(x))
    assert nj.eval_shape(scale, x).shape == (2, 3)


def test_results_are_one_array_or_a_sequence_as_asked():
    def two(frame, ins, outs, attributes):
        for i, out in enumerate(outs):
            out[...] = i + 1

    registered("test_two", two)
    a, b = ffi.ffi_call("test_two", (SPEC((2,), np.int8), SPEC((), np.float32)))()
    assert (a.dtype, a.shape, b.shape, float(b)) == (np.int8, (2,), (), 2.0)
    assert isinstance(ffi.ffi_call("test_two", [SPEC((), np.int32)])(), list)
    assert ffi.ffi_call("test_two", ())() == ()
    assert int(ffi.ffi_call("test_two", SPEC((), np.int32))()) == 1
    with pytest.raises(ValueError, match="must have 'shape' and 'dtype'.*position 1"):
        ffi.ffi_call("test_two", (SPEC((), np.int32), None))


@pytest.mark.parametrize("name", sorted(set(structs.DTYPES) - {"int1", "uint1"}))
def test_every_dtype_is_handed_over_and_back(name):
    seen = []

    def copy(frame, ins, outs, attributes):
        (source,) = _pointers(frame.operands.items, 1)
        (target,) = _pointers(frame.results.items, 1)
        of, to = structs.Buffer.from_address(source), structs.Buffer.from_address(target)
        seen.append(_DTYPES[of.dtype])
        ctypes.memmove(to.data, of.data, -(-5 * bits // 8))

    made = structs.HANDLER(_plain(copy))
    _alive.append(made)
    ffi.register_ffi_target(f"test_copy_{name}", ffi.pycapsule(made))
    with nj.enable_x64(True):
        dtype = jnp.dtype(name)
        bits = dtype.itemsize * 8 if name not in _NARROW else _NARROW[name]
        x = jnp.array([1, 2, 1, 1, 2]).astype(dtype)
        y = ffi.ffi_call(f"test_copy_{name}", SPEC((5,), dtype))(x)
    assert y.dtype == dtype and seen == [name]
    np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


_NARROW = {"int4": 4, "uint4": 4, "int2": 2, "uint2": 2, "float4_e2m1fn": 4}


def _plain(fun):
    """A handler that reads no buffers."""

    def run(address):
        frame = structs.Frame.from_address(address)
        if frame.extension:
            asked = structs.Extension.from_address(frame.extension)
            structs.Metadata.from_address(asked.metadata).version.minor = structs.VERSION[1]
        else:
            fun(frame, (), (), {})

    return run


def test_numbers_of_less_than_a_byte_are_packed_and_signed():
    held = []

    def shift(frame, ins, outs, attributes):
        (source,) = _pointers(frame.operands.items, 1)
        (target,) = _pointers(frame.results.items, 1)
        of, to = structs.Buffer.from_address(source), structs.Buffer.from_address(target)
        held.append(ctypes.string_at(of.data, 2))
        ctypes.memmove(to.data, of.data, 2)

    made = structs.HANDLER(_plain(shift))
    _alive.append(made)
    ffi.register_ffi_target("test_packed", ffi.pycapsule(made))
    x = jnp.array([-3, 7, -8]).astype(jnp.int4)
    y = ffi.ffi_call("test_packed", SPEC((3,), jnp.int4))(x)
    assert held == [bytes([0x7D, 0x08])]
    assert np.asarray(y.astype(np.int8)).tolist() == [-3, 7, -8]


def test_results_of_64_bits_need_no_flag():
    def fill(frame, ins, outs, attributes):
        outs[0][...] = 2**40

    registered("test_wide", fill)
    assert int(ffi.ffi_call("test_wide", SPEC((), np.int64))()) == 2**40


def test_keys_are_handed_over_as_words():
    def swap(frame, ins, outs, attributes):
        outs[0][...] = ins[0][..., ::-1]

    registered("test_swap", swap)
    key = nj.random.key(7)
    out = ffi.ffi_call("test_swap", SPEC(key.shape, key.dtype))(key)
    assert out.dtype == key.dtype
    np.testing.assert_array_equal(nj.random.key_data(out), [7, 0])


def test_attributes():
    seen = []

    def note(frame, ins, outs, attributes):
        seen.append(attributes)

    registered("test_note", note)
    call = ffi.ffi_call("test_note", (), has_side_effect=True)
    given = {
        "z": 3, "b": True, "a": 0.5, "s": "été", "u": np.uint8(200), "f": np.float32(1.5),
        "many": np.arange(6, dtype=np.int16).reshape(2, 3), "none": np.zeros(0),
        "inner": {"y": 1, "x": {"text": "t"}},
    }  # fmt: skip
    call(**given)
    nj.jit(lambda: call(**given))()
    for found in seen:
        assert list(found) == sorted(given)
        assert (found["z"], found["z"].dtype) == (3, np.int64)
        assert (found["b"], found["b"].dtype) == (True, np.bool_)
        assert (found["a"], found["a"].dtype) == (0.5, np.float64)
        assert found["s"] == "été" and found["u"].dtype == np.uint8 and found["u"] == 200
        assert found["f"].dtype == np.float32
        assert found["many"].tolist() == [0, 1, 2, 3, 4, 5] and found["none"].size == 0
        assert found["inner"] == {"x": {"text": "t"}, "y": 1}
    assert len(seen) == 2
    text = str(nj.make_jaxpr(lambda: call(a=1, m=np.arange(2), d={"k": 2}))())
    assert "HashableArray(array([0, 1]))" in text and "FrozenDict({'k': 2})" in text
    assert "instance" not in text and "vmap_method=None" in text


@pytest.mark.parametrize(("value", "kind", "match"), [
    ([1, 2], TypeError, "Non-hashable keyword argument to ffi_call q"),
    (None, TypeError, "No attribute handler defined for type"),
    (np.complex64(1), TypeError, "Unsupported scalar attribute type"),
    (2**70, OverflowError, "too large"),
    ((1, 2), JaxRuntimeError, "INVALID_ARGUMENT: Unsupported attribute type for attribute: q"),
    (np.float16(1), JaxRuntimeError, "INVALID_ARGUMENT: Unsupported"),
    (np.ones(2, bool), JaxRuntimeError, "Unsupported array element type for attribute: q"),
])  # fmt: skip
def test_attributes_that_no_handler_takes(value, kind, match):
    with pytest.raises(kind, match=match):
        ffi.ffi_call("test_scale", SPEC((), np.float32))(jnp.float32(1), q=value)


def test_errors_of_handlers_and_of_names():
    x = jnp.float32(1)
    call = ffi.ffi_call("test_total", SPEC((), np.float32))
    for f in (call, nj.jit(call)):
        with pytest.raises(JaxRuntimeError, match="^INVALID_ARGUMENT: expected an axis"):
            f(x, x)
    with pytest.raises(JaxRuntimeError, match="NOT_FOUND: No FFI handler registered for absent"):
        ffi.ffi_call("absent", SPEC((), np.float32))(x)
    with pytest.raises(JaxRuntimeError, match="NOT_FOUND: No registered implementation"):
        ffi.ffi_call("absent", SPEC((), np.float32), custom_call_api_version=2)(x)
    with pytest.raises(TypeError, match="is not a valid JAX type"):
        call([1.0], x)
    with pytest.raises(ValueError, match="The FFI call to `test_scale` cannot be differentiated"):
        nj.grad(lambda x: scale(x))(x)
    with pytest.raises(ValueError, match="cannot be differentiated"):
        nj.linear_transpose(scale, x)(x)


def test_registration():
    def other(frame, ins, outs, attributes):
        pass

    first = handler(other)
    ffi.register_ffi_target("test_reg", first)
    ffi.register_ffi_target("test_reg", first, platform="Host")  # the same again
    with pytest.raises(JaxRuntimeError, match="Duplicate FFI handler registration for test_reg"):
        ffi.register_ffi_target("test_reg", handler(other))
    with pytest.raises(JaxRuntimeError, match="must provide an execute implementation"):
        ffi.register_ffi_target("test_reg2", {"prepare": first})
    with pytest.raises(JaxRuntimeError, match="Unsupported custom call target type"):
        ffi.register_ffi_target("test_reg2", 5)
    with pytest.raises(JaxRuntimeError, match="UNIMPLEMENTED: API version 2"):
        ffi.register_ffi_target("test_reg2", first, api_version=2)
    with pytest.raises(TypeError, match="incompatible function arguments"):
        ffi.register_ffi_target("test_reg2", None)
    with pytest.raises(TypeError, match="unexpected keyword argument 'color'"):
        ffi.register_ffi_target("test_reg2", first, color=1)
    with pytest.raises(JaxRuntimeError, match=r"is of version 1\.0 of the interface"):
        ffi.register_ffi_target("test_reg3", handler(other, version=(1, 0)))
    with pytest.raises(JaxRuntimeError, match="must be registered before the handler"):
        ffi.register_ffi_target("test_reg4", handler(other, state_type=123456))
    with pytest.raises(ValueError, match="null"):
        ffi.pycapsule(None)
    with pytest.raises(ValueError, match="register_ffi_type"):
        ffi.register_ffi_type_id("t", first)


@pytest.mark.parametrize("method", [
    "sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized",
])
def test_vmap_by_method(method):
    x, y = jnp.arange(6.0, dtype=jnp.float32).reshape(3, 2), jnp.ones(2, jnp.float32)
    call = ffi.ffi_call("test_total", SPEC((), np.float32), vmap_method=method)
    for f in (nj.vmap(call, (0, None)), nj.jit(nj.vmap(call, (0, None)))):
        np.testing.assert_array_equal(f(x, y), np.asarray(x).sum(1) + 2)
    np.testing.assert_array_equal(nj.vmap(call, (1, None))(x.T, y), np.asarray(x).sum(1) + 2)


def test_vmap_needs_a_known_method():
    with pytest.raises(NotImplementedError, match="Got vmap_method=None"):
        nj.vmap(scale)(jnp.ones((2, 2)))
    with pytest.raises(ValueError, match="allowed methods.*but got: rows"):
        scale(jnp.ones(2), vmap_method="rows")


def test_custom_derivatives_around_a_call():
    @nj.custom_jvp
    def f(x):
        return scale(x, vmap_method="broadcast_all")

    f.defjvp(lambda p, t: (f(*p), 2 * t[0]))
    grad = nj.jit(nj.vmap(nj.grad(lambda x: (f(x) ** 2).sum())))
    np.testing.assert_array_equal(grad(jnp.ones((2, 3))), np.full((2, 3), 8.0))


def test_layouts_of_operands_and_results():
    seen = []

    def turn(frame, ins, outs, attributes):
        seen.append(ins[0].reshape(-1).tolist())
        outs[0].reshape(-1)[...] = np.arange(outs[0].size)

    registered("test_turn", turn)
    x = jnp.arange(6, dtype=jnp.int32).reshape(2, 3)
    out = ffi.ffi_call("test_turn", x, input_layouts=[(1, 0)], output_layouts=Layout((1, 0)))(x)
    assert seen.pop() == [0, 3, 1, 4, 2, 5]
    assert out.tolist() == [[0, 2, 4], [1, 3, 5]]
    call = ffi.ffi_call(
        "test_turn", [SPEC((2, 3), np.int32)], input_layouts=[(1, 0)], output_layouts=[None],
        vmap_method="broadcast_all",
    )  # fmt: skip
    (out,) = nj.vmap(call)(jnp.stack([x, x + 6]))
    assert seen.pop() == [0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11]
    assert out.shape == (2, 2, 3)
    with pytest.raises(ValueError, match="must be a permutation"):
        ffi.ffi_call("test_turn", x, input_layouts=[(0,)])(x)
    with pytest.raises(ValueError, match=r"input arguments \(1\) must equal .* layouts \(2\)"):
        ffi.ffi_call("test_turn", x, input_layouts=[None, None])(x)
    with pytest.raises(ValueError, match=r"outputs \(2\) must equal .* output layouts \(1\)"):
        ffi.ffi_call("test_turn", (x, x), output_layouts=[None])


def test_aliased_operands_are_results_and_stay_as_they_were():
    def double(frame, ins, outs, attributes):
        assert ins[0].ctypes.data == outs[1].ctypes.data
        outs[1] *= 2
        outs[0][...] = 1

    registered("test_double", double)
    x = jnp.arange(3, dtype=jnp.int32)
    specs = (SPEC((), np.int32), x)
    call = ffi.ffi_call("test_double", specs, input_output_aliases={0: 1})
    for f in (call, nj.jit(call)):
        assert f(x)[1].tolist() == [0, 2, 4] and x.tolist() == [0, 1, 2]
    for given, match in (({1: 0}, "with input index"), ({0: 2}, "with output index"),
                         ({0: 0}, "referring to an input with abstract value")):
        with pytest.raises(ValueError, match=match):
            ffi.ffi_call("test_double", specs, input_output_aliases=given)(x)


def test_side_effects_keep_a_call():
    calls = []
    registered("test_tick", lambda *_: calls.append(1))
    x = jnp.ones(2)

    def f(x, effect):
        ffi.ffi_call("test_tick", SPEC((), np.float32), has_side_effect=effect)(x)
        return x

    nj.jit(lambda x: f(x, False))(x)
    assert not calls
    nj.jit(lambda x: f(x, True))(x)
    assert len(calls) == 1
    effects = nj.make_jaxpr(lambda x: f(x, True))(x).effects
    assert [*map(str, effects)] == ["FfiEffect()"]
    assert nj.checkpoint(lambda x: f(x, True))(x).tolist() == [1, 1]
    with pytest.raises(NotImplementedError, match="Effects not supported in partial-eval"):
        nj.grad(nj.checkpoint(lambda x: f(lax.stop_gradient(x), True).sum() + x.sum()))(x)


def test_a_target_keeps_a_state_for_each_place():
    number, deleted = ctypes.c_int64(0), []
    deleter = structs.VOID(lambda address: deleted.append(address))
    _alive.append(deleter)
    info = structs.TypeInfo(ctypes.sizeof(structs.TypeInfo), None,
                            ctypes.cast(deleter, ctypes.c_void_p))
    capsules = {"type_id": ffi.pycapsule(ctypes.addressof(number)),
                "type_info": ffi.pycapsule(ctypes.addressof(info))}
    ffi.register_ffi_type("test_counter", capsules)
    ffi.register_ffi_type("test_counter", capsules)
    assert number.value > 0
    with pytest.raises(JaxRuntimeError, match="must be a dictionary"):
        ffi.register_ffi_type("test_other", 3)
    counters = []

    def begin(frame, ins, outs, attributes):
        if attributes["start"] < 0:
            raise Refused(structs.INVALID_ARGUMENT, "negative")
        counters.append(ctypes.c_int64(int(attributes["start"])))
        args = structs.StateArgs(structs.StateArgs.counted, None, frame.context, frame.stage,
                                 ctypes.addressof(number), ctypes.addressof(counters[-1]))
        assert not table(frame, "state_set", args)

    def count(frame, ins, outs, attributes):
        args = structs.StateArgs(structs.StateArgs.counted, None, frame.context,
                                 structs.INSTANTIATE, ctypes.addressof(number))
        assert not table(frame, "state_get", args)
        value = ctypes.c_int64.from_address(args.state)
        outs[0][...] = value.value
        value.value += 1

    registered("test_count", count, instantiate=handler(begin, state_type=number.value))

    def call(start):
        spec = SPEC((), np.int32)
        return ffi.ffi_call("test_count", spec, has_side_effect=True)(start=start)

    assert [int(call(5)) for _ in range(3)] == [5, 6, 7]
    assert int(call(50)) == 50
    f, g = nj.jit(lambda: call(5)), nj.jit(lambda: (call(5), call(5)))
    assert [int(f()) for _ in range(2)] == [5, 6]
    assert [[*map(int, g())] for _ in range(2)] == [[5, 5], [6, 6]]
    assert lax.map(lambda i: call(5) + 0 * i, jnp.arange(3)).tolist() == [5, 6, 7]
    with pytest.raises(JaxRuntimeError, match="INVALID_ARGUMENT: negative"):
        call(-1)
    del f, g
    nj.clear_caches()
    gc.collect()
    assert set(deleted) == {ctypes.addressof(x) for x in counters}


def test_what_handlers_ask_the_table():
    told = {}

    def ask(frame, ins, outs, attributes):
        count = ctypes.c_int64()
        threads = structs.Threads(structs.Threads.counted, None, frame.context,
                                  ctypes.addressof(count))
        assert not table(frame, "pool_threads", threads)
        told["threads"] = count.value
        memory = structs.Allocation(structs.Allocation.counted, None, frame.context, 100, 32)
        assert not table(frame, "memory_allocate", memory)
        ctypes.memset(memory.data, 1, 100)
        told["aligned"] = memory.data % 32 == 0
        release = structs.Release(structs.Release.counted, None, frame.context, 100, memory.data)
        assert not table(frame, "memory_free", release)
        run = structs.RunArgs(structs.RunArgs.counted, None, frame.context)
        assert not table(frame, "run_id", run)
        told["run"] = run.run
        device = structs.DeviceArgs(structs.DeviceArgs.counted, None, frame.context, 7)
        assert not table(frame, "device_ordinal", device)
        told["device"] = device.device
        stream = structs.StreamArgs(structs.StreamArgs.counted, None, frame.context)
        error = table(frame, "stream_get", stream)
        message = structs.ErrorMessage(structs.ErrorMessage.counted, None, error)
        table(frame, "error_message", message)
        told["stream"] = ctypes.string_at(message.message).decode()
        table(frame, "error_destroy", structs.OldError(structs.OldError.counted, None, error))

    registered("test_ask", ask)
    ffi.ffi_call("test_ask", (), has_side_effect=True)()
    assert told.pop("threads") > 0 and told.pop("run") > 0
    assert "no stream" in told.pop("stream")
    assert told == {"aligned": True, "device": 0}


@pytest.mark.parametrize("fails", [False, True])
def test_a_handler_may_end_later_in_the_pool(fails):
    caller, workers, tasks = threading.get_ident(), [], []

    def later(frame, ins, outs, attributes):
        future = structs.FutureArgs(structs.FutureArgs.counted)
        assert not table(frame, "future_create", future)
        frame.future = number = future.future
        api, out, x = frame.api, outs[0], ins[0]

        @structs.VOID
        def task(_):
            workers.append(threading.get_ident())
            out[...] = 2 * x
            shown = structs.Frame(api=api)
            if fails:
                error = table(shown, "error_create", structs.NewError(
                    structs.NewError.counted, None, b"the task failed", structs.INTERNAL))
                table(shown, "future_error", structs.FutureError(
                    structs.FutureError.counted, None, number, error))
            else:
                table(shown, "future_available", structs.FutureArgs(
                    structs.FutureArgs.counted, None, number))

        tasks.append(task)
        assert not table(frame, "pool_schedule", structs.Task(
            structs.Task.counted, None, frame.context, ctypes.cast(task, ctypes.c_void_p)))

    name = f"test_later_{fails}"
    registered(name, later)
    call = ffi.ffi_call(name, SPEC((4,), np.float32))
    if fails:
        with pytest.raises(JaxRuntimeError, match="INTERNAL: the task failed"):
            call(jnp.ones(4))
    else:
        np.testing.assert_array_equal(call(jnp.arange(4.0)), [0, 2, 4, 6])
    assert workers and caller not in workers


def test_libraries_register_targets_and_types_by_the_table():
    number = ctypes.c_int64(0)
    name, kind, place = b"test_inner", b"test_type", b"Host"
    made = structs.HANDLER(_plain(lambda *_: None))
    _alive.extend([name, kind, place, made])

    def text(value):
        return structs.Text(ctypes.cast(ctypes.c_char_p(value), ctypes.c_void_p), len(value))

    def register(frame, ins, outs, attributes):
        args = structs.TypeRegistration(structs.TypeRegistration.counted, None, text(kind),
                                        ctypes.addressof(number), None)
        assert not table(frame, "type_register", args)
        bundle = structs.Bundle(execute=ctypes.cast(made, ctypes.c_void_p))
        args = structs.Registration(structs.Registration.counted, None, text(name), text(place),
                                    bundle, 0)
        assert not table(frame, "handler_register", args)

    registered("test_library", register)
    ffi.ffi_call("test_library", (), has_side_effect=True)()
    assert number.value > 0 and ffi.ffi_call("test_inner", ())() == ()


def test_functions_of_the_older_interface():
    pointers = ctypes.POINTER(ctypes.c_void_p)
    floats = ctypes.c_float * 4

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p, pointers)
    def one(out, ins):
        floats.from_address(out)[:] = [x + 1 for x in floats.from_address(ins[0])]

    @ctypes.CFUNCTYPE(None, pointers, pointers, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p)
    def several(outs, ins, text, size, status):
        if text == b"fail":
            ctypes.c_char.from_address(status).value = b"\1"
        floats.from_address(outs[0])[:] = [size] * 4
        floats.from_address(outs[1])[:] = [*floats.from_address(ins[0])]

    _alive.extend([one, several])
    ffi.register_ffi_target("test_one", ffi.pycapsule(one), api_version=0)
    ffi.register_ffi_target("test_several", ffi.pycapsule(several), api_version=0)
    spec, x = SPEC((4,), np.float32), jnp.arange(4.0)
    for version in (1, 2, 3):
        call = ffi.ffi_call("test_one", spec, custom_call_api_version=version)
        assert nj.jit(call)(x).tolist() == [1, 2, 3, 4]

    def calls(text):
        return ffi.ffi_call("test_several", (spec, spec), custom_call_api_version=3,
                            legacy_backend_config=text)(x)

    assert [y.tolist() for y in calls("abc")] == [[3, 3, 3, 3], [0, 1, 2, 3]]
    with pytest.raises(JaxRuntimeError, match="INTERNAL"):
        calls("fail")
    with pytest.raises(JaxRuntimeError, match="NOT_FOUND"):
        ffi.ffi_call("test_one", spec)(x)
    with pytest.raises(JaxRuntimeError, match="Unknown custom-call API version"):
        ffi.ffi_call("test_one", spec, custom_call_api_version=0)(x)
    with pytest.raises(ValueError, match="The use of the legacy_backend_config"):
        ffi.ffi_call("test_one", spec, legacy_backend_config="x")(x)
    with pytest.raises(ValueError, match="The use of ffi_call attributes requires"):
        ffi.ffi_call("test_one", spec, custom_call_api_version=2)(x, a=1)


def test_primitives_are_lowered_to_targets():
    plain, rule = Primitive("test_plain"), Primitive("test_rule")
    rule.multiple_results = True
    plain.def_abstract_eval(lambda x, by: ShapedArray(x.shape, x.dtype))
    rule.def_abstract_eval(lambda x, by: [ShapedArray(x.shape, x.dtype)])
    mlir.register_lowering(plain, ffi.ffi_lowering("test_scale"), platform="cpu")

    def lower(ctx, x, *, by):
        layout = tuple(range(len(ctx.avals_in[0].shape)))[::-1]
        call = ffi.build_ffi_lowering_function("test_scale", operand_layouts=[layout])
        return call(ctx, x, by=mlir.ir_attribute(np.float32(by))).results

    mlir.register_lowering(rule, lower)
    x = jnp.arange(3.0)
    assert nj.jit(lambda x: plain.bind(x, by=np.float32(3)))(x).tolist() == [0, 3, 6]
    assert nj.jit(lambda x: rule.bind(x, by=4))(x)[0].tolist() == [0, 4, 8]
    with pytest.raises(NotImplementedError, match="MLIR"):
        ffi.ffi_lowering("test_scale", result_type="f32")
    assert mlir.i32_attr(3).dtype == np.int32 and mlir.i64_attr(3).dtype == np.int64


def test_headers_are_jaxlibs():
    with pytest.raises(FileNotFoundError, match="part of jaxlib"):
        ffi.include_dir()


def test_calls_over_devices():
    mesh = nj.make_mesh((1,), ("i",), (nj.sharding.AxisType.Auto,))
    f = nj.shard_map(scale, mesh=mesh, in_specs=nj.P("i"), out_specs=nj.P("i"))
    assert f(jnp.arange(3.0)).tolist() == [0, 2, 4]
    ffi.register_ffi_target_as_batch_partitionable("test_scale")
