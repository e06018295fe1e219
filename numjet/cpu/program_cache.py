"""Compiled programs on disk: a second process neither fuses, emits nor compiles, it only loads.

`key(closed, donate)` is the digest of the jaxpr in canonical form, as it was traced; `pack` and
`unpack` turn what an executable needs into bytes and back. Constants and Python callbacks are not
stored: they are found again, in the jaxpr that was compiled, by their position. What would break
it: a param that changes the code but not its form here (unknown objects make a program uncacheable
instead).
"""

from __future__ import annotations

import functools
import hashlib
import marshal
import os
import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from numjet.base import config
from numjet.core import dtypes, lowering as low
from numjet.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var
from numjet.cpu import link, platform
from numjet.cpu.entry import RUNTIME
from numjet.cpu.executable import HostCall
from numjet.cpu.graph import LOOPS, called

_FORMAT = 5


class Uncacheable(Exception):
    """The program depends on an object without a stable text."""


@functools.cache
def _package() -> bytes:
    """Changes with any source file of the package, so that no stale code is loaded."""
    return hashlib.sha256(_sources().encode()).digest()


def _sources() -> str:
    """Name, size and time of each source file, a line each."""
    # Not with pathlib, which takes 5 ms for this.
    found: list[str] = []
    root = os.path.dirname(os.path.dirname(__file__))
    folders = [root]
    while folders:
        for entry in os.scandir(folders.pop()):
            if entry.name.endswith(".py"):
                stat = entry.stat()
                found.append(f"{entry.path[len(root):]}:{stat.st_size}:{stat.st_mtime_ns}")
            elif "." not in entry.name and entry.name != "__pycache__" and entry.is_dir():
                folders.append(entry.path)
    return "\n".join(sorted(found))


def key(closed: ClosedJaxpr, donate: tuple[int, ...]) -> str | None:
    """The digest under which the compiled program is kept; None when it cannot be."""
    try:
        # Work is cut for the cores there are.
        where = (config.check_ir.value, platform.cpu_count())
        form = [_FORMAT, _package(), donate, where, _closed(closed)]
    except Uncacheable:
        return None
    # Version 0 writes equal values equally; later ones depend on which objects are shared.
    return link.digest(marshal.dumps(form, 0))


def _closed(closed: ClosedJaxpr | Jaxpr) -> list:
    """What decides the code of a jaxpr, as nested lists of plain values."""
    out: list[Any] = []
    jaxpr: Jaxpr
    if type(closed) is ClosedJaxpr:
        jaxpr = closed.jaxpr
        for const in closed.consts:
            array = np.asarray(getattr(const, "_value", const))
            out.append((_dtype(array.dtype), array.shape))
    else:
        jaxpr = closed  # type: ignore[assignment]
    numbers: dict[Any, int] = {}
    # An aval is written out where it stands first, then as its number.
    avals: dict[Any, Any] = {}
    # By the identity of params, which shortcuts of one kind share: their form.
    forms: dict[int, Any] = {}
    count = 0
    for var in (*jaxpr.constvars, *jaxpr.invars):
        numbers[var] = count
        count += 1
        aval = var.aval
        number = avals.get(aval)
        out.append(_aval(aval, avals) if number is None else number)
    # One flat list: an equation is its name, what it reads (numbers, or tuples of literals), None,
    # its results' avals (numbers, or tuples) and its params (a list, a tuple or None).
    for eqn in jaxpr.eqns:
        out.append(eqn.primitive.name)
        for atom in eqn.invars:
            out.append(numbers[atom] if type(atom) is Var else _literal(atom, avals))
        out.append(None)
        for var in eqn.outvars:
            numbers[var] = count
            count += 1
            aval = var.aval
            number = avals.get(aval)
            out.append(_aval(aval, avals) if number is None else number)
        params = eqn.params
        if params:
            form = forms.get(id(params))
            if form is None:
                form = forms[id(params)] = params_form(eqn)
            out.append(form)
        else:
            out.append(None)
    out.append([numbers[a] if type(a) is Var else _literal(a, avals) for a in jaxpr.outvars])
    return out


def _aval(aval: Any, avals: dict) -> tuple:
    """An aval that stands here first."""
    avals[aval] = len(avals)
    return (_dtype(aval.dtype), aval.shape, aval.weak_type)


def _literal(atom: Any, avals: dict) -> tuple:
    value, aval = atom.value, atom.aval
    number = avals.get(aval)
    content = np.asarray(getattr(value, "_value", value)).tobytes()
    return (content, _aval(aval, avals) if number is None else number)


