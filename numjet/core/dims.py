"""Sizes that are not known: expressions of dimension variables, for programs of any size.

`DimExpr` is what stands in shapes while such a program is traced (`numjet.export`): a polynomial of
variables and of floordiv, mod, max and min, in a normal form, so that equal expressions are equal
objects for `==` and `hash`. Arithmetic without a variable left gives an int. Comparisons that do
not hold or fail for all values raise InconclusiveDimensionOperation; `==` is then False. Variables
are from 1 to `dim_terms.MOST`, and obey the constraints of their `SymbolicScope`.

What would break it: a DimExpr among ints where code asks `operator.index`; `index_of` is for these.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from numjet.base.errors import InconclusiveDimensionOperation, TracerIntegerConversionError
from numjet.core import hooks
from numjet.core.dim_terms import (
    DEEPEST,
    Monomial,
    Operation,
    Terms,
    lower_bound,
    monomial_product,
    monomial_quotient,
    negative,
    order,
    plus,
    terms_of,
)
from numjet.core.dim_text import parsed_side

# Of a division: its terms are told by length, so that what is left need not become less.
_STEPS = 1000


class SymbolicScope:
    """What is known of the variables of some shapes: `constraints_str`, "lhs >= rhs", "lhs <= rhs"
    or "lhs == rhs" each, a sequence. Variables of two scopes do not meet in one expression.

    >>> from numjet import export
    >>> a, = export.symbolic_shape("a", scope=export.SymbolicScope(["a >= 4"]))
    >>> a > 3
    True
    """

    def __init__(self, constraints_str: Sequence[str] = ()) -> None:
        if isinstance(constraints_str, str):
            raise ValueError(
                "The symbolic constraints should be a sequence of strings, got "
                f"{constraints_str!r}."
            )
        self.texts = tuple(constraints_str)
        self.bounds: list[Terms] = []  # each is at least 0
        self.rules: dict[Monomial, tuple[int, Any]] = {}  # product -> (k, what k of it are)
        self.checks: list[tuple[str, str, Any, Any]] = []  # text, operator, both sides
        self.made = hooks.user_line()
        self._decided: dict = {}
        for text in self.texts:
            self._add(text)

    def _add(self, text: str) -> None:
        """Learn one constraint."""
        sign = next((s for s in ("==", ">=", "<=") if s in str(text)), None)
        if sign is None:
            raise ValueError("Constraint parsing error: must contain one of '==' or '>=' or '<='")
        sides = str(text).split(sign)
        if len(sides) != 2:
            raise ValueError(f"Constraint parsing error: {text!r} has more than one {sign!r}.")
        left, right = [parsed_side(side, self) for side in sides]
        self.checks.append((str(text), sign, left, right))
        if sign == "==":
            self._equate(str(text), left, right)
            return
        low, high = (right, left) if sign == ">=" else (left, right)
        slack = high - low
        if is_symbolic(slack):
            if self.at_least(negative(slack.terms), 1):
                raise ValueError(f"Unsatisfiable constraint: {text}, after those before it.")
            self.bounds.append(slack.terms)
        elif slack < 0:
            raise ValueError(f"Unsatisfiable explicit constraint: {text}")
        self._decided.clear()

    def _equate(self, text: str, left: Any, right: Any) -> None:
        if not is_symbolic(left) or len(left.terms) != 1:
            if is_symbolic(right) and len(right.terms) == 1:
                left, right = right, left
            elif is_symbolic(left) or is_symbolic(right) or left != right:
                raise ValueError(
                    f"Invalid equality constraint: {text}. One of its sides must be a variable, an "
                    "operation or a product of them, which the other replaces."
                )
            else:
                return
        ((monomial, k),) = left.terms.items()
        held = right.terms if is_symbolic(right) else {}
        if not monomial or k < 1 or any([monomial_quotient(m, monomial) is not None for m in held]):
            raise ValueError(
                f"Invalid equality constraint: {text}. One of its sides must be a positive "
                "multiple of a product that the other side, which replaces it, does not hold."
            )
        self.rules[monomial] = (k, right)
        factor = monomial[0][0]
        if len(monomial) == 1 and type(factor) is Operation and factor.name == "mod" and k == 1:
            of, by = factor.operands
            if type(by) is int:
                self.rules[((Operation("floordiv", (of, by)), 1),)] = (by, of - right)
        self._decided.clear()

    def variable(self, name: str) -> Any:
        """The size of this name, or what a constraint says that it is."""
        return _made({((name, 1),): 1}, self)

    def operation(self, name: str, x: Any, y: Any) -> Any:
        """floordiv, mod, max or min of two sizes."""
        return operate(name, x, y)

    def at_least(self, terms: Terms, goal: int) -> bool:
        """Whether an expression is known to be at least `goal`."""
        key = (frozenset(terms.items()), goal)
        found = self._decided.get(key)
        if found is None:
            depth = min(max(3, len(self.bounds)), DEEPEST)
            found = self._decided[key] = lower_bound(terms, self, depth, {}) >= goal
        return found

    def __str__(self) -> str:
        told = f"{id(self)} created at {self.made}" if self.made is not None else str(id(self))
        if self.texts:
            told += " with constraints:\n" + "\n".join([f"  {t}" for t in self.texts])
        return told

    __repr__ = __str__

    def __reduce__(self) -> tuple:
        return SymbolicScope, (self.texts,)


# ------------------------------------------------------------------ arithmetic
def _made(terms: Terms, scope: SymbolicScope) -> Any:
    """The expression of these terms, or the int that they are."""
    if scope.rules:
        for monomial, c in terms.items():
            for product, (k, value) in scope.rules.items():
                left = monomial_quotient(monomial, product) if c % k == 0 else None
                if left is not None:
                    rest = {m: v for m, v in terms.items() if m != monomial}
                    return _made(rest, scope) + _made({left: c // k}, scope) * value
    if not terms:
        return 0
    if len(terms) == 1 and () in terms:
        return terms[()]
    return DimExpr(terms, scope)


def _number(x: Any) -> Any:
    """`x` as an int or a DimExpr; None for other values."""
    if type(x) is int or type(x) is DimExpr:
        return x
    if isinstance(x, int | np.integer) and not isinstance(x, bool):
        return int(x)
    if isinstance(x, np.ndarray) and not x.ndim and x.dtype.kind in "iu":
        return int(x)
    return None


def _divided(x: Any, y: Any, scope: SymbolicScope) -> tuple[Any, Any]:
    """x // y and x % y."""
    if not is_symbolic(y) and y == 0:
        raise ZeroDivisionError("integer division or modulo by zero")
    rest = dict(terms_of(x))
    quotient: Terms = {}
    divisor = terms_of(y)
    lead = max(divisor, key=order) if len(divisor) > 1 else next(iter(divisor))
    by = divisor[lead]
    for _ in range(_STEPS):
        steps = [(m, left) for m, c in rest.items() if c % by == 0
                 if (left := monomial_quotient(m, lead)) is not None]  # fmt: skip
        if not steps:
            break
        monomial, left = max(steps, key=lambda step: order(step[0])) if len(steps) > 1 else steps[0]
        k = rest[monomial] // by
        quotient = plus(quotient, {left: k})
        rest = plus(rest, {monomial_product(left, m): c * k for m, c in divisor.items()}, -1)
    if not any(rest):
        left_over = rest.get((), 0)
        if not is_symbolic(y):
            more, left_over = divmod(left_over, y)
            return _made(plus(quotient, {(): more} if more else {}), scope), left_over
        if left_over == 0:
            return _made(quotient, scope), 0
    if is_symbolic(x) and is_symbolic(y) and x == y:
        return 1, 0
    divided, remainder = Operation("floordiv", (x, y)), Operation("mod", (x, y))
    return _made({((divided, 1),): 1}, scope), _made({((remainder, 1),): 1}, scope)


