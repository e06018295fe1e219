"""Compiled programs on disk: a second process neither fuses, emits nor compiles, it only loads.

`key(closed, donate)` is the digest of the jaxpr's forms (`forms`), as it was traced; `pack` and
`unpack` turn what an executable needs into bytes and back. Constants and Python callbacks are not
stored: they are found again, in the jaxpr that was compiled, by their position.
"""

from __future__ import annotations

import marshal
import math
import struct
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from numjet.base import config
from numjet.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr
from numjet.cpu import host
from numjet.cpu.graph.forms import Forms
from numjet.cpu.link import link
from numjet.cpu.program.executable import Description, HostCall
from numjet.cpu.runtime.entry import RUNTIME

if TYPE_CHECKING:  # the compiler proper, which a process with all programs on disk never loads
    from numjet.cpu.program.values import Values

_FORMAT = 10


def key(closed: ClosedJaxpr, donate: tuple[int, ...], forms: Forms | None = None) -> str | None:
    """The digest under which the compiled program is kept; None when it cannot be. `forms`: those
    of the program, where somebody has them."""
    if forms is None:
        forms = Forms.of_jaxpr(closed)
    sources = None if forms.uncacheable else link.sources_digest("program")
    if sources is None:
        return None
    # Work is cut for the cores there are.
    where = (donate, config.check_ir.value, host.cpu_count())
    return link.digest(marshal.dumps((_FORMAT, sources, *where), 0) + forms.content())


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


def pack(
    closed: ClosedJaxpr, values: Values, facts: dict[str, Any], images: list[bytes]
) -> bytes | None:
    """The program as bytes; None when a constant or callback cannot be found again."""
    program = values.program
    consts = {id(c): n for n, c in enumerate(_all_consts(closed))}
    eqns = {id(e.params): n for n, e in enumerate(_all_eqns(closed))} if program.hosts else {}
    origin = {index: value for index, value in values.origins.items()}
    table: list[Any] = []
    for k, array in enumerate(program.consts):
        if k in program.hosts:
            call = program.hosts[k]
            if id(call.params) not in eqns:
                return None
            kind = "description" if isinstance(call, Description) else "host"
            table.append([kind, eqns[id(call.params)]])
            continue
        assert array is not None  # as of all but calls of Python
        if array.size <= 1 and array.dtype.name in np.sctypeDict:
            table.append(["value", array.dtype.name, array.shape, array.tobytes()])
        elif id(origin[k]) in consts:
            table.append(["const", consts[id(origin[k])]])
        else:
            return None
    aliases = [list(x) for x in program.aliases.items()]
    sizes = [len(image) for image in images]
    head = marshal.dumps([facts, table, aliases, sizes], 2)
    return b"".join([struct.pack("<Q", len(head)), head, *images])


# The module that defines the library functions which code may call (see `link.provide`).
PROVIDERS = "numjet.cpu.kernels.providers"


def providers(symbols: Iterable[str]) -> list[str]:
    """The modules that define the library functions which the code calls."""
    return [PROVIDERS] if any([not name.startswith(RUNTIME) for name in symbols]) else []


def unpack(
    data: bytes, compiled: Callable[[], ClosedJaxpr]
) -> tuple[dict, list, dict[int, HostCall | Description], dict[int, int], list[bytes]]:
    """(facts, consts, hosts, aliases, images) of a packed program. `compiled` tells what was
    compiled; it is asked where constants or callbacks have to be found. Raises one of
    `link.MALFORMED` where the bytes are no program."""
    size = struct.unpack_from("<Q", data)[0]
    facts, table, aliases, sizes = marshal.loads(memoryview(data)[8 : 8 + size])
    if sum(sizes) != len(data) - 8 - size or not {PROVIDERS}.issuperset(facts["providers"]):
        raise ValueError("a program whose parts do not fit")
    consts: list[Any] = []
    hosts: dict[int, HostCall | Description] = {}
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
        elif entry[0] == "description":
            call = hosts[k - 1]
            assert isinstance(call, HostCall)
            hosts[k] = Description(call)
            consts.append(None)
        elif entry[0] == "value":
            _, name, shape, content = entry
            if len(content) != math.prod(shape) * np.dtype(name).itemsize:
                raise ValueError("a constant of another size")
            consts.append(np.ndarray(shape, np.dtype(name), content))  # float0 has no bytes
        else:
            const = all_consts[entry[1]]
            consts.append(np.asarray(getattr(const, "_value", const)))
    images, start = [], 8 + size
    for length in sizes:
        images.append(data[start : start + length])
        start += length
    return facts, consts, hosts, dict(aliases), images
