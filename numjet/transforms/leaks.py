"""Traced values that outlived the function they were made for, with the flag `check_tracer_leaks`:
which there are, and what holds them.

For the transformations that make tracers, when their function has returned and they hold none
themselves. What would break it: a tracer that does not refer to its trace.
"""

from __future__ import annotations

import gc
import types
from typing import Any

from numjet.core.trace import Tracer

# So many holders are named one after the other.
_LONGEST = 10


def check(trace: Any, name: str, fun_name: str = "") -> None:
    """Raise where values of a trace are alive.

    name: what the trace is called; fun_name: what its function is.
    """
    gc.collect()  # what only cycles keep alive did not leak
    alive = [x for x in gc.get_referrers(trace) if isinstance(x, Tracer) and x.owner is trace]
    alive.sort(key=lambda x: getattr(x, "source", None) is None)  # those with a line come first
    if not alive:
        return
    parts = [
        f"Leaked trace {name} (check_tracer_leaks): {len(alive)} traced value(s) of "
        f"{fun_name or 'the function'} outlived it."
    ]
    mine = {id(alive)}
    for x in alive:
        kind = type(x).__name__
        source = getattr(x, "source", None) or getattr(trace, "source", None)
        lines = [f"{x!r}", x.origin()]
        if source is not None:
            lines.append(f"This {kind} with object id {id(x)} was created on line:\n  {source}")
        lines += _holders(x, f"<{kind} {id(x)}>", mine)
        parts.append("\n".join(lines))
    raise Exception("\n\n".join(parts))  # noqa: TRY002 - as JAX has it


def _holders(x: Any, text: str, mine: set[int]) -> list[str]:
    """A line for each holder of `x`: what holds it, what holds that, and so on."""
    lines: list[str] = []
    seen = {id(x), *mine}
    for _ in range(_LONGEST):
        found = None
        for holder in gc.get_referrers(x):  # in loops: what a generator closes over holds it, too
            found = found or _holder(holder, x, seen)
        if found is None:
            break
        x, text, told = found[0], found[1], f"{text} is referred to by {found[2]}"
        lines.append(told)
        seen.add(id(x))
        if text == "":  # a module
            break
    return lines


def _holder(holder: Any, x: Any, seen: set[int]) -> tuple[Any, str, str] | None:
    """The object, its text, and its text with the place where it holds `x`; None: it tells nothing.
    """
    if id(holder) in seen or isinstance(holder, types.FrameType):
        return None
    if type(holder) is types.CellType:
        return _closure(holder, seen)
    text = f"<{type(holder).__name__} {id(holder)}>"
    if type(holder) in (list, tuple):
        values = [*map(id, holder)]
        return (holder, text, f"{text}[{values.index(id(x))}]") if id(x) in values else None
    if type(holder) is dict:
        values = [*map(id, holder.values())]
        if id(x) not in values:  # it is a key
            return None
        key = [*holder][values.index(id(x))]
        if "__name__" in holder and "__builtins__" in holder:
            return holder, "", f"{holder['__name__']}.{key}"
        for owner in gc.get_referrers(holder):
            if getattr(owner, "__dict__", None) is holder and id(owner) not in seen:
                text = f"<{type(owner).__name__} {id(owner)}>"
                return owner, text, f"{text}.{key}"
        return holder, text, f"{text}[{key!r}]"
    held = getattr(holder, "__dict__", {})
    values = [*map(id, held.values())]
    named = id(x) in values
    return holder, text, f"{text}.{[*held][values.index(id(x))]}" if named else text


def _closure(cell: Any, seen: set[int]) -> tuple[Any, str, str] | None:
    """The function that closes over a cell."""
    for cells in gc.get_referrers(cell):
        if type(cells) is not tuple:
            continue
        for fun in gc.get_referrers(cells):
            whose = isinstance(fun, types.FunctionType) and fun.__closure__ is cells
            if whose and id(fun) not in seen:
                text = f"<function {id(fun)}>"
                # by identity: cells compare as their values do, and arrays have no truth value
                name = fun.__code__.co_freevars[[*map(id, cells)].index(id(cell))]
                return fun, text, f"{text} ({fun.__name__}) closed-over variable {name}"
    return None
