"""The index algebra of the loop IR: integer expressions over loop variables, always simplified.

An `Index` is an affine sum `const + Σ coefficient·atom`. An atom is a loop variable, a runtime
integer (`Dyn`), or one of the few non-affine forms (`Div`, `Mod`, `Clamp`, `Product`) over an
`Index`. Every atom knows its range, and arithmetic simplifies with ranges as it builds, so that
`(i*64 + j)//64` is `i` and `(i*64 + j) % 64` is `j` when `0 <= j < 64`; reshapes, slices and
broadcasts therefore leave nothing behind. Division rounds down and divisors are positive.

Who may call it: the loop IR, its passes and the emitter (through `loops.ir`). It imports nothing
of the package. What would break it: an atom whose stated range is wrong (out-of-bounds reads
follow), or a `LoopVar` used outside its loop (the verifier finds that).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from math import gcd
from typing import Any, Union

from numjet.core.memo import Memo

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


class Atom:
    """What an affine form multiplies: an integer with a known inclusive range `lo..hi`."""

    __slots__ = ("hi", "lo")
    lo: int
    hi: int
    inside: tuple[Atom, ...] = ()  # the atoms in the indices inside this one, nested ones too

    def parts(self) -> tuple[Index, ...]:
        """The indices inside this atom."""
        return ()

    def rebuild(self, parts: tuple[Index, ...]) -> Index:
        """The same operation over other parts, simplified."""
        return Index.of(self)


class LoopVar(Atom):
    """The variable of one loop, running over 0 .. extent-1. Compared by identity."""

    __slots__ = ("extent", "name")

    def __init__(self, name: str, extent: int):
        if extent < 1:
            raise ValueError(f"loop variable {name!r} needs an extent >= 1, not {extent}")
        self.name, self.extent, self.lo, self.hi = name, extent, 0, extent - 1

    def __repr__(self) -> str:
        return self.name


class Dyn(Atom):
    """A runtime integer: `expr` is an integer expression of the loop IR (compared by identity)."""

    __slots__ = ("expr",)

    def __init__(self, expr: Any, lo: int = INT64_MIN, hi: int = INT64_MAX):
        self.expr, self.lo, self.hi = expr, lo, hi

    def __eq__(self, other: object) -> bool:
        return (
            type(other) is Dyn
            and other.expr is self.expr
            and other.lo == self.lo
            and other.hi == self.hi
        )

    def __hash__(self) -> int:
        return hash((id(self.expr), self.lo, self.hi))

    def __repr__(self) -> str:
        return f"dyn({self.expr!r})"


class _Form(Atom):
    """An atom over indices, compared by structure."""

    __slots__ = ("_hash", "args", "inside", "numbers")

    def __init__(self, args: tuple[Index, ...], numbers: tuple[int, ...], lo: int, hi: int):
        self.args, self.numbers, self.lo, self.hi = args, numbers, lo, hi
        self.inside = tuple([a for x in args for a in atoms(x)])
        self._hash = hash((type(self), args, numbers))

    def __eq__(self, other: object) -> bool:
        return self is other or (
            type(self) is type(other)
            and self._hash == other._hash  # type: ignore[attr-defined]
            and self.numbers == other.numbers  # type: ignore[attr-defined]
            and self.args == other.args  # type: ignore[attr-defined]
        )

    def __hash__(self) -> int:
        return self._hash

    @property
    def arg(self) -> Index:
        """The first index; the only one, except in a Product."""
        return self.args[0]

    def parts(self) -> tuple[Index, ...]:
        return self.args


class _Division(_Form):
    __slots__ = ()

    @property
    def divisor(self) -> int:
        return self.numbers[0]


class Div(_Division):
    """floor(arg / divisor), divisor > 1."""

    __slots__ = ()

    def rebuild(self, parts: tuple[Index, ...]) -> Index:
        return parts[0] // self.divisor

    def __repr__(self) -> str:
        return f"({self.arg!r})//{self.divisor}"


class Mod(_Division):
    """arg - divisor·floor(arg / divisor), in 0 .. divisor-1, divisor > 1."""

    __slots__ = ()

    def rebuild(self, parts: tuple[Index, ...]) -> Index:
        return parts[0] % self.divisor

    def __repr__(self) -> str:
        return f"({self.arg!r})%{self.divisor}"


class Clamp(_Form):
    """min(max(arg, low), high)."""

    __slots__ = ()

    @property
    def low(self) -> int:
        return self.numbers[0]

    @property
    def high(self) -> int:
        return self.numbers[1]

    def rebuild(self, parts: tuple[Index, ...]) -> Index:
        return clamp(parts[0], self.low, self.high)

    def __repr__(self) -> str:
        return f"clamp({self.arg!r}, {self.low}, {self.high})"


class Product(_Form):
    """The product of two indices neither of which is constant."""

    __slots__ = ()

    def rebuild(self, parts: tuple[Index, ...]) -> Index:
        return parts[0] * parts[1]

    def __repr__(self) -> str:
        return f"({self.args[0]!r})*({self.args[1]!r})"


IndexLike = Union["Index", int]


class Index:
    """An affine sum: `const + Σ coefficient·atom`, immutable, simplified, range in `lo..hi`."""

    __slots__ = ("_hash", "const", "hi", "lo", "terms")

    def __init__(self, terms: tuple[tuple[Atom, int], ...], const: int):
        self.terms, self.const = terms, const
        lo = hi = const
        for atom, k in terms:
            if k > 0:
                lo += k * atom.lo
                hi += k * atom.hi
            else:
                lo += k * atom.hi
                hi += k * atom.lo
        self.lo, self.hi = lo, hi
        self._hash = -1  # not computed yet

    @staticmethod
    def of(value: Any) -> Index:
        """An Index from an Index, an int or an Atom."""
        if type(value) is Index:
            return value
        if isinstance(value, Atom):
            if value.lo == value.hi:
                return Index((), value.lo)
            return Index(((value, 1),), 0)
        return Index((), int(value)) if value else ZERO

    @property
    def is_const(self) -> bool:
        return not self.terms

    def coefficient(self, atom: Atom) -> int:
        """The factor of `atom` in the sum (0 when it does not occur directly)."""
        for a, k in self.terms:
            if a is atom or a == atom:
                return k
        return 0

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if isinstance(other, int):
            return not self.terms and self.const == other
        return (
            type(other) is Index
            and self.const == other.const
            and self.lo == other.lo
            and self.hi == other.hi
            and len(self.terms) == len(other.terms)
            and (self.terms == other.terms or dict(self.terms) == dict(other.terms))
        )

    def __hash__(self) -> int:
        if self._hash == -1:
            terms = self.terms
            many = frozenset(terms) if len(terms) > 1 else terms
            self._hash = hash((self.const, many))
        return self._hash

    def __repr__(self) -> str:
        return sum_text([(repr(atom), k) for atom, k in self.terms], self.const)

    # -- arithmetic -------------------------------------------------------------------------

    def __add__(self, other: IndexLike) -> Index:
        if type(other) is not Index:
            other = Index.of(other)
        if not other.terms:
            return self if other.const == 0 else Index(self.terms, self.const + other.const)
        if not self.terms:
            return other if self.const == 0 else Index(other.terms, self.const + other.const)
        sums = dict(self.terms)
        for atom, k in other.terms:
            sums[atom] = sums.get(atom, 0) + k
        return _sum(sums, self.const + other.const)

    __radd__ = __add__

    def __neg__(self) -> Index:
        return self * -1

    def __sub__(self, other: IndexLike) -> Index:
        return self + Index.of(other) * -1

    def __rsub__(self, other: IndexLike) -> Index:
        return Index.of(other) + self * -1

    def __mul__(self, other: IndexLike) -> Index:
        other = Index.of(other)
        if not other.terms:
            k = other.const
            if k == 1:
                return self
            if k == 0:
                return ZERO
            return Index(tuple([(a, c * k) for a, c in self.terms]), self.const * k)
        if not self.terms:
            return other * self.const
        ends = [a * b for a in (self.lo, self.hi) for b in (other.lo, other.hi)]
        return Index(((Product((self, other), (), min(ends), max(ends)), 1),), 0)

    __rmul__ = __mul__

    def __floordiv__(self, other: IndexLike) -> Index:
        return floor_div(self, _divisor(other, "//"))

    def __mod__(self, other: IndexLike) -> Index:
        return modulo(self, _divisor(other, "%"))


ZERO = Index((), 0)


def sum_text(terms: list[tuple[str, int]], const: int) -> str:
    """The affine sum of named terms as one writes it: 4*i - j + 1."""
    out = ""
    for name, k in terms:
        sign = (" - " if k < 0 else " + ") if out else ("-" if k < 0 else "")
        out += sign + (name if abs(k) == 1 else f"{abs(k)}*{name}")
    if not out:
        return str(const)
    return out + f" {'-' if const < 0 else '+'} {abs(const)}" if const else out


def _divisor(value: IndexLike, sign: str) -> int:
    value = Index.of(value)
    if value.terms or value.const <= 0:
        raise NotImplementedError(
            f"an index {sign} {value!r}: the divisor of an index must be a positive constant; "
            "divide element values instead (e.index_value, e.div, e.value_index)"
        )
    return value.const


def _sum(sums: dict[Atom, int], const: int) -> Index:
    """An Index of summed coefficients; joins k·c·(x//c) + k·(x%c) to k·x, and
    k·c·((x//c)%m) + k·(x%c) to k·(x%(c·m))."""
    terms = tuple([(a, k) for a, k in sums.items() if k])
    kinds = {type(a) for a, _ in terms}
    if Div in kinds and len(kinds) > 1:
        present = dict(terms)
        for atom, k in terms:
            if type(atom) is not Div or k % atom.divisor:
                continue
            unit = k // atom.divisor
            rest = modulo(atom.arg, atom.divisor)
            if len(rest.terms) and all(present.get(a) == unit * c for a, c in rest.terms):
                left = {a: c for a, c in terms if a != atom and rest.coefficient(a) == 0}
                return Index(tuple(left.items()), const - unit * rest.const) + atom.arg * unit
    if Mod in kinds and len(terms) > 1:
        present = dict(terms)
        for atom, k in terms:
            if type(atom) is not Mod or len(atom.arg.terms) != 1 or atom.arg.const:
                continue
            digit, times = atom.arg.terms[0]
            if type(digit) is not Div or times != 1 or k % digit.divisor:
                continue
            unit = k // digit.divisor
            rest = modulo(digit.arg, digit.divisor)
            if len(rest.terms) and all(present.get(a) == unit * c for a, c in rest.terms):
                left = {a: c for a, c in terms if a != atom and rest.coefficient(a) == 0}
                both = modulo(digit.arg, digit.divisor * atom.divisor)
                return Index(tuple(left.items()), const - unit * rest.const) + both * unit
    return Index(terms, const)


def _split(x: Index, step: int) -> tuple[Index, Index]:
    """x = step·quotient + rest, taking every term whose coefficient `step` divides."""
    quotient = tuple([(a, k // step) for a, k in x.terms if k % step == 0])
    rest = tuple([(a, k) for a, k in x.terms if k % step])
    return Index(quotient, x.const // step), Index(rest, x.const % step)


def floor_div(x: Index, c: int) -> Index:
    """floor(x / c) for a positive constant c."""
    if c == 1:
        return x
    if not x.terms:
        return Index((), x.const // c)
    whole, rest = _split(x, c)
    if 0 <= rest.lo and rest.hi < c:
        return whole
    if rest.lo // c == rest.hi // c:
        return whole + rest.lo // c
    for g in sorted({gcd(c, k) for _, k in rest.terms}, reverse=True):
        if g == 1:
            continue
        high, low = _split(rest, g)
        if 0 <= low.lo and low.hi < g:  # floor((g·high + low)/(g·c')) = floor(high/c')
            return whole + floor_div(high, c // g)
    if len(rest.terms) == 1 and rest.const == 0:
        atom, k = rest.terms[0]
        if k == 1 and type(atom) is Div:
            return whole + floor_div(atom.arg, atom.divisor * c)
        if k == 1 and type(atom) is Mod and atom.divisor % c == 0:
            # (y % (c·m)) // c = (y // c) % m; kept as it is unless that is simpler
            other = modulo(floor_div(atom.arg, c), atom.divisor // c)
            if _size(other) <= _size(rest):
                return whole + other
    return whole + Index(((Div((rest,), (c,), rest.lo // c, rest.hi // c), 1),), 0)


def modulo(x: Index, c: int) -> Index:
    """x - c·floor(x / c) for a positive constant c."""
    if c == 1:
        return ZERO
    rest = _split(x, c)[1]
    if not rest.terms:
        return rest
    rest = Index(tuple((a, k % c if a.lo >= 0 else k) for a, k in rest.terms), rest.const)
    if 0 <= rest.lo and rest.hi < c:
        return rest
    if rest.lo // c == rest.hi // c:
        return rest - c * (rest.lo // c)
    for g in sorted({gcd(c, k) for _, k in rest.terms}, reverse=True):
        if g == 1:
            continue
        high, low = _split(rest, g)
        if 0 <= low.lo and low.hi < g:
            return modulo(high, c // g) * g + low
    if len(rest.terms) == 1:
        atom, k = rest.terms[0]
        if type(atom) is Mod and atom.divisor % c == 0:
            return modulo(atom.arg * k + rest.const, c)
    return Index(((Mod((rest,), (c,), 0, c - 1), 1),), 0)


def clamp(x: IndexLike, low: int, high: int) -> Index:
    """min(max(x, low), high); low <= high."""
    x = Index.of(x)
    if low > high:
        raise ValueError(f"clamp of an index: the lower bound {low} exceeds the upper {high}")
    if low <= x.lo and x.hi <= high:
        return x
    if x.hi <= low:
        return Index((), low)
    if x.lo >= high:
        return Index((), high)
    atom = Clamp((x,), (low, high), max(low, min(x.lo, high)), min(high, max(x.hi, low)))
    return Index(((atom, 1),), 0)


def _size(x: Index) -> int:
    return sum(1 + sum(_size(p) for p in a.parts()) for a, _ in x.terms)


def dynamic(expr: Any, lo: int = INT64_MIN, hi: int = INT64_MAX) -> Index:
    """An index whose value the integer expression `expr` gives, known to lie in lo..hi."""
    return Index(((Dyn(expr, lo, hi), 1),), 0)


# -- questions and rewriting ----------------------------------------------------------------


def atoms(x: Index) -> list[Atom]:
    """Every atom in `x`, nested ones too."""
    out: list[Atom] = []
    for atom, _ in x.terms:
        out.append(atom)
        if atom.inside:
            out += atom.inside
    return out


def rewrite(x: Index, leaf: Callable[[Atom], Index | None]) -> Index:
    """`x` with every LoopVar and Dyn replaced by `leaf(atom)` (None keeps it)."""
    sums: dict[Atom, int] | None = None
    const = x.const
    for atom, k in x.terms:
        inner = atom.parts()
        if inner:
            parts = tuple([rewrite(p, leaf) for p in inner])
            new = None if all(map(operator.is_, parts, inner)) else atom.rebuild(parts)
        else:
            new = leaf(atom)
        if new is not None:
            if sums is None:
                sums = dict(x.terms)
            sums[atom] -= k
            const += new.const * k
            for other, c in new.terms:
                sums[other] = sums.get(other, 0) + c * k
    return x if sums is None else _sum(sums, const)


def depends(x: Index, var: LoopVar) -> bool:
    """Whether the loop variable occurs in `x` (runtime values are opaque: ask the loop IR)."""
    return any(a is var for a in atoms(x))


def stride(x: Index, var: LoopVar, granule: int = 1) -> int | None:
    """How much `x` grows when `var` grows by one, or None when that is not constant.

    With `granule` = W > 1 the answer need hold only inside blocks of W consecutive values of
    `var` that start at a multiple of W (what a vector loop with W lanes needs).
    """
    total = 0
    for atom, k in x.terms:
        if atom is var:
            total += k
        elif any(depends(p, var) for p in atom.parts()):
            inner = _block_stride(atom, var, granule)
            if inner is None:
                return None
            total += k * inner
    return total


def lanes_of(x: Index, var: LoopVar, first: int, count: int) -> list[int] | None:
    """How much `x` grows from `var` = `first` to `first`, `first` + 1, ..., `first` + count - 1;
    None where that depends on something else."""
    terms = tuple([(a, k) for a, k in x.terms if a is var or var in a.inside])
    if any([a is not var for atom, _ in terms for a in atoms(Index(((atom, 1),), 0))
            if not a.inside]):  # fmt: skip
        return None
    moved = Index(terms, 0)
    found = [_at(moved, var, at) for at in range(first, first + count)]
    return [at - found[0] for at in found]


def _at(x: Index, var: LoopVar, value: int) -> int:
    return rewrite(x, lambda atom: Index.of(value) if atom is var else None).const


def growth(x: Index, var: LoopVar, by: int) -> int | None:
    """How much `x` grows where `var` grows by `by`; None where that differs."""
    total = 0
    for atom, k in x.terms:
        if atom is var:
            total += k * by
        elif var in atom.inside:
            inner = growth(atom.parts()[0], var, by) if isinstance(atom, _Division) else None
            if inner is None or inner % atom.divisor:  # type: ignore[attr-defined]
                return None
            total += k * (inner // atom.divisor) if type(atom) is Div else 0  # type: ignore[attr-defined]
    return total


def _block_stride(atom: Atom, var: LoopVar, granule: int) -> int | None:
    if granule <= 1 or not isinstance(atom, Div | Mod):
        return None
    step = stride(atom.arg, var, granule)
    if step is None:
        return None
    if step == 0:
        return 0
    block = abs(step) * granule
    others = Index(tuple((a, k) for a, k in atom.arg.terms if k % block), atom.arg.const)
    others = others - Index(((var, others.coefficient(var)),), 0)
    if atom.divisor % block or others.terms or others.const % block or step < 0:
        return None
    return 0 if type(atom) is Div else step


def linear_address(index: Sequence[IndexLike], shape: Sequence[int]) -> Index:
    """The element offset of `index` in a C-contiguous array of `shape`."""
    if len(index) != len(shape):
        raise ValueError(f"an index of {len(index)} places into {len(shape)} dimensions")
    key = (tuple(index), tuple(shape))
    found = _addresses.get(key)
    if found is not None:
        return found
    sums: dict[Atom, int] = {}
    const, step = 0, 1
    for i, n in zip(reversed(index), reversed(shape)):
        if n > 1:
            if type(i) is not Index:
                i = Index.of(i)
            const += i.const * step
            for atom, k in i.terms:
                sums[atom] = sums.get(atom, 0) + k * step
        step *= n
    found = _addresses[key] = _sum(sums, const)
    return found


# Every pass over a kernel asks for the addresses of the same accesses.
_addresses: dict[tuple, Index] = Memo("addresses of accesses", 1024)
