"""The equations of a program as numbers: equal ones do the same to what stands equally far before.

`Forms` is one walk over a jaxpr for two who ask about it: the key of the whole program
(`program.cache`), for which it is everything that decides the code, and the search for runs of
equal equations (`reroll`). What would break it: a param that changes the code but not its form here
(unknown objects make a program uncacheable instead).
"""

from __future__ import annotations

import functools
import marshal
import struct
from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np

from numjet.base.class_names import is_own
from numjet.core import dtypes, hooks, lowering as low
from numjet.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var
from numjet.cpu.graph.nodes import LOOPS, called
from numjet.cpu.graph.row import CURSOR, ESCAPE, HEADER

_BYTES = marshal.dumps(b"", 0)[:1]  # how bytes begin
_PLAIN = frozenset([int, bool, str, float, complex, type(None)])
_NO_PARAMS = -1
LITERAL = 1 << 30
_HEAD = struct.Struct("=6q")
_BYTE, _LONG = struct.Struct("=b"), struct.Struct("=bi")
# Shorter programs are walked in Python, without tables.
_WORTH_NATIVE = 20
# Eight bytes that an equation has room for: two dozen small numbers, or eight operands and results
# that are far away.
_ROOM = 5


class Uncacheable(Exception):
    """The program depends on an object without a stable text."""


