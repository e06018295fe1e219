"""Operations, casts and accesses in compiled kernels, against NumPy; lanes and scalars alike."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest
from loop_harness import run, text

import numjet as nj
from numjet.cpu.builder.builder import Builder, Module
from numjet.cpu.emit.transposed_blocks import Tile
from numjet.cpu.link import link
from numjet.cpu.loops.build import ExprEmitter
from numjet.cpu.loops.index import Index, LoopVar
from numjet.cpu.loops.ir import Assign, Buffer, Define, For, If, Kernel, Local, Store, Update, While

KINDS = ["serial", "vector"]
INTS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
SMALL = ["float16", ml_dtypes.bfloat16]
N = 45


def apply(kind, function, result, *arrays):
    """y[i] = function(e, *(x[i] for x in arrays)), compiled."""
    e = ExprEmitter()
    n = len(arrays[0])
    xs = [Buffer(f"x{k}", a.dtype, (n,)) for k, a in enumerate(arrays)]
    y = Buffer("y", np.dtype(result), (n,), "out")
    i = LoopVar("i", n)
    value = function(e, *[e.load(x, (i,)) for x in xs])
    body = (For(i, n, tuple(e.store(y, (i,), value)), kind),)
    out = np.empty(n, result)
    run(Kernel("f", (*xs, y), body), *arrays, out)
    return out


def samples(dtype, n=N, seed=0):
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, n).astype(bool)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        x = rng.integers(info.min, info.max, n, dtype=dtype, endpoint=True)
        x[: n // 2] = rng.integers(0 if info.min == 0 else -9, 9, n // 2)
        x[:4] = [info.min, info.max, 0, 1]
        return rng.permutation(x)
    x = (rng.standard_normal(n) * 4).astype(dtype)
    x[:6] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0]
    return rng.permutation(x)


def same(got, want):
    assert got.dtype == want.dtype
    if got.dtype.kind == "V":  # bfloat16's NaN is not recognized as one
        got, want = got.astype("float32"), want.astype("float32")
    np.testing.assert_array_equal(got, want)
    if got.dtype.kind == "f":
        zero = got == 0
        np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(want[zero]))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", INTS)
def test_integer_operations(kind, dtype):
    x, y = samples(dtype), samples(dtype, seed=1)
    names = ["add", "sub", "mul", "max", "min", "and_", "or_", "xor"]
    functions = [np.add, np.subtract, np.multiply, np.maximum, np.minimum, np.bitwise_and,
                 np.bitwise_or, np.bitwise_xor]  # fmt: skip
    for name, function in zip(names, functions, strict=True):
        same(apply(kind, lambda e, a, b, m=name: getattr(e, m)(a, b), dtype, x, y), function(x, y))
    bits = np.dtype(dtype).itemsize * 8
    exact = [(int(a), int(b)) for a, b in zip(x, y, strict=True)]

    def wrapped(values):
        return np.array([v % (1 << bits) for v in values], dtype=f"uint{bits}").view(dtype)

    quotient = [-1 if b == 0 else abs(a) // abs(b) * (1 if a * b >= 0 else -1) for a, b in exact]
    remainder = [a if b == 0 else a - b * q for (a, b), q in zip(exact, quotient, strict=True)]
    same(apply(kind, lambda e, a, b: e.div(a, b), dtype, x, y), wrapped(quotient))
    same(apply(kind, lambda e, a, b: e.rem(a, b), dtype, x, y), wrapped(remainder))
    sevenths = [abs(a) // 7 * (1 if a >= 0 else -1) for a, _ in exact]
    same(apply(kind, lambda e, a, b: e.div(a, 7), dtype, x, y), wrapped(sevenths))
    shift = (np.abs(y.astype(np.float64)) % (bits + 3)).astype(dtype)
    amounts = [min(int(s), bits) for s in shift]
    left = [a << s for (a, _), s in zip(exact, amounts, strict=True)]
    signed = [(a + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1)) for a, _ in exact]
    right = [a >> s for a, s in zip(signed, amounts, strict=True)]
    logical = [(a % (1 << bits)) >> s for (a, _), s in zip(exact, amounts, strict=True)]
    same(apply(kind, lambda e, a, b: e.shl(a, b), dtype, x, shift), wrapped(left))
    same(apply(kind, lambda e, a, b: e.shr_arith(a, b), dtype, x, shift), wrapped(right))
    same(apply(kind, lambda e, a, b: e.shr_logical(a, b), dtype, x, shift), wrapped(logical))
    power = (y.astype(np.int64) % 7).astype(dtype)
    powers = [int(a) ** int(p) for a, p in zip(x, power, strict=True)]
    same(apply(kind, lambda e, a, b: e.pow(a, b), dtype, x, power), wrapped(powers))
    same(apply(kind, lambda e, a: e.neg(a), dtype, x), wrapped([-a for a, _ in exact]))
    same(apply(kind, lambda e, a: e.abs(a), dtype, x), wrapped([abs(a) for a, _ in exact]))
    same(apply(kind, lambda e, a: e.sign(a), dtype, x), np.sign(x))
    counts = [bin(a % (1 << bits)).count("1") for a, _ in exact]
    same(apply(kind, lambda e, a: e.call("popcount", a), dtype, x), wrapped(counts))
    zeros = [bits - (a % (1 << bits)).bit_length() for a, _ in exact]
    same(apply(kind, lambda e, a: e.call("clz", a), dtype, x), wrapped(zeros))
    high = [(a * b) >> bits for a, b in exact]
    same(apply(kind, lambda e, a, b: e.call("mulhi", a, b), dtype, x, y), wrapped(high))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [*SMALL, "float32", "float64"])
def test_float_operations(kind, dtype):
    x, y = samples(dtype), samples(dtype, seed=1)
    with np.errstate(all="ignore"):
        for name, function in [("add", np.add), ("sub", np.subtract), ("mul", np.multiply),
                               ("div", np.divide)]:  # fmt: skip
            got = apply(kind, lambda e, a, b, m=name: getattr(e, m)(a, b), dtype, x, y)
            same(got, function(x, y))
        for name, function in [("max", np.maximum), ("min", np.minimum)]:
            got = apply(kind, lambda e, a, b, m=name: getattr(e, m)(a, b), dtype, x, y)
            np.testing.assert_array_equal(got.astype(float), function(x, y).astype(float))
        same(apply(kind, lambda e, a: e.neg(a), dtype, x), -x)
        same(apply(kind, lambda e, a: e.abs(a), dtype, x), np.abs(x))
        sign = np.where(x == 0, x, np.sign(x))  # a zero keeps its sign
        same(apply(kind, lambda e, a: e.sign(a), dtype, x), sign)
        same(apply(kind, lambda e, a: e.call("sqrt", a), dtype, x), np.sqrt(x))
        same(apply(kind, lambda e, a: e.call("floor", a), dtype, x), np.floor(x))
        same(apply(kind, lambda e, a: e.call("ceil", a), dtype, x), np.ceil(x))
        same(apply(kind, lambda e, a: e.call("round_even", a), dtype, x), np.rint(x))
        for name in ("eq", "ne", "lt", "le", "gt", "ge"):
            got = apply(kind, lambda e, a, b, m=name: getattr(e, m)(a, b), bool, x, y)
            want = {"eq": x == y, "ne": x != y, "lt": x < y, "le": x <= y, "gt": x > y,
                    "ge": x >= y}[name]  # fmt: skip
            same(got, want)
        same(apply(kind, lambda e, a, b: e.rem(a, b), dtype, x, y), np.fmod(x, y))
        same(apply(kind, lambda e, a, b: e.nextafter(a, b), dtype, x, y), np.nextafter(x, y))
        finite = apply(kind, lambda e, a: e.call("is_finite", a), bool, x)
        same(finite, np.isfinite(x))


@pytest.mark.parametrize("kind", KINDS)
def test_reduced_precision_matches_narrow_types(kind):
    x = np.concatenate([samples("float32", 200), 2.0 ** np.arange(-30, 30)]).astype("float32")
    got = apply(kind, lambda e, a: e.reduce_precision(a, 8, 7), "float32", x)
    same(got, x.astype(ml_dtypes.bfloat16).astype("float32"))
    got = apply(kind, lambda e, a: e.reduce_precision(a, 5, 10), "float32", x)
    with np.errstate(over="ignore"):
        want = x.astype("float16").astype("float32")
    same(got, np.where(np.abs(want) < 2.0**-14, np.copysign(np.float32(0), want), want))


@pytest.mark.parametrize("kind", KINDS)
def test_fma_rounds_once(kind):
    x = np.full(20, 1 + 2.0**-12, "float32")
    got = apply(kind, lambda e, a: e.call("fma", a, a, e.neg(e.mul(a, a))), "float32", x)
    same(got, np.full(20, 2.0**-24, "float32"))


@pytest.mark.parametrize("kind", KINDS)
def test_boolean_operations(kind):
    x, y = samples(bool), samples(bool, seed=1)
    for name, function in [("and_", np.logical_and), ("or_", np.logical_or),
                           ("xor", np.logical_xor), ("eq", np.equal), ("lt", np.less),
                           ("max", np.logical_or), ("min", np.logical_and)]:  # fmt: skip
        same(apply(kind, lambda e, a, b, m=name: getattr(e, m)(a, b), bool, x, y), function(x, y))
    same(apply(kind, lambda e, a: e.not_(a), bool, x), ~x)
    picked = apply(kind, lambda e, a, b: e.select(a, e.cast(b, "int32"), 7), "int32", x, y)
    same(picked, np.where(x, y, np.int32(7)).astype("int32"))


ALL = ["bool", *INTS, *SMALL, "float32", "float64"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("source", ALL)
def test_casts(kind, source):
    x = samples(source)
    for target in ALL:
        target = np.dtype(target)
        got = apply(kind, lambda e, a, t=target: e.cast(a, t), target, x)
        floating = x.dtype.kind not in "biu"
        if floating and target.kind in "iu":
            info = np.iinfo(target)
            wide = x.astype(np.float64)
            want = np.array(
                [0 if v != v else min(max(int(v) if abs(v) < 1e30 else (info.max if v > 0 else
                 info.min), info.min), info.max) for v in wide.tolist()], dtype=target)  # fmt: skip
        else:
            with np.errstate(all="ignore"):
                want = x.astype(target)
        if target.kind == "V":
            got, want = got.astype("float32"), want.astype("float32")
        np.testing.assert_array_equal(got, want, err_msg=f"{source} -> {target}")


@pytest.mark.parametrize("kind", KINDS)
def test_rounding_to_small_floats_rounds_once(kind):
    # Just above the midpoint of two float16 neighbours; through float32 it would be a tie.
    near = [1 + 2.0**-11 + 2.0**-40, 1 + 2.0**-11 - 2.0**-40, 1 + 3 * 2.0**-11 - 2.0**-40]
    x = np.array(near * 6)
    x = np.concatenate([x, -x])
    got = apply(kind, lambda e, a: e.cast(a, "float16"), "float16", x)
    same(got, x.astype(np.float16))


@pytest.mark.parametrize("kind", KINDS)
def test_bitcasts(kind):
    x = samples("float32")
    same(apply(kind, lambda e, a: e.bitcast(a, "uint32"), "uint32", x), x.view("uint32"))
    half = samples("float16")
    same(apply(kind, lambda e, a: e.bitcast(a, "int16"), "int16", half), half.view("int16"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex(kind, dtype):
    rng = np.random.default_rng(3)
    x = (rng.standard_normal(N) + 1j * rng.standard_normal(N)).astype(dtype)
    y = (rng.standard_normal(N) + 1j * rng.standard_normal(N)).astype(dtype)
    tolerance = 20 * np.finfo(dtype).eps
    for name, want in [("add", x + y), ("sub", x - y), ("mul", x * y), ("div", x / y)]:
        got = apply(kind, lambda e, a, b, m=name: getattr(e, m)(a, b), dtype, x, y)
        np.testing.assert_allclose(got, want, rtol=tolerance)
    got = apply(kind, lambda e, a: e.conj(a), dtype, x)
    same(got, x.conj())
    part = x.real.dtype
    same(apply(kind, lambda e, a: e.imag(a), part, x), x.imag.copy())
    np.testing.assert_allclose(apply(kind, lambda e, a: e.abs(a), part, x), abs(x), rtol=tolerance)
    got = apply(kind, lambda e, a: e.call("sqrt", a), dtype, x)
    np.testing.assert_allclose(got, np.sqrt(x), rtol=tolerance)


def test_complex_functions():
    rng = np.random.default_rng(4)
    x = rng.standard_normal(64) + 1j * rng.standard_normal(64)
    for name in ("exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan",
                 "asinh", "acosh", "atanh", "log1p", "expm1", "logistic", "rsqrt"):  # fmt: skip
        numpy_name = name.replace("a", "arc", 1) if name[0] == "a" else name
        want = {"logistic": lambda z: 1 / (1 + np.exp(-z)), "rsqrt": lambda z: 1 / np.sqrt(z)}.get(
            name, getattr(np, numpy_name, None))(x)  # fmt: skip
        got = apply("vector", lambda e, a, m=name: e.call(m, a), "complex128", x)
        np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-15, err_msg=name)
    y = rng.standard_normal(64) + 1j * rng.standard_normal(64)
    got = apply("vector", lambda e, a, b: e.pow(a, b), "complex128", x, y)
    np.testing.assert_allclose(got, x**y, rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "float64"])
@pytest.mark.parametrize("n", [1, 3, 16, 50])
def test_accesses(dtype, n):
    """Reversed, broadcast, strided and gathered reads; reversed and strided writes."""
    e = ExprEmitter()
    x = Buffer("x", np.dtype(dtype), (n, 3))
    at = Buffer("at", np.dtype("int32"), (n,))
    y = Buffer("y", np.dtype(dtype), (5, n), "out")
    z = Buffer("z", np.dtype(dtype), (n, 2), "out")
    var = LoopVar("i", n)
    i = Index.of(var)
    place = e.index_clamp(e.value_index(e.load(at, (i,))), 0, n - 1)
    body = [
        *e.store(y, (0, i), e.load(x, (n - 1 - i, 1))),
        *e.store(y, (1, i), e.load(x, (0, 2))),
        *e.store(y, (2, n - 1 - i), e.load(x, (i, 0))),
        *e.store(y, (3, i), e.load(x, (place, 1))),
        *e.store(y, (4, i), e.load(x, (i // 2, i % 3))),
        *e.store(z, (i, 1), e.load(x, (i, 1))),
    ]
    rng = np.random.default_rng(n)
    a = rng.integers(0, 100, (n, 3)).astype(dtype)
    b = rng.integers(-3, n + 3, n).astype("int32")
    r = np.arange(n)
    for unroll in (1, 2):
        k = Kernel("f", (x, at, y, z), (For(var, n, tuple(body), "vector", unroll=unroll),))
        got, pairs = np.zeros((5, n), dtype), np.zeros((n, 2), dtype)
        run(k, a, b, got, pairs, check=True)
        same(got[0], a[::-1, 1])
        same(got[1], np.full(n, a[0, 2]))
        same(got[2], a[::-1, 0])
        same(got[3], a[np.clip(b, 0, n - 1), 1])
        same(got[4], a[r // 2, r % 3])
        same(pairs[:, 1], a[:, 1])
        assert not pairs[:, 0].any()


@pytest.mark.parametrize("kind", KINDS)
def test_branches_and_loops_by_lane(kind):
    """Collatz steps of each element: a while with an if inside, masked lane by lane."""
    e = ExprEmitter()
    x, y = Buffer("x", np.dtype("int32"), (N,)), Buffer("y", np.dtype("int32"), (N,), "out")
    i = LoopVar("i", N)
    value, steps = Local("value", np.dtype("int32")), Local("steps", np.dtype("int32"))
    v, s = e.read(value), e.read(steps)
    body = (
        Define(value, e.load(x, (i,))),
        Define(steps, e.const(0, "int32")),
        While(
            e.gt(v, 1),
            (
                If(
                    e.eq(e.and_(v, 1), 0),
                    (Assign(value, e.shr_logical(v, 1)),),
                    (Assign(value, e.add(e.mul(v, 3), 1)),),
                ),
                Update(steps, "add", e.const(1, "int32")),
            ),
        ),
        If(e.gt(s, 10), (Store(y, (Index.of(i),), s),)),
    )
    a = np.arange(1, N + 1, dtype="int32")
    got = np.full(N, -1, "int32")
    run(Kernel("f", (x, y), (For(i, N, body, kind),)), a, got)

    def count(n):
        steps = 0
        while n > 1:
            n, steps = (n // 2 if n % 2 == 0 else 3 * n + 1), steps + 1
        return steps if steps > 10 else -1

    assert got.tolist() == [count(n) for n in range(1, N + 1)]


def test_checked_mode_stops_at_a_bad_index():
    e = ExprEmitter()
    x, y = Buffer("x", np.dtype("f4"), (8,)), Buffer("y", np.dtype("f4"), (8,), "out")
    i = LoopVar("i", 8)
    at = e.value_index(e.cast(e.load(x, (i,)), "int32"))
    kernel = Kernel("f", (x, y), (For(i, 8, tuple(e.store(y, (i,), e.load(x, (at,)))), "vector"),))
    assert "@abort" in text(kernel, check=True)
    assert "@abort" not in text(kernel)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", *SMALL])
@pytest.mark.parametrize("n", [1, 2, 17, 33, 49, 65])
def test_the_tail_of_a_vector_loop_stays_within_its_elements(dtype, n):
    x = np.arange(1, n + 1, dtype=np.float32)
    e, i = ExprEmitter(), LoopVar("i", n)
    source = Buffer("x", x.dtype, (n,))
    target = Buffer("y", np.dtype(dtype), (n,), "out")
    value = e.cast(e.load(source, (i,)), np.dtype(dtype))
    around = np.full(n + 16, 7, dtype)
    body = (For(i, n, tuple(e.store(target, (i,), value)), "vector"),)
    run(Kernel("f", (source, target), body), x, around[8 : n + 8])
    same(around[8 : n + 8], x.astype(dtype))
    assert (around[:8] == 7).all() and (around[n + 8 :] == 7).all()


def test_columns_of_tiles_claim_no_more_than_their_alignment():
    """Four bytes a column: aligned instructions fault on what claims more than it has."""
    module = Module(frozenset())
    b = Builder(module, "f", [("p", "ptr"), ("k", "i64")])
    var = LoopVar("j", 3)
    tile = Tile(b, var, "i8", 4, unrolled=False)
    tile.fill(b, [b.load(b.args[0], "<4 x i8>")] * 3)
    tile.put(b, b.load(b.args[0], "<4 x i8>"), {var: (b.args[1], 0)})
    b.store(tile.all(b)[2], b.args[0])
    b.ret()
    text = module.text()
    assert text.count("align 4\n") == 7 and text.count("align 64\n") == 1, text


@pytest.mark.parametrize("dtype", ["int8", "int16", "float32", "float64"])
@pytest.mark.parametrize("width", [2, 3, 4, 6, 9])
def test_columns_of_short_rows_are_read_row_by_row(width, dtype):
    x = (np.arange(width * 256) % 101).astype(dtype).reshape(-1, width)
    compiled = nj.jit(lambda a: [2 * a[:, k] for k in range(width)]).lower(x).compile()
    if width <= 4 or link.vector_bytes() >= 64:
        assert not re.search(r"masked.gather|insertelement <\d+ x i8>", compiled.as_text())
    for k, column in enumerate(compiled(x)):
        np.testing.assert_array_equal(column, 2 * x[:, k])


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "uint16"])
@pytest.mark.parametrize("width", [2, 3, 5, 8])
def test_reductions_of_short_rows_of_narrow_integers_take_tiles(width, dtype):
    x = (np.random.default_rng(width).integers(0, 200, (20_003, width))).astype(dtype)
    greatest = nj.jit(lambda a: (a.max(-1), a.min(-1), a[:, ::-1].argmax(-1)))
    for got, want in zip(greatest(x), (x.max(-1), x.min(-1), x[:, ::-1].argmax(-1)), strict=True):
        np.testing.assert_array_equal(got, want)
    sums = nj.jit(lambda a: nj.numpy.sum(a, -1, dtype=dtype if dtype != "bool" else "uint8"))
    np.testing.assert_array_equal(sums(x), x.sum(-1).astype(sums(x).dtype))
    if width < 8 and dtype != "bool":
        assert " tile unroll" in sums.lower(x).as_text()


def test_columns_that_reach_over_the_end_are_gathered():
    x = np.arange(2 * 203 + 1, dtype=np.float32)
    np.testing.assert_array_equal(nj.jit(lambda a: 2 * a[::2])(x), 2 * x[::2])
    np.testing.assert_array_equal(nj.jit(lambda a: 2 * a[1::3])(x), 2 * x[1::3])


def test_powers_of_integers_by_every_size_of_exponent():
    x, y = np.meshgrid(np.arange(-5, 6, dtype=np.int32), np.arange(70, dtype=np.int32))
    power = nj.jit(nj.numpy.power)
    np.testing.assert_array_equal(power(x, y), x**y)
    np.testing.assert_array_equal(power(x, -y)[1:, 6], [1] * 69)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16"])
@pytest.mark.parametrize("width", [2, 3, 4, 6, 8, 9, 12, 16])
def test_results_of_columns_that_are_put_together_are_written_in_tiles(width, dtype):
    """What vmap makes of a function that stacks what it computes of the parts of a vector."""
    with nj.enable_x64(True):
        x = (np.arange(width * 5003) % 101).astype(dtype).reshape(-1, width)
        part = lambda v, k: v[k] * v[(k + 1) % width] - k
        run = nj.jit(nj.vmap(lambda v: nj.numpy.stack([part(v, k) for k in range(width)])))
        want = np.stack([part(x.T, k) for k in range(width)], axis=1).astype(dtype)
        np.testing.assert_array_equal(run(x), want)
        np.testing.assert_array_equal(run(x[:77]), want[:77])
        text = run.lower(x).as_text()
        assert " tile unroll=" in text or width < 3
        assert " for tile <" not in text and not re.search("tile:", text)


@pytest.mark.parametrize("dtype", ["float32", "int8", "float16"])
@pytest.mark.parametrize("width", [2, 3, 4, 8])
def test_short_rows_backwards_in_steps_and_in_part(width, dtype):
    x = (np.arange(width * 20_011) % 101).astype(dtype).reshape(-1, width)
    reads = [lambda a: a[:, ::-1] + a, lambda a: 2 * a[:, ::2], lambda a: a[:, 1:] - a[:, :-1],
             lambda a: a[:, : width - 1] * a[:, width - 1 :]]  # fmt: skip
    for read in reads:
        np.testing.assert_array_equal(nj.jit(read)(x), read(x))
        np.testing.assert_array_equal(nj.jit(read)(x[:77]), read(x[:77]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_positions_become_floats_by_32_bits(dtype):
    """They have 64, which no instruction before AVX-512 converts, and are known to fit."""
    e = ExprEmitter()
    y, i = Buffer("y", np.dtype(dtype), (100,), "out"), LoopVar("i", 100)
    value = e.cast(e.index_value(Index.of(i) * 3 - 7, np.dtype(np.int64)), dtype)
    kernel = Kernel("f", (y,), (For(i, 100, tuple(e.store(y, (Index.of(i),), value)), "vector"),))
    out = np.zeros(100, dtype)
    run(kernel, out)
    np.testing.assert_array_equal(out, np.arange(100, dtype=dtype) * 3 - 7)
    assert re.search(r"sitofp <\d+ x i32>", text(kernel))
    assert not re.search(r"sitofp <\d+ x i64>", text(kernel))


@pytest.mark.parametrize("dtype", ["int8", "bool", "int16", "float16"])
@pytest.mark.parametrize("width", [40, 63, 100, 129, 999])
def test_stores_of_narrow_numbers_need_no_mask_that_is_computed(width, dtype):
    """Where processors have no masks of bytes, lane after lane would be tested and stored."""
    x = (np.arange(50 * 1001).reshape(50, 1001) % 89).astype(dtype)
    compiled = nj.jit(lambda x: (x[:, 1 : width + 1], x[:, width:0:-1])).lower(x).compile()
    for got, want in zip(compiled(x), (x[:, 1 : width + 1], x[:, width:0:-1]), strict=True):
        np.testing.assert_array_equal(got, want)
    if "avx512bw" not in link.features():
        assert "masked.store" not in compiled.as_text()
