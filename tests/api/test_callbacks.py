"""Callbacks: called with the right values, in order, from eager code and compiled programs."""

from __future__ import annotations

import signal
from typing import Any

import numpy as np
import pytest
from both import both as compared

import numjet as nj
import numjet.numpy as jnp
from numjet import lax
from numjet.experimental import io_callback

SCALAR = nj.ShapeDtypeStruct((), np.float32)


def both(fun: Any) -> list:
    return [fun, nj.jit(fun)]


def host_sin(x: Any, **params: Any) -> Any:
    spec = nj.ShapeDtypeStruct(jnp.shape(x), jnp.result_type(x))
    return nj.pure_callback(lambda a: np.sin(np.asarray(a)), spec, x, **params)


def test_pure_callback_takes_and_returns_pytrees():
    def swap(pair, *, scale):
        return {"a": np.asarray(pair[1]) * np.asarray(scale), "b": np.asarray(pair[0])}

    def f(x, y):
        spec = {"a": nj.ShapeDtypeStruct((2,), np.float32), "b": SCALAR}
        return nj.pure_callback(swap, spec, (x, y), scale=2.0)

    for fun in both(f):
        out = fun(1.0, jnp.arange(2.0))
        np.testing.assert_array_equal(out["a"], [0, 2])
        assert out["b"] == 1.0 and out["b"].dtype == np.float32


def test_pure_callback_may_be_left_out():
    calls = []

    def f(x):
        nj.pure_callback(lambda a: calls.append(1) or a, SCALAR, x)
        return x + 1

    assert nj.jit(f)(1.0) == 2.0
    assert not calls


@pytest.mark.parametrize("method", ["sequential", "expand_dims", "broadcast_all"])
def test_vmap_methods(method):
    shapes = []

    def add(a, b):
        shapes.append((a.shape, b.shape))
        return np.asarray(a) + np.asarray(b)

    def f(x, y):
        return nj.pure_callback(add, SCALAR, x, y, vmap_method=method)

    x = jnp.arange(3.0)
    for fun in (nj.vmap(f, (0, None)), nj.jit(nj.vmap(f, (0, None)))):
        shapes.clear()
        np.testing.assert_array_equal(fun(x, jnp.float32(2)), [2, 3, 4])
        want = {
            "sequential": [((), ())] * 3,
            "expand_dims": [((3,), (1,))],
            "broadcast_all": [((3,), (3,))],
        }[method]
        assert shapes == want
    twice = nj.vmap(nj.vmap(f, (0, None)), (None, 0))
    np.testing.assert_array_equal(twice(x, jnp.arange(2.0)), [[0, 1, 2], [1, 2, 3]])


def test_vmap_needs_a_method():
    with pytest.raises(NotImplementedError, match="vmap_method='sequential'"):
        nj.vmap(host_sin)(jnp.ones(2))
    with pytest.raises(ValueError, match="vmap_method must be"):
        host_sin(1.0, vmap_method="fast")


def test_derivatives_need_a_rule():
    with pytest.raises(ValueError, match="do not support JVP"):
        nj.grad(host_sin)(1.0)

    @nj.custom_jvp
    def sin(x):
        return host_sin(x, vmap_method="expand_dims")

    sin.defjvps(lambda t, out, x: t * jnp.cos(x))
    x = jnp.linspace(0, 1, 3)
    for fun in both(nj.vmap(nj.grad(sin))):
        np.testing.assert_allclose(fun(x), np.cos(x), rtol=1e-6)


def test_wrong_results_are_refused():
    """As in JAX: 64 bits are narrowed, and nothing else is converted."""
    wrong = nj.errors.JaxRuntimeError
    with pytest.raises(wrong, match=r"output shape for return value #0 .* \(\), Actual: \(2,\)"):
        nj.pure_callback(lambda: np.ones(2, np.float32), SCALAR)
    whole = nj.ShapeDtypeStruct((), np.int32)
    for kind, value in ((whole, 1.5), (SCALAR, 3), (whole, np.int8(3)), (SCALAR, np.float16(1))):
        for call in both(lambda v=value, k=kind: nj.pure_callback(lambda: v, k)):
            with pytest.raises(wrong, match="output dtype for return value #0"):
                call()
    assert nj.pure_callback(lambda: np.int64(3), whole) == 3
    assert nj.pure_callback(lambda: [1.5], SCALAR) == 1.5
    with pytest.raises(wrong, match="Mismatched number of outputs .* Expected: 1, Actual: 2"):
        nj.jit(lambda: nj.pure_callback(lambda: (1.0, 2.0), SCALAR))()
    with pytest.raises(TypeError, match="shape and dtype"):
        nj.pure_callback(lambda: 1.0, "float32")


