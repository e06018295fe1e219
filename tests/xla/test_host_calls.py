"""Python functions called by programs on XLA's CPU plugin: values, order, errors, threads."""
from __future__ import annotations

import threading
import weakref

import ml_dtypes
import numpy as np
import pytest
from xla.plugin import device, needs_plugin

import numjet as nj
import numjet.numpy as jnp
from numjet import lax
from numjet.base.errors import JaxRuntimeError
from numjet.experimental import io_callback
from numjet.xla import hlo

pytestmark = needs_plugin
TRIPLE = nj.ShapeDtypeStruct((3,), np.float32)


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
