"""Elementary functions: sampled errors against mpmath, and special values as IEEE 754 and C99 say.

The error is measured in units in the last place of the true value, for scalars and vectors, on the
host and with its wider instruction sets switched off.
"""

import ctypes
import functools
import re

import llvmlite.binding as llvm
import mpmath
import numpy as np
import pytest

from numjet.cpu import math as vector_math
from numjet.cpu.builder.builder import Builder, Module, vector
from numjet.cpu.link import link
from numjet.cpu.runtime import programs

INF, NAN = np.inf, np.nan
TYPES = {"f": "float", "d": "double", "e": "half", "i": "i32", "l": "i64", "h": "i16"}
BOTH = pytest.mark.parametrize("dtype", [np.float32, np.float64])
# Features switched off, by the width that is left. AVX-512's names share one prefix.
WITHOUT = {32: ("avx512", "evex512"), 16: ("avx", "vaes", "vpcl", "fma", "xop", "evex512", "f16c")}


def written(name, element, lanes, arity, features=None):
    """A module with f(n, inputs…, out), `name` over whole vectors; zero extended for i1."""
    module = Module(link.features() if features is None else features)
    names = [f"a{k}" for k in range(arity)]
    b = Builder(module, "f", [("n", "i64"), *[(a, "ptr") for a in [*names, "out"]]])
    with b.loop(0, b.args[0], max(lanes, 1)) as loop:
        values = [b.load(b.gep(p, loop.index, element), vector(element, lanes))
                  for p in b.args[1:-1]]  # fmt: skip
        result = vector_math.emit(b, name, *values)
        size = element
        if result.type == vector("i1", lanes):
            result, size = b.zext(result, "i8"), "i8"
        b.store(result, b.gep(b.args[-1], loop.index, size))
    b.ret()
    return module.text()


def narrow_address(text, width):
    """Compile for the host less its wider instructions; the engine stays alive with the result."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = ",".join(
        ("-" if k.startswith(WITHOUT[width]) or not on else "+") + k
        for k, on in sorted(llvm.get_host_cpu_features().items())
    )
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=1
    )
    for symbol in set(re.findall(r"nj_lanes_\w+", text)):
        llvm.add_symbol(symbol, programs.address(symbol))
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), machine)
    engine.finalize_object()
    return engine, engine.get_function_address("f")


@functools.cache
def compiled(name, char, lanes, arity, width=0):
    element = TYPES[char]
    if width:
        on = frozenset(k for k, v in llvm.get_host_cpu_features().items()
                       if v and not k.startswith(WITHOUT[width]))  # fmt: skip
        keep, address = narrow_address(written(name, element, lanes, arity, on), width)
    else:
        text = written(name, element, lanes, arity)
        keep = link.load([link.compile_module(text, verify=True)], ["f"])
        address = keep.address("f")
    return keep, ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * (arity + 2))(address)


def apply(name, *arrays, lanes=None, width=0, out=None):
    """`name` of each element, in vectors of the machine's width unless told."""
    arrays = [np.ascontiguousarray(a) for a in arrays]
    dtype = arrays[0].dtype
    if lanes is None:
        lanes = (width or link.vector_bytes()) // dtype.itemsize
    n = len(arrays[0])
    padded = [np.concatenate([a, np.ones(-n % max(lanes, 1), dtype)]) for a in arrays]
    result = np.empty(len(padded[0]), out or dtype)
    _, call = compiled(name, dtype.char, lanes, len(arrays), width)
    call(len(result), *[a.ctypes.data for a in padded], result.ctypes.data)
    return result[:n]


def logistic(x):
    return 1 / (1 + mpmath.exp(-x)) if x >= 0 else mpmath.exp(x) / (1 + mpmath.exp(x))