class Forms:
    """What a program does, apart from names.

    A form is, as a row of integers: the numbers of the primitive and of its params, how many
    operands there are and each of them, how many results there are and the numbers of their avals.
    Operands of the program are read by number, results by how many numbers further back they are,
    literals by LITERAL and a number. Objects are numbered by content, as they come.

    numbers: variables in the order in which they are bound, from 0; the first `first` are operands
    of the program.
    of: for each equation the number of its form; firsts: where each form stands first. These and
    `numbers` are made when somebody asks for them.
    loose: numbers of params that may differ though their content is equal, in a callback or a
    constant.
    """

    __slots__ = (
        "first", "loose", "uncacheable", "foreign", "stored",
        "_args", "_avals", "_consts", "_contents", "_described", "_eqns", "_firsts", "_inners",
        "_kinds", "_literal_contents", "_literals", "_names", "_numbers", "_of", "_open", "_outs",
        "_row", "_table",
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
        self.foreign = False  # there are operations of the user's
        self.stored = False  # there are values that kernels do not hold: `graph.storage`
        self._names: dict[str, int] = {}  # of primitives
        # id(params), which shortcuts of one kind share -> its number; content -> the same.
        self._kinds: dict[int, int] = {}
        self._contents: dict[Any, int] = {}
        # id(jaxpr) of those inside -> their content, and whether it is loose
        self._inners: dict[int, tuple[bytes, bool]] = {} if inners is None else inners
        self._literals: dict[int, int] = {}  # id(value) -> its number; content -> the same
        self._literal_contents: dict[tuple, int] = {}
        self._avals: dict[Any, int] = {}
        self._described: list[tuple] = []  # the avals, by number
        self.first = len(args)
        self._consts: list[Any] = [*[self.aval(v.aval) for v in args], None]
        for const in consts:
            array = np.asarray(getattr(const, "_value", const))
            self._consts.append((_dtype(array.dtype), array.shape))
            self.stored |= _is_stored(array.dtype)
        self._args, self._eqns, self._outs = args, eqns, outs
        self._of: list[int] | None = None
        row = self._natively() if len(eqns) >= _WORTH_NATIVE else None
        self._row = self._in_python() if row is None else row

    @classmethod
    def of_jaxpr(
        cls,
        program: ClosedJaxpr | Jaxpr,
        inners: dict[int, tuple[bytes, bool]] | None = None,
    ) -> Forms:
        """The forms of a whole jaxpr."""
        consts: Sequence[Any] = ()
        if isinstance(program, ClosedJaxpr):
            consts, program = program.consts, program.jaxpr
        args = [*program.constvars, *program.invars]
        return cls(args, program.eqns, program.outvars, consts, inners)

    @property
    def numbers(self) -> dict[Var, int]:
        if self._of is None:
            self._walk()
        return self._numbers

    @property
    def of(self) -> list[int]:
        if self._of is None:
            self._walk()
        assert self._of is not None
        return self._of

    @property
    def firsts(self) -> list[int]:
        if self._of is None:
            self._walk()
        return self._firsts

    def content(self) -> bytes:
        """What decides the code, as bytes."""
        numbered = (self._described, [*self._names], [*self._contents], [*self._literal_contents])
        # Version 0 writes equal values equally; later ones depend on which objects are shared.
        return marshal.dumps([self._consts, *numbered, self._row], 0)

    def aval(self, aval: Any) -> int:
        """The number of an aval."""
        number = self._avals.get(aval)
        if number is None:
            number = self._avals[aval] = len(self._described)
            self.stored |= _is_stored(aval.dtype)
            self._described.append((_dtype(aval.dtype), aval.shape, aval.weak_type))
        return number

    def _natively(self) -> bytes | None:
        """What `_in_python` returns, by native code; None where it cannot tell."""
        args, eqns, outs = self._args, self._eqns, self._outs
        if hooks.describe is None or not type(args) is type(eqns) is type(outs) is list:
            return None
        # Each variable is an entry, and most params are; a quarter stays empty.
        size = 1 << (2 * (len(eqns) + len(args)) + 64).bit_length()
        begin = HEADER + 2 * size
        end = begin + _ROOM * len(eqns) + len(outs) + 2
        words = np.zeros(8 * end, np.uint8)
        _HEAD.pack_into(words, 0, size - 1, size - size // 4, 0, self.first, 8 * begin, 8 * end)
        done = hooks.describe(
            args, eqns, outs, words, self._name, self._new_kind, self._literal, self.aval
        )
        return words[8 * begin : _HEAD.unpack_from(words)[CURSOR]].tobytes() if done else None

    def _walk(self) -> None:
        """Number variables and forms; of a form the primitive stands for its name."""
        of: list[int] = []
        firsts: list[int] = []
        table: dict[tuple, int] = {}
        args, first, kinds = self._args, self.first, self._kinds
        numbers = dict(zip(args, range(first), strict=True))
        avals, literals = self._avals, self._literals
        count = first
        for eqn in self._eqns:
            params, invars, outvars, kind = eqn.params, eqn.invars, eqn.outvars, _NO_PARAMS
            if params:
                kind = kinds.get(id(params), _NO_PARAMS)
                if kind == _NO_PARAMS:
                    kind = self._new_kind(eqn)
            form: list[Any] = [eqn.primitive, kind, len(invars)]
            for atom in invars:
                if type(atom) is Var:
                    number = numbers[atom]
                    form.append(number if number < first else number - count)
                else:
                    literal = literals.get(id(atom.value))  # type: ignore[union-attr]
                    form.append(self._literal(atom) if literal is None else literal)
            form.append(len(outvars))
            for var in outvars:
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
        self._numbers, self._of, self._firsts, self._table = numbers, of, firsts, [*table]

    def _in_python(self) -> bytes:
        """Forms in a row, and the results."""
        self._walk()
        numbers, first, literals = self._numbers, self.first, self._literals
        written = [_row([self._name(primitive), *rest]) for primitive, *rest in self._table]
        count = len(numbers)
        outs = [len(self._outs)]
        for atom in self._outs:
            if type(atom) is Var:
                number = numbers[atom]
                outs.append(number if number < first else number - count)
            else:
                literal = literals.get(id(atom.value))
                outs.append(self._literal(atom) if literal is None else literal)
        return b"".join([*map(written.__getitem__, self.of), _row(outs)])

    def _name(self, primitive: Any) -> int:
        name = primitive.name if primitive.expansion is None else self._users_name(primitive)
        return self._names.setdefault(name, len(self._names))

    def _users_name(self, primitive: Any) -> str:
        self.foreign = True
        return f"user {primitive.name}"  # which may be the name of one of ours

    def _literal(self, atom: Any) -> int:
        content = np.asarray(getattr(atom.value, "_value", atom.value)).tobytes()
        contents = self._literal_contents
        whole = content, self.aval(atom.aval)
        found = contents.setdefault(whole, LITERAL + len(contents))
        self._literals[id(atom.value)] = found
        return found

    def kind(self, eqn: Eqn) -> int:
        """The number of an equation's params: equal ones have the same."""
        return self._kinds[id(eqn.params)] if eqn.params else _NO_PARAMS

    def _new_kind(self, eqn: Eqn) -> int:
        params, contents = eqn.params, self._contents
        # What `params` does, where there are only plain values.
        content: Any = _plain(params)
        if _BYTES not in content and type(eqn.primitive.loops) is not low.Region:
            found = contents.setdefault((tuple(params), content), len(contents))
        else:
            self._open = False
            try:
                content = self.params(eqn)
            except Uncacheable:
                self.uncacheable = self._open = True
                content = id(params)
            found = contents.setdefault(content, len(contents))
            if self._open:
                self.loose.add(found)
        self._kinds[id(params)] = found
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
            if name == "unroll" and type(rule) is low.Region:  # of a scan: the code is the same
                continue
            form.append(name)
            form.append(value if type(value) in _PLAIN else self.value(value, host))
        return marshal.dumps(form, 0)

    def _inner(self, closed: ClosedJaxpr | Jaxpr) -> bytes:
        found = self._inners.get(id(closed))
        if found is None:
            inner = Forms.of_jaxpr(closed, self._inners)
            self.foreign |= inner.foreign
            self.stored |= inner.stored
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
            is_own(kind)
            and not callable(value)
            and kind.__repr__ is not object.__repr__
        ):
            return ("text", kind.__name__, repr(value))
        if host:
            return ("object", kind.__name__)  # called from Python, found again in the jaxpr
        raise Uncacheable(repr(value))


def _row(numbers: Sequence[int]) -> bytes:
    """Numbers as `native.code.walk` writes them."""
    if ESCAPE < min(numbers) and max(numbers) < -ESCAPE:
        return array("b", numbers).tobytes()
    return b"".join([
        _BYTE.pack(x) if ESCAPE < x < -ESCAPE else _LONG.pack(ESCAPE, x) for x in numbers
    ])  # fmt: skip


def _plain(params: dict) -> bytes:
    """The values of params as bytes, if there are only plain ones; something with _BYTES else."""
    try:
        # What else can be read as bytes - NumPy's arrays and numbers - looks as bytes do.
        return marshal.dumps([*params.values()], 0)
    except ValueError:  # no plain values
        return _BYTES


def _is_stored(dtype: Any) -> bool:
    if type(dtype) is dtypes.KeyDType:
        return dtype is not dtypes.key_dtype
    return dtype in dtypes.NARROW or dtype.kind == "V" and dtype != dtypes.float0


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
