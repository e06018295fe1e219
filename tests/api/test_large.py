"""Large operations outside jit: compiled, with the values, dtypes and errors of the small ones."""
from __future__ import annotations

import importlib
import itertools
import pickle

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import cpu
from numjet.api.eager import deferral, large
from numjet.api.eager.large import AT_ONCE, OFTEN
from numjet.api.execution import any_size, dispatch
from numjet.base import config
from numjet.core import evaluate, hooks
from numjet.core.evaluate import LARGE
from numjet.core.primitive import REGISTRY
from numjet.core.trace import Tracer
from numjet.cpu.runtime import memory
from numjet.numpy import ranges

RNG = np.random.default_rng(0)
N = LARGE + 37
X = RNG.normal(size=N).astype(np.float32)
Y = (RNG.uniform(0.1, 2.0, N)).astype(np.float32)
K = RNG.integers(-50, 50, N)

FUNCTIONS = {
    "exp": lambda x, y, k: jnp.exp(x), "add": lambda x, y, k: x + y,
    "scalar": lambda x, y, k: 2.0 * x - 1, "cast": lambda x, y, k: x.astype(jnp.int32),
    "half": lambda x, y, k: x.astype(jnp.float16) * 3,
    "where": lambda x, y, k: jnp.where(x > 0, x, y),
    "sum": lambda x, y, k: x.sum(), "cumsum": lambda x, y, k: jnp.cumsum(k),
    "sort": lambda x, y, k: jnp.sort(x), "argmax": lambda x, y, k: x.argmax(),
    "top": lambda x, y, k: nj.lax.top_k(x, 5), "power": lambda x, y, k: y**2.5,
    "floor_divide": lambda x, y, k: k // 7, "remainder": lambda x, y, k: x % y,
    "var": lambda x, y, k: x.var(), "logaddexp": lambda x, y, k: jnp.logaddexp(x, y),
    "copysign": lambda x, y, k: jnp.copysign(y, x), "softmax": lambda x, y, k: nj.nn.softmax(x),
    "normal": lambda x, y, k: nj.random.normal(nj.random.key(0), (N,)),
    "clip": lambda x, y, k: jnp.clip(x, -0.5, 0.5),
    "quantile": lambda x, y, k: jnp.quantile(x, 0.3),
    "gcd": lambda x, y, k: jnp.gcd(k, k[::-1]), "views": lambda x, y, k: x[:-1:2] + y[1::2],
    "take": lambda x, y, k: jnp.take(x, k * 3000), "indices": lambda x, y, k: x[k * 3],
    "two indices": lambda x, y, k: x[:400].reshape(20, 20)[k % 20, k % -20],
    "update": lambda x, y, k: x.at[k * 3000].add(y),
    "bincount": lambda x, y, k: jnp.bincount(k + 50),
    "isin": lambda x, y, k: jnp.isin(jnp.round(x, 2), jnp.round(y, 2)),
    "packbits": lambda x, y, k: jnp.packbits(k), "ldexp": lambda x, y, k: jnp.ldexp(x, k * 4),
    "polyint": lambda x, y, k: jnp.polyint(x), "polyder": lambda x, y, k: jnp.polyder(x, 2),
    "broadcast": lambda x, y, k: jnp.ones((300, 1)) * x[:300], "shift": lambda x, y, k: k << 3,
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_equal_to_operations_by_numpy(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Rows that are new are compiled at once, as long as few were in this process.
    monkeypatch.setitem(deferral._counts, "compiled", 0)
    x, y, k = jnp.asarray(X), jnp.asarray(Y), jnp.asarray(K)
    # One after the other: sums that are fused may add in another order than alone.
    got, again, more = (nj.block_until_ready(FUNCTIONS[name](x, y, k)) for _ in range(3))
    with config.eager_compile(False), nj.disable_jit(True):
        want = FUNCTIONS[name](x, y, k)
    for a, b, c, d in zip(*map(nj.tree.leaves, (got, want, again, more)), strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape and a.weak_type == b.weak_type
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=2e-5, atol=1e-6)
        # The same bits each time, once it is settled by what was met before how it runs.
        np.testing.assert_array_equal(np.asarray(c), np.asarray(d))


def test_one_program_serves_an_operation() -> None:
    x = jnp.asarray(X)
    jnp.tan(x)
    before = len(dispatch._operations)
    jnp.tan(x + 0)
    jnp.tan(jnp.asarray(Y))
    assert len(dispatch._operations) <= before + 1  # the sum's


def test_derivatives_and_errors_are_the_same() -> None:
    x = jnp.asarray(X)
    grad = nj.grad(lambda x: jnp.sum(jnp.tanh(x) ** 2))(x)
    t = np.tanh(X.astype(np.float64))
    np.testing.assert_allclose(grad, 2 * t * (1 - t * t), rtol=1e-4, atol=1e-6)
    with pytest.raises((TypeError, ValueError), match="shapes"):
        x + x[:-1]
    with pytest.raises(TypeError):
        jnp.logaddexp(x, "text")
    with nj.debug_nans(True), pytest.raises(FloatingPointError, match="nan"):
        jnp.log(x)


def test_public_functions_stay_what_they_are() -> None:
    assert jnp.var.__name__ == "var" and jnp.var.__doc__
    assert pickle.loads(pickle.dumps(jnp.var)) is jnp.var
    assert nj.nn.softmax.__module__ == "numjet.nn"


def test_numpy_memory_may_be_written_to_afterwards() -> None:
    memory = X.copy()
    y = jnp.exp(jnp.asarray(memory))
    want = np.asarray(y).copy()
    memory[:] = 0
    np.testing.assert_array_equal(y, want)


@pytest.mark.parametrize("name", ["gamma", "beta", "t", "dirichlet", "loggamma"])
def test_draws_by_rejection_are_one_program_at_every_size(name) -> None:
    draw, key = getattr(nj.random, name), nj.random.key(1)
    given = {"beta": (2.0, 3.0), "dirichlet": (np.ones(4, np.float32),)}.get(name, (2.5,))
    for shape in ((), (7,), (3, 5)):
        got = draw(key, *given, shape)
        assert got.shape == shape + (4,) * (name == "dirichlet") and np.isfinite(got).all()
        np.testing.assert_array_equal(draw(key, *given, shape), got)
        with config.eager_compile(False):
            np.testing.assert_allclose(draw(key, *given, shape), got, rtol=2e-5, atol=1e-6)
    grad = nj.grad(lambda a: nj.random.gamma(key, a, (3,)).sum())(2.5)
    assert np.isfinite(grad)


def test_dear_operations_are_compiled_where_they_are_small() -> None:
    x = np.linspace(-0.99, 0.99, 400, dtype=np.float32)
    for call in (nj.lax.erf_inv, nj.lax.digamma):
        with config.eager_compile(False):
            want = call(jnp.asarray(x + 2 if call is nj.lax.digamma else x))
        got = call(jnp.asarray(x + 2 if call is nj.lax.digamma else x))
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    a = RNG.normal(size=(90, 3, 3)).astype(np.float32)
    a = a + a.swapaxes(-1, -2)
    np.testing.assert_allclose(
        jnp.linalg.eigvalsh(a), np.linalg.eigvalsh(a), rtol=1e-3, atol=1e-4)
    sign, log = jnp.linalg.slogdet(a)
    np.testing.assert_allclose(sign * jnp.exp(log), np.linalg.det(a), rtol=1e-3, atol=1e-4)
    s = jnp.linalg.svd(a, compute_uv=False)
    np.testing.assert_allclose(s, np.linalg.svd(a, compute_uv=False), rtol=1e-3, atol=1e-4)


SLOW = [(name, kind) for name, costs in evaluate._COSTS.items() for kind in costs]
KINDS = {"c": jnp.complex64, "f": jnp.float32, "e": jnp.float16, "V": jnp.bfloat16, "i": jnp.int32,
         "b": jnp.bool_}  # fmt: skip


@pytest.mark.parametrize(("name", "kind"), SLOW)
def test_slow_loops_of_numpy_are_programs_from_a_size_on(name, kind, monkeypatch) -> None:
    """As exact as NumPy's, by the operation itself and by the function that binds it."""
    primitive, cost = REGISTRY[name], evaluate._COSTS[name][kind]
    n = int(evaluate._CALL / cost) + 1
    kind, *to = kind
    values = RNG.uniform(0.05, 0.95, n) * (5 if kind == "i" else 1) + (name == "acosh")
    x = jnp.asarray(values + 0.3j if kind == "c" else values).astype(KINDS[kind])
    params = {}
    if name == "reduce_prod":
        x, params = x**0 if kind == "i" else x / abs(x), {"axes": (0,)}
    for target in to:
        params = {"new_dtype": np.dtype(KINDS[target]), "weak_type": False}
        if kind == "c":
            x = x.real + 0j  # nothing is lost
    if name == "fft":
        lengths = (n,)
        which = nj.lax.FftType.FFT if kind == "c" else nj.lax.FftType.RFFT
        params = {"fft_type": which, "fft_lengths": lengths}
    count = 3 if name in ("clamp", "select_n") else 1
    while count < 3:
        try:
            primitive.out_avals((x.aval,) * count, params)
            break
        except TypeError:
            count += 1
    asked: list = []
    operation = hooks.operation
    monkeypatch.setattr(hooks, "operation", lambda *a: asked.append(a) or operation(*a))
    out = primitive.bind(*[x] * count, **params)
    assert [a[0] for a in asked] == [primitive] and asked[0][1][0].size == n
    whole = name in ("fft", "reduce_prod")
    few = None if whole else primitive.bind(*[x[: n // 2]] * count, **params)
    assert len(asked) == 1
    with config.eager_compile(False):
        plain = primitive.bind(*[x] * count, **params)
    wide = np.complex128 if "c" in (kind, *to) or name == "fft" else np.float64
    worst = {"e": 2e-3, "V": 1e-2}
    tolerance = max([worst.get(k, 1e-4 if whole else 2e-6) for k in (kind, *to)])
    scale = np.abs(np.asarray(plain).astype(wide)).max() if name == "fft" else 0
    for got, want in ((out, plain), (few, None if few is None else plain[: n // 2])):
        if got is not None:
            assert got.dtype == want.dtype
            np.testing.assert_allclose(
                np.asarray(got).astype(wide), np.asarray(want).astype(wide),
                tolerance, tolerance * max(scale, 1e-6),
            )  # fmt: skip



@pytest.mark.parametrize("n", [3, 40, 300])
@pytest.mark.parametrize("m", [1, 5, 400])
def test_polynomials_and_powers_of_two_of_any_size(n: int, m: int) -> None:
    """Compiled or not, in a loop or not."""
    p, x = jnp.asarray(X[:n]), jnp.asarray(Y[:m] / 2)
    want = np.polyval(X[:n].astype(np.float64), np.asarray(x, np.float64))
    for f in (jnp.polyval, nj.jit(jnp.polyval)):
        got = f(p, x)
        assert got.shape == (m,) and got.dtype == jnp.float32 and not got.weak_type
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)
    np.testing.assert_array_equal(jnp.polyval(p[:, None] + x * 0, x), jnp.polyval(p, x))
    k = jnp.asarray(K[:n], jnp.int32)
    np.testing.assert_array_equal(jnp.polyval(k, -1), np.polyval(K[:n], -1))
    slope = nj.grad(lambda p, x: jnp.polyval(p, x).sum(), (0, 1))(p, x)
    wide = np.asarray(x, np.float64)
    np.testing.assert_allclose(
        slope[0], [(wide**i).sum() for i in range(n)][::-1], rtol=1e-3, atol=1e-4)
    derived = np.polyval(np.polyder(X[:n].astype(np.float64)), wide)
    np.testing.assert_allclose(slope[1], derived, rtol=1e-2, atol=1e-3 * np.abs(derived).max())
    exponents = K[:m] * 3
    for _ in range(3):
        got = jnp.ldexp(jnp.asarray(X[:m]), jnp.asarray(exponents))
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(got, np.ldexp(X[:m], exponents))
        assert got.dtype == jnp.float32


@pytest.mark.parametrize("name", (
    "numpy.hypot numpy.logaddexp numpy.logaddexp2 numpy.divmod numpy.nanvar numpy.nanstd "
    "numpy.gradient numpy.frexp numpy.modf numpy.i0 numpy.unwrap numpy.sinc nn.softplus "
    "nn.log_sigmoid nn.mish nn.logmeanexp nn.standardize nn.glu nn.hard_sigmoid nn.hard_silu "
    "nn.log_softmax numpy.diff numpy.nanmean numpy.nanmedian numpy.polyint numpy.spacing "
    "numpy.copysign numpy.logical_and numpy.nanargmax numpy.var numpy.argsort numpy.pow nn.sigmoid "
    "lax.erf lax.round scipy.special.betaln scipy.special.expn"
).split())  # fmt: skip
def test_small_operands_met_again(name: str) -> None:
    """It is a program, from the third call on prebuilt; of many kinds of calls the first four are
    operations."""
    space, _, function = name.rpartition(".")
    f = getattr(importlib.import_module(f"numjet.{space}"), function)
    x = X[:300].copy()
    x[:4] = [0.0, -0.0, 60.0, -60.0]
    operands = [jnp.asarray(x), jnp.asarray(Y[:300])]
    if function == "round":
        operands[1:] = [nj.lax.RoundingMethod.TO_NEAREST_EVEN]
    elif function == "expn":
        operands = [3, jnp.abs(operands[0])]
    elif function == "betaln":
        operands[0] = jnp.abs(operands[0]) + 0.5
    elif function not in ("hypot", "logaddexp", "logaddexp2", "divmod", "copysign", "logical_and"):
        operands = [operands[1]] if function == "pow" else operands[:1]
    operands += [2.5] * (function == "pow")
    with config.eager_compile(False):
        want = nj.tree.leaves(f(*operands))
    for _ in range(OFTEN + 4):
        got = nj.tree.leaves(f(*operands))
        for a, b in zip(got, want, strict=True):
            assert a.aval == b.aval
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)


def test_equal_calls_give_equal_bits() -> None:
    softmax = large.as_program(nj.nn.softmax.__wrapped__)
    x = jnp.asarray(X[:400])
    first = np.asarray(softmax(x))
    for _ in range(OFTEN + 3):
        np.testing.assert_array_equal(softmax(x), first)


def test_numbers_that_change_compile_little(monkeypatch) -> None:
    x = jnp.asarray(X[:300])
    for i in range(AT_ONCE + 1):  # whatever this process has met
        jnp.ldexp(x[: 200 + i], jnp.asarray(K[: 200 + i]))
        jnp.ldexp(x[: 260 + i], jnp.asarray(K[: 260 + i]))
        nj.random.binomial(nj.random.key(0), 50 + i, 0.1, (300,))
    compile_program, names = dispatch.cpu.compile, []

    def counted(closed, options):
        names.append(options["name"])
        return compile_program(closed, options)

    monkeypatch.setattr(dispatch.cpu, "compile", counted)
    for i in range(20):
        np.testing.assert_array_equal(jnp.ldexp(x, i), np.ldexp(X[:300], i))
        nj.random.binomial(nj.random.key(i), i, 0.1, (300,))
        jnp.ldexp(x[: 299 - i], jnp.asarray(K[: 299 - i]))  # sizes met once
    assert not names
    for _ in range(OFTEN):
        nj.random.binomial(nj.random.key(0), 4, 0.1, (299,))
    assert names


@pytest.mark.parametrize("draw", [
    lambda key, x: nj.random.binomial(key, jnp.abs(x) * 40, 0.3),
    lambda key, x: nj.random.poisson(key, jnp.abs(x) * 12),
], ids=["binomial", "poisson"])
def test_draws_by_rejection_in_programs(draw) -> None:
    for n in (5, 300):
        for seed in range(3):
            key, x = nj.random.key(seed), jnp.asarray(X[:n])
            got = draw(key, x)
            with nj.disable_jit(True):
                want = draw(key, x)
            assert got.dtype == want.dtype and got.shape == (n,)
            assert (np.asarray(got) != np.asarray(want)).mean() <= 0.01  # rounding decides few
            np.testing.assert_array_equal(got, nj.jit(draw)(key, x))


def test_draws_of_a_shape_are_programs_when_it_comes_again() -> None:
    key, of = nj.random.key(3), jnp.arange(50)
    draws = {
        "choice": (of, (300,)), "normal": ((300,),), "randint": ((20, 15), 3, 9),
        "bits": ((300,),), "exponential": ((300,),), "laplace": ((2, 150),),
    }  # fmt: skip
    for name, given in draws.items():
        draw = getattr(nj.random, name)
        with config.eager_compile(False):
            want = draw(key, *given)
        for _ in range(OFTEN + 3):
            got = draw(key, *given)
            assert got.aval == want.aval
            np.testing.assert_allclose(got, want, rtol=2e-6, atol=1e-6)
    for k in range(6):
        got = nj.random.randint(nj.random.key(k), (300,), 0, k // 2 + 1)
        assert set(np.unique(got)) <= set(range(k // 2 + 1))


def test_bits_and_largest_numbers_of_a_few_hundred() -> None:
    k = np.random.default_rng(1).integers(0, 1 << 31, 400).astype(np.int32)
    with config.eager_compile(False):
        want = nj.lax.clz(k), *nj.lax.top_k(k, 7)
    for one, two in zip((nj.lax.clz(k), *nj.lax.top_k(k, 7)), want, strict=True):
        np.testing.assert_array_equal(one, two)


def test_calls_that_come_often_are_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """By avals and other arguments; numbers with a fraction are operands."""
    compile_program, names = dispatch.cpu.compile, []

    def counted(closed, options):
        names.append(options["name"])
        return compile_program(closed, options)

    monkeypatch.setattr(dispatch.cpu, "compile", counted)
    x = jnp.asarray(X[:330]).reshape(33, 10)
    for k in range(OFTEN + 6):
        np.testing.assert_allclose(jnp.std(x, axis=0), X[:330].reshape(33, 10).std(0), rtol=1e-5)
        np.testing.assert_allclose(jnp.std(x, axis=1), X[:330].reshape(33, 10).std(1), rtol=1e-5)
        assert jnp.std(x, axis=1, keepdims=True).shape == (33, 1)
        slope = 0.01 * k
        np.testing.assert_allclose(
            nj.nn.leaky_relu(x, slope), np.where(x >= 0, x, slope * x), rtol=1e-6)
    assert sorted(names) == ["leaky_relu", "std", "std", "std"]
    with nj.disable_jit(), config.eager_compile(False):
        want = jnp.std(x, axis=0)
    np.testing.assert_allclose(jnp.std(x, axis=0), want, rtol=1e-5)
    assert len(names) == 4


def test_what_is_compiled_gives_way_to_flags_and_tracers() -> None:
    x = jnp.asarray(X[:300]) - 100.0
    for _ in range(OFTEN + 4):
        assert np.isnan(jnp.float_power(x, 0.5)).all()
    with nj.debug_nans(True), pytest.raises(FloatingPointError, match="nan"):
        jnp.float_power(x, 0.5)
    with config.no_tracing(True):
        assert np.isnan(jnp.float_power(x, 0.5)).all()
    assert jnp.float_power(x, 2).dtype == jnp.float32
    with config.enable_x64(True):
        assert jnp.float_power(jnp.asarray(X[:300], "float64"), 2.0).dtype == jnp.float64
    slope = nj.grad(lambda x: jnp.float_power(x, 2.0).sum())(x)
    np.testing.assert_allclose(slope, 2 * np.asarray(x), rtol=1e-5)
    assert np.isnan(jnp.float_power(x, 0.5)).all()


def test_arguments_whose_values_are_asked_for() -> None:
    """Such calls are not compiled, and go on as they were."""
    x = jnp.asarray(X[:300])
    for _ in range(OFTEN + 3):
        assert jnp.linalg.norm(x, 2.0).shape == ()
        np.testing.assert_allclose(jnp.linalg.norm(x, 1.0), np.abs(X[:300]).sum(), rtol=1e-5)
        np.testing.assert_allclose(jnp.percentile(x, 50.0), np.percentile(X[:300], 50), rtol=1e-5)


@pytest.mark.parametrize("size", [36, 6400, LARGE])
def test_arrays_are_taken_for_shapes_and_refused_for_static_numbers_at_any_size(size: int) -> None:
    """A traced array that is asked for its value raises one of several exceptions."""
    x = jnp.ones(size)
    for _ in range(OFTEN + 2):
        assert jnp.pad(x, jnp.array([1, 2])).shape == (size + 3,)
        assert jnp.tile(x, jnp.array([2])).shape == (2 * size,)
        with pytest.raises(ValueError, match="Non-hashable static arguments"):
            jnp.diff(x, jnp.array(2))


def test_ever_new_sizes_compile_a_few_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(deferral._counts, "compiled", 0)
    made = []
    real = cpu.compile
    monkeypatch.setattr(cpu, "compile", lambda *args: made.append(args) or real(*args))
    values = RNG.normal(size=LARGE + 1000).astype(np.float32)
    new = itertools.count(LARGE)
    for fusion in (True, False):
        with config.eager_fusion(fusion):
            for function, wanted in (
                (jnp.sum, np.sum), (jnp.min, np.min), (lambda x: jnp.expm1(x), np.expm1),
                (lambda x: (x - x.max()).sum(), lambda x: (x - x.max()).sum()),
            ):  # fmt: skip
                for n in range(40):
                    if n == 10:
                        del made[:]
                    x = values[: next(new)]
                    np.testing.assert_allclose(function(jnp.array(x)), wanted(x), 2e-4, 1e-6)
                assert not made
                for _ in range(20):
                    function(jnp.array(values)).block_until_ready()
                assert len(made) <= 3  # this size's


@pytest.mark.parametrize("shape", [(1 << 22,), (1, (1 << 22) + 5)])
def test_blocks_of_large_results_may_begin_within_a_line(shape: tuple[int, ...]) -> None:
    """A program writes 16 MB and more by whole lines of the cache, from where they begin. The last
    block ends where the array ends, and rows need be no whole lines."""
    jaxpr = nj.make_jaxpr(lambda x, y: x / y)(jnp.zeros(shape), jnp.float32(1))
    program = cpu.compile(jaxpr)
    size = 4 * shape[0] + 3
    x = np.arange(size * (shape[1:] or (1,))[0], dtype=np.float32).reshape(size, *shape[1:])
    made = memory.empty(x.shape, x.dtype)
    half = np.asarray(0.5, np.float32)
    assert any_size.run(program, [x, half], [True, False], [made], size, shape[0])
    np.testing.assert_array_equal(made, 2 * x)


def test_what_no_number_of_an_operand_decides_takes_no_memory() -> None:
    for f in (jnp.isreal, jnp.iscomplex, lambda x: jnp.isinf(x.astype(int)), jnp.imag):
        for x in (jnp.asarray(X), jnp.asarray(Y[:-1])):
            out = f(x)
            assert np.asarray(out).strides == (0,)
            np.testing.assert_array_equal(out, np.full(x.shape, f is jnp.isreal))


def test_functions_that_take_columns_are_one_program_for_a_shape_that_comes_again() -> None:
    for n in (LARGE // 4 + 5, LARGE // 4 + 6):  # nothing but these sizes is met
        x = RNG.normal(size=(n, 2, 2)).astype(np.float32)
        for _ in range(3):
            got = np.asarray(jnp.linalg.det(jnp.array(x)))
            np.testing.assert_allclose(got, np.linalg.det(x), rtol=1e-4, atol=1e-5)
        assert nj.debug.eager()[0].operations == ("det",)


def test_what_is_not_differentiated_is_computed_as_elsewhere(monkeypatch) -> None:
    """In a function under `grad`: programs and native operations for operands that are no part."""
    mask = jnp.ones((64, 64), bool)
    bodies: list = []

    def loss(x):
        seen = jnp.tril(mask)
        assert type(seen) is type(mask) and not isinstance(seen, Tracer)
        with pytest.raises(nj.errors.TracerArrayConversionError):
            np.asarray(jnp.tril(x))
        return jnp.sum(jnp.where(seen, x, 0.0)), (mask & seen, jnp.arange(3) + 1)

    x = jnp.asarray(RNG.normal(size=(64, 64)).astype(np.float32))
    grad = nj.grad(loss, has_aux=True)
    for _ in range(large.OFTEN + 2):
        found, aux = grad(x)
        np.testing.assert_array_equal(found, np.tri(64))
        np.testing.assert_array_equal(aux[0], np.tri(64, dtype=bool))
        np.testing.assert_array_equal(aux[1], [1, 2, 3])
    program = nj.grad(lambda x: jnp.sum(jnp.tril(mask) * x))
    for _ in range(3):
        program(x)
    monkeypatch.setattr(ranges, "lower_mask", lambda *args: bodies.append(args))
    np.testing.assert_array_equal(program(x), np.tri(64))
    assert not bodies


@pytest.fixture
def weighed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small calls are compiled for when they come the second time."""
    monkeypatch.setattr(large, "TIMED", 1)
    monkeypatch.setattr(large, "BUDGET", -1.0)


def traced_calls(function) -> list:
    """The numbers of operands with which `function`, made a program, is traced; it counts them."""
    seen: list = []

    def counting(*args, **kwargs):
        seen.append([x for x in args if isinstance(x, Tracer)])
        return function(*args, **kwargs)

    counting.__module__, counting.__name__ = "numjet.numpy", "counting"
    return [large.as_program(counting), seen]


def test_small_calls_are_compiled_for_when_they_took_as_long(weighed: None) -> None:
    x = jnp.linspace(-2.0, 3.0, 7)
    function, seen = traced_calls(lambda x, power=2: jnp.exp(x) ** power + 1)
    want = function(x)
    function(x)
    assert [len(tracers) for tracers in seen] == [0, 0, 1]  # run, and traced once
    for _ in range(3):
        got = function(x)
        np.testing.assert_allclose(got, want, rtol=1e-6)
    np.testing.assert_allclose(function(x, power=3), np.exp(np.asarray(x)) ** 3 + 1, rtol=1e-6)
    np.testing.assert_allclose(function(np.asarray(x)), want, rtol=1e-6)  # not an Array: as it is
    grad = nj.grad(lambda x: function(x).sum())(x)
    np.testing.assert_allclose(grad, 2 * np.exp(2 * np.asarray(x)), rtol=1e-5)
    np.testing.assert_allclose(nj.vmap(function)(x), want, rtol=1e-6)
    np.testing.assert_allclose(nj.jit(function)(x), want, rtol=1e-6)


def test_few_small_calls_and_those_with_checks_run_operation_by_operation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x = jnp.arange(5.0)
    function, seen = traced_calls(lambda x: x * 2 + 1)
    for _ in range(3 * large.TIMED):
        function(x)
    assert not any(seen)  # it takes microseconds
    monkeypatch.setattr(large, "TIMED", 1)
    monkeypatch.setattr(large, "BUDGET", -1.0)
    with nj.disable_jit(True):
        function(x)
    with config.eager_compile(False):
        function(x)
    with nj.debug_nans(True):
        function(x)
    assert not any(seen)
    function(x)
    function(x)
    assert any(seen)


def test_what_cannot_be_compiled_stays_and_tells_once(weighed: None) -> None:
    x = jnp.arange(4.0)

    def only_arrays(x):
        if isinstance(x, Tracer):
            raise NotImplementedError("tracers are not taken")
        return x + 1

    function, seen = traced_calls(only_arrays)
    function(x)
    with pytest.warns(RuntimeWarning, match="counting: .*NotImplementedError: tracers are not"):
        np.testing.assert_array_equal(function(x), x + 1)
    for _ in range(3):
        np.testing.assert_array_equal(function(x), x + 1)
    assert len([tracers for tracers in seen if tracers]) == 1
    function, seen = traced_calls(lambda x: x[x > 1].sum())  # asks for values
    for _ in range(3):
        assert function(x) == 5


@pytest.mark.parametrize("name", ["exponential", "gumbel", "cauchy", "laplace", "rayleigh"])
def test_a_key_draws_the_same_bits_in_every_call(name: str, weighed: None) -> None:
    draw, key = getattr(nj.random, name), nj.random.key(3)
    given = (1.5,) if name == "rayleigh" else ()
    first = np.asarray(draw(key, *given, shape=(6,)))
    for _ in range(3):
        np.testing.assert_array_equal(draw(key, *given, shape=(6,)), first)
    np.testing.assert_array_equal(nj.jit(lambda k: draw(k, *given, shape=(6,)))(key), first)