# Functions that mpmath has under another name, or not.
TRUE = {
    "exp2": lambda x: mpmath.mpf(2) ** x, "logistic": logistic,
    "log2": lambda x: mpmath.log(x) / mpmath.ln2, "erf_inv": mpmath.erfinv,
    "rsqrt": lambda x: 1 / mpmath.sqrt(x), "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
    "pow": mpmath.power, "lgamma": lambda x: mpmath.re(mpmath.loggamma(x)),
    "fmod": lambda x, y: x - y * int(x / y),
}  # fmt: skip
ULPS = {name: f.ulps for name, f in vector_math.FUNCTIONS.items() if f.ulps is not None}
UNIT = ("asin", "acos", "atanh", "erf_inv")
POSITIVE = ("log", "log2", "log10", "sqrt", "rsqrt", "lgamma", "digamma")


def sample(name, dtype, count, seed):
    """Ordinary, small, large, subnormal and awkward arguments in the function's domain."""
    rng = np.random.default_rng(seed)
    limits = np.finfo(dtype)
    any_bits = rng.integers(0, 2**64, count, dtype=np.uint64, endpoint=False)
    any_bits = any_bits.view(np.uint32)[:count] if dtype is np.float32 else any_bits
    spread = np.exp(rng.uniform(-15, 5, count)) * rng.choice([-1, 1], count)
    multiples = rng.integers(-60000, 60000, count) * (np.pi / 2)
    # Where formulas for large arguments take over.
    large = np.exp2(rng.uniform(0, 2 * limits.nmant, count)) * rng.choice([-1, 1], count)
    parts = [
        any_bits.view(dtype), spread.astype(dtype), (3 * rng.standard_normal(count)).astype(dtype),
        rng.uniform(-1, 1, count).astype(dtype), (1 + spread * 1e-3).astype(dtype),
        multiples.astype(dtype), large.astype(dtype),
        np.array([limits.tiny, limits.smallest_subnormal, limits.max, limits.tiny * 0.37], dtype),
    ]  # fmt: skip
    x = np.concatenate(parts)
    x = x[np.isfinite(x)]
    if name in POSITIVE:
        x = np.abs(x)
        x = x[x > 0]
    if name in UNIT:
        x = x[np.abs(x) < 1]
    if name == "acosh":
        x = x[x >= 1]
    if name == "log1p":
        x = x[x > -1]
    if name in ("lgamma", "digamma"):
        x = x[(x > 1e-30) & (x < 1e30) & (abs(x - 1) > 0.01) & (abs(x - 2) > 0.01)]
    return x


def errors(got, true, dtype):
    """|got - true| in units in the last place of true; 0 where both overflow or underflow alike."""
    limits = np.finfo(dtype)
    edge = mpmath.mpf(float(limits.max)) * (1 + mpmath.mpf(float(limits.eps)) / 4)
    found = []
    for g, t in zip(got, true, strict=True):
        if abs(t) >= edge:
            # A true value that rounds to infinity; the largest number is one unit away.
            found.append(0.0 if np.isinf(g) and (g > 0) == (t > 0) else
                         1.0 if abs(t) < edge * (1 + 2 * float(limits.eps)) else INF)  # fmt: skip
            continue
        if not np.isfinite(g):
            found.append(INF)
            continue
        exponent = max(int(mpmath.frexp(t)[1]) - 1 if t else limits.minexp, limits.minexp)
        unit = mpmath.ldexp(1, exponent - limits.nmant)
        found.append(float(abs(mpmath.mpf(float(g)) - t) / unit))
    return np.array(found)


