"""Python functions called by programs on a plugin: values, order, errors, threads.

On the CPU plugin everything runs a second time as on a CUDA device, with a driver of our own.
"""
from __future__ import annotations

import ctypes
import threading
import weakref

import ml_dtypes
import numpy as np
import pytest
from xla.plugin import PLATFORM, device, needs_plugin

import numjet as nj
import numjet.numpy as jnp
from numjet import lax
from numjet.base.errors import JaxRuntimeError, XlaError
from numjet.experimental import io_callback
from numjet.extend.core import Primitive
from numjet.interpreters import mlir
from numjet.xla import cuda, hlo, host_calls

pytestmark = needs_plugin
TRIPLE = nj.ShapeDtypeStruct((3,), np.float32)


class Driver:
    """CUDA's driver where memory of the device is the host's. Copies are made when somebody waits
    for their stream: what is not waited for is not there."""

    STREAM, CONTEXT = 77, 99

    def __init__(self):
        self.begun, self.contexts, self.fails = [], [], {}
        self.copies = self.held = self.settled = 0
        self.kept = {}

    def function(self, name):
        def called(*args):
            return self.fails[name] if name in self.fails else getattr(self, name)(*args) or 0

        return self.kept.setdefault(name, cuda.prototype(name)(called))

    def cuDevicePrimaryCtxRetain(self, context, number):  # noqa: N802
        assert number == 3
        context[0] = self.CONTEXT
        self.held += 1

    def cuDevicePrimaryCtxRelease_v2(self, number):  # noqa: N802
        self.held -= 1

    def cuCtxSynchronize(self):  # noqa: N802
        assert self.contexts == [self.CONTEXT]
        self.settled += 1

    def cuStreamGetCtx(self, stream, context):  # noqa: N802
        assert stream == self.STREAM
        context[0] = self.CONTEXT

    def cuCtxPushCurrent_v2(self, context):  # noqa: N802
        self.contexts.append(context)

    def cuCtxPopCurrent_v2(self, context):  # noqa: N802
        context[0] = self.contexts.pop()

    def _copy(self, to, of, size, stream):
        assert stream == self.STREAM and self.contexts == [self.CONTEXT]
        self.begun.append((to, of, size))

    cuMemcpyDtoHAsync_v2 = cuMemcpyHtoDAsync_v2 = _copy  # noqa: N815

    def cuStreamSynchronize(self, stream):  # noqa: N802
        assert stream == self.STREAM and self.contexts == [self.CONTEXT]
        for copy in self.begun:
            ctypes.memmove(*copy)
        self.copies += len(self.begun)
        self.begun.clear()

    def cuGetErrorString(self, status, words):  # noqa: N802
        words[0] = b"out of %d" % status


@pytest.fixture
def driver(monkeypatch):
    """Programs of the CPU plugin call Python as programs of CUDA's do."""
    made = Driver()
    monkeypatch.setattr(cuda, "function", made.function)
    monkeypatch.setattr(host_calls, "_stream", lambda frame: made.STREAM)
    monkeypatch.setattr(host_calls, "_in_place", host_calls._copied)
    yield made
    assert not made.begun and not made.contexts and not made.held


LOAD = cuda.function.__wrapped__  # without what is remembered
on_cpu = pytest.mark.skipif(PLATFORM != "xla_cpu", reason="the driver is CUDA's own")


@pytest.fixture(autouse=True, params=["itself", pytest.param("as CUDA", marks=on_cpu)])
def way(request):
    if request.param == "as CUDA":
        request.getfixturevalue("driver")


def three():
    return nj.device_put(np.arange(3, dtype=np.float32), device())


def test_values_and_where_they_are_computed():
    threads = []

    def twice(x):
        threads.append(threading.get_ident())
        # Programs that it runs are the CPU's, for the device waits.
        return (jnp.sin(x) + nj.jit(jnp.sin)(np.asarray(x)))

    out = nj.jit(lambda x: nj.pure_callback(twice, TRIPLE, x) + 1)(three())
    assert out.devices() == {device()} and threads == [threading.get_ident()]
    np.testing.assert_allclose(out, 2 * np.sin(np.arange(3)) + 1, rtol=1e-6)
    np.testing.assert_array_equal(nj.pure_callback(lambda x: x, TRIPLE, three()), [0, 1, 2])


