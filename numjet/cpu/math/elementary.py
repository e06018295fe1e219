"""How elementary functions are written: their registry, formats, constants, polynomials, scaling.

For the modules of this package only, which register functions by `elementary`. Every helper works
on scalars and vectors of float and double. Wrong numbers in `Format` break every function at once.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Sequence
from typing import TypeVar

from numjet.base.record import NamedTuple, record
from numjet.cpu.builder.builder import TYPES, Builder, Value, like
from numjet.cpu.math import coefficients
from numjet.cpu.runtime.entry import LANES

_Writer = TypeVar("_Writer", bound=Callable[..., Value])


class Elementary(NamedTuple):
    """A function of the package: its writer, and what is known of it."""

    write: Callable[..., Value]
    weight: int
    """Rough cost of one element, an addition being 1."""
    ulps: float | None
    """Floating results are within so many units in the last place; None where they are exact."""


# All of them, by the names that rules call them. A module registers its own when it is loaded.
FUNCTIONS: dict[str, Elementary] = {}


def elementary(
    *, name: str = "", weight: int = 1, ulps: float | None = None
) -> Callable[[_Writer], _Writer]:
    """A decorator: `write(b, *values)` is the code of a function, under its own name or `name`."""

    def register(write: _Writer) -> _Writer:
        FUNCTIONS[name or write.__name__] = Elementary(write, weight, ulps)
        return write

    return register


@record(frozen=True)
class Format:
    """The numbers of an IEEE binary format."""

    element: str
    integer: str
    suffix: str
    mantissa: int
    bias: int
    magic: float
    """1.5·2^mantissa: adding it rounds to an integer, which stands in the sum's low bits."""
    magic_bits: int
    smallest_normal: float
    largest: float


F32 = Format(
    "float", "i32", "F32", 23, 127, 12582912.0, 0x4B400000, 2.0**-126, 3.4028234663852886e38
)
F64 = Format(
    "double", "i64", "F64", 52, 1023, 6755399441055744.0, 0x4338000000000000, 2.0**-1022,
    1.7976931348623157e308,
)  # fmt: skip
INFINITY = float("inf")
NAN = float("nan")


def format_of(x: Value) -> Format:
    """The format of a float or double value."""
    element = TYPES[x.type].element
    if element == "float":
        return F32
    if element == "double":
        return F64
    raise TypeError(f"math: functions take float or double values, not {x.type}")


def table(name: str, fmt: Format) -> tuple[float, ...]:
    """The coefficients fitted for one format."""
    return getattr(coefficients, f"{name}_{fmt.suffix}")


# 60 digits, cut below into a leading part in the format and the rest.
_DIGITS = {
    "ln2": "0.693147180559945309417232121458176568075500134360255254120680",
    "log2e": "1.442695040888963407359924681001892137426645954152985934135449",
    "log10e": "0.434294481903251827651128918916605082294397005803666566114454",
    "log10_2": "0.301029995663981195213738894724493026768189881462108541310427",
    "pi": "3.141592653589793238462643383279502884197169399375105820974944",
    "pi_2": "1.570796326794896619231321691639751442098584699687552910487472",
    "pi_4": "0.785398163397448309615660845819875721049292349843776455243736",
    "2_pi": "0.636619772367581343075535053490057448137838582961825794990669",
    "2_sqrtpi": "1.128379167095512573896158903121545171688101258657997713688171",
}


def _round(value: float, fmt: Format) -> float:
    return struct.unpack("f", struct.pack("f", value))[0] if fmt is F32 else value


def _below(value: float, fmt: Format) -> float:
    """The next number of the format toward zero (value > 0)."""
    layout = ("f", "I") if fmt is F32 else ("d", "Q")
    word = struct.unpack(layout[1], struct.pack(layout[0], value))[0]
    return struct.unpack(layout[0], struct.pack(layout[1], word - 1))[0]