def test_exceptions_surface_and_nothing_runs_twice():
    calls = []

    def fail(x):
        calls.append(float(x))
        if x > 0:
            raise KeyError("positive")
        return x

    f = nj.jit(lambda x: io_callback(fail, SCALAR, x))
    for _ in range(4):
        assert f(-1.0) == -1.0
        with pytest.raises(nj.errors.JaxRuntimeError, match="fail raised") as told:
            f(1.0)
        assert type(told.value.__cause__) is KeyError
    assert calls == [-1.0, 1.0] * 4


def test_loops_and_branches_call_in_order():
    log = []

    def note(*values):
        log.append(tuple(int(v) for v in values))

    def body(i, x):
        nj.debug.callback(note, i, ordered=True)
        lax.cond(
            i % 2 == 0,
            lambda: io_callback(note, None, i, 0, ordered=True),
            lambda: io_callback(note, None, i, 1, ordered=True),
        )
        return x + 1

    def looped(n, x):
        return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, body(*c)), (0, x))[1]

    want = [(0,), (0, 0), (1,), (1, 1), (2,), (2, 0)]
    for fun in both(looped):
        log.clear()
        assert fun(3, 0.0) == 3.0
        assert log == want

    def scanned(x):
        return lax.scan(lambda c, i: (body(i, c), None), x, jnp.arange(3))[0]

    for fun in both(scanned):
        log.clear()
        assert fun(0.0) == 3.0
        assert log == want


def test_io_callback_is_kept_and_feeds_values_back():
    state = iter(range(100))

    def f(x):
        io_callback(lambda: next(state), nj.ShapeDtypeStruct((), np.int32))
        return x + io_callback(lambda: next(state), nj.ShapeDtypeStruct((), np.int32))

    g = nj.jit(f)
    assert [int(g(0)) for _ in range(3)] == [1, 3, 5]


def test_io_callback_under_vmap():
    log = []
    f = lambda x: io_callback(lambda a: log.append(float(a)) or a, SCALAR, x)  # noqa: E731
    np.testing.assert_array_equal(nj.jit(nj.vmap(f))(jnp.arange(3.0)), [0, 1, 2])
    assert log == [0, 1, 2]
    ordered = lambda x: io_callback(lambda a: a, SCALAR, x, ordered=True)  # noqa: E731
    with pytest.raises(ValueError, match="Cannot `vmap` ordered"):
        nj.vmap(ordered)(jnp.arange(3.0))
    with pytest.raises(NotImplementedError, match="vmap-of-cond"):
        nj.vmap(lambda x: lax.cond(x > 1, f, lambda y: y, x))(jnp.arange(3.0))
    with pytest.raises(NotImplementedError, match="vmap-of-while"):
        nj.vmap(lambda x: lax.while_loop(lambda y: y < 3, lambda y: f(y) + 1, x))(jnp.arange(3.0))
    with pytest.raises(NotImplementedError, match="checkpoint"):
        nj.grad(nj.checkpoint(lambda x: io_callback(lambda: 1.0, SCALAR) * x))(1.0)


def test_callbacks_may_call_compiled_functions():
    inner = nj.jit(lambda x: jnp.sin(x) * 2)
    f = nj.jit(lambda x: nj.pure_callback(inner, SCALAR, x) + 1)
    np.testing.assert_allclose([f(0.5), f(0.5)], 2 * np.sin(0.5) + 1, rtol=1e-6)


def test_print_under_transformations(capsys):
    def f(x):
        nj.debug.print("x={x:.1f} {} {}", x * 2, "text", x=x)
        return x**2

    for fun in both(f):
        fun(1.0)
        assert capsys.readouterr().out == "x=1.0 2.0 text\n"
    for fun in both(nj.grad(f)):
        assert fun(3.0) == 6.0
        assert capsys.readouterr().out == "x=3.0 6.0 text\n"
    for fun in both(nj.vmap(nj.grad(f))):
        fun(jnp.arange(2.0))
        assert capsys.readouterr().out == "x=0.0 0.0 text\nx=1.0 2.0 text\n"
    nj.grad(nj.checkpoint(f))(2.0)
    assert "x=2.0 4.0 text" in capsys.readouterr().out
    nj.debug.print("{a[0]} {{}}", a=[7])
    assert capsys.readouterr().out == "7 {}\n"