def test_compiled_functions_of_others_are_called_on_the_host():
    triple = ctypes.c_float * 3

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))
    def negate(out, ins):
        triple.from_address(out)[:] = [-x for x in triple.from_address(ins[0])]

    name = f"negate_{ctypes.cast(negate, ctypes.c_void_p).value}"
    nj.ffi.register_ffi_target(name, nj.ffi.pycapsule(negate), api_version=0)
    call = nj.ffi.ffi_call(name, TRIPLE, custom_call_api_version=1)
    out = nj.jit(lambda x: call(x) * 2)(three())
    assert out.devices() == {device()}
    np.testing.assert_array_equal(out, [0, -2, -4])


def test_operations_of_users_run_by_their_lowering_or_on_the_host():
    twice, sines = Primitive("twice"), Primitive("sines")
    twice.def_abstract_eval(lambda x: x)
    mlir.register_lowering(twice, mlir.lower_fun(lambda x: 2 * x, multiple_results=False))
    sines.multiple_results = True
    sines.def_abstract_eval(lambda x: [x, x])
    sines.def_impl(lambda x: [np.sin(np.asarray(x)), np.asarray(x) + 1])
    mlir.register_lowering(sines, lambda ctx, x: mlir.hlo.sine(x).results)
    x = three()
    np.testing.assert_array_equal(nj.jit(twice.bind)(x), [0, 2, 4])
    loop = nj.jit(lambda x: lax.scan(lambda c, _: (twice.bind(c), None), x, None, length=3)[0])
    np.testing.assert_array_equal(loop(x), [0, 8, 16])
    out = nj.jit(lambda x: sines.bind(twice.bind(x))[1] * 2)(x)
    assert out.devices() == {device()}
    np.testing.assert_array_equal(out, [2, 6, 10])


def test_order_through_loops_and_branches():
    seen = []

    def note(*what):
        return lambda *values: seen.append((*what, *map(float, values)))

    @nj.jit
    def run(x):
        def body(i, c):
            nj.debug.callback(note("debug"), i, ordered=True)
            io_callback(note("io"), None, c, ordered=True)
            return c + 1

        c = lax.fori_loop(0, 2, body, x[0])
        c = lax.while_loop(lambda c: c < 4, lambda c: body(7, c), c)
        lax.cond(c > 2, lambda c: io_callback(note("yes"), None, c, ordered=True),
                 lambda c: io_callback(note("no"), None, c, ordered=True), c)
        nj.jit(lambda c: io_callback(note("inner"), None, c, ordered=True))(c)
        lax.scan(lambda c, y: (body(y, c), y), c, x, reverse=True)
        return c

    assert run(three()) == 4
    pairs = [(0, 0), (1, 1), (7, 2), (7, 3)]
    want = [call for i, c in pairs for call in (("debug", i), ("io", c))] + [
        ("yes", 4), ("inner", 4)]
    want += [call for y, c in ((2, 4), (1, 5), (0, 6)) for call in (("debug", y), ("io", c))]
    assert seen == want


def test_exceptions_surface_and_the_program_can_be_called_again():
    fail = [True]

    def picky(x):
        if fail[0]:
            raise KeyError("mine")
        return x

    f = nj.jit(lambda x: nj.pure_callback(picky, TRIPLE, x) * 2)
    with pytest.raises(JaxRuntimeError, match="KeyError: 'mine'"):
        f(three())
    with pytest.raises(JaxRuntimeError, match="Incorrect output shape"):
        nj.jit(lambda x: nj.pure_callback(lambda x: x[:2], TRIPLE, x))(three())
    fail[0] = False
    np.testing.assert_array_equal(f(three()), [0, 2, 4])


def test_functions_die_with_their_program():
    module = hlo.module(nj.make_jaxpr(lambda x: nj.pure_callback(np.sin, TRIPLE, x))(three()))
    (call,) = module.calls
    assert f"id = {call.number} : i64" in module.text
    alive = weakref.ref(call)
    del call, module
    assert alive() is None


NARROW = ["int2", "int4", "uint2", "uint4", "float4_e2m1fn", "float8_e4m3fn", "bfloat16"]


