"""Polynomials of dimension variables in a normal form: sums, products, their order, their bounds.

For `core.dims`, whose expressions hold such `Terms` as `terms`. An operand of an operation is an
int or such an expression. What would break it: two forms of equal polynomials, which are compared
as dictionaries.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np

# A factor is a variable's name or an operation; a monomial a sorted tuple of (factor, power); an
# expression a dict of the coefficients of monomials, of which () is the constant.
Monomial = tuple
Terms = dict[Monomial, int]
# Of a variable: what indices of 32 bits count. Calls are held to it.
MOST = 2**31 - 1
_INF = math.inf
# How many constraints one decision puts together, one after the other, and of how many expressions
# on its way it finds bounds.
DEEPEST, _MOST_MET = 8, 500


class Operation:
    """floordiv, mod, max or min of two sizes, one of which is an expression."""

    __slots__ = ("name", "operands", "_hash", "_key")

    def __init__(self, name: str, operands: tuple) -> None:
        self.name, self.operands = name, operands
        self._key: tuple | None = None
        self._hash = hash((name, operands))

    def __eq__(self, other: object) -> bool:
        return (
            type(other) is Operation
            and self.name == other.name
            and self.operands == other.operands
        )

    def __hash__(self) -> int:
        return self._hash

    def key(self) -> tuple:
        """By which it is told among factors: how long it is, its name, its operands."""
        if self._key is None:
            told = [_expression_order(x) for x in self.operands]
            self._key = 1 + sum([length for length, _ in told]), self.name, *told
        return self._key

    def __str__(self) -> str:
        told = [f"- {-x}" if type(x) is int and x < 0 else str(x) for x in self.operands]
        return f"{self.name}({', '.join(told)})"

    def __reduce__(self) -> tuple:
        return Operation, (self.name, self.operands)


def is_number(x: Any) -> bool:
    """Whether a size is a number, and no expression."""
    return isinstance(x, int | np.integer)


# ------------------------------------------------------------------ sums and products
def terms_of(x: Any) -> Terms:
    """The terms of a size."""
    return x.terms if not is_number(x) else {(): x} if x else {}


def plus(x: Terms, y: Terms, k: int = 1) -> Terms:
    """x + k * y."""
    out = dict(x)
    for monomial, c in y.items():
        new = out.get(monomial, 0) + k * c
        if new:
            out[monomial] = new
        else:
            out.pop(monomial, None)
    return out


def negative(terms: Terms) -> Terms:
    """-terms."""
    return {m: -c for m, c in terms.items()}


def monomial_quotient(x: Monomial, by: Monomial) -> Monomial | None:
    """The product that gives `x` with `by`; None where `by` is no part of `x`."""
    powers = dict(x)
    for factor, power in by:
        if powers.get(factor, 0) < power:
            return None
        powers[factor] -= power
    return tuple([(f, powers[f]) for f, _ in x if powers[f]])


def _factor_order(factor: Any) -> tuple:
    """By which the factors of a product are told, least first: variables before operations."""
    return (1, factor) if type(factor) is str else factor.key()


def order(monomial: Monomial) -> tuple:
    """By which the monomials of a sum are told, greatest first."""
    if not monomial:
        return _CONSTANT
    pairs = [(_factor_order(f), p) for f, p in reversed(monomial)]
    return sum([key[0] * p + 1 for key, p in pairs]), pairs


_CONSTANT: tuple = (0, [])


def _expression_order(x: Any) -> tuple:
    """How long an operand is, and its terms as they are told."""
    if is_number(x):
        return 1, [(_CONSTANT, x)]
    told = sorted([(order(m), k) for m, k in x.terms.items()], reverse=True)
    return sum([key[0] * abs(k) + 1 for key, k in told]), told


def monomial_product(x: Monomial, y: Monomial) -> Monomial:
    """x * y."""
    if not x or not y:
        return x or y
    powers = dict(x)
    for factor, power in y:
        powers[factor] = powers.get(factor, 0) + power
    return tuple(sorted(powers.items(), key=lambda item: _factor_order(item[0])))


# ------------------------------------------------------------------ bounds
class Scope(Protocol):
    """What the bounds of expressions are found with: `bounds` are at least 0."""

    bounds: list[Terms]

    def at_least(self, terms: Terms, goal: int) -> bool:
        """Whether an expression is known to be at least `goal`."""


def _factor_bounds(factor: Any, scope: Scope) -> tuple[float, float]:
    """The least and the greatest value of a variable or an operation."""
    if type(factor) is str:
        return 1, MOST
    first, second = [_bounds(x, scope) for x in factor.operands]
    if factor.name == "max":
        return max(first[0], second[0]), max(first[1], second[1])
    if factor.name == "min":
        return min(first[0], second[0]), min(first[1], second[1])
    if second[1] < 0:
        first, second = (-first[1], -first[0]), (-second[1], -second[0])
        if factor.name == "mod":
            return -(second[1] - 1), 0
    if second[0] <= 0:
        return -_INF, _INF
    if factor.name == "mod":
        return 0, second[1] - 1
    ends = [[_floor(x, by) for by in second] for x in first]
    return min(ends[0]), max(ends[1])


def _floor(x: float, by: float) -> float:
    """x // by for by >= 1, of infinities too."""
    if math.isinf(by):
        return -1 if x < 0 else 0
    return x if math.isinf(x) else x // by


