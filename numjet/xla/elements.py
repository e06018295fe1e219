"""Element by element: the emitter that the `loops` rules of elementwise primitives receive here.

The same methods that the native compiler's emitter has (`cpu.loops.build`), over whole arrays
instead of single elements, so that a primitive says once what it computes. An operand without
dimensions stands for every element; Python numbers become constants.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numjet.core.dtypes import physical
from numjet.xla.writer import BOOL, WIDE, Value, Writer

# Mathematical functions by the names that rules call them.
_FUNCTIONS = {
    "sin": "sine", "cos": "cosine", "exp": "exponential", "expm1": "exponential_minus_one",
    "log": "log", "log1p": "log_plus_one", "sqrt": "sqrt", "rsqrt": "rsqrt", "cbrt": "cbrt",
    "tan": "tan", "tanh": "tanh", "logistic": "logistic", "floor": "floor", "ceil": "ceil",
    "round": "round_nearest_afz", "round_even": "round_nearest_even", "popcount": "popcnt",
    "clz": "count_leading_zeros", "is_finite": "is_finite", "atan2": "atan2",
    "acos": "chlo.acos", "asin": "chlo.asin", "atan": "chlo.atan", "sinh": "chlo.sinh",
    "cosh": "chlo.cosh", "asinh": "chlo.asinh", "acosh": "chlo.acosh", "atanh": "chlo.atanh",
    "lgamma": "chlo.lgamma", "digamma": "chlo.digamma", "erf": "chlo.erf", "erfc": "chlo.erfc",
    "erf_inv": "chlo.erf_inv", "zeta": "chlo.zeta", "polygamma": "chlo.polygamma",
    "bessel_i1e": "chlo.bessel_i1e", "is_inf": "chlo.is_inf",
}  # fmt: skip
_PREDICATES = frozenset(("is_finite", "is_inf"))
_PARTS = {"complex64": np.dtype(np.float32), "complex128": np.dtype(np.float64)}


class Elements(Writer):
    """Operations on elements at the same place."""

    # -- operands ---------------------------------------------------------------------------
    def const(self, value: Any, dtype: Any) -> Value:
        """A constant without dimensions; integers wrap."""
        dtype = np.dtype(physical(dtype))
        if dtype.kind in "iu" and dtype.isbuiltin == 1:
            info = np.iinfo(dtype)
            value = (int(value) - int(info.min)) % (1 << info.bits) + int(info.min)
        return self.constant(np.array(value).astype(dtype) if dtype.isbuiltin != 1
                             else np.array(value, dtype))

    def broadcast(self, x: Value, shape: tuple[int, ...], dims: tuple[int, ...] = ()) -> Value:
        """`x` along new axes; `dims` are the places of its own."""
        if x.shape == tuple(shape):
            return x
        places = f"array<i64: {', '.join(map(str, dims))}>" if dims else "array<i64>"
        return self.op("broadcast_in_dim", [x], shape, x.dtype, f"broadcast_dimensions = {places}")

    def _alike(self, *xs: Any) -> list[Value]:
        """Values of one shape; numbers take the dtype of the first value."""
        first, *others = xs
        if type(first) is Value and all(
            [type(x) is Value and x.shape == first.shape for x in others]
        ):
            return [*xs]
        first = next(x for x in xs if isinstance(x, Value))
        values = [x if isinstance(x, Value) else self.const(x, first.dtype) for x in xs]
        shape = max((x.shape for x in values), key=len)
        return [self.broadcast(x, shape) for x in values]

    def _binary(self, name: str, x: Any, y: Any) -> Value:
        x, y = self._alike(x, y)
        return self.op(name, [x, y], x.shape, x.dtype)

    def _unary(self, name: str, x: Value, dtype: Any = None) -> Value:
        return self.op(name, [x], x.shape, x.dtype if dtype is None else dtype)

    # -- arithmetic -------------------------------------------------------------------------
    def add(self, x: Any, y: Any) -> Value:
        return self._binary("add", x, y)

    def sub(self, x: Any, y: Any) -> Value:
        return self._binary("subtract", x, y)

    def mul(self, x: Any, y: Any) -> Value:
        return self._binary("multiply", x, y)

    def div(self, x: Any, y: Any) -> Value:
        return self._binary("divide", x, y)

    def rem(self, x: Any, y: Any) -> Value:
        return self._binary("remainder", x, y)

    def pow(self, x: Any, y: Any) -> Value:
        return self._binary("power", x, y)

    def max(self, x: Any, y: Any) -> Value:
        x, y = self._alike(x, y)
        return self._extreme("GT", x, y) if x.dtype.kind == "c" else self._binary("maximum", x, y)

    def min(self, x: Any, y: Any) -> Value:
        x, y = self._alike(x, y)
        return self._extreme("LT", x, y) if x.dtype.kind == "c" else self._binary("minimum", x, y)

    def _extreme(self, direction: str, x: Value, y: Value) -> Value:
        """The extreme of complex numbers: by real part, then by imaginary part; NaN stays."""
        re, im = (self.real(x), self.real(y)), (self.imag(x), self.imag(y))
        same = self.and_(self.compare("EQ", *re), self.compare(direction, *im))
        first = self.or_(self.compare(direction, *re), same)
        nan = self.or_(self.ne(re[0], re[0]), self.ne(im[0], im[0]))
        return self.select(self.or_(first, nan), x, y)

    def neg(self, x: Value) -> Value:
        return self._unary("negate", x)

    def abs(self, x: Value) -> Value:
        if x.dtype.kind in "ub":
            return x
        return self._unary("abs", x, _PARTS.get(x.dtype.name))

    def sign(self, x: Value) -> Value:
        if x.dtype.kind in "ub":
            return self.min(x, 1)
        if x.dtype.kind == "i" or x.dtype.kind == "c":
            return self._unary("sign", x)
        # The sign of a zero and NaN stay.
        one = self.copysign(self.broadcast(self.const(1, x.dtype), x.shape), x)
        keep = self.or_(self.eq(x, 0), self.ne(x, x))
        return self.select(keep, x, one)

    def copysign(self, x: Value, y: Value) -> Value:
        """The magnitude of `x` with the sign of `y`."""
        bits = np.dtype(f"u{x.dtype.itemsize}")
        top = 1 << (8 * bits.itemsize - 1)
        magnitude = self.and_(self.bitcast(x, bits), top - 1)
        return self.bitcast(self.or_(magnitude, self.and_(self.bitcast(y, bits), top)), x.dtype)

    # -- bits and truth ---------------------------------------------------------------------
    def and_(self, x: Any, y: Any) -> Value:
        return self._binary("and", x, y)

    def or_(self, x: Any, y: Any) -> Value:
        return self._binary("or", x, y)

    def xor(self, x: Any, y: Any) -> Value:
        return self._binary("xor", x, y)

    def not_(self, x: Value) -> Value:
        return self._unary("not", x)

    def shl(self, x: Any, y: Any) -> Value:
        return self._binary("shift_left", x, y)

    def shr_arith(self, x: Any, y: Any) -> Value:
        return self._binary("shift_right_arithmetic", x, y)

    def shr_logical(self, x: Any, y: Any) -> Value:
        return self._binary("shift_right_logical", x, y)

    def compare(self, direction: str, x: Any, y: Any, kind: str = "") -> Value:
        """A comparison: EQ, NE, LT, LE, GT or GE. kind: StableHLO's name of what is compared, ""
        for that of the dtype."""
        x, y = self._alike(x, y)
        if not kind:
            kind = {"f": "FLOAT", "c": "FLOAT", "V": "FLOAT", "i": "SIGNED"}.get(
                x.dtype.kind, "UNSIGNED")
            if x.dtype.name.startswith("int"):
                kind = "SIGNED"
            elif x.dtype.name.startswith("uint"):
                kind = "UNSIGNED"
        return self.op(
            "compare", [x, y], x.shape, BOOL,
            f"comparison_direction = #stablehlo<comparison_direction {direction}>, "
            f"compare_type = #stablehlo<comparison_type {kind}>",
        )  # fmt: skip

    def eq(self, x: Any, y: Any) -> Value:
        return self.compare("EQ", x, y)

    def ne(self, x: Any, y: Any) -> Value:
        return self.compare("NE", x, y)

    def lt(self, x: Any, y: Any) -> Value:
        return self._ordered("LT", x, y)

    def le(self, x: Any, y: Any) -> Value:
        return self._ordered("LE", x, y)

    def gt(self, x: Any, y: Any) -> Value:
        return self._ordered("GT", x, y)

    def ge(self, x: Any, y: Any) -> Value:
        return self._ordered("GE", x, y)

    def _ordered(self, direction: str, x: Any, y: Any) -> Value:
        x, y = self._alike(x, y)
        if x.dtype.kind != "c":
            return self.compare(direction, x, y)
        re, im = (self.real(x), self.real(y)), (self.imag(x), self.imag(y))
        equal = self.and_(self.compare("EQ", *re), self.compare(direction, *im))
        return self.or_(self.compare(direction[:1] + "T", *re), equal)

    def select(self, condition: Value, x: Any, y: Any) -> Value:
        x, y = self._alike(x, y)
        if condition.shape and not x.shape:
            x, y = self.broadcast(x, condition.shape), self.broadcast(y, condition.shape)
        return self.op("select", [condition, x, y], x.shape, x.dtype)

    # -- dtypes -----------------------------------------------------------------------------
    def cast(self, x: Value, dtype: Any) -> Value:
        """`x` in another dtype: numbers to truth by comparison with zero, parts of complex ones
        dropped, floats to integers clamped at the ends, NaN to zero."""
        dtype = np.dtype(physical(dtype))
        if x.dtype == dtype:
            return x
        if dtype == BOOL:
            return self.ne(x, 0)
        if x.dtype.kind == "c" and dtype.kind != "c":
            x = self.real(x)
            if x.dtype == dtype:
                return x
        if dtype.kind == "c" and x.dtype.kind != "c":
            part = self.cast(x, _PARTS[dtype.name])
            return self.complex(part, self.broadcast(self.const(0, part.dtype), part.shape))
        return self._unary("convert", x, dtype)

    def bitcast(self, x: Value, dtype: Any) -> Value:
        """The same bits in a dtype of the same width."""
        return self._unary("bitcast_convert", x, np.dtype(physical(dtype)))

    def real(self, x: Value) -> Value:
        return self._unary("real", x, _PARTS[x.dtype.name]) if x.dtype.kind == "c" else x

    def imag(self, x: Value) -> Value:
        if x.dtype.kind != "c":
            return self.broadcast(self.const(0, x.dtype), x.shape)
        return self._unary("imag", x, _PARTS[x.dtype.name])

    def complex(self, re: Value, im: Value) -> Value:
        re, im = self._alike(re, im)
        dtype = np.complex128 if re.dtype.itemsize == 8 else np.complex64
        return self.op("complex", [re, im], re.shape, dtype)

    def conj(self, x: Value) -> Value:
        if x.dtype.kind != "c":
            return x
        return self.complex(self.real(x), self.neg(self.imag(x)))

    # -- functions --------------------------------------------------------------------------
    def call(self, name: str, *xs: Any) -> Value:
        """A mathematical function by name."""
        values = self._alike(*xs)
        if name == "is_nan":
            return self.ne(values[0], values[0])
        if name == "exp2":
            return self.call("exp", self.mul(values[0], float(np.log(2.0))))
        if name == "square":
            return self.mul(values[0], values[0])
        if name == "fma":
            return self.add(self.mul(values[0], values[1]), values[2])
        if name == "copysign":
            return self.copysign(values[0], values[1])
        found = _FUNCTIONS.get(name)
        if found is None:
            raise NotImplementedError(f"StableHLO has no function {name!r}.")
        dtype = BOOL if name in _PREDICATES else values[0].dtype
        wide = WIDE.get(values[0].dtype.name)
        if wide is not None and found.startswith("chlo.") and name not in _PREDICATES:
            values = [self.cast(x, wide) for x in values]
            return self.cast(self.op(found, values, values[0].shape, wide), dtype)
        return self.op(found, values, values[0].shape, dtype)

    def nextafter(self, x: Any, y: Any) -> Value:
        x, y = self._alike(x, y)
        return self.op("chlo.next_after", [x, y], x.shape, x.dtype)

    def reduce_precision(self, x: Value, exponent_bits: int, mantissa_bits: int) -> Value:
        return self.op(
            "reduce_precision", [x], x.shape, x.dtype,
            f"exponent_bits = {exponent_bits} : i32, mantissa_bits = {mantissa_bits} : i32",
        )  # fmt: skip