def _comparison(sign: str, test: Callable[[DimExpr, Any], Any]) -> Callable:
    def compare(self: DimExpr, other: Any) -> Any:
        number = _number(other)
        if number is None:
            return getattr(operator, sign)(self.__jax_array__(), other)
        difference = self._meet(number, f"when comparing '{self}' and '{number}'") - number
        if type(difference) is int:
            return getattr(operator, sign)(difference, 0)
        found = test(difference, difference.scope)
        if found is None:
            told = {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}[sign]
            raise InconclusiveDimensionOperation(
                f"Symbolic dimension comparison '{self}' {told} '{other}' is inconclusive.\n"
                "It holds for some values of the dimension variables and not for others. Give a "
                "constraint that decides it, such as symbolic_shape('b', constraints=['b >= 4'])."
                + (f"\nUsing symbolic scope {difference.scope}" if difference.scope.texts else "")
            )
        return found

    return compare


def _arithmetic(name: str, rule: Callable, swapped: bool = False) -> Callable:
    def compute(self: DimExpr, other: Any) -> Any:
        number = _number(other)
        if number is None:
            if isinstance(other, float | complex | np.ndarray | np.generic) or hasattr(
                other, "aval"
            ):
                apply, value = getattr(operator, name), self.__jax_array__()
                return apply(other, value) if swapped else apply(value, other)
            return NotImplemented
        self._meet(number, f"for operation {name}")
        return rule(number, self, self.scope) if swapped else rule(self, number, self.scope)

    return compute


