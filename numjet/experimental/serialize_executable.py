"""numjet.experimental.serialize_executable: compiled functions as bytes, for other processes.

The bytes hold the program as `export` writes it, and its machine code, which a machine of the same
kind takes as it is; on another one it is compiled anew. Read only what you trust, as with every
program. What would break it: bytes of another version of numjet, which are refused.
"""

from __future__ import annotations

import marshal
from collections.abc import Sequence
from typing import Any

from numjet import export
from numjet.api.compiled.jit_core import JitCore
from numjet.api.compiled.stages import Compiled, Entry, Traced
from numjet.base import tree
from numjet.cpu.link import link
from numjet.transforms.stage import hoist_consts

_MAGIC = b"numjet-executable 1\n"


def serialize(compiled: Compiled) -> tuple[bytes, Any, Any]:
    """A compiled function as (bytes, structure of its arguments, structure of its result).

    compiled: what `jit(f).lower(...).compile()` gives, for the CPU (NotImplementedError for other
    devices); TypeError for anything else, ValueError where the function calls Python or closes over
    a reference. The structures are treedefs of (args, kwargs) and of the result; they are not among
    the bytes, since nodes may be of any class.

    >>> import numjet as nj
    >>> from numjet.experimental import serialize_executable
    >>> compiled = nj.jit(lambda x: {"twice": 2 * x}).lower(1.0).compile()
    >>> data, in_tree, out_tree = serialize_executable.serialize(compiled)
    >>> serialize_executable.deserialize_and_load(data, in_tree, out_tree)(3.0)
    {'twice': Array(6., dtype=float32, weak_type=True)}
    """
    if not isinstance(compiled, Compiled):
        raise TypeError(
            f"serialize takes a compiled function, got {type(compiled).__name__}. Pass "
            "jit(f).lower(*arguments).compile()."
        )
    traced = compiled._traced
    if traced.place is not None:
        raise NotImplementedError(
            f"serialize: {traced.fun_name} was compiled for {traced.place[0]}. Programs of the CPU "
            "can be stored; those of other devices are kept in the disk cache."
        )
    closed, entry = traced.program, traced._entry
    if entry.use is not None:
        raise ValueError(
            f"can't serialize with a closed-over mutable array ref: {entry.name} reads or writes "
            "one. Pass it as an argument."
        )
    in_avals, out_avals = tuple(closed.in_avals), tuple(closed.out_avals)
    in_tree = tree.tree_structure(((0,) * len(in_avals), {}))
    out_tree = tree.tree_structure([0] * len(out_avals))
    stored = export.Exported(
        entry.name, in_tree, in_avals, out_tree, out_avals, ("cpu",), (), closed
    ).serialize()
    loaded = _compiled(bytes(stored), entry.donate)
    key = loaded._executable.key
    code = None if key is None else link.cache_get(key)
    parts = (bytes(stored), tuple(entry.donate), _machine(), key, code)
    return _MAGIC + marshal.dumps(parts, 2), traced.in_tree, entry.out_tree


def deserialize_and_load(
    serialized: bytes,
    in_tree: Any,
    out_tree: Any,
    backend: Any = None,
    execution_devices: Sequence[Any] | None = None,
) -> Compiled:
    """The compiled function of these bytes.

    serialized, in_tree, out_tree: what `serialize` gave. backend: None or "cpu", execution_devices:
    None (NotImplementedError for others). Result: a Compiled. Raises ValueError for other bytes.

    >>> import numjet as nj
    >>> from numjet.experimental import serialize_executable
    >>> parts = serialize_executable.serialize(nj.jit(lambda x: -x).lower(1.0).compile())
    >>> serialize_executable.deserialize_and_load(*parts)(3.0)
    Array(-3., dtype=float32, weak_type=True)
    """
    if backend not in (None, "cpu") or execution_devices is not None:
        raise NotImplementedError(
            "deserialize_and_load: programs are loaded for the CPU. Leave backend and "
            "execution_devices away."
        )
    try:
        if not serialized.startswith(_MAGIC):
            raise ValueError("they are not what serialize wrote")
        stored, donate, machine, key, code = marshal.loads(serialized[len(_MAGIC) :])
        if key is not None and code is not None and machine == _machine():
            link.cache_put(key, code)
        return _compiled(stored, donate, in_tree, out_tree)
    except (ValueError, EOFError, TypeError, AttributeError) as error:
        raise ValueError(f"deserialize_and_load: the bytes cannot be read ({error}).") from error


def _machine() -> str:
    """What machine code depends on beside the program."""
    return link.digest("serialize_executable")


def _compiled(
    stored: bytes, donate: Sequence[int], in_tree: Any = None, out_tree: Any = None
) -> Compiled:
    """The exported function, compiled; its arguments and results in their structures."""
    exported = export.deserialize(bytearray(stored))
    if in_tree is None:
        in_tree, out_tree = exported.in_tree, exported.out_tree
    closed = exported.jaxpr
    if in_tree.num_leaves != len(closed.in_avals) or out_tree.num_leaves != len(closed.out_avals):
        raise ValueError(
            f"the function has {len(closed.in_avals)} arguments and {len(closed.out_avals)} "
            f"results, the structures {in_tree.num_leaves} and {out_tree.num_leaves}"
        )

    def call(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("known by its jaxpr")

    name, consts = exported.fun_name, list(closed.consts)
    entry = Entry(hoist_consts(closed.jaxpr), consts, out_tree, name, tuple(donate))
    return Traced(entry, in_tree, JitCore(call, (), (), (), ())).lower().compile()


__all__ = ["deserialize_and_load", "serialize"]
