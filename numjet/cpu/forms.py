"""The equations of a program as numbers: equal ones do the same to what stands equally far before.

`Forms` is one walk over a jaxpr for two who ask about it: the key of the whole program
(`program_cache`), for which it is everything that decides the code, and the search for runs of
equal equations (`reroll`). What would break it: a param that changes the code but not its form here
(unknown objects make a program uncacheable instead).
"""

from __future__ import annotations

import functools
import marshal
from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet.core import dtypes, lowering as low
from numjet.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var
from numjet.cpu.graph import LOOPS, called

_BYTES = marshal.dumps(b"", 0)[:1]  # how bytes begin
_PLAIN = frozenset([int, bool, str, float, complex, type(None)])
_NO_PARAMS = -1


class Uncacheable(Exception):
    """The program depends on an object without a stable text."""


class Forms:
    """What a program does, apart from names.

    numbers: variables in the order in which they are bound, from 0; the first `first` are operands
    of the program.
    table: each form once, with its number. A form is a tuple: the primitive's name, the number of
    its params, what it reads, None, its results' avals (their numbers). Operands of the program are
    read by number, results by how many numbers further back they are, literals by content.
    of: for each equation the number of its form; firsts: where each form stands first.
    loose: numbers of params that may differ though their content is equal, in a callback or a
    constant.
    """

    __slots__ = (
        "first", "firsts", "loose", "numbers", "of", "table", "uncacheable",
        "_avals", "_consts", "_contents", "_described", "_inners", "_kinds", "_literals", "_open",
        "_outs",
    )  # fmt: skip

    def __init__(
        self,
        args: Sequence[Var],
        eqns: Sequence[Eqn],
        outs: Sequence[Any],
        consts: Sequence[Any] = (),
        inners: dict[int, tuple[bytes, bool]] | None = None,
    ) -> None:
        self.loose: set[int] = set()
        self._open = False  # whether the params that are looked at are loose
        self.uncacheable = False
        self.table: dict[tuple, int] = {}
        self.firsts: list[int] = []
        # id(params), which shortcuts of one kind share -> its number; content -> the same.
        self._kinds: dict[int, int] = {}
        self._contents: dict[Any, int] = {}
        # id(jaxpr) of those inside -> their content, and whether it is loose
        self._inners: dict[int, tuple[bytes, bool]] = {} if inners is None else inners
        self._literals: dict[int, tuple] = {}  # id(value) -> its form
        self._avals: dict[Any, int] = {}
        self._described: list[tuple] = []  # the avals, by number
        numbers = self.numbers = dict(zip(args, range(len(args)), strict=True))
        self.first = len(numbers)
        self._consts: list[Any] = [*[self.aval(v.aval) for v in args], None]
        for const in consts:
            array = np.asarray(getattr(const, "_value", const))
            self._consts.append((_dtype(array.dtype), array.shape))
        self.of = self._walk(eqns)
        self._outs = [numbers[a] if type(a) is Var else self._literal(a) for a in outs]

    @classmethod
    def of_jaxpr(
        cls,
        jaxpr: ClosedJaxpr | Jaxpr,
        inners: dict[int, tuple[bytes, bool]] | None = None,
    ) -> Forms:
        """The forms of a whole jaxpr."""
        consts: Sequence[Any] = ()
        if isinstance(jaxpr, ClosedJaxpr):
            consts, jaxpr = jaxpr.consts, jaxpr.jaxpr
        args = [*jaxpr.constvars, *jaxpr.invars]
        return cls(args, jaxpr.eqns, jaxpr.outvars, consts, inners)

    def content(self) -> bytes:
        """What decides the code, as bytes."""
        parts = [self._consts, self._described, [*self._contents], [*self.table], self.of]
        # Version 0 writes equal values equally; later ones depend on which objects are shared.
        return marshal.dumps([*parts, self._outs], 0)

    def aval(self, aval: Any) -> int:
        """The number of an aval."""
        number = self._avals.get(aval)
        if number is None:
            number = self._avals[aval] = len(self._described)
            self._described.append((_dtype(aval.dtype), aval.shape, aval.weak_type))
        return number

    def _walk(self, eqns: Sequence[Eqn]) -> list[int]:
        """Number the results of the equations and their forms."""
        of: list[int] = []
        numbers, first, kinds = self.numbers, self.first, self._kinds
        avals, table, firsts, literals = self._avals, self.table, self.firsts, self._literals
        contents = self._contents
        count = first
        for eqn in eqns:
            primitive, params, kind = eqn.primitive, eqn.params, _NO_PARAMS
            if params:
                kind = kinds.get(id(params), _NO_PARAMS)
                if kind == _NO_PARAMS:
                    # What `params` does, where there are only plain values.
                    content = _plain(params)
                    if _BYTES in content or type(primitive.loops) is low.Region:
                        kind = self._new_kind(eqn)
                    else:
                        kind = contents.setdefault((tuple(params), content), len(contents))
                    kinds[id(params)] = kind
            form: list[Any] = [primitive.name, kind]
            for atom in eqn.invars:
                if type(atom) is Var:
                    number = numbers[atom]
                    form.append(number if number < first else number - count)
                else:
                    literal = literals.get(id(atom.value))  # type: ignore[union-attr]
                    form.append(self._literal(atom) if literal is None else literal)
            form.append(None)
            for var in eqn.outvars:
                numbers[var] = count
                count += 1
                aval = avals.get(var.aval)
                form.append(self.aval(var.aval) if aval is None else aval)
            whole = tuple(form)
            found = table.get(whole)
            if found is None:
                found = table[whole] = len(firsts)
                firsts.append(len(of))
            of.append(found)
        return of

    def _literal(self, atom: Any) -> tuple:
        content = np.asarray(getattr(atom.value, "_value", atom.value)).tobytes()
        found = self._literals[id(atom.value)] = content, self.aval(atom.aval)
        return found

    def kind(self, eqn: Eqn) -> int:
        """The number of an equation's params: equal ones have the same."""
        return self._kinds[id(eqn.params)] if eqn.params else _NO_PARAMS

    def _new_kind(self, eqn: Eqn) -> int:
        self._open = False
        try:
            content = self.params(eqn)
        except Uncacheable:
            self.uncacheable = self._open = True
            content = id(eqn.params)
        contents = self._contents
        found = contents.setdefault(content, len(contents))
        if self._open:
            self.loose.add(found)
        return found

    def params(self, eqn: Eqn) -> Any:
        """What decides the code of an equation beside its operands, as plain values."""
        rule, params = eqn.primitive.loops, eqn.params
        if type(rule) is low.Region and rule.name not in LOOPS:
            inner = called(params)
            if inner is not None:
                # How a call is inlined may depend on this param and on nothing else.
                return (self._inner(inner), bool(params.get("prevent_cse")))
        content = _plain(params)
        if _BYTES not in content:
            return (tuple(params), content)
        host = type(rule) is low.Host
        self._open |= host
        form: list[Any] = []
        for name, value in params.items():
            form.append(name)
            form.append(value if type(value) in _PLAIN else self.value(value, host))
        return marshal.dumps(form, 0)

    def _inner(self, closed: ClosedJaxpr | Jaxpr) -> bytes:
        found = self._inners.get(id(closed))
        if found is None:
            inner = Forms.of_jaxpr(closed, self._inners)
            if inner.uncacheable:
                raise Uncacheable("a function with params that have no stable text")
            held = isinstance(closed, ClosedJaxpr) and bool(closed.consts)
            found = self._inners[id(closed)] = inner.content(), held or bool(inner.loose)
        self._open |= found[1]
        return found[0]

    def value(self, value: Any, host: bool) -> Any:
        """A param as plain values that differ where the code may."""
        kind = type(value)
        if kind in _PLAIN:
            return value
        if kind is tuple and _integers(value):
            return (value,)
        if kind is tuple or kind is list:
            return (kind is list, *[self.value(item, host) for item in value])
        if isinstance(value, np.dtype | dtypes.KeyDType):
            return ("dtype", _dtype(value))
        if isinstance(value, ClosedJaxpr | Jaxpr):
            return ("jaxpr", self._inner(value))
        if isinstance(value, np.generic):
            return ("scalar", _dtype(value.dtype), value.tobytes())
        if isinstance(value, bool | int | float | complex | str | tuple | list) or (
            kind.__module__.startswith("numjet")
            and not callable(value)
            and kind.__repr__ is not object.__repr__
        ):
            return ("text", kind.__name__, repr(value))
        if host:
            return ("object", kind.__name__)  # called from Python, found again in the jaxpr
        raise Uncacheable(repr(value))


def _plain(params: dict) -> bytes:
    """The values of params as bytes, if there are only plain ones; something with _BYTES else."""
    try:
        # What else can be read as bytes - NumPy's arrays and numbers - looks as bytes do.
        return marshal.dumps([*params.values()], 0)
    except ValueError:  # no plain values
        return _BYTES


@functools.cache
def _dtype(dtype: Any) -> str:
    return repr(dtype)


def _integers(value: tuple) -> bool:
    """Whether there are only integers and such tuples in it: most params are shapes and axes."""
    for item in value:
        kind = type(item)
        if kind is not int and not (kind is tuple and _integers(item)):
            return False
    return True