def _mul(x: Any, y: Any, scope: SymbolicScope) -> Any:
    out: Terms = {}
    for m, c in terms_of(x).items():
        out = plus(out, {monomial_product(m, n): d for n, d in terms_of(y).items()}, c)
    return _made(out, scope)


def _value(name: str, swapped: bool = False) -> Callable:
    """An operation that sizes do not have, of their values as arrays."""

    def compute(self: DimExpr, other: Any) -> Any:
        value, apply = self.__jax_array__(), getattr(operator, name)
        if is_symbolic(other):
            other = other.__jax_array__()
        return apply(other, value) if swapped else apply(value, other)

    return compute


class DimExpr:
    """A size that depends on dimension variables. Used as an array it is an int32 (int64 with 64
    bits) whose value is known when the program is."""

    __slots__ = ("terms", "scope", "_hash")
    __array_ufunc__ = None  # NumPy's arrays and scalars leave operators to this class

    def __init__(self, terms: Terms, scope: SymbolicScope) -> None:
        self.terms, self.scope = terms, scope
        self._hash = hash((frozenset(terms.items()), id(scope)))

    def _meet(self, other: Any, what: str) -> DimExpr:
        if is_symbolic(other) and other.scope is not self.scope:
            raise ValueError(
                f"Invalid mixing of symbolic scopes {what}.\nExpected scope {self.scope}\nand "
                f"found for '{other}' scope {other.scope}. Make the shapes with one scope: "
                "symbolic_shape(..., scope=scope)."
            )
        return self

    __add__ = __radd__ = _arithmetic(
        "add", lambda x, y, s: _made(plus(terms_of(x), terms_of(y)), s)
    )
    __sub__ = _arithmetic("sub", lambda x, y, s: _made(plus(terms_of(x), terms_of(y), -1), s))
    __rsub__ = _arithmetic(
        "sub", lambda x, y, s: _made(plus(terms_of(x), terms_of(y), -1), s), True
    )
    __mul__ = __rmul__ = _arithmetic("mul", _mul)
    __floordiv__ = _arithmetic("floordiv", lambda x, y, s: _divided(x, y, s)[0])
    __rfloordiv__ = _arithmetic("floordiv", lambda x, y, s: _divided(x, y, s)[0], True)
    __mod__ = _arithmetic("mod", lambda x, y, s: _divided(x, y, s)[1])
    __rmod__ = _arithmetic("mod", lambda x, y, s: _divided(x, y, s)[1], True)
    __truediv__, __rtruediv__ = _value("truediv"), _value("truediv", True)
    __rpow__ = _value("pow", True)

    def __pow__(self, power: Any) -> Any:
        number = _number(power)
        if type(number) is not int:
            return self.__jax_array__() ** (
                power.__jax_array__() if is_symbolic(power) else power
            )
        if number < 0:
            raise ValueError(
                "Symbolic dimension cannot be raised to negative powers: "
                f"'{self}' ** '{number}'"
            )
        return math.prod([self] * number)

    def __divmod__(self, other: Any) -> tuple:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple:
        return other // self, other % self

    def __neg__(self) -> Any:
        return _made(negative(self.terms), self.scope)

    def __pos__(self) -> DimExpr:
        return self

    def __eq__(self, other: object) -> Any:
        if type(other) is DimExpr:
            return self is other or self.scope is other.scope and self.terms == other.terms
        if isinstance(other, np.ndarray) or hasattr(other, "aval"):
            return self.__jax_array__() == other
        return False

    def __ne__(self, other: object) -> Any:
        same = self == other
        return not same if type(same) is bool else self.__jax_array__() != other

    def __hash__(self) -> int:
        return self._hash

    __ge__ = _comparison("ge", lambda e, s: _decide(e, s, 0))
    __gt__ = _comparison("gt", lambda e, s: _decide(e, s, 1))
    __lt__ = _comparison("lt", lambda e, s: _not(_decide(e, s, 0)))
    __le__ = _comparison("le", lambda e, s: _not(_decide(e, s, 1)))

    def __bool__(self) -> bool:
        return True  # as `self != 0`

    def __int__(self) -> int:
        raise InconclusiveDimensionOperation(
            f"Symbolic dimension '{self}' used in a context that requires a constant. Its size is "
            "known when the exported program is called; compute with it as a size, or as an array."
        )

    def __jax_array__(self) -> Any:
        raise NotImplementedError("numjet.core.structural installs __jax_array__.")

    def __repr__(self) -> str:
        parts: list[str] = []
        for monomial in sorted(self.terms, key=order, reverse=True):
            k = self.terms[monomial]
            names = [f"{f}^{p}" if p > 1 else str(f) for f, p in monomial]
            if abs(k) != 1 or not names:
                names.insert(0, str(abs(k)))
            sign = "- " if k < 0 else "+ " if parts else ""
            parts.append(sign + "*".join(names))
        return " ".join(parts)

    __str__ = __repr__

    def get_vars(self) -> set[str]:
        """The names of the variables in it."""
        return variables(self)

    def __reduce__(self) -> tuple:
        return _restored, (tuple(self.terms.items()), self.scope)


