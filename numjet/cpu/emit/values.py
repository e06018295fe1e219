"""Operations of the loop IR on LLVM values: what `add` means for an int8, a float16, a bool.

`apply` writes one operation, `convert` a cast, `load`/`store` the way between memory and registers.
Values may be scalars or vectors; all operands of one call have the same number of lanes.
In registers a bool is i1, an integer iN, float16 and bfloat16 are float (already rounded), the rest
itself. Only the emitter and kernel generators call this. What would break it: an operand that
is not in its register form.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import ml_dtypes
import numpy as np

from numjet.cpu import math as vector_math
from numjet.cpu.builder.builder import TYPES, Builder, Value, like, vector

BOOL = np.dtype(np.bool_)
FLOAT16 = np.dtype(np.float16)
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOAT32 = np.dtype(np.float32)
FLOAT64 = np.dtype(np.float64)
SMALL_FLOATS = (FLOAT16, BFLOAT16)
FLOATS = (FLOAT16, BFLOAT16, FLOAT32, FLOAT64)

_REGISTER = {BOOL: "i1", FLOAT16: "float", BFLOAT16: "float", FLOAT32: "float", FLOAT64: "double"}
_MEMORY = {BOOL: "i8", FLOAT16: "half", BFLOAT16: "i16", FLOAT32: "float", FLOAT64: "double"}


def register_type(dtype: np.dtype) -> str:
    """The LLVM element type that holds a `dtype` in registers."""
    found = _REGISTER.get(dtype)
    if found is None:
        if dtype.kind not in "iu":
            raise NotImplementedError(
                f"native kernels have no arithmetic for dtype {dtype}; convert to float32 first"
            )
        found = _REGISTER[dtype] = f"i{dtype.itemsize * 8}"
    return found


def memory_type(dtype: np.dtype) -> str:
    """The LLVM element type of a `dtype` in memory."""
    return _MEMORY.get(dtype) or register_type(dtype)


def constant(b: Builder, value: bool | int | float, dtype: np.dtype, lanes: int = 0) -> Value:
    """A constant in register form."""
    if dtype in SMALL_FLOATS:
        value = float(np.asarray(value, dtype=np.float64).astype(dtype).astype(np.float32))
    return b.const(value, vector(register_type(dtype), lanes))


# -- memory form ----------------------------------------------------------------------------


def from_memory(b: Builder, x: Value, dtype: np.dtype) -> Value:
    """A loaded value in register form."""
    if dtype == BOOL:
        return b.icmp("ne", x, 0)
    if dtype == FLOAT16:
        return b.fpext(x, "float")
    if dtype == BFLOAT16:
        return b.bitcast(b.shl(b.zext(x, "i32"), 16), like(x.type, "float"))
    return x


def to_memory(b: Builder, x: Value, dtype: np.dtype) -> Value:
    """A register value in the form it is stored in."""
    if dtype == BOOL:
        return b.zext(x, "i8")
    if dtype == FLOAT16:
        return b.fptrunc(x, "half")
    if dtype == BFLOAT16:
        return b.trunc(b.lshr(b.bitcast(x, like(x.type, "i32")), 16), "i16")
    return x


def round_small(b: Builder, x: Value, dtype: np.dtype) -> Value:
    """A float rounded to nearest even to float16 or bfloat16 precision, still a float."""
    if dtype == FLOAT16:
        return b.fpext(b.fptrunc(x, "half"), "float")
    return b.round_bfloat(x)


# -- casts ----------------------------------------------------------------------------------


def convert(b: Builder, x: Value, source: np.dtype, target: np.dtype) -> Value:
    """`x` of dtype `source` as `target`."""
    if source == target:
        return x
    element = register_type(target)
    if target == BOOL:
        return b.fcmp("une", x, 0.0) if source in FLOATS else b.icmp("ne", x, 0)
    if target in FLOATS:
        return _to_float(b, x, source, target)
    if source in FLOATS:
        return (b.fptosi if target.kind == "i" else b.fptoui)(x, element)
    if source == BOOL:
        return b.zext(x, element)
    if target.itemsize < source.itemsize:
        return b.trunc(x, element)
    if target.itemsize == source.itemsize:
        return x
    return (b.sext if source.kind == "i" else b.zext)(x, element)


def _to_float(b: Builder, x: Value, source: np.dtype, target: np.dtype) -> Value:
    if source == BOOL:
        return b.select(x, b.const(1.0, like(x.type, register_type(target))), 0.0)
    if source in FLOATS:
        if target == FLOAT64:
            return b.fpext(x, "double")
        if source == FLOAT64:
            return _narrow(b, x, target)
        return x if target == FLOAT32 else round_small(b, x, target)
    element = "double" if target == FLOAT64 else "float"
    y = (b.sitofp if source.kind == "i" else b.uitofp)(x, element)
    # Integers of a byte are small floats.
    return round_small(b, y, target) if target in SMALL_FLOATS and source.itemsize > 1 else y


def _narrow(b: Builder, x: Value, target: np.dtype) -> Value:
    """float64 to a narrower float. To the small ones through a float rounded to odd, so that
    rounding twice gives what rounding once would (Boldo and Melquiond 2008)."""
    y = b.fptrunc(x, "float")
    if target == FLOAT32:
        return y
    back = b.fpext(y, "double")
    bits = b.bitcast(y, like(y.type, "i32"))
    even = b.icmp("eq", b.and_(bits, 1), 0)
    inexact = b.and_(b.fcmp("one", back, x), even)
    up = b.fcmp("ogt", b.abs(x), b.abs(back))
    moved = b.select(up, b.add(bits, 1), b.sub(bits, 1))
    return round_small(b, b.bitcast(b.select(inexact, moved, bits), y.type), target)


def bit_convert(b: Builder, x: Value, source: np.dtype, target: np.dtype) -> Value:
    """The stored bits of `x` read as `target`."""
    raw = to_memory(b, x, source)
    return from_memory(b, b.bitcast(raw, like(raw.type, memory_type(target))), target)


# -- operations -----------------------------------------------------------------------------

_SIGNED = {"lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge", "eq": "eq", "ne": "ne"}
_UNSIGNED = {"lt": "ult", "le": "ule", "gt": "ugt", "ge": "uge", "eq": "eq", "ne": "ne"}
_ORDERED = {"lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "eq": "oeq", "ne": "une"}
# On booleans false < true, as on unsigned bits.
_BOOL_OPS = {"add": "or", "mul": "and", "max": "or", "min": "and", "sub": "xor"}

# Divisors of so few bits are known not to turn what is rounded.
_DIVISOR = 2**16

# Results of these need no rounding in the small floats: they are exact.
_EXACT = frozenset(["neg", "abs", "max", "min", "sign", "copysign", "floor", "ceil", "round",
                    "round_even", "trunc"])  # fmt: skip


def apply(b: Builder, name: str, dtype: np.dtype, *xs: Value) -> Value:
    """The operation `name` on operands of `dtype` (the operands', not the result's)."""
    if dtype in FLOATS:
        result = _float_op(b, name, *xs)
        if dtype in SMALL_FLOATS and name not in _EXACT and TYPES[result.type].is_float:
            result = round_small(b, result, dtype)
        return result
    if dtype == BOOL:
        return _bool_op(b, name, *xs)
    return _int_op(b, name, dtype, *xs)


def _bool_op(b: Builder, name: str, *xs: Value) -> Value:
    name = _BOOL_OPS.get(name, name)
    if name in _UNSIGNED:
        return b.icmp(_UNSIGNED[name], *xs)
    if name == "and":
        return b.and_(*xs)
    if name == "or":
        return b.or_(*xs)
    if name == "xor":
        return b.xor(*xs)
    if name in ("not", "neg"):
        return b.not_(xs[0])
    if name in ("abs", "sign"):
        return xs[0]
    if name == "is_finite":
        return b.const(True, xs[0].type)
    raise NotImplementedError(f"{name} of booleans has no native form; convert to an integer first")


def _float_op(b: Builder, name: str, *xs: Value) -> Value:
    x = xs[0]
    if name in _ORDERED:
        return b.fcmp(_ORDERED[name], *xs)
    simple = _FLOAT_METHODS.get(name)
    if simple is not None:
        return simple(b, *xs)
    if name == "sign":
        one = b.intrinsic("llvm.copysign", b.const(1.0, x.type), x)
        return b.select(b.fcmp("one", x, 0.0), one, x)  # zeros and NaN are their own sign
    if name == "copysign":
        return b.intrinsic("llvm.copysign", *xs)
    if name == "is_finite":
        return b.fcmp("one", b.abs(x), float("inf"))
    if name == "is_nan":
        return b.fcmp("uno", x, x)
    if name == "is_inf":
        return b.fcmp("oeq", b.abs(x), float("inf"))
    if name == "rem":
        return _float_rem(b, *xs)
    return vector_math.emit(b, name, *xs)


def quotient(b: Builder, x: Value, divisor: float, dtype: np.dtype) -> Value | None:
    """`x`, which holds integers, through a constant: bit for bit what dividing gives, without it.
    None where that is not known to be right.

    x / d is x * near + x * rest, where `near` is 1 / d cut off and `rest` what is left: within
    2**-46 of it. A divisor of 16 bits keeps every quotient that is not a number itself 2**-41
    away from where rounding turns. Integers are far from what is too small for `rest`, infinite, or
    a zero with a sign; of others the two parts may be wrong.
    """
    if dtype != FLOAT32 or not b.module.has("fma") or not 2.0**-60 < abs(divisor) < 2.0**60:
        return None
    significand, _ = math.frexp(divisor)
    if not (significand * _DIVISOR).is_integer():
        return None
    near = np.float32(1 / divisor)
    if abs(float(near) * divisor) > 1:  # rest has the sign of near
        near = np.nextafter(near, np.float32(0))
    rest = np.float32((1 - float(near) * divisor) / divisor)
    return b.fma(x, float(near), b.mul(x, float(rest)))


def _float_rem(b: Builder, x: Value, y: Value) -> Value:
    return vector_math.emit(b, "fmod", x, y)


def _rounding(name: str) -> Callable[..., Value]:
    return lambda b, x: b.intrinsic(f"llvm.{name}", x)


_FLOAT_METHODS: dict[str, Callable[..., Value]] = {
    "add": lambda b, x, y: b.add(x, y),
    "sub": lambda b, x, y: b.sub(x, y),
    "mul": lambda b, x, y: b.mul(x, y),
    "div": lambda b, x, y: b.div(x, y),
    "max": lambda b, x, y: b.max(x, y),
    "min": lambda b, x, y: b.min(x, y),
    "max_of_numbers": lambda b, x, y: b.of_numbers("max", x, y),
    "min_of_numbers": lambda b, x, y: b.of_numbers("min", x, y),
    "either_nan": lambda b, x, y: b.fcmp("uno", x, y),
    "fma": lambda b, x, y, z: b.fma(x, y, z),
    "neg": lambda b, x: b.neg(x),
    "abs": lambda b, x: b.abs(x),
    "sqrt": lambda b, x: b.sqrt(x),
    "floor": _rounding("floor"),
    "ceil": _rounding("ceil"),
    "trunc": _rounding("trunc"),
    "round_even": _rounding("roundeven"),
    "square": lambda b, x: b.mul(x, x),
    "reciprocal": lambda b, x: b.div(1.0, x),
}


def _int_op(b: Builder, name: str, dtype: np.dtype, *xs: Value) -> Value:
    signed = dtype.kind == "i"
    bits = dtype.itemsize * 8
    x = xs[0]
    if name in _SIGNED:
        return b.icmp((_SIGNED if signed else _UNSIGNED)[name], *xs)
    method = _INT_METHODS.get(name)
    if method is not None:
        return method(b, *xs)
    if name == "max":
        return (b.max if signed else b.umax)(*xs)
    if name == "min":
        return (b.min if signed else b.umin)(*xs)
    if name in ("div", "rem"):
        return _divide(b, name, signed, bits, *xs)
    if name in ("shl", "shr_arith", "shr_logical"):
        return _shift(b, name, bits, *xs)
    if name == "abs":
        return b.abs(x) if signed else x
    if name == "sign":
        nonzero = b.zext(b.icmp("ne", x, 0), f"i{bits}")
        return b.or_(b.ashr(x, bits - 1), nonzero) if signed else nonzero
    if name == "pow":
        return _int_pow(b, *xs)
    if name == "mulhi":
        return _mulhi(b, signed, bits, *xs)
    if name == "popcount":
        return b.intrinsic("llvm.ctpop", x)
    if name in ("clz", "ctz"):
        return b.intrinsic("llvm.ctlz" if name == "clz" else "llvm.cttz", x, Value("false", "i1"))
    if name == "is_finite":
        return b.const(True, like(x.type, "i1"))
    if name in ("is_nan", "is_inf"):
        return b.const(False, like(x.type, "i1"))
    if name in ("floor", "ceil", "round", "round_even", "trunc"):
        return x
    raise NotImplementedError(f"{name} of {dtype} has no native form; convert to a float first")


_INT_METHODS: dict[str, Callable[..., Value]] = {
    "add": lambda b, x, y: b.add(x, y),
    "sub": lambda b, x, y: b.sub(x, y),
    "mul": lambda b, x, y: b.mul(x, y),
    "and": lambda b, x, y: b.and_(x, y),
    "or": lambda b, x, y: b.or_(x, y),
    "xor": lambda b, x, y: b.xor(x, y),
    "not": lambda b, x: b.not_(x),
    "neg": lambda b, x: b.neg(x),
    "square": lambda b, x: b.mul(x, x),
}


def _mulhi(b: Builder, signed: bool, bits: int, x: Value, y: Value) -> Value:
    extend = b.sext if signed else b.zext
    wide = f"i{2 * bits}"
    return b.trunc(b.lshr(b.mul(extend(x, wide), extend(y, wide)), bits), f"i{bits}")


def _divide(b: Builder, name: str, signed: bool, bits: int, x: Value, y: Value) -> Value:
    """x/0 = -1 and x rem 0 = x; INT_MIN/-1 = INT_MIN and INT_MIN rem -1 = 0.

    Lanes of 32 bits and fewer divide in float64, which is exact for their quotients: vectors of
    integers have no divide instruction.
    """
    divisor = _constant(y)
    if divisor is not None:
        if divisor not in (0, -1):  # the code generator multiplies instead
            if name == "div":
                return (b.div if signed else b.udiv)(x, y)
            return (b.rem if signed else b.urem)(x, y)
    zero = b.icmp("eq", y, 0)
    safe = b.select(zero, b.const(1, y.type), y)
    if TYPES[x.type].lanes and bits <= 32:
        to = b.sitofp if signed else b.uitofp
        quotient = b.div(to(x, "double"), to(safe, "double"))
        back = b.fptosi(quotient, "i64", saturate=False)
        quotient = b.trunc(back, f"i{bits}")
        if name == "rem":
            return b.select(zero, x, b.sub(x, b.mul(quotient, safe)))
        return b.select(zero, b.const(-1, x.type), quotient)
    overflow = None
    if signed:
        overflow = b.and_(b.icmp("eq", x, -(1 << (bits - 1))), b.icmp("eq", y, -1))
        safe = b.select(overflow, b.const(1, y.type), safe)
    if name == "div":
        # INT_MIN / 1 is the wanted INT_MIN.
        quotient = (b.div if signed else b.udiv)(x, safe)
        return b.select(zero, b.const(-1, x.type), quotient)
    return b.select(zero, x, (b.rem if signed else b.urem)(x, safe))


def _constant(x: Value) -> int | None:
    """The value of an integer constant, or of one in all lanes."""
    word = x.ref.rpartition(" ")[2].rstrip(")")
    return int(word) if word.lstrip("-").isdigit() and x.ref[0] != "<" else None


def _shift(b: Builder, name: str, bits: int, x: Value, y: Value) -> Value:
    """A shift by the width or more gives 0, or the sign."""
    known = _constant(y)
    if known is not None and 0 <= known < bits:
        return {"shl": b.shl, "shr_arith": b.ashr, "shr_logical": b.lshr}[name](x, y)
    inside = b.icmp("ult", y, bits)
    if name == "shr_arith":
        return b.ashr(x, b.select(inside, y, b.const(bits - 1, y.type)))
    amount = b.select(inside, y, b.const(0, y.type))
    shifted = b.shl(x, amount) if name == "shl" else b.lshr(x, amount)
    return b.select(inside, shifted, b.const(0, x.type))


_POWER_ROUNDS = 4  # exponents up to 15


def _int_pow(b: Builder, x: Value, y: Value) -> Value:
    """Repeated squaring, modulo 2 to the width; the exponent's bits count as unsigned."""
    one = b.const(1, x.type)

    def squared(state: Sequence[Value]) -> tuple[Value, Value, Value]:
        result, base, left = state
        odd = b.icmp("ne", b.and_(left, 1), 0)
        return b.select(odd, b.mul(result, base), result), b.mul(base, base), b.lshr(left, 1)

    # Exponents are small: so many rounds are done at once, and the loop is for what is left.
    state = one, x, y
    for _ in range(_POWER_ROUNDS):
        state = squared(state)
    with b.while_(state) as loop:
        more = b.icmp("ne", loop.values[2], 0)
        loop.test(b.any(more) if TYPES[more.type].lanes else more)
        loop.yield_(*squared(loop.values))
    return loop.results[0]


# -- reductions -----------------------------------------------------------------------------


def identity(op: str, dtype: np.dtype) -> bool | int | float:
    """The value that changes nothing under the reduction `op`."""
    if op in ("add", "xor", "or"):
        if dtype in FLOATS:
            return -0.0 if op == "add" else 0.0
        return False if dtype == BOOL else 0
    if op == "mul":
        return True if dtype == BOOL else (1.0 if dtype in FLOATS else 1)
    if op == "and":
        return True if dtype == BOOL else -1
    if dtype in FLOATS:
        return float("-inf") if op == "max" else float("inf")
    if dtype == BOOL:
        return op == "min"
    info = np.iinfo(dtype)
    return int(info.min if op == "max" else info.max)


def reduce_lanes(b: Builder, op: str, dtype: np.dtype, x: Value) -> Value:
    """All lanes of x combined."""
    if not TYPES[x.type].lanes:
        return x
    if dtype == BOOL:
        return b.reduce(_BOOL_OPS.get(op, op), x)
    if dtype.kind == "u" and op in ("max", "min"):
        return b.reduce("u" + op, x)
    result = b.reduce(op, x)
    return round_small(b, result, dtype) if dtype in SMALL_FLOATS else result
