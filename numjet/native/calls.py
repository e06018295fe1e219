"""Prebuilt calls run by native code: the tables for `code.calls`'s function, and its use.

`api.compiled.fastcall` asks for them and takes generated Python code where they are not to be had
(another interpreter, a build without the GIL, a layout that the self-test does not find). A call
costs some 0.2 us here and 1.2 us there. What would break it: a table that dies before the function
object made with it (everything an entry points to stands in `keep`).
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from numjet.base import config, locks, tree
from numjet.core import hooks
from numjet.core.array import ArrayImpl
from numjet.core.avals import ShapedArray
from numjet.core.remote import RemoteArray
from numjet.cpu.builder.records import words
from numjet.native import build
from numjet.native.entries import address
from numjet.native.layout import NEW_ARRAY, Method, array_api, context_of, forever, layout
from numjet.native.tables import CallContext, CallEntry, CallTable, Node, RemoteCall
from numjet.transforms.batch import _axis_env

MAX_ENTRIES = 8
# Words of registers and tables that a call has on the stack.
MAX_WORDS = 1024
# Below this NumPy's allocator is as quick as the pool.
_MALLOC_BYTES = 4096
# Programs that may take longer (seconds) let other threads run.
_UNLOCK_ABOVE = 5e-6
_FLAGS = 0x0080 | 0x0002  # METH_FASTCALL | METH_KEYWORDS
_FIRST = words(CallTable).index("entries")
_adding = locks.reentrant()
_SCALARS = {
    float: (Node.FLOAT, 4, 8), int: (Node.INT, 4, 8), bool: (Node.BOOL, 1, 1)
}  # fmt: skip


@functools.cache
def _method() -> Method | None:
    """The native function, linked and tried once; None where it cannot be used."""
    if layout():
        return None
    try:
        _context()
    except (AttributeError, ImportError):
        return None  # an interpreter or a NumPy without these functions
    library = build.library("calls", ["call"])
    return forever(Method(b"call", library["call"], _FLAGS, b"A compiled function."))


@functools.cache
def _context() -> np.ndarray:
    known = {
        "new_array": array_api()[NEW_ARRAY],
        "state": config.state.buffer_info()[0],
    }
    for name, x in (
        ("axes", _axis_env),
        ("no_axes", _axis_env.get()),
        ("array", ArrayImpl),
        ("remote", RemoteArray),
        ("ndarray", np.ndarray),
        ("dict", dict),
        ("list", list),
        ("float", float),
        ("int", int),
        ("true", True),
        ("false", False),
    ):
        known[name] = id(x)
    return forever(context_of(CallContext, known))


_new_function = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p
)(("PyCFunction_NewEx", ctypes.pythonapi))


class Calls:
    """The prebuilt calls of one jitted function under one state of the flags."""

    def __init__(self) -> None:
        table = np.zeros(_FIRST + MAX_ENTRIES, np.int64)
        table[0], table[2] = config.state[0], address(_context())
        self.table = table
        self.keep: list[Any] = []

    def function(self, fallback: Callable) -> Any:
        """The function object. Not kept here: `fallback` may own this object."""
        method = _method()
        assert method is not None  # `usable` was asked
        held = (self.table, fallback, self.keep)
        return _new_function(ctypes.addressof(method), held, None)

    def current(self) -> bool:
        """Whether the flags are as they were when the table was made."""
        return int(self.table[0]) == config.state[0]

    def add(self, entry: Any, treedef: Any, statics: dict, args: tuple, kwargs: dict,
            loaded: Any = None) -> bool:  # fmt: skip
        """Prebuild calls of `entry` like `f(*args, **kwargs)`; False when it has no form here.
        loaded: its program on one device of another backend (`api.compiled.fastcall_remote`)."""
        made = _entry(entry, treedef, statics, args, kwargs, self.keep, loaded)
        if made is None:
            return False
        self.keep.append(made)
        with _adding:
            k = int(self.table[1])
            if k < MAX_ENTRIES:  # threads that call at one time add entries of one signature each
                self.table[_FIRST + k] = address(made)
                self.table[1] = k + 1
        return k < MAX_ENTRIES


def of_arrays(executable: Any, inputs: list[np.ndarray], avals: Sequence) -> Callable | None:
    """A program as a function of arrays like these, which gives a tuple of Arrays of these avals;
    None where native code cannot call it."""
    if not usable() or config.state[0] < 0:
        return None
    structure = tree.tree_structure(tuple([0] * len(avals)))
    facts = SimpleNamespace(executable=executable, consts=(), out_tree=structure, out_avals=avals)
    given = tree.tree_structure((tuple(inputs), {}))
    calls = Calls()
    if not calls.add(facts, given, {}, tuple(inputs), {}):
        return None

    def others(*values: np.ndarray) -> tuple:
        return tuple(map(ArrayImpl, executable(values), avals))

    return calls.function(others)


def usable() -> bool:
    """Whether native code may be used here."""
    return _method() is not None


def _table(words: list[int], keep: list) -> int:
    """The address of a table of words, kept alive by `keep`."""
    table = np.array([w & 0xFFFFFFFFFFFFFFFF for w in words] or [0], np.uint64)
    keep.append(table)
    return address(table)


def _objects(objects: Any, keep: list) -> int:
    objects = list(objects)
    keep.append(objects)
    return _table([id(x) for x in objects], keep)


def _native(treedef: Any) -> bool:
    """Whether native code takes this node apart."""
    form = treedef._kind.form
    if form == "dict":
        return all(type(key) in (str, int) for key in treedef._data)
    return form in ("none", "tuple", "list", "namedtuple")


def _looks_up(treedef: Any) -> bool:
    """Whether a tree has a dict: other keys may be compared with the one that is looked for."""
    if treedef._kind is None:
        return False
    return treedef._kind.form == "dict" or any(map(_looks_up, treedef.children()))


def _calls_python(treedef: Any) -> bool:
    """Whether Python takes some node of a tree apart."""
    if treedef._kind is None:
        return False
    return not _native(treedef) or any(map(_calls_python, treedef.children()))


class _Reader:
    """Writes the steps that read arguments; remote: they lie on a device of another backend."""

    def __init__(
        self, leaves: list, first: int, keep: list, offset: int, remote: bool = False
    ) -> None:
        self.leaves, self.keep, self.next, self.offset = leaves, keep, first, offset
        self.remote = remote
        self.steps: list[list[int]] = []
        self.leaf = 0
        self.held = 0  # objects beside the leaves that are owned while a call runs

    def read(self, treedef: Any, reg: int) -> bool:
        """Steps for the tree in register `reg`; False when a leaf has no native form."""
        kind = treedef._kind
        if kind is None:
            self.leaf += 1
            return self.check(self.leaves[self.leaf - 1], reg, self.leaf - 1 + self.offset)
        n, form = len(treedef.children()), kind.form
        if form == "none":
            self.steps.append([Node.STATIC, reg, id(None), 0, 0])
            return True
        # Registers borrow what containers hold: Python code, which could take it out of them, runs
        # for a whole list or dict or not at all.
        if not _native(treedef) or form in ("dict", "list") and _calls_python(treedef):
            reader = treedef.reader()
            self.keep.append(reader)
            n, self.held = treedef.num_leaves, self.held + 1
            start = self.take(n)
            self.steps.append([Node.READER, reg, id(reader), n, start])
            leaves = range(n)
            for k in leaves:
                self.leaf += 1
                if not self.check(
                    self.leaves[self.leaf - 1], start + k, self.leaf - 1 + self.offset
                ):
                    return False
            return True
        start = self.take(n)
        if form == "dict":
            step = [Node.DICT, reg, _objects(treedef._data, self.keep), n, start]
        elif form == "list":
            step = [Node.LIST, reg, 0, n, start]
        else:
            self.keep.append(kind.cls)
            step = [Node.TUPLE, reg, id(kind.cls), n, start]
        self.steps.append(step)
        if form != "tuple" and any(map(_looks_up, treedef.children())):
            self.held += n
            self.steps.append([Node.OWN, reg, 0, n, start])
        return all([self.read(child, start + k) for k, child in enumerate(treedef.children())])

    def take(self, n: int) -> int:
        """Numbers of `n` new registers."""
        first, self.next = self.next, self.next + n
        return first

    def check(self, x: Any, reg: int, place: int) -> bool:
        """The step that checks a leaf and notes where its value lies."""
        kind = type(x)
        if self.remote:
            if kind is not RemoteArray:
                return False
            self.keep += [x.aval, x._sharding]
            placed = 0 if x._sharding is None else id(x._sharding)
            self.steps.append([Node.REMOTE, reg, id(x.aval), place, placed])
        elif kind is ArrayImpl:
            self.keep.append(x.aval)
            self.steps.append([Node.ARRAY, reg, id(x.aval), place, 0])
        elif kind in _SCALARS:
            code, narrow, wide = _SCALARS[kind]
            size = wide if config.enable_x64.value else narrow
            self.steps.append([code, reg, size, place, 0])
        elif kind is np.ndarray and (
            x.dtype.kind in "fiub" and (x.dtype.itemsize < 8 or config.enable_x64.value)
        ):
            self.keep.append(x.dtype)
            spec = _table([id(x.dtype), x.ndim, *x.shape], self.keep)
            self.steps.append([Node.NDARRAY, reg, spec, place, 0])
        else:
            return False
        return True


def _entry(
    entry: Any, treedef: Any, statics: dict, args: tuple, kwargs: dict, keep: list, loaded: Any
) -> np.ndarray | None:
    executable = entry.executable
    program = None if loaded is not None else executable.prepared()
    consts = [] if loaded is not None else list(entry.consts)
    leaves = _leaves(treedef, args, kwargs, statics)
    if leaves is None:  # static data that cannot be told from others without their own ==
        return None
    given = len(args) + len(kwargs)
    positional, keywords = treedef.children()
    reader = _Reader([*consts, *leaves], given + len(consts), keep, 0, loaded is not None)
    for k, x in enumerate(consts):
        reader.leaf += 1
        reader.check(x, given + k, k)
    trees = iter(positional.children())
    for i in range(len(args)):
        if i in statics:
            keep.append(args[i])
            reader.steps.append([Node.STATIC, i, id(args[i]), 0, 0])
        elif not reader.read(next(trees), i):
            return None
    names = list(kwargs)
    by_name = dict(zip(keywords._data or (), keywords.children(), strict=True))
    for name in sorted(names):
        if name in statics:
            place = len(args) + names.index(name)
            keep.append(kwargs[name])
            reader.steps.append([Node.STATIC, place, id(kwargs[name]), 0, 0])
        elif name not in by_name or not reader.read(by_name[name], len(args) + names.index(name)):
            return None
    places, builds, n_regs, builder = _tree(entry.out_tree, keep)
    if loaded is None:
        outs = _outputs(entry, program, places, keep)
    else:
        outs = _remote_outputs(entry, loaded, leaves, places, keep)
    if reader.next + 3 * len(reader.leaves) + reader.held + len(outs) // 6 + n_regs > MAX_WORDS:
        return None
    arena = 0
    if program is not None and program.arenas is not None:
        memory = executable.new_arena()
        keep.append(memory)
        arena = memory[1].value or 0
    steps = [word for step in reader.steps for word in step]
    keep += [entry, executable, program]
    n_in = len(consts) + len(leaves)
    made = {
        "nargs": len(args),
        "nkw": len(kwargs),
        "kwnames": _objects(names, keep),
        "regs": reader.next,
        "presets": len(consts),
        "preset": _objects(consts, keep),
        "steps": len(reader.steps),
        "step": _table(steps, keep),
        "inputs": n_in,
        "owned": n_in + reader.held,
        "outputs": len(places),
        "output": _table(outs, keep),
        "oregs": n_regs,
        "builds": len(builds) // 5,
        "build": _table(builds, keep),
        "main": 0 if program is None else executable.address,
        "consts": 0 if program is None else ctypes.addressof(program.table),
        "needs_arena": int(arena != 0),
        "unlock": int(program is not None and executable.seconds > _UNLOCK_ABOVE),
        "builder": 0 if builder is None else id(builder),
        "failed": 0 if program is None else id(program.failed),
        "remote": 0 if loaded is None else _remote(entry, loaded, n_in, keep),
        "arena": arena,
    }
    return np.array([made[name] for name in words(CallEntry)], np.uint64)


def _leaves(treedef: Any, args: tuple, kwargs: dict, statics: dict) -> list | None:
    dynamic = tuple([x for i, x in enumerate(args) if i not in statics])
    named = {name: x for name, x in kwargs.items() if name not in statics}
    return treedef.matcher()((dynamic, named))


def _remote(entry: Any, loaded: Any, leaves: int, keep: list) -> int:
    """The address of the facts by which a program is run on a device."""
    held = [*loaded.consts, *[x._buffer for x in loaded.on_device(entry.consts)]]
    frame, arguments, results = loaded.program.pattern(len(held) + leaves)
    name, check, handle = loaded.program.name, loaded.check, loaded.program.client.handle_of
    keep += [loaded, held, name, check, handle, hooks.caller_line]
    held = [b.handles[0] for b in held]
    facts = {
        "execute": loaded.program.address,
        "words": len(frame),
        "frame": _table(frame, keep),
        "arguments": arguments,
        "results": results,
        "helds": len(held),
        "held": _table(held, keep),
        "devices": id(loaded.program.devices),
        "buffer": id(loaded.buffer),
        "handle": id(handle),
        "maker": id(name),
        "line": id(hooks.caller_line),
        "check": id(check),
    }
    return _table([facts[name] for name in words(RemoteCall)], keep)


def _remote_outputs(
    entry: Any, loaded: Any, leaves: list, places: list[int], keep: list
) -> list[int]:
    """The table of the results of a program on a device."""
    outs: list[int] = []
    shardings = loaded.shardings_out(leaves)
    for aval, sharding, place in zip(entry.out_avals, shardings, places, strict=True):
        aval = aval if sharding is None else aval.over(sharding)
        keep += [aval, sharding]
        outs += [id(aval), 0 if sharding is None else id(sharding), 0, 0, 0, place]
    return outs


def _tree(tree: Any, keep: list) -> tuple[list[int], list[int], int, Any]:
    """The registers of the outputs, the table of the steps that build the tree, the number of
    registers, and the Python function that builds the tree from a list of leaves, where native code
    cannot."""
    places: list[int] = []
    steps: list[list[int]] = []
    registers = [1]
    builder = None
    if _buildable(tree):
        _build(tree, 0, places, steps, registers, keep)
    else:
        builder = tree.builder()
        keep.append(builder)
        places = list(range(1, 1 + tree.num_leaves))
        registers[0] += tree.num_leaves
        steps.append([Node.LIST, 0, 0, tree.num_leaves, 1])
    # Children come before the nodes that hold them.
    return places, [word for step in reversed(steps) for word in step], registers[0], builder


def _outputs(entry: Any, program: Any, places: list[int], keep: list) -> list[int]:
    """The table of the outputs."""
    outs: list[int] = []
    for (shape, dtype), maker, aval, place in zip(
        program.outs, program.makers, entry.out_avals, places, strict=True
    ):
        large = ShapedArray(shape, dtype).size * dtype.itemsize >= _MALLOC_BYTES
        keep += [aval, dtype, maker]
        outs += [
            id(aval),
            id(dtype),
            len(shape),
            _table(list(shape), keep),
            id(maker) if large else 0,
            place,
        ]
    return outs


def _buildable(tree: Any) -> bool:
    kind = tree._kind
    if kind is None or kind.form == "none":
        return True
    return kind.form in ("dict", "tuple", "list") and all(map(_buildable, tree.children()))


def _build(
    tree: Any, reg: int, places: list[int], steps: list[list[int]], registers: list[int], keep: list
) -> None:
    kind = tree._kind
    if kind is None:
        places.append(reg)
        return
    n = len(tree.children())
    start = registers[0]
    registers[0] += n
    if kind.form == "none":
        steps.append([0, reg, id(None), 0, 0])
    elif kind.form == "dict":
        steps.append([Node.DICT, reg, _objects(tree._data, keep), n, start])
    else:
        steps.append([Node.TUPLE if kind.form == "tuple" else Node.LIST, reg, 0, n, start])
    for k, child in enumerate(tree.children()):
        _build(child, start + k, places, steps, registers, keep)