DimExpr.__name__ = "_DimExpr"  # what programs print; pickle asks for the qualified name


def _restored(terms: tuple, scope: SymbolicScope) -> Any:
    return _made(dict(terms), scope)


def _decide(e: DimExpr, scope: SymbolicScope, goal: int) -> bool | None:
    """Whether e >= goal, None where that depends on the variables."""
    if scope.at_least(e.terms, goal):
        return True
    return False if scope.at_least(negative(e.terms), 1 - goal) else None


def _not(x: bool | None) -> bool | None:
    return None if x is None else not x


# ------------------------------------------------------------------ for code that has sizes
def is_symbolic(x: Any) -> bool:
    """Whether a size is an expression of dimension variables."""
    return type(x) is DimExpr


def any_symbolic(sizes: Iterable[Any]) -> bool:
    """Whether one of the sizes is an expression."""
    return DimExpr in [*map(type, sizes)]


def index_of(x: Any) -> Any:
    """`operator.index`, which lets expressions be."""
    return x if type(x) is int or type(x) is DimExpr else operator.index(x)


def count_of(x: Any) -> Any:
    """`index_of` for how many there are of something in a result, as `size=` tells it. Raises
    ConcretizationTypeError for a traced one."""
    try:
        return index_of(x)
    except TracerIntegerConversionError:
        return int(x)  # raises


def size_of(x: Any) -> Any:
    """`index_of` for a part of a shape or of a box. Raises TypeError for a traced one."""
    if type(x) is int:
        return x
    try:
        return index_of(x)
    except TracerIntegerConversionError as error:
        if getattr(error, "final", False):  # by the function that was called
            raise
        raise TypeError(
            f"Shapes must be 1D sequences of concrete values of integer type, got {x!r}. {error}"
        ) from None


def largest(*xs: Any) -> Any:
    """The greatest of sizes: a number or an expression."""
    return _extreme("max", xs)


def smallest(*xs: Any) -> Any:
    """The least of sizes."""
    return _extreme("min", xs)


def _extreme(name: str, xs: tuple) -> Any:
    out = xs[0]
    for x in xs[1:]:
        if type(out) is DimExpr or type(x) is DimExpr:
            scope = (out if is_symbolic(out) else x).scope
            gap = terms_of(out - x if name == "max" else x - out)
            if not scope.at_least(gap, 0):
                known = scope.at_least(negative(gap), 0)
                out = x if known else _made({((Operation(name, (out, x)), 1),): 1}, scope)
        else:
            out = max(out, x) if name == "max" else min(out, x)
    return out


def operate(name: str, x: Any, y: Any) -> Any:
    """floordiv, mod, max or min of two sizes."""
    if name in ("max", "min"):
        return _extreme(name, (x, y))
    return x // y if name == "floordiv" else x % y


def variables(x: Any) -> set[str]:
    """The names of the variables in a size."""
    found: set[str] = set()
    if type(x) is DimExpr:
        for monomial in x.terms:
            for factor, _ in monomial:
                if type(factor) is str:
                    found.add(factor)
                else:
                    found.update(*[variables(v) for v in factor.operands])
    return found


def substituted(x: Any, values: Mapping[str, Any]) -> Any:
    """A size with values for its variables: ints, or expressions of another scope."""
    if type(x) is not DimExpr:
        return x
    total: Any = 0
    for monomial, k in x.terms.items():
        part: Any = k
        for factor, power in monomial:
            if type(factor) is str:
                value = values[factor]
            else:
                value = operate(factor.name, *[substituted(v, values) for v in factor.operands])
            part = part * value**power
        total = total + part
    return total
