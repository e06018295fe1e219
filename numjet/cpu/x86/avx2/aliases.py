"""Casts of vectors to others of as many registers change no bits: their names go.

`share(function)` has who reads such a cast read what was cast. For: `generate`, behind the passes
that move instructions between blocks. What would break it: a reader that asks for the type of what
it reads by its name, where its own record has it.
"""

from __future__ import annotations

import re
from typing import Any

from numjet.cpu.x86.front.instructions import Cast
from numjet.cpu.x86.front.parse import Function
from numjet.cpu.x86.front.types import VECTOR

_NAME = re.compile(r"%[\w.]+")


def share(function: Function) -> None:
    """Leave out the casts of a function that are another name for the same registers."""
    if not function.counts["bitcast"]:
        return
    names: dict[str, str] = {}
    counts = function.counts
    for block in function.blocks:
        kept = []
        for read in block.instructions:
            i: Any = _renamed(read, names) if names else read
            if (
                type(i) is Cast and i.op == "bitcast" and i.type.cls == i.source.cls == VECTOR
                and i.type.parts == i.source.parts and i.x[0] == "%"
            ):  # fmt: skip
                names[i.name] = i.x
                counts[i.x] += counts[i.name] - 2  # its readers, without itself
                continue
            if i is not read and i.name is not None:
                function.defs[i.name] = i
            kept.append(i)
        block.instructions = kept
    if not names:
        return
    for block in function.blocks:
        block.term = _renamed(block.term, names)
        for phi in block.phis:
            for label, source in phi.incoming.items():
                phi.incoming[label] = names.get(source, source)


def _renamed(i: tuple, names: dict[str, str]) -> Any:
    """An instruction with other names for its operands."""
    changed = None
    for k in range(4, len(i)):
        x = i[k]
        if isinstance(x, str):
            new: Any = names.get(x) or (_replaced(x, names) if " %" in x else x)
        elif isinstance(x, tuple) and not hasattr(x, "_fields"):
            new = tuple([names.get(y, y) for y in x])
        else:
            continue
        if new != x:
            changed = changed or [*i]
            changed[k] = new
    return i if changed is None else type(i)(*changed)


def _replaced(text: str, names: dict[str, str]) -> str:
    return _NAME.sub(lambda found: names.get(found[0], found[0]), text)