def largest_error(name, dtype, count, **how):
    arguments = [sample(name, dtype, count, 0)]
    if name in ("atan2", "pow", "fmod"):
        arguments.append(sample(name, dtype, count, 1))
        rng = np.random.default_rng(2)
        rng.shuffle(arguments[1])
        n = min(len(a) for a in arguments)
        arguments = [a[:n] for a in arguments]
    if name == "pow":
        x = np.abs(arguments[0])
        x[x == 0] = 1
        # Exponents that keep most results finite.
        logarithm = np.maximum(np.abs(np.log(x.astype(float))), 1e-30)
        bound = np.log(float(np.finfo(dtype).max)) / logarithm
        scaled = (rng.uniform(-1.1, 1.1, n) * np.minimum(bound, 1e30)).astype(dtype)
        arguments = [x, np.where(np.arange(n) % 4 == 0, arguments[1], scaled)]
        with np.errstate(all="ignore"):
            usual = np.abs(arguments[1] * np.log(x.astype(float))) < 1e5
        arguments = [a[usual] for a in arguments]
    if name == "fmod":
        with np.errstate(all="ignore"):
            usual = (np.abs(arguments[0] / arguments[1]) < 1e40) & (arguments[1] != 0)
        arguments = [a[usual] for a in arguments]
    got = apply(name, *arguments, **how)
    # Enough digits for the reduction of arguments up to 2^1023, and for x - y·trunc(x/y).
    long = name in ("sin", "cos", "tan", "fmod") and dtype is np.float64
    with mpmath.workdps(340 if long else 60):
        if name in ("exp", "exp2", "expm1", "sinh", "cosh", "tanh", "logistic", "erfc"):
            clipped = np.clip(arguments[0].astype(float), -1500, 1500)
        else:
            clipped = arguments[0].astype(float)
        rest = [a.astype(float) for a in arguments[1:]]
        exact = TRUE.get(name) or getattr(mpmath, name)
        true = [exact(*map(mpmath.mpf, point)) for point in zip(clipped, *rest, strict=True)]
        wrong = errors(got, true, dtype)
    worst = int(np.argmax(wrong))
    return wrong[worst], [float(a[worst]) for a in arguments], float(got[worst])


@BOTH
@pytest.mark.parametrize("name", ULPS)
def test_error_is_small(name, dtype):
    count = 60 if name in ("erf_inv", "digamma", "lgamma") else 330
    error, where, got = largest_error(name, dtype, count)
    assert error <= ULPS[name], f"{name}{where} = {got}, wrong by {error} ulp"


@pytest.mark.parametrize("lanes", [0, 2, 4, 8, 32])
@pytest.mark.parametrize("name", ["exp", "log", "sin", "pow", "tanh", "cbrt", "erf_inv", "fmod"])
def test_any_number_of_lanes_gives_the_same(name, lanes):
    rng = np.random.default_rng(5)
    arguments = [rng.uniform(0.01, 0.99, 64) for _ in range(2 if name in ("pow", "fmod") else 1)]
    for dtype in (np.float32, np.float64):
        cast = [a.astype(dtype) for a in arguments]
        found, usual = apply(name, *cast, lanes=lanes), apply(name, *cast)
        if name == "sin" and not lanes:  # summed in another order, for its latency
            np.testing.assert_array_max_ulp(found, usual, 1)
        else:
            np.testing.assert_array_equal(found, usual)


@BOTH
@pytest.mark.parametrize("name", ["sin", "cos"])
def test_error_of_scalars_is_small(name, dtype):
    error, where, got = largest_error(name, dtype, 330, lanes=0)
    assert error <= 2, f"{name}{where} = {got}, wrong by {error} ulp"
    for x in (0.0, -0.0, np.inf, -np.inf, np.nan, 1e30):
        x = np.array([x], dtype)
        found, usual = apply(name, x, lanes=0), apply(name, x)
        np.testing.assert_array_equal(found, usual)
        np.testing.assert_array_equal(np.signbit(found), np.signbit(usual))


@pytest.mark.skipif(not link.target().has("avx2"), reason="narrowing is written for x86 hosts")
@pytest.mark.parametrize("width", [32, 16])
@BOTH
@pytest.mark.parametrize("name", ["exp", "expm1", "log", "sin", "tan", "pow", "cbrt", "lgamma"])
def test_narrower_targets(name, dtype, width):
    error, where, got = largest_error(name, dtype, 60, width=width)
    assert error <= (2 if name != "lgamma" else 40), f"{name}{where} = {got}, wrong by {error} ulp"