@functools.cache
def parts(
    name: str, fmt: Format, count: int = 2, positive: bool = False, times: int = 1
) -> tuple[float, ...]:
    """A mathematical constant, `times` an integer, as a sum of `count` numbers of the format,
    largest first.

    Each is nearest to what remains, or, for `positive` parts, the nearest not above it.
    """
    digits = _DIGITS[name]
    # What remains, rest/unit: integers divide with one rounding, and fast.
    rest, unit = times * int(digits.replace(".", "")), 10 ** len(digits.partition(".")[2])
    found = []
    for _ in range(count):
        part = _round(rest / unit, fmt)
        above, below = part.as_integer_ratio()
        if positive and above * unit > rest * below:
            part = _below(part, fmt)
            above, below = part.as_integer_ratio()
        found.append(part)
        rest, unit = rest * below - above * unit, unit * below
    return tuple(found)


def horner(b: Builder, x: Value, c: tuple[float, ...]) -> Value:
    """Σ c_k x^k, one fused multiply-add a coefficient."""
    total = b.fma(x, c[-1], c[-2])
    for k in range(len(c) - 3, -1, -1):
        total = b.fma(total, x, c[k])
    return total


def estrin(b: Builder, x: Value, terms: Sequence[Value]) -> Value:
    """Σ terms_k x^k in a chain of about log2 as many multiply-adds."""
    parts = list(terms)
    while True:
        pairs = [b.fma(parts[k + 1], x, parts[k]) for k in range(0, len(parts) - 1, 2)]
        parts = [*pairs, *parts[2 * len(pairs) :]]
        if len(parts) == 1:
            return parts[0]
        x = b.mul(x, x)


def bits(b: Builder, x: Value) -> Value:
    """The float's bits as an integer of its width."""
    return b.bitcast(x, like(x.type, format_of(x).integer))


def from_bits(b: Builder, i: Value) -> Value:
    """The float with these bits."""
    return b.bitcast(i, like(i.type, "float" if TYPES[i.type].bits == 32 else "double"))


def at_most(b: Builder, x: Value, bound: float) -> Value:
    """The smaller of x and a number; NaN stays. One instruction on x86."""
    return b.select(b.fcmp("olt", b.const(bound, x.type), x), bound, x)


def at_least(b: Builder, x: Value, bound: float) -> Value:
    """The larger of x and a number; NaN stays."""
    return b.select(b.fcmp("ogt", b.const(bound, x.type), x), bound, x)


@elementary()
def copysign(b: Builder, x: Value, sign: Value) -> Value:
    """x with the sign of `sign`."""
    return b.intrinsic("llvm.copysign", x, sign)


def nearest(
    b: Builder, x: Value, factor: float, fmt: Format, offset: int = 0
) -> tuple[Value, Value]:
    """round(x·factor) as a float, and the sum whose low bits hold it, plus `offset`, as an integer.

    |x·factor| < 2^(mantissa-1), with `offset` as well.
    """
    magic = fmt.magic + offset
    shifted = b.fma(x, factor, magic)
    return b.sub(shifted, magic), shifted


def avx512_name(b: Builder, x: Value, operation: str) -> str | None:
    """The AVX-512 intrinsic "operation.p?.width" for x's type, where target and width have it."""
    info = TYPES[x.type]
    width = info.lanes * info.bits
    if (width == 512 and b.module.has("avx512f")) or (
        width in (128, 256) and b.module.has("avx512vl")
    ):
        kind = "s" if info.bits == 32 else "d"
        return f"llvm.x86.avx512.mask.{operation}.p{kind}.{width}"
    return None


def avx512(b: Builder, name: str, x: Value, *operands: Value) -> Value:
    """Call a masked AVX-512 intrinsic with all lanes on: (x, operands…, passthrough, mask)."""
    info = TYPES[x.type]
    mask = b.const(-1, "i16" if info.lanes == 16 else "i8")
    # 4: round as the current mode says; that argument exists in the 512-bit form only.
    mode = (b.const(4, "i32"),) if info.lanes * info.bits == 512 else ()
    return b.intrinsic(name, x, *operands, x, mask, *mode, overload=())


def halves(b: Builder, function: Callable[..., Value], *xs: Value) -> Value | None:
    """`function` of both halves, joined, where vectors are wider than AVX-512's registers."""
    info = TYPES[xs[0].type]
    if info.lanes * info.bits <= 512 or info.lanes % 2 or not b.module.has("avx512f"):
        return None
    half = info.lanes // 2
    return b.concat([function(*(b.slice(x, at, half) for x in xs)) for at in (0, half)])


