"""Why a jitted function is traced anew, in words, for the flag `explain_cache_misses`.

For `api.compiled.jit_core`, when the flag is set and a function is traced. What would break it:
keys of signatures that do not begin with the structure of the arguments, their avals, the static
values, the values of the flags, the named axes and the meshes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import zip_longest
from typing import Any

from numjet.base import config, tree
from numjet.core.avals import ShapedArray
from numjet.core.trace import user_source

# Lines that functions were defined on that nobody had seen before, while the flag was set.
_lines: set[tuple[str, int]] = set()


def explain(fun: Callable, name: str, key: tuple, known: Iterable[tuple], names: Callable) -> str:
    """The message for a signature that is not among the known ones.

    key: the signature's. known: those that there are. names: tells what the arguments are called.
    """
    code = getattr(fun, "__code__", None)
    line = (code.co_filename, code.co_firstlineno) if code is not None else None
    defined = f" defined at {line[0]}:{line[1]}" if line is not None else ""
    parts = [f"TRACING CACHE MISS at {user_source()}:"]
    others = [other for other in known if len(other) >= len(_PARTS)]
    if not others:
        parts += ["  never seen function:", f"    {name} id={id(fun)}{defined}"]
        if line in _lines:
            parts.append(
                "  but seen another function defined on the same line: a function that is made "
                "anew each time is traced each time. Define it once, outside of the loop."
            )
        elif line is not None:
            _lines.add(line)
        return "\n".join(parts)
    parts += [f"  for {name}{defined}", "  no signature seen before is equal. Of the closest:"]
    _, told = min([_difference(key, other, names) for other in others], key=lambda found: found[0])
    return "\n".join(parts + [f"  {text}" for text in told])


def _difference(key: tuple, other: tuple, names: Callable) -> tuple[tuple, list[str]]:
    """How far two signatures are from each other, and in what: structures are further apart than
    types, those of other dimensions than those of other sizes, these than flags."""
    far: list[int] = []
    told: list[str] = []
    for part, new, old in zip(_PARTS, key, other):
        found = [] if new == old else part(new, old, names, key[1])
        far.append(len(found))
        told += found
    far.insert(1, _other_ranks(key[1], other[1]) if not far[0] else 0)
    return tuple(far), told


def _other_ranks(new: Sequence[ShapedArray], old: Sequence[ShapedArray]) -> int:
    return sum([len(a.shape) != len(b.shape) for a, b in zip(new, old, strict=True)])


def _structures(new: Any, old: Any, names: Callable, avals: Any) -> list[str]:
    first, second = [tree.tree_unflatten(t, range(t.num_leaves)) for t in (new, old)]
    return [
        "different input pytree:",
        *[
            f"* at input path {tree.keystr(path)}, now {now} and before {before}, so {why}"
            for path, now, before, why in tree.equality_errors(first, second)
        ],
    ]


def _types(
    new: Sequence[ShapedArray], old: Sequence[ShapedArray], names: Callable, avals: Any
) -> list[str]:
    if len(new) != len(old):
        return []  # the structures tell
    told = ["different input types:"]
    for name, a, b in zip(names(), new, old):
        if a == b:
            continue
        now, before = a.str_short(True), b.str_short(True)
        weak = ""
        if now == before:
            now += f"{{weak_type={a.weak_type}}}"
            before += f"{{weak_type={b.weak_type}}}"
            weak = " (https://docs.jax.dev/en/latest/type_promotion.html#weak-types)"
        told.append(f"* at {name}, now {now} and before {before}{weak}")
    return told


def _statics(new: tuple, old: tuple, names: Callable, avals: Any) -> list[str]:
    now, before = [
        ", ".join([f"{name!r}: {value!r}" for name, value, *_ in statics]) for statics in (new, old)
    ]
    return ["different value of static args:", f"* now {{{now}}} and before {{{before}}}"]


def _flags(new: tuple, old: tuple, names: Callable, avals: Any) -> list[str]:
    flags = [
        f"* jax_{flag.name} differs: now {a} and before {b}"
        for flag, a, b in zip(config.traced_flags(), new, old)
        if a != b
    ]
    return ["Tracing context doesn't match: flags differ.", *flags]


def _axes(new: Any, old: Any, names: Callable, avals: Any) -> list[str]:
    return [f"different named axes around it: now {dict(new)} and before {dict(old)}"]


def _meshes(new: tuple, old: tuple, names: Callable, avals: Sequence[ShapedArray]) -> list[str]:
    told = ["different input types:"]
    for name, aval, *meshes in zip_longest(names(), avals, new, old):
        now, before = [f"{aval.str_short(True)}({{{_by_type(m)}}})" for m in meshes]
        if now != before:
            told.append(f"* at {name}, now {now} and before {before}")
    return told


def _by_type(mesh: Any) -> str:
    """The axes of a mesh by their types; nothing of None."""
    if mesh is None:
        return ""
    kinds = dict.fromkeys(mesh.axis_types)
    named = {k: [a for a, t in zip(mesh.axis_names, mesh.axis_types) if t is k] for k in kinds}
    return ", ".join([f"{kind.name}: {tuple(axes)}" for kind, axes in named.items()])


# What the parts of a key say, in their order.
_PARTS = (_structures, _types, _statics, _flags, _axes, _meshes)