SPECIAL = {
    "exp": [(0, 1), (-0.0, 1), (INF, INF), (-INF, 0.0), (NAN, NAN), (1e4, INF), (-1e4, 0.0)],
    "exp2": [(-0.0, 1), (INF, INF), (-INF, 0.0), (NAN, NAN), (10, 1024), (-3, 0.125), (1, 2)],
    "expm1": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -1), (NAN, NAN), (-100, -1)],
    "logistic": [(0, 0.5), (INF, 1), (-INF, 0.0), (NAN, NAN), (-1e5, 0.0), (1e5, 1)],
    "log": [(1, 0.0), (0.0, -INF), (-0.0, -INF), (-1, NAN), (INF, INF), (-INF, NAN), (NAN, NAN)],
    "log2": [(1, 0.0), (8, 3), (0.25, -2), (2.0**-140, -140), (0.0, -INF), (-1, NAN), (INF, INF)],
    "log10": [(1, 0.0), (1000, 3), (0.0, -INF), (-2, NAN), (INF, INF), (NAN, NAN)],
    "log1p": [(0.0, 0.0), (-0.0, -0.0), (-1, -INF), (-2, NAN), (INF, INF), (NAN, NAN), (-INF, NAN)],
    "sin": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (NAN, NAN), (1e-40, 1e-40)],
    "cos": [(0.0, 1), (-0.0, 1), (INF, NAN), (-INF, NAN), (NAN, NAN)],
    "tan": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (NAN, NAN), (-1e-40, -1e-40)],
    "asin": [(0.0, 0.0), (-0.0, -0.0), (1, np.pi / 2), (-1, -np.pi / 2), (1.1, NAN), (NAN, NAN)],
    "acos": [(1, 0.0), (-1, np.pi), (0, np.pi / 2), (-1.1, NAN), (INF, NAN), (NAN, NAN)],
    "atan": [(0.0, 0.0), (-0.0, -0.0), (INF, np.pi / 2), (-INF, -np.pi / 2), (1, np.pi / 4),
             (NAN, NAN)],
    "sinh": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (NAN, NAN), (1e3, INF)],
    "cosh": [(0.0, 1), (INF, INF), (-INF, INF), (NAN, NAN), (-1e3, INF)],
    "tanh": [(0.0, 0.0), (-0.0, -0.0), (INF, 1), (-INF, -1), (NAN, NAN), (50, 1)],
    "asinh": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (NAN, NAN)],
    "acosh": [(1, 0.0), (0.5, NAN), (-3, NAN), (INF, INF), (-INF, NAN), (NAN, NAN)],
    "atanh": [(0.0, 0.0), (-0.0, -0.0), (1, INF), (-1, -INF), (2, NAN), (-INF, NAN), (NAN, NAN)],
    "erf": [(0.0, 0.0), (-0.0, -0.0), (INF, 1), (-INF, -1), (NAN, NAN), (7, 1)],
    "erfc": [(0, 1), (INF, 0.0), (-INF, 2), (NAN, NAN), (40, 0.0), (-7, 2)],
    "erf_inv": [(0.0, 0.0), (-0.0, -0.0), (1, INF), (-1, -INF), (1.5, NAN), (NAN, NAN)],
    "sqrt": [(0.0, 0.0), (-0.0, -0.0), (4, 2), (-1, NAN), (INF, INF), (NAN, NAN)],
    "rsqrt": [(0.0, INF), (-0.0, -INF), (4, 0.5), (-1, NAN), (INF, 0.0), (NAN, NAN)],
    "cbrt": [(0.0, 0.0), (-0.0, -0.0), (27, 3), (-8, -2), (INF, INF), (-INF, -INF), (NAN, NAN)],
    "lgamma": [(1, 0.0), (2, 0.0), (0.0, INF), (-1, INF), (-3, INF), (INF, INF), (-INF, INF),
               (NAN, NAN)],
    "digamma": [(0.0, NAN), (-2, NAN), (INF, INF), (NAN, NAN)],
    "floor": [(1.5, 1), (-1.5, -2), (-0.0, -0.0), (INF, INF), (NAN, NAN)],
    "ceil": [(1.5, 2), (-0.5, -0.0), (-INF, -INF), (NAN, NAN)],
    "trunc": [(1.7, 1), (-1.7, -1), (-0.5, -0.0), (NAN, NAN)],
    "round": [(0.5, 1), (-0.5, -1), (2.5, 3), (-2.5, -3), (0.49999997, 0.0), (-0.2, -0.0),
              (8388609, 8388609), (INF, INF), (NAN, NAN)],
    "round_even": [(0.5, 0.0), (1.5, 2), (2.5, 2), (-0.5, -0.0), (-INF, -INF), (NAN, NAN)],
    "sign": [(3, 1), (-2, -1), (0.0, 0.0), (-0.0, -0.0), (NAN, NAN), (-INF, -1)],
}  # fmt: skip