def params_form(eqn: Eqn) -> Any:
    """What decides the code of an equation beside its operands, as plain values."""
    rule, params = eqn.primitive.loops, eqn.params
    if type(rule) is low.Region and rule.name not in LOOPS:
        inner = called(params)
        if inner is not None:
            # How a call is inlined may depend on this param and on nothing else.
            return (_closed(inner), bool(params.get("prevent_cse")))
    try:
        content = marshal.dumps([*params.values()], 0)
    except ValueError:  # not plain values alone
        content = _BYTES
    # What else can be read as bytes - NumPy's arrays and numbers - looks as bytes do.
    if _BYTES not in content:
        return (tuple(params), content)
    host = type(rule) is low.Host
    form: list[Any] = []
    for name, value in params.items():
        form.append(name)
        form.append(value if type(value) in _PLAIN else _value(value, host))
    return form


_BYTES = marshal.dumps(b"", 0)[:1]  # how bytes begin
_PLAIN = frozenset([int, bool, str, float, complex, type(None)])


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


def _value(value: Any, host: bool) -> Any:
    """A param as plain values that differ where the code may."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is tuple and _integers(value):
        return (value,)
    if kind is tuple or kind is list:
        return (kind is list, *[_value(item, host) for item in value])
    if isinstance(value, np.dtype | dtypes.KeyDType):
        return ("dtype", _dtype(value))
    if isinstance(value, ClosedJaxpr | Jaxpr):
        return ("jaxpr", _closed(value))
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


# ---- finding constants and callbacks again


def _jaxprs(closed: ClosedJaxpr | Jaxpr) -> Iterator[ClosedJaxpr | Jaxpr]:
    yield closed
    for eqn in closed.eqns:
        for value in eqn.params.values():
            for item in value if isinstance(value, tuple | list) else (value,):
                if isinstance(item, ClosedJaxpr | Jaxpr):
                    yield from _jaxprs(item)


def _all_consts(closed: ClosedJaxpr) -> list[Any]:
    return [c for j in _jaxprs(closed) if isinstance(j, ClosedJaxpr) for c in j.consts]


def _all_eqns(closed: ClosedJaxpr) -> list[Eqn]:
    return [eqn for j in _jaxprs(closed) for eqn in j.eqns]


def pack(build: Any, facts: dict[str, Any], images: list[bytes]) -> bytes | None:
    """The program as bytes; None when a constant or callback cannot be found again."""
    program, closed = build.program, build.closed
    consts = {id(c): n for n, c in enumerate(_all_consts(closed))}
    eqns = {id(e.params): n for n, e in enumerate(_all_eqns(closed))} if program.hosts else {}
    origin = {index: value for index, value in build.origins.items()}
    table: list[Any] = []
    for k, array in enumerate(program.consts):
        if k in program.hosts:
            call = program.hosts[k]
            if id(call.params) not in eqns:
                return None
            table.append(["host", eqns[id(call.params)]])
        elif array.size <= 1 and array.dtype.name in np.sctypeDict:
            table.append(["value", array.dtype.name, array.shape, array.tobytes()])
        elif id(origin[k]) in consts:
            table.append(["const", consts[id(origin[k])]])
        else:
            return None
    aliases = [list(x) for x in program.aliases.items()]
    sizes = [len(image) for image in images]
    head = marshal.dumps([facts, table, aliases, sizes], 2)
    return b"".join([struct.pack("<Q", len(head)), head, *images])


def providers(symbols: Iterable[str]) -> list[str]:
    """The modules that define the library functions which the code calls (see `link.provide`)."""
    found = set()
    for name in symbols:
        if not name.startswith(RUNTIME):
            found.add("numjet.cpu.kernels")
    return sorted(found)


def unpack(
    data: bytes, compiled: Callable[[], ClosedJaxpr]
) -> tuple[dict, list, dict[int, HostCall], dict[int, int], list[bytes]]:
    """(facts, consts, hosts, aliases, images) of a packed program. `compiled` tells what was
    compiled; it is asked where constants or callbacks have to be found."""
    size = struct.unpack_from("<Q", data)[0]
    facts, table, aliases, sizes = marshal.loads(memoryview(data)[8 : 8 + size])
    consts: list[Any] = []
    hosts: dict[int, HostCall] = {}
    closed: Any = None
    for k, entry in enumerate(table):
        if closed is None and entry[0] != "value":
            closed = compiled()
            all_consts, all_eqns = _all_consts(closed), _all_eqns(closed)
        if entry[0] == "host":
            eqn = all_eqns[entry[1]]
            hosts[k] = HostCall.of(
                eqn.primitive,
                eqn.params,
                [v.aval for v in eqn.invars],
                [v.aval for v in eqn.outvars],
            )
            consts.append(None)
        elif entry[0] == "value":
            _, name, shape, content = entry
            consts.append(np.frombuffer(content, np.dtype(name)).reshape(shape))
        else:
            const = all_consts[entry[1]]
            consts.append(np.asarray(getattr(const, "_value", const)))
    images, start = [], 8 + size
    for length in sizes:
        images.append(data[start : start + length])
        start += length
    return facts, consts, hosts, dict(aliases), images
