"""Building loop IR expressions: the emitter `e` that a primitive's `Pointwise` rule receives.

`ExprEmitter` makes expressions and shares equal ones; complex numbers are pairs of real
expressions and every method accepts them where the operation has a complex meaning. Python
numbers beside an expression become constants of its dtype.

Who may call it: the lowering of the CPU backend (which passes it into the rules of `ops`) and
kernel generators. What would break it: mixing expressions of different dtypes in one operation;
rules must cast first, and a TypeError says so.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from numjet.core.dtypes import physical
from numjet.cpu.loops import bits as loop_bits, complex as loop_complex, ranges
from numjet.cpu.loops.complex import ComplexPair, Operand
from numjet.cpu.loops.floors import rounded_down
from numjet.cpu.loops.index import Dyn, Index, clamp, dynamic
from numjet.cpu.loops.ir import (
    COMPARISONS,
    COMPLEX_PARTS,
    Assign,
    Buffer,
    Cast,
    Const,
    Define,
    Expr,
    IndexValue,
    Load,
    Local,
    Op,
    ReadLocal,
    Select,
    Stmt,
    Store,
    Update,
)

if TYPE_CHECKING:  # loading it takes milliseconds
    from numpy.typing import DTypeLike

BOOL = np.dtype(np.bool_)
Value = Expr | ComplexPair

# Functions whose result is a boolean whatever their operand.
_PREDICATES = frozenset(["is_finite", "is_nan", "is_inf"])
# Bytes of the integers that floats hold exactly.
_EXACT_INTEGERS = {"float16": 1, "bfloat16": 1, "float32": 2, "float64": 4}
# What is asked of constants, as of the imaginary parts of real numbers.
_OF_CONSTANTS = {name: getattr(operator, name) for name in COMPARISONS} | {"not": operator.not_}
# Comparisons of any integer with the least or the largest one, and what they say.
_BEYOND = {"lt": ("min", False), "ge": ("min", True), "gt": ("max", False), "le": ("max", True)}
_TURNED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}


def _exact_inverse(divisor: Const) -> float | None:
    """1 / divisor, where a product with it is the quotient bit for bit: of most powers of two."""
    value = divisor.value
    if divisor.dtype.kind in "iub" or not math.isfinite(value) or abs(math.frexp(value)[0]) != 0.5:
        return None
    with np.errstate(over="ignore"):
        inverse = float(divisor.dtype.type(1 / value))
    return inverse if inverse * value == 1 else None


class ExprEmitter:
    """Makes loop IR expressions, sharing equal ones."""

    def __init__(self) -> None:
        self._made: dict[tuple, Expr] = {}

    def _share(self, key: tuple, make: Callable[[], Expr]) -> Expr:
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = make()
        return found

    # -- leaves -----------------------------------------------------------------------------

    def const(self, value: Any, dtype: DTypeLike) -> Any:
        """A constant of `dtype` (a ComplexPair when that is complex)."""
        dtype = np.dtype(physical(dtype))
        if dtype in COMPLEX_PARTS:
            part, value = COMPLEX_PARTS[dtype], complex(value)
            return ComplexPair(self.const(value.real, part), self.const(value.imag, part))
        if dtype == BOOL:
            plain: Any = bool(value)
        elif dtype.kind in "iu":
            info = np.iinfo(dtype)
            plain = (int(value) - info.min) % (1 << info.bits) + info.min
        else:
            plain = float(np.asarray(value).astype(dtype).astype(np.float64))
        return self._share(("c", repr(plain), dtype), lambda: Const(plain, dtype))

    def load(self, buffer: Buffer, index: Sequence[Any]) -> Any:
        """The element of `buffer` at `index`."""
        at = tuple(Index.of(i) for i in index)
        if buffer.dtype in COMPLEX_PARTS:
            return ComplexPair(self._load(buffer, at, 0), self._load(buffer, at, 1))
        return self._load(buffer, at, None)

    def _load(self, buffer: Buffer, at: tuple[Index, ...], part: int | None) -> Expr:
        return self._share(("l", id(buffer), at, part), lambda: Load(buffer, at, part))

    def read(self, local: Local) -> Expr:
        """The present value of a local."""
        return self._share(("r", id(local)), lambda: ReadLocal(local))

    # -- statements that take pairs ---------------------------------------------------------

    def store(self, buffer: Buffer, index: Sequence[Any], value: Any) -> list[Stmt]:
        """The statements of buffer[index] = value (two for a complex buffer)."""
        at = tuple(Index.of(i) for i in index)
        if buffer.dtype in COMPLEX_PARTS:
            value = self.as_pair(value)
            return [Store(buffer, at, value.re, 0), Store(buffer, at, value.im, 1)]
        return [Store(buffer, at, value)]

    def define(self, name: str, value: Any) -> tuple[Any, list[Stmt]]:
        """A new local (a ComplexPair of two for a pair); use `e.read_local` on what it returns."""
        if isinstance(value, ComplexPair):
            re, one = self.define(name + "_re", value.re)
            im, two = self.define(name + "_im", value.im)
            return ComplexPair(re, im), one + two
        local = Local(name, value.dtype)
        return local, [Define(local, value)]

    def read_local(self, local: Any) -> Any:
        """The present value of what `define` returned."""
        if isinstance(local, ComplexPair):
            return ComplexPair(self.read(local.re), self.read(local.im))
        return self.read(local)

    def assign(self, local: Any, value: Any) -> list[Stmt]:
        """The statements of local = value.

        Both parts of a pair are computed before either is set.
        """
        if isinstance(local, ComplexPair):
            value = self.as_pair(value)
            held, first = self.define(local.re.name + "_next", value.re)
            return [*first, Assign(local.im, value.im), Assign(local.re, self.read(held))]
        return [Assign(local, value)]

    def update(self, local: Any, op: str, value: Any) -> list[Stmt]:
        """The statements of local = op(local, value)."""
        if isinstance(local, ComplexPair):
            if op == "add":
                return [Update(local.re, op, value.re), Update(local.im, op, value.im)]
            return self.assign(local, getattr(self, op)(self.read_local(local), value))
        return [Update(local, op, value)]

    # -- plumbing ---------------------------------------------------------------------------

    def as_pair(self, x: Any) -> ComplexPair:
        """`x` as a pair; a real value gets a zero imaginary part."""
        if isinstance(x, ComplexPair):
            return x
        return ComplexPair(x, self.const(0, x.dtype))

    def _lift(self, x: Any, other: Any) -> Any:
        if isinstance(x, Expr | ComplexPair):
            return x
        return self.const(x, other.dtype)

    def op(self, name: str, *args: Expr, dtype: Any = None) -> Expr:
        """An operation on operands of one dtype, by name; the result has it too unless given."""
        first = args[0].dtype
        for a in args[1:]:
            if a.dtype != first:
                raise TypeError(
                    f"{name}: operands of dtypes {[str(x.dtype) for x in args]}; "
                    "cast them to one dtype first (e.cast)"
                )
        out = first if dtype is None else np.dtype(dtype)
        if name == "div" and isinstance(args[1], Const):
            inverse = _exact_inverse(args[1])
            if inverse:
                name, args = "mul", (args[0], self.const(inverse, out))
        elif out == BOOL:
            known = self._known(name, args)
            if known is not None:
                return known
        key = ("o", name, out, *[id(a) for a in args])
        return self._share(key, lambda: Op(name, tuple(args), out))

    def _known(self, name: str, args: tuple[Expr, ...]) -> Expr | None:
        """A boolean operation whose constants say what it gives."""
        values = [a.value for a in args if type(a) is Const]
        if len(values) == len(args):
            return self.const(_OF_CONSTANTS[name](*values), BOOL) if name in _OF_CONSTANTS else None
        if len(values) != 1 or len(args) != 2:
            return None
        x, y = args
        if x.dtype == BOOL and name in ("and", "or"):
            other = x if type(y) is Const else y
            return other if values[0] == (name == "and") else self.const(values[0], BOOL)
        if x.dtype.kind in "iu" and name in _BEYOND:
            if type(x) is Const:
                name = _TURNED[name]
            at, holds = _BEYOND[name]
            info = np.iinfo(x.dtype)
            if values[0] == (info.min if at == "min" else info.max):
                return self.const(holds, BOOL)
        return None

    def _binary(self, name: str, x: Any, y: Any) -> Any:
        if not isinstance(x, Expr | ComplexPair):
            x = self._lift(x, y)
        y = self._lift(y, x)
        if isinstance(x, ComplexPair) or isinstance(y, ComplexPair):
            return loop_complex.binary(self, name, self.as_pair(x), self.as_pair(y))
        if name in COMPARISONS:
            if x.dtype.kind in "iu" and x.dtype == y.dtype:
                narrow = ranges.compared(x, y)
                if narrow is not None:
                    x, y = self.cast(x, narrow), self.cast(y, narrow)
            return self.op(name, x, y, dtype=BOOL)
        return self.op(name, x, y)

    def _unary(self, name: str, x: Any) -> Any:
        if isinstance(x, ComplexPair):
            return loop_complex.unary(self, name, x)
        return self.op(name, x, dtype=BOOL if name in _PREDICATES else None)

    # -- arithmetic -------------------------------------------------------------------------

    def add(self, x: Operand, y: Operand) -> Any:
        return self._binary("add", x, y)

    def sub(self, x: Operand, y: Operand) -> Any:
        return self._binary("sub", x, y)

    def mul(self, x: Operand, y: Operand) -> Any:
        return self._binary("mul", x, y)

    def div(self, x: Operand, y: Operand) -> Any:
        """Quotient; of integers rounded toward zero."""
        return self._binary("div", x, y)

    def rem(self, x: Operand, y: Operand) -> Any:
        """Remainder with the sign of x (C's fmod and %)."""
        return self._binary("rem", x, y)

    def pow(self, x: Operand, y: Operand) -> Any:
        return self._binary("pow", x, y)

    def max(self, x: Operand, y: Operand) -> Any:
        return self._binary("max", x, y)

    def min(self, x: Operand, y: Operand) -> Any:
        return self._binary("min", x, y)

    def neg(self, x: Operand) -> Any:
        return self._unary("neg", x)

    def abs(self, x: Operand) -> Any:
        return self._unary("abs", x)

    def sign(self, x: Operand) -> Any:
        return self._unary("sign", x)

    def and_(self, x: Operand, y: Operand) -> Any:
        return self._binary("and", x, y)

    def or_(self, x: Operand, y: Operand) -> Any:
        return self._binary("or", x, y)

    def xor(self, x: Operand, y: Operand) -> Any:
        return self._binary("xor", x, y)

    def not_(self, x: Operand) -> Any:
        return self._unary("not", x)

    def shl(self, x: Operand, y: Operand) -> Any:
        return self._binary("shl", x, y)

    def shr_arith(self, x: Operand, y: Operand) -> Any:
        return self._binary("shr_arith", x, y)

    def shr_logical(self, x: Operand, y: Operand) -> Any:
        return self._binary("shr_logical", x, y)

    def eq(self, x: Operand, y: Operand) -> Any:
        return self._binary("eq", x, y)

    def ne(self, x: Operand, y: Operand) -> Any:
        return self._binary("ne", x, y)

    def lt(self, x: Operand, y: Operand) -> Any:
        return self._binary("lt", x, y)

    def le(self, x: Operand, y: Operand) -> Any:
        return self._binary("le", x, y)

    def gt(self, x: Operand, y: Operand) -> Any:
        return self._binary("gt", x, y)

    def ge(self, x: Operand, y: Operand) -> Any:
        return self._binary("ge", x, y)

    def select(self, condition: Any, x: Any, y: Any) -> Any:
        """x where `condition` holds, else y."""
        x = self._lift(x, y)
        y = self._lift(y, x)
        if isinstance(x, ComplexPair) or isinstance(y, ComplexPair):
            x, y = self.as_pair(x), self.as_pair(y)
            return ComplexPair(
                self.select(condition, x.re, y.re), self.select(condition, x.im, y.im)
            )
        if x is y:
            return x
        if x.dtype != y.dtype:
            raise TypeError(f"select: arms of dtypes {x.dtype} and {y.dtype}; cast them first")
        if isinstance(condition, Const):
            return x if condition.value else y
        known = rounded_down(self, condition, x, y)
        if known is not None:
            return known
        key = ("s", id(condition), id(x), id(y))
        return self._share(key, lambda: Select(condition, x, y))

    def cast(self, x: Any, dtype: DTypeLike) -> Any:
        """`x` converted to `dtype`; complex to real drops the imaginary part."""
        dtype = np.dtype(physical(dtype))
        if dtype in COMPLEX_PARTS:
            pair = self.as_pair(x)
            part = COMPLEX_PARTS[dtype]
            if not isinstance(x, ComplexPair):
                return ComplexPair(self.cast(x, part), self.const(0, part))
            return ComplexPair(self.cast(pair.re, part), self.cast(pair.im, part))
        if isinstance(x, ComplexPair):
            if dtype == BOOL:
                return self.ne(x, 0)
            x = x.re
        if x.dtype == dtype:
            return x
        if isinstance(x, IndexValue) and dtype.kind in "iu":
            return self.index_value(x.index, dtype)
        if type(x) is Const and dtype.kind in "iu" and x.dtype.kind in "iub":
            return self.const(x.value, dtype)
        if dtype.kind in "iu" and x.dtype.kind in "iu" and dtype.itemsize < x.dtype.itemsize:
            narrow = ranges.narrowed(self, x, dtype)
            if narrow is not None:
                return narrow
        if type(x) is Cast and not x.bits and x.arg.dtype.kind in "iub" and dtype.kind in "fV":
            if x.arg.dtype.itemsize <= _EXACT_INTEGERS.get(x.dtype.name, 0):
                x = x.arg
        return self._share(("t", id(x), dtype), lambda: Cast(x, dtype))

    def bitcast(self, x: Expr, dtype: DTypeLike) -> Expr:
        """The bits of `x` as `dtype`, of the same size."""
        dtype = np.dtype(physical(dtype))
        if x.dtype == dtype:
            return x
        if x.dtype.itemsize != dtype.itemsize:
            raise TypeError(f"bitcast: {x.dtype} and {dtype} differ in size")
        return self._share(("b", id(x), dtype), lambda: Cast(x, dtype, bits=True))

    def call(self, name: str, *xs: Any) -> Any:
        """A mathematical function by name."""
        if len(xs) > 2:
            return self.op(name, *xs)
        if len(xs) > 1:
            return self._binary(name, *xs)
        return self._unary(name, xs[0])

    def nextafter(self, x: Operand, y: Operand) -> Any:
        """The neighbour of x in the direction of y."""
        return loop_bits.nextafter(self, self._lift(x, y), self._lift(y, x))

    def reduce_precision(self, x: Any, exponent_bits: int, mantissa_bits: int) -> Any:
        """x rounded as if it had only so many bits of exponent and mantissa."""
        if isinstance(x, ComplexPair):
            return ComplexPair(
                self.reduce_precision(x.re, exponent_bits, mantissa_bits),
                self.reduce_precision(x.im, exponent_bits, mantissa_bits),
            )
        return loop_bits.reduce_precision(self, x, exponent_bits, mantissa_bits)

    # -- complex ----------------------------------------------------------------------------

    def real(self, x: Any) -> Any:
        return x.re if isinstance(x, ComplexPair) else x

    def imag(self, x: Any) -> Any:
        return x.im if isinstance(x, ComplexPair) else self.const(0, x.dtype)

    def complex(self, re: Any, im: Any) -> ComplexPair:
        return ComplexPair(re, im)

    def conj(self, x: Any) -> Any:
        return ComplexPair(x.re, self.neg(x.im)) if isinstance(x, ComplexPair) else x

    # -- indices ----------------------------------------------------------------------------

    def index(self, value: Any) -> Index:
        """An Index from an int, a LoopVar or an Index."""
        return Index.of(value)

    def index_const(self, value: int) -> Index:
        """A constant index."""
        return Index.of(value)

    def index_value(self, i: Any, dtype: DTypeLike) -> Any:
        """An index as an element value."""
        i, dtype = Index.of(i), np.dtype(physical(dtype))
        if dtype in COMPLEX_PARTS:
            part = COMPLEX_PARTS[dtype]
            return ComplexPair(self.index_value(i, part), self.const(0, part))
        if i.is_const:
            return self.const(i.const, dtype)
        if dtype.kind not in "iu":
            return self.cast(self.index_value(i, np.int64), dtype)
        return self._share(("i", i, dtype), lambda: IndexValue(i, dtype))

    def value_index(self, x: Any, lo: int | None = None, hi: int | None = None) -> Index:
        """An integer element value as an index, known to lie in lo..hi (default: its dtype's)."""
        if isinstance(x, IndexValue):
            return x.index
        if isinstance(x, Const):
            return Index.of(int(x.value))
        if x.dtype == BOOL:
            return dynamic(x, 0, 1)
        info = np.iinfo(x.dtype)
        if x.dtype == np.uint64:
            # Read as signed: positions past 2**63 do not exist, so clamp to what an index holds.
            x = self.cast(self.min(x, self.const(2**63 - 1, np.uint64)), np.int64)
        return dynamic(
            x,
            info.min if lo is None else lo,
            min(info.max, 2**63 - 1) if hi is None else hi,
        )

    def index_clamp(self, i: Any, lo: int, hi: int) -> Index:
        """min(max(i, lo), hi)."""
        return clamp(i, lo, hi)

    def index_in_range(self, i: Any, lo: int, hi: int) -> Expr:
        """Whether lo <= i < hi."""
        i = Index.of(i)
        if lo <= i.lo and i.hi < hi:
            return self.const(True, BOOL)
        if i.hi < lo or i.lo >= hi:
            return self.const(False, BOOL)
        read = [type(atom) is Dyn for atom, _ in i.terms]
        narrow = any(read) and -(2**31) <= min(i.lo, lo) and max(i.hi, hi) < 2**31
        value = self.index_value(i, np.int32 if narrow else np.int64)
        if any(read) and i.lo < lo == 0 and i.hi >= hi:
            # One test of what is read: numbers below 0 are the largest ones without sign.
            return self.lt(self.cast(value, np.uint32 if narrow else np.uint64), hi)
        tests = []
        if i.lo < lo:
            tests.append(self.ge(value, lo))
        if i.hi >= hi:
            tests.append(self.lt(value, hi))
        return tests[0] if len(tests) == 1 else self.and_(*tests)