@BOTH
@pytest.mark.parametrize("name", SPECIAL)
def test_special_values(name, dtype):
    for x, expected in SPECIAL[name]:
        # Alone in its vector, so that no rare neighbour sends it another way.
        got = apply(name, np.full(16, x, dtype))
        np.testing.assert_array_equal(got, np.full(16, expected, dtype), f"{name}({x})")
        if not np.isnan(expected):
            np.testing.assert_array_equal(np.signbit(got), np.signbit(expected), f"{name}({x})")


AWKWARD = [0.0, -0.0, 1, -1, INF, -INF, NAN, 0.5, -0.5, 2, -2, 3, -3, 1.5, 1e-40, 1e30, -1e30]


@BOTH
@pytest.mark.parametrize(
    "name, reference", [("pow", np.power), ("atan2", np.arctan2), ("fmod", np.fmod)]
)
def test_special_pairs(name, reference, dtype):
    x, y = (a.ravel().astype(dtype) for a in np.meshgrid(AWKWARD, AWKWARD))
    with np.errstate(all="ignore"):
        expected = reference(x, y)
    for lanes in (None, 0):
        got = apply(name, x, y, lanes=lanes)
        np.testing.assert_allclose(got, expected, rtol=4 * np.finfo(dtype).eps)
        checked = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(got[checked]), np.signbit(expected[checked]))


@BOTH
def test_huge_arguments_beside_ordinary_ones(dtype):
    x = np.array([1e22, 0.5, -1e30, 3.0, np.finfo(dtype).max, -0.25, 2.0**60, 1e10] * 2, dtype)
    with mpmath.workdps(340):
        for name in ("sin", "cos", "tan"):
            true = [getattr(mpmath, name)(mpmath.mpf(float(v))) for v in x]
            assert errors(apply(name, x), true, dtype).max() <= 2


def test_is_finite():
    x = np.array([0, 1, INF, -INF, NAN, 1e30, -0.0, 2], np.float32)
    np.testing.assert_array_equal(apply("is_finite", x, lanes=8, out=np.int8), np.isfinite(x))


def test_half_goes_through_float():
    x = np.linspace(-4, 4, 64).astype(np.float16)
    got = apply("exp", x, lanes=16)
    np.testing.assert_array_equal(got, np.exp(x.astype(np.float64)).astype(np.float16))