def _times(x: float, y: float) -> float:
    """x * y, where 0 times infinity is 0."""
    return 0 if x == 0 or y == 0 else x * y


def _interval_product(x: tuple[float, float], y: tuple[float, float]) -> tuple[float, float]:
    corners = [_times(a, b) for a in x for b in y]
    return min(corners), max(corners)


def _bounds(x: Any, scope: Scope) -> tuple[float, float]:
    if is_number(x):
        return x, x
    return _interval(x.terms, scope)


def _interval(terms: Terms, scope: Scope) -> tuple[float, float]:
    """The least and the greatest value by interval arithmetic, which takes factors as unrelated."""
    low = high = 0.0
    for monomial, k in terms.items():
        at: tuple[float, float] = (1, 1)
        for factor, power in monomial:
            one = _factor_bounds(factor, scope)
            for _ in range(power):
                at = _interval_product(at, one)
        a, b = sorted((_times(at[0], k), _times(at[1], k)))
        low, high = low + a, high + b
    return low, high


def lower_bound(terms: Terms, scope: Scope, depth: int, met: dict) -> float:
    """A lower bound of an expression: of intervals, and of it less what is at least 0, so many
    times one after the other. met: bounds of expressions that were looked at so deeply or deeper,
    of which there are few."""
    key = frozenset(terms.items())
    deep, found = met.get(key, (-1, -_INF))
    if deep < depth and len(met) < _MOST_MET:
        met[key] = depth, _interval(terms, scope)[0]
        found = _lower_bound_anew(terms, scope, depth, met)
        met[key] = depth, found
    return found


def _lower_bound_anew(terms: Terms, scope: Scope, depth: int, met: dict) -> float:
    for monomial, k in terms.items():
        if len(monomial) == 1 and type(monomial[0][0]) is Operation and monomial[0][1] == 1:
            operation = monomial[0][0]
            if operation.name == ("max" if k < 0 else "min"):
                rest = {m: c for m, c in terms.items() if m != monomial}
                return min([
                    lower_bound(plus(rest, terms_of(x), k), scope, depth, met)
                    for x in operation.operands
                ])  # fmt: skip
    found = _interval(terms, scope)[0]
    if not depth or not any(terms):
        return found
    for known in [*scope.bounds, *_implied(terms, scope)]:
        for monomial, k in known.items():
            c = terms.get(monomial, 0)
            if monomial and c * k > 0:
                # k * terms - c * known lacks the monomial; known >= 0 and k may be made positive
                both = math.gcd(c, k)
                up, down = abs(k) // both, abs(c) // both
                rest = plus({m: v * up for m, v in terms.items()}, known, -down)
                low = lower_bound(rest, scope, depth - 1, met)
                if low > -_INF:
                    found = max(found, math.ceil(low / up))
    return found


def _implied(terms: Terms, scope: Scope) -> list[Terms]:
    """What is at least 0 by the meaning of the operations in an expression."""
    found: list[Terms] = []
    operations = [f for monomial in terms for f, _ in monomial if type(f) is Operation]
    for operation in operations:
        of, by = operation.operands
        itself = {((operation, 1),): 1}
        if operation.name == "floordiv" and type(by) is int and by > 0:
            found.append(plus(terms_of(of), itself, -by))
            found.append(plus(plus({(): by - 1}, itself, by), terms_of(of), -1))
        elif operation.name == "floordiv" and not is_number(by):
            above = scope.at_least(plus(terms_of(by), {(): 1}, -1), 0)
            if above and scope.at_least(terms_of(of), 0):
                found.append(itself)
        elif operation.name == "mod" and not is_number(by) and by >= 1:
            found.append(plus(plus(terms_of(by), itself, -1), {(): 1}, -1))
        elif operation.name in ("max", "min"):
            gaps = [plus(itself, terms_of(x), -1) for x in operation.operands]
            found += gaps if operation.name == "max" else map(negative, gaps)
    return found