def test_print_checks_its_format():
    with pytest.raises(ValueError, match="Unused"):
        nj.debug.print("x", 1.0)
    with pytest.raises(ValueError, match="'y'"):
        nj.jit(lambda x: nj.debug.print("{x}", x=x, y=x))(1.0)
    with pytest.raises((IndexError, KeyError)):
        nj.debug.print("{} {}", 1.0)


def test_effects_barrier_returns():
    assert nj.effects_barrier() is None


def test_a_failure_on_another_thread_is_that_threads():
    """Between a callback's end and its program's another thread may call the program."""
    f = nj.jit(lambda x: nj.pure_callback(lambda x: x, SCALAR, x))
    executable = f.lower(jnp.float32(0)).compile()._executable
    executable._failures[-1] = ValueError("of a thread that is about to raise it")
    (result,) = executable([np.asarray(np.float32(3))])
    assert result == 3 and executable._failures


@pytest.mark.parametrize("call, wrap", [
    (lambda f, x: nj.pure_callback(f, x, x, vmap_method="sequential"), lambda f: f),
    (lambda f, x: nj.pure_callback(f, x, x, vmap_method="sequential"), nj.vmap),
    (lambda f, x: nj.pure_callback(f, x, x), nj.jit),
    (lambda f, x: io_callback(f, x, x), lambda f: f),
    (lambda f, x: io_callback(f, x, x), nj.jit),
    (lambda f, x: nj.debug.callback(f, x), nj.jit),
])
def test_what_a_callback_raises_is_a_failure_of_the_program(call, wrap):
    class OfALibrary(Exception):
        pass

    def fail(x):
        raise OfALibrary("told") from ValueError("before")

    with pytest.raises(nj.errors.JaxRuntimeError, match="(?s)before.*OfALibrary: told") as caught:
        wrap(lambda x: call(fail, x))(jnp.ones(2))
    assert type(caught.value.__cause__) is OfALibrary and isinstance(caught.value, RuntimeError)


class _Arrived(BaseException):
    """What a signal's handler raises."""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers that send signals")
@pytest.mark.parametrize("rounds", [1, 2])
def test_what_arrives_before_a_callback_begins_is_raised(rounds):
    # The signal comes while machine code runs; Python handles it at the callback's first line.
    def work(x):
        return lax.fori_loop(0, 50_000_000, lambda i, s: s * 1.0000001 + 1e-9, x)

    calls = []

    def called(x):
        calls.append(x)
        return np.asarray(x) + 1

    def once(x):
        y = work(x)
        return nj.pure_callback(called, y, y)

    @nj.jit
    def program(x):
        return once(x) if rounds == 1 else lax.fori_loop(0, rounds, lambda i, s: once(s), x)

    compiled = program.lower(jnp.float32(1)).compile()

    def handler(number, frame):
        raise _Arrived

    former = signal.signal(signal.SIGALRM, handler)
    try:
        with pytest.raises(_Arrived):
            signal.setitimer(signal.ITIMER_REAL, 0.03)
            compiled(jnp.float32(1))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)
    assert not calls
    assert np.isfinite(compiled(jnp.float32(1))) and len(calls) == rounds