@pytest.mark.skipif(not link.target().has("avx2"), reason="narrowing is written for x86 hosts")
def test_halfs_without_an_instruction():
    """Every half to float, and floats at and beside every boundary between halfs."""
    module = Module(frozenset({"sse2"}))
    pointers = [(name, "ptr") for name in ("half", "float")]
    for name, source, target, cast in (
        ("widen", "half", "float", Builder.fpext), ("narrow", "float", "half", Builder.fptrunc)
    ):  # fmt: skip
        b = Builder(module, name, [("n", "i64"), *pointers])
        places = dict(zip(("half", "float"), b.args[1:], strict=True))
        with b.loop(0, b.args[0], 8) as loop:
            x = b.load(b.gep(places[source], loop.index, source), vector(source, 8))
            b.store(cast(b, x, target), b.gep(places[target], loop.index, target))
        b.ret()
    engine, _ = narrow_address(module.text().replace("@widen", "@f"), 16)
    run = {
        name: ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 3)(engine.get_function_address(symbol))
        for name, symbol in (("widen", "f"), ("narrow", "narrow"))
    }
    halfs = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    floats = np.empty(halfs.shape, np.float32)
    run["widen"](len(halfs), halfs.ctypes.data, floats.ctypes.data)
    with np.errstate(all="ignore"):
        want = halfs.astype(np.float32)
    number = ~np.isnan(want)
    np.testing.assert_array_equal(floats[number].view(np.int32), want[number].view(np.int32))
    assert np.isnan(floats[~number]).all()
    np.testing.assert_array_equal(np.signbit(floats), np.signbit(want))
    bits = want[number].view(np.uint32).astype(np.int64)
    edges = [bits + (step << 12) + off for step in (0, 1) for off in (-1, 0, 1)]
    rest = np.array([np.nan, -np.nan, np.inf, -np.inf, 3e38, 1e-45, 2**-25, 2**-26], np.float32)
    x = np.concatenate([*edges, rest.view(np.uint32)]).astype(np.uint32)
    x = np.resize(x, -(-len(x) // 8) * 8).view(np.float32)
    got = np.empty(x.shape, np.float16)
    run["narrow"](len(x), got.ctypes.data, x.ctypes.data)
    with np.errstate(all="ignore"):
        wanted = x.astype(np.float16)
    number = ~np.isnan(wanted)
    np.testing.assert_array_equal(got[number].view(np.int16), wanted[number].view(np.int16))
    assert np.isnan(got[~number]).all()
    np.testing.assert_array_equal(np.signbit(got), np.signbit(wanted))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_integers(dtype):
    width = np.dtype(dtype).itemsize * 8
    x = np.array([0, 1, -1, 5, 2**30, -(2**31), 77, -3], dtype)
    count = [bin(int(v) & (2**width - 1)).count("1") for v in x]
    np.testing.assert_array_equal(apply("popcount", x, lanes=8), count)
    zeros = [width - (int(v) & (2**width - 1)).bit_length() for v in x]
    np.testing.assert_array_equal(apply("clz", x, lanes=8), zeros)
    np.testing.assert_array_equal(apply("sign", x, lanes=8), np.sign(x))
    y = x[::-1].copy()
    high = [((int(a) % 2**width) * (int(b) % 2**width) >> width) for a, b in zip(x, y, strict=True)]
    unsigned = np.uint32 if width == 32 else np.uint64
    np.testing.assert_array_equal(
        apply("mulhi", x, y, lanes=8).view(unsigned), np.array(high, unsigned)
    )


def test_integer_powers():
    x = np.array([2, -3, 7, 1, -1, -1, 0, 5, 0, 3, 2, -2], np.int32)
    y = np.array([10, 3, 0, -4, -3, -2, 0, -1, 5, 40, 31, 31], np.int32)
    with np.errstate(all="ignore"):
        wrapped = [pow(int(a), int(b), 2**32) if b >= 0 else 0 for a, b in zip(x, y, strict=True)]
    expected = np.array(wrapped, np.uint32).view(np.int32)
    expected[3:6] = [1, -1, 1]
    for lanes in (0, 4):
        np.testing.assert_array_equal(apply("integer_pow", x, y, lanes=lanes), expected)


def test_text_is_deterministic_and_unknown_names_are_refused():
    assert written("tan", "float", 8, 1) == written("tan", "float", 8, 1)
    with pytest.raises(NotImplementedError, match="no vector code for 'sine'"):
        written("sine", "float", 8, 1)


@pytest.mark.parametrize("name", ["exp", "exp2", "logistic"])
@pytest.mark.parametrize("width", [0, 32, 16])
@BOTH
def test_results_about_the_least_normal_number(name, dtype, width):
    """Rounded once, from normal numbers to 0, at each number about the border of both."""
    limits, unit = np.finfo(dtype), np.log(2) if name != "exp2" else 1.0
    ends = np.array(
        [(limits.minexp - k) * unit for k in (-2, 0, 1, limits.nmant, limits.nmant + 2)]
    )
    near = [np.nextafter(ends.astype(dtype), s * np.inf).astype(dtype) for s in (-1, 1)]
    x = np.concatenate([ends, *near, np.linspace(ends[-1] - 1, ends[0] + 2, 90)]).astype(dtype)
    reference = TRUE[name] if name in TRUE else getattr(mpmath, name)
    true = [reference(mpmath.mpf(float(v))) for v in x]
    assert errors(apply(name, x, width=width), true, dtype).max() <= ULPS[name]
    rest = apply(name, np.array([np.nan, -np.nan, -np.inf], dtype), width=width)
    assert np.isnan(rest[:2]).all() and rest[2] == 0
