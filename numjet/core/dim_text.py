"""Sizes read from text: "2*n + 1", "floordiv(n, 2)" and their like.

For constraints (`core.dims`) and specifications of shapes (`api.exports.symbolic_shapes`). What
would break it: a name that `str` of an expression writes and that is not read.
"""

from __future__ import annotations

import re
from typing import Any, Protocol

_TOKEN = r"\s*([^\W\d]\w*|\d+|\.\.\.|[-+*^(),]|\S)"
OPERATIONS = ("floordiv", "mod", "max", "min")


class Names(Protocol):
    """What names and operations in a specification stand for."""

    def variable(self, name: str) -> Any:
        """The size of this name."""

    def operation(self, name: str, x: Any, y: Any) -> Any:
        """One of `OPERATIONS` of two sizes."""


class Reader:
    """A specification of sizes, read from left to right."""

    def __init__(self, text: str, scope: Names) -> None:
        self.text, self.scope = text, scope
        self.tokens = [(m.group(1), m.end()) for m in re.finditer(_TOKEN, text)]
        self.at = 0

    @property
    def next(self) -> str:
        """The token that comes; "" at the end."""
        return self.tokens[self.at][0] if self.at < len(self.tokens) else ""

    @property
    def after(self) -> str:
        """The token behind that; "" at the end."""
        return self.tokens[self.at + 1][0] if self.at + 1 < len(self.tokens) else ""

    def take(self, *wanted: str) -> str:
        """The token that comes, which must be one of the wanted ones where there are any."""
        found = self.next
        if wanted and found not in wanted:
            raise ValueError(self.wrong(f"expecting one of {wanted} but found {found!r}"))
        self.at += 1
        return found

    def wrong(self, why: str) -> str:
        """The text of an error at this place."""
        end = self.tokens[self.at - 1][1] if self.at else 0
        return f"{why}. Parsed {self.text[:end]!r}, remaining {self.text[end:].lstrip()!r}."

    def size(self) -> Any:
        """An expression: sums of products of numbers, names, operations and their powers."""
        negative = self.next == "-"
        if negative:
            self.take()
        total = self._term()
        total = -total if negative else total
        while self.next in ("+", "-"):
            sign = self.take()
            term = self._term()
            total = total + term if sign == "+" else total - term
        return total

    def _term(self) -> Any:
        total = self._power()
        while self.next == "*":
            self.take()
            total = total * self._power()
        return total

    def _power(self) -> Any:
        base = self._atom()
        if self.next != "^":
            return base
        self.take()
        if not self.next.isdigit():
            raise ValueError(self.wrong(f"expecting a number but found {self.next!r}"))
        return base ** int(self.take())

    def _atom(self) -> Any:
        token = self.next
        if token.isdigit():
            return int(self.take())
        if token == "-" and self.after.isdigit():  # a number with its sign, as in `n*-1`
            self.take()
            return -int(self.take())
        if not token.isidentifier() or token == "_":
            raise ValueError(self.wrong(f"expecting a name or a number but found {token!r}"))
        self.take()
        if token not in OPERATIONS:
            return self.scope.variable(token)
        self.take("(")
        first = self.size()
        self.take(",")
        second = self.size()
        self.take(")")
        return self.scope.operation(token, first, second)



def parsed_side(text: str, scope: Names) -> Any:
    """The size that is one side of a constraint. Raises ValueError for what is none."""
    reader = Reader(text, scope)
    try:
        found = reader.size()
        reader.take("")
    except ValueError as error:
        raise ValueError(f"Constraint parsing error: {error}") from None
    return found