def scales(b: Builder, x: Value) -> bool:
    """Whether one instruction scales (a part of) x by powers of two."""
    info = TYPES[x.type]
    wide = info.lanes * info.bits > 512 and b.module.has("avx512f")
    return wide or avx512_name(b, x, "scalef") is not None


def scale(
    b: Builder, x: Value, n: Value, shifted: Value, less: int = 0,
    below: bool = True, above: bool = True,
) -> Value:  # fmt: skip
    """x·2^(n-less), rounded once, for x near 1; n and `shifted` come from `nearest`, no offset.

    Where the target cannot scale there are two factors if the result may leave the normal numbers
    `below` or `above`: one is a constant unless it may do both.
    """
    joined = halves(
        b, lambda x, n, shifted: scale(b, x, n, shifted, less, below, above), x, n, shifted
    )
    if joined is not None:
        return joined
    name = avx512_name(b, x, "scalef")
    if name:
        return avx512(b, name, x, b.sub(n, float(less)) if less else n)
    fmt = format_of(x)
    if not (below and above):
        aside = 64 if below else -2 if above else 0
        power = b.add(bits(b, shifted), fmt.bias + aside - less - fmt.magic_bits)
        x = b.mul(x, from_bits(b, b.shl(power, fmt.mantissa)))
        return b.mul(x, 2.0**-aside) if aside else x
    whole = b.sub(bits(b, shifted), fmt.magic_bits + less)
    first = b.ashr(whole, 1)
    second = b.sub(whole, first)
    for power in (first, second):
        x = b.mul(x, from_bits(b, b.shl(b.add(power, fmt.bias), fmt.mantissa)))
    return x


def scale_down(
    b: Builder, x: Value, shifted: Value, low: Value, far: Value | None, less: int
) -> Value:
    """x·2^(n-less), rounded once, where the target cannot scale, for x near 1 and n down to where
    that vanishes; `shifted` is from `nearest`.

    `low`: where the result is below the normal numbers, which a sum rounds then, 2^64 times as
    large: a product with such a result would take the time of ten. `far`: where 2^(n-less) may be,
    if that is elsewhere too. Neither where x is NaN, which stays.
    """
    fmt = format_of(x)
    one = 1 << fmt.mantissa
    integer = like(x.type, fmt.integer)
    power = b.add(b.shl(bits(b, shifted), fmt.mantissa), (fmt.bias - less) * one)
    away = b.select(low if far is None else far, b.const(64 * one, integer), 0)
    # The sum's last place is that of the least number, times 2^64.
    least = b.select(low, b.const(65 * one, integer), 0)
    y = b.fma(x, from_bits(b, b.add(power, away)), from_bits(b, least))
    return from_bits(b, b.sub(bits(b, y), least if far is None else b.or_(away, least)))


def by_library(b: Builder, name: str, rare: Value, result: Value, *xs: Value) -> Value:
    """`result`, or the C library's `name` of every lane where any lane is `rare`."""
    with b.if_(b.any(rare), otherwise=[result]) as branch:
        branch.yield_(_lane_by_lane(b, name, *xs))
    return branch.results[0]


def _lane_by_lane(b: Builder, name: str, *xs: Value) -> Value:
    """The C library's `name` of each lane, by a function of the runtime."""
    info = TYPES[xs[0].type]
    kind = "f32" if info.bits == 32 else "f64"
    symbol = f"{LANES}{kind}_{len(xs)}"
    b.module.declare(symbol, "void", ["ptr", "i64", *["ptr"] * len(xs)], "cold nounwind")
    b.module.declare(name, "double", ["double"] * len(xs))
    places = [b.alloca(x.type) for x in xs]
    for x, place in zip(xs, places, strict=True):
        b.store(x, place)
    count = b.const(max(info.lanes, 1), "i64")
    b.call(symbol, "void", Value(f"@{name}", "ptr"), count, *places)
    return b.load(places[0], xs[0].type)