@pytest.mark.parametrize("name", [*NARROW, "bool", "int8", "float64", "complex64", "complex128"])
def test_elements_of_every_size(name):
    """Those of less than a byte are packed on devices: Python sees one a place."""
    with nj.enable_x64(True):
        dtype = np.dtype(getattr(ml_dtypes, name, name))
        values = np.array([1, 0, 1, 1, 0, 0, 1], np.float32).astype(dtype)
        if dtype.kind == "c":
            values *= 2 - 3j
        seen = []

        def back(x, y):
            seen.append((np.array(x), np.array(y)))
            return y[::-1], x

        out = nj.jit(lambda x, y: nj.pure_callback(
            back, (nj.ShapeDtypeStruct((2,), dtype), nj.ShapeDtypeStruct((7,), dtype)), x, y
        ))(nj.device_put(values, device()), nj.device_put(values[:2], device()))
        wanted = (values, values[:2], values[1::-1], values)
        for got, want in zip((*seen[0], *out), wanted, strict=True):
            assert got.dtype == dtype and np.asarray(got).tolist() == want.tolist()


def test_no_elements_matrices_and_keys():
    shapes = []

    def note(x, y):
        shapes.append((x.shape, y.shape))
        return np.asarray(y).T

    def run(x):
        made = io_callback(note, nj.ShapeDtypeStruct((3, 2), np.float32), x[:0], x * 2)
        io_callback(lambda x: shapes.append(x.shape), None, made.T)
        return made, io_callback(lambda: x0, nj.ShapeDtypeStruct((0, 4), np.int32))

    x0 = np.zeros((0, 4), np.int32)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    out, none = nj.jit(run)(nj.device_put(x, device()))
    np.testing.assert_array_equal(out, x.T * 2)
    assert none.shape == (0, 4) and shapes == [((0, 3), (2, 3)), (2, 3)]
    key = nj.random.key(3)
    out = nj.jit(lambda k: nj.pure_callback(lambda k: nj.random.split(k)[1], key, k))(
        nj.device_put(key, device()))
    np.testing.assert_array_equal(nj.random.key_data(out),
                                  nj.random.key_data(nj.random.split(key)[1]))


def test_programs_name_the_order_of_elements():
    """Without that a compiler may hand over a matrix column by column."""
    text = hlo.module(nj.make_jaxpr(
        lambda x: io_callback(np.sum, nj.ShapeDtypeStruct((), np.float32), x, ordered=True)
    )(np.ones((2, 3), np.float32))).text
    assert ("operand_layouts = [dense<[1, 0]> : tensor<2xindex>, dense<> : tensor<0xindex>], "
            "result_layouts = [dense<> : tensor<0xindex>, dense<> : tensor<0xindex>]") in text


@on_cpu
def test_operands_and_results_are_copied_on_the_stream(driver):
    out = nj.jit(lambda x: io_callback(lambda x, n: x * n, TRIPLE, x, 2, ordered=True))(three())
    np.testing.assert_array_equal(out, [0, 2, 4])
    assert driver.copies == 3  # what keeps the order is nobody's value


@on_cpu
@pytest.mark.parametrize("name", ["cuStreamGetCtx", "cuCtxPushCurrent_v2", "cuMemcpyDtoHAsync_v2",
                                  "cuStreamSynchronize", "cuMemcpyHtoDAsync_v2"])
def test_errors_of_the_driver_surface(driver, name):
    driver.fails[name] = 700
    f = nj.jit(lambda x: nj.pure_callback(lambda x: x + 1, TRIPLE, x))
    with pytest.raises(XlaError, match=f"{name}: CUDA's driver returned 700: out of 700"):
        f(three())
    driver.begun.clear()
    driver.fails.clear()
    np.testing.assert_array_equal(f(three()), [1, 2, 3])


@on_cpu
def test_waiting_for_a_device_gives_its_context_back(driver):
    cuda.settle(3)
    assert driver.settled == 1
    driver.fails["cuCtxSynchronize"] = 719
    with pytest.raises(XlaError, match="cuCtxSynchronize: CUDA's driver returned 719"):
        cuda.settle(3)


def test_a_machine_without_a_driver_says_so(monkeypatch):
    monkeypatch.setattr(cuda, "_LIBRARY", "libnothing.so.0")
    with pytest.raises(XlaError, match="libnothing.so.0"):
        LOAD("cuCtxSynchronize")


@on_cpu
def test_a_plugin_without_streams_says_so(monkeypatch):
    """It is asked through the table of XLA's functions, as CUDA's is, and refuses in its words."""
    monkeypatch.undo()
    monkeypatch.setattr(host_calls, "_in_place", host_calls._copied)
    with pytest.raises(XlaError, match="not available"):
        nj.jit(lambda x: nj.pure_callback(np.sin, TRIPLE, x))(three())


def test_platforms_whose_memory_is_out_of_reach_take_no_handler():
    class Other:
        plugin, platform = device().client.plugin, "tpu"

    assert not host_calls.register(Other())