def test_a_debug_callback_outside_of_programs_raises_what_it_raises():
    with pytest.raises(ZeroDivisionError):
        nj.debug.callback(lambda x: 1 // 0, jnp.ones(2))


def test_a_call_without_results_beside_a_product_that_is_read():
    told = []

    @nj.jit
    def f(x):
        y = x @ x
        nj.debug.callback(lambda: told.append(1))
        return jnp.sin(y) + 1

    np.testing.assert_allclose(f(jnp.ones((16, 16))), np.sin(16.0) + 1, rtol=1e-6)
    nj.effects_barrier()
    assert told == [1]


def test_numbers_arrive_as_arrays_at_debug_callbacks():
    seen = []
    for run in both(lambda x: nj.debug.callback(lambda *a, **k: seen.append((a, k)), 1, x, "a",
                                                None, rate=2.5)):
        run(jnp.ones(2))
        nj.effects_barrier()
        (n, x, text, nothing), keywords = seen.pop()
        assert n.item() == 1 and x.shape == (2,) and (text, nothing) == ("a", None)
        assert keywords["rate"].dtype == np.float32


def test_ordered_prints_of_mapped_values_keep_their_order(capsys):
    nj.vmap(lambda x: nj.debug.print("{}", x, ordered=True))(jnp.arange(3))
    nj.effects_barrier()
    assert capsys.readouterr().out == "0\n1\n2\n"


def test_what_a_callback_without_results_returns_is_dropped():
    assert nj.pure_callback(lambda x: x + 1, None, 1.0) is None


@pytest.mark.parametrize("method", [None, "sequential", "expand_dims", "broadcast_all"])
@pytest.mark.parametrize("ordered", [False, True])
def test_each_device_of_a_shard_map_calls_with_its_own_part(method, ordered, eight_devices):
    spec, shapes = nj.P("d"), []
    mesh = nj.make_mesh((2,), ("d",), nj.sharding.AxisType.Auto)

    def double(x):
        shapes.append(x.shape)
        return np.asarray(x) * 2

    def pure(x):
        like = nj.ShapeDtypeStruct(x.shape, x.dtype)
        return nj.pure_callback(double, like, x, vmap_method=method)

    def impure(x):
        return io_callback(double, nj.ShapeDtypeStruct(x.shape, x.dtype), x, ordered=ordered)

    for local in (pure, impure):
        for run in both(nj.shard_map(local, mesh=mesh, in_specs=spec, out_specs=spec)):
            shapes.clear()
            np.testing.assert_array_equal(run(jnp.arange(6.0)), 2 * np.arange(6))
            assert shapes == [(3,), (3,)]


def test_formats_without_fields_are_printed_as_they_are(capfd):
    nj.debug.print("{{}} {}", 1)
    nj.debug.print("{{x}} 100%")
    nj.debug.print("{} {{}}", 1)
    assert capfd.readouterr().out == "{{}} {} 1\n{{x}} 100%\n1 {}\n"


def test_jaxprs_tell_what_callbacks_are_there_for():
    text = str(nj.make_jaxpr(lambda v: nj.debug.callback(print, v, ordered=True))(1.0))
    assert "effect=OrderedDebug" in text and f"_flat_callback at 0x{12 * 'X'}>" in text
    assert nj.pmap(lambda v: nj.pure_callback(np.sin, v, v))(np.ones((1, 2), np.float32)).shape


def test_prints_of_nested_maps_come_in_jax_order():
    compared("""
import contextlib, io
def printed(f, *args):
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        f(*args)
        jax.effects_barrier()
    return text.getvalue()
show = lambda x, y: jax.debug.print('{} {}', x, y)
x, y = jnp.arange(6).reshape(2, 3), jnp.arange(10, 13)
cube = jnp.arange(8).reshape(2, 2, 2)
out['rows'] = printed(jax.vmap(jax.vmap(show), (0, None)), x, y)
out['columns'] = printed(jax.vmap(jax.vmap(show, (0, None)), (1, 0)), x, y)
out['outer alone'] = printed(jax.vmap(jax.vmap(show, (None, 0)), (0, None)), x[0], y)
one = lambda x: jax.debug.print('{}', x)
out['three'] = printed(jax.vmap(jax.vmap(jax.vmap(one), 1), 1), cube)
""")


def test_refusals_of_callbacks_have_the_phrases_that_programs_match():
    call = lambda x: io_callback(np.sin, nj.ShapeDtypeStruct((), jnp.float32), x)  # noqa: E731
    with pytest.raises(ValueError, match="IO callbacks do not support transpose"):
        nj.linear_transpose(call, 1.0)(1.0)
    with pytest.raises(NotImplementedError, match="Effects not supported in partial-eval of `ch"):
        nj.grad(nj.checkpoint(lambda x: call(2.0) * 0 + x))(1.0)
    with pytest.raises(ValueError, match="Unused positional arguments .*f-string"):
        nj.debug.print("x", 1)
    with pytest.raises(ValueError, match="Unused keyword arguments"):
        nj.debug.print("{x}", x=1, y=2)


def test_debug_callbacks_outside_of_programs_see_weak_numbers(capsys):
    seen = []
    told = lambda *xs: seen.extend([x.weak_type for x in xs])  # noqa: E731
    nj.debug.callback(told, 1, 2.5, jnp.float32(1), True)
    nj.jit(lambda x: nj.debug.callback(lambda v: seen.append(v.weak_type), x))(1.0)
    assert seen == [True, True, False, False, False]
    nj.debug.print("{!r} {}", [4], 2.5)
    assert capsys.readouterr().out == "[Array(4, dtype=int32, weak_type=True)] 2.5\n"
def _counted(call, say):
    """Functions that do not do the same on all devices, by what they are made of."""
    def tell(word, x):
        return call(lambda v: say(word, int(v)), x)

    def branches(x):
        return lax.cond(x > 1, lambda y: tell("high", y), lambda y: tell("low", y), x)

    def choices(x):
        cases = [lambda y, k=k: tell(f"case {k}", y) for k in range(3)]
        return lax.switch(x - 1, cases, x)

    def rounds(x):
        return lax.while_loop(lambda y: y < 3, lambda y: tell("round", y) + 1, x)

    def questions(x):
        return lax.while_loop(lambda y: tell("asked", y) < 2, lambda y: y + 1, x)

    def counted(x):
        return lax.fori_loop(0, x, lambda i, y: tell("turn", y) + i, x)

    def nested(x):
        def inner(y):
            y, _ = lax.scan(lambda c, _: (tell("inner", c) + 1, None), y, None, length=2)
            y = nj.jit(lambda z: tell("jitted", z))(y)
            y = lax.cond(y > 3, lambda z: tell("deep", z), lambda z: z, y)
            return lax.while_loop(lambda z: z < 6, lambda z: tell("last", z) + 2, y)

        return lax.cond(x > 0, inner, lambda y: y, x)

    return {f.__name__: f for f in (branches, choices, rounds, questions, counted, nested)}


@pytest.mark.parametrize("kind", ["debug", "io"])
@pytest.mark.parametrize("name", list(_counted(None, None)))
def test_devices_call_in_their_own_branches_and_rounds_alone(kind, name, eight_devices):
    """Each device makes the calls that it makes alone, wherever the others go."""
    said = []

    def say(word, value):
        said.append((word, value))
        return np.int32(value)

    def debug(f, x):
        nj.debug.callback(f, x)
        return x

    def io(f, x):
        return io_callback(f, nj.ShapeDtypeStruct((), np.int32), x)

    f = _counted({"debug": debug, "io": io}[kind], say)[name]
    values = [0, 1, 2, 3]
    results = [int(f(jnp.int32(x))) for x in values]
    nj.effects_barrier()
    expected = sorted(said)
    mesh = nj.make_mesh((2, 2), ("a", "b"), (nj.sharding.AxisType.Auto,) * 2)
    spec = nj.P(("a", "b"))
    cut = nj.shard_map(lambda x: f(x[0])[None], mesh=mesh, in_specs=spec, out_specs=spec)
    for run in (nj.pmap(f), cut, nj.jit(cut)):
        said.clear()
        assert run(jnp.array(values, jnp.int32)).tolist() == results
        nj.effects_barrier()
        assert sorted(said) == expected


def test_derivatives_of_branches_whose_devices_call(eight_devices):
    said = []

    def f(x):
        def high(y):
            nj.debug.callback(lambda v: said.append(float(v)), y)
            return jnp.sin(y)

        return lax.cond(x > 1, high, lambda y: y * y, x)

    for run in both(nj.pmap(nj.grad(f))):
        said.clear()
        np.testing.assert_allclose(run(jnp.array([0.5, 2.0])), [1.0, np.cos(2.0)], rtol=1e-6)
        nj.effects_barrier()
        assert said == [2.0]


def test_input_in_custom_functions_of_branches_of_devices_is_refused(eight_devices):
    @nj.custom_jvp
    def told(x):
        return io_callback(lambda v: v, nj.ShapeDtypeStruct((), np.float32), x)

    told.defjvp(lambda p, t: (told(*p), t[0]))
    f = nj.pmap(lambda x: lax.cond(x > 0, told, lambda y: y, x))
    with pytest.raises(NotImplementedError, match="custom_jvp_call within branches and loops"):
        f(jnp.array([0.0, 1.0]))
