"""Calls of a compiled signature as straight Python code, generated for that signature.

`api.compiled.jit_core` makes one such function for a signature that is called again and puts it
where the jitted function's `__call__` is looked up. It takes a call exactly when everything that
chose the signature is as it was: flags (`config.state`), no trace and no named axis in scope,
structure, avals, static values. In every other case it hands the call on, at last to the complete
way (`JitCore.call`), which alone raises errors. What would break it: something new that the choice
of a program depends on and that is neither in the arguments nor announced by `config.changed`.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from numjet.base import config
from numjet.core.array import ArrayImpl
from numjet.core.trace import EVAL, current_trace
from numjet.cpu.program.executable import KEPT_ARENA
from numjet.transforms.batch import axis_env

# Leaves beyond which generated code is not worth its compilation.
MAX_LEAVES = 2000
# A tuple's items lie behind its header, as the table of objects that a program's entry reads.
_ITEMS = tuple.__basicsize__
_POINTER = ctypes.c_void_p
_NO_AXES = axis_env()
# Below this the allocator is as quick as a pool.
_MALLOC_BYTES = 4096
_SCALARS = (float, int, bool)
# What of Python's calls in a program is nothing of the user's.
FOREIGN = frozenset(["ffi_call"])


def _items_known() -> bool:
    """Whether a tuple's items lie where `_ITEMS` says."""
    probe = (object(), object())
    table = (_POINTER * 2).from_address(id(probe) + _ITEMS)
    return [table[0], table[1]] == [id(probe[0]), id(probe[1])]


USABLE = ctypes.sizeof(_POINTER) == 8 and hasattr(ctypes, "PYFUNCTYPE") and _items_known()


class _Code:
    """Lines of the generated function and the objects that it refers to."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.scope: dict[str, Any] = {
            "state": config.state, "current": current_trace, "EVAL": EVAL, "axes": axis_env,
            "NO_AXES": _NO_AXES, "Array": ArrayImpl, "new": ArrayImpl.__new__, "empty": np.empty,
            "array": np.asarray, "ndarray": np.ndarray, "id": id, "type": type,
            "AttributeError": AttributeError, "OverflowError": OverflowError, "float": float,
            "int": int, "bool": bool, "ValueError": ValueError, "IndexError": IndexError,
        }

    def __call__(self, line: str) -> None:
        self.lines.append(line)

    def name(self, prefix: str, value: Any) -> str:
        name = f"{prefix}{len(self.scope)}"
        self.scope[name] = value
        return name


def has_short_form(entry: Any, leaves: list) -> bool:
    """Whether calls of `entry` may be prebuilt: nothing of the user's happens in Python, nothing is
    donated."""
    executable = entry.executable
    return not (
        entry.donate
        or entry.without_values
        or executable is None
        or config.check_bounds.value
        or not FOREIGN.issuperset(executable.host_calls)
        or len(leaves) > MAX_LEAVES
    )


def make(
    entry: Any, treedef: Any, statics: dict, leaves: list, n_args: int, other: Callable
) -> Callable | None:
    """The function for calls of `entry`'s signature; other calls go to `other`.

    leaves: those of the call that is the pattern, as the user passed them. None when there is no
    short way for such a call.
    """
    if not USABLE or any([isinstance(key, str) for key in statics]):
        return None
    code = _Code()
    code.scope["other"] = other
    code.scope["closed"] = entry  # its constants and its program live as long as this function
    code("def call(*args, **kw):")
    code(
        f" if state[0] != {config.state[0]} or current() is not EVAL or axes() is not NO_AXES: "
        "return other(*args, **kw)"
    )
    if not _read(code, treedef, statics, n_args):
        return None
    values = _check(code, leaves)
    if values is None:
        return None
    _run(code, entry, values)
    source = "\n".join(code.lines) + "\n"
    exec(compile(source, "<numjet call>", "exec"), code.scope)
    return code.scope["call"]


_MISS = "return other(*args, **kw)"


def _read(code: _Code, treedef: Any, statics: dict, n_args: int) -> bool:
    """Lines that check the structure and name the leaves x0, x1, ..."""
    positional, keywords = treedef.children()
    n = treedef.num_leaves
    names = [f"p{i}" for i in range(n_args)]
    dynamic = [name for i, name in enumerate(names) if i not in statics]
    flat = positional.num_nodes == len(dynamic) + 1 and positional.num_leaves == len(dynamic)
    if flat and not keywords.num_leaves:
        for k, name in enumerate(dynamic):
            names[names.index(name)] = f"x{k}"
    if not keywords.children():
        code(f" if kw: {_MISS}")
    if names:
        code(" try:")
        code(f"  {', '.join(names)}, = args")
        code(f" except ValueError: {_MISS}")
    else:
        code(f" if args: {_MISS}")
    for i, value in statics.items():
        static = code.name("s", value)
        kind = code.name("k", type(value))
        code(
            f" if {names[i]} is not {static} and not (type({names[i]}) is {kind} and "
            f"{names[i]} == {static}): {_MISS}"
        )
    if flat and not keywords.num_leaves:
        return not keywords.children()
    read = code.name("read", treedef.reader())
    code(f" leaves = {read}((({', '.join(dynamic)}{',' if dynamic else ''}), kw))")
    code(f" if leaves is None: {_MISS}")
    if n:
        code(f" {', '.join([f'x{i}' for i in range(n)])}, = leaves")
    return True


def _check(code: _Code, leaves: list) -> list[str] | None:
    """Lines that check the leaves' kinds and avals; the names of their values."""
    values, tests, reads, scalars = [], [], [], []
    for i, x in enumerate(leaves):
        kind = type(x)
        if kind is ArrayImpl:
            tests.append(f"x{i}.aval is {code.name('a', x.aval)}")
            reads.append(f"  v{i} = x{i}._value")
            values.append(f"v{i}")
        elif kind in _SCALARS:
            dtype = _scalar_dtype(x)
            tests.append(f"type(x{i}) is {kind.__name__}")
            scalars.append(f"  v{i} = array(x{i}, {code.name('d', dtype)})")
            values.append(f"v{i}")
        elif kind is np.ndarray:
            if x.dtype.kind not in "fiub" or config.enable_x64.value is False and (
                x.dtype.itemsize == 8
            ):
                return None
            tests.append(
                f"type(x{i}) is ndarray and x{i}.dtype is {code.name('d', x.dtype)} "
                f"and x{i}.shape == {x.shape}"
            )
            values.append(f"x{i}")
        else:
            return None
    if tests:
        # Only an array that exists has `_value`: a tracer that leaked goes the complete way.
        code(" try:")
        code(f"  if not ({' and '.join(tests)}): {_MISS}")
        code.lines += reads
        code.lines += scalars
        code(f" except (AttributeError, OverflowError): {_MISS}")
    return values


def _scalar_dtype(x: Any) -> np.dtype:
    from_python = {bool: (np.bool_, np.bool_), int: (np.int32, np.int64)}
    narrow, wide = from_python.get(type(x), (np.float32, np.float64))
    return np.dtype(wide if config.enable_x64.value else narrow)


def _run(code: _Code, entry: Any, values: list[str]) -> None:
    """Lines that call the program and put the result together."""
    executable = entry.executable
    program = executable.prepared()
    consts = [f"{code.name('c', x)}._value" for x in entry.consts]
    outs = []
    for k, (shape, dtype) in enumerate(program.outs):
        if math.prod(shape) * dtype.itemsize < _MALLOC_BYTES:
            made = f"empty({shape}, {code.name('d', dtype)})"
        else:
            made = f"{code.name('m', program.makers[k])}()"
        code(f" r{k} = {made}")
        outs.append(f"r{k}")
    inputs = [*consts, *values]
    code(f" ins = ({', '.join(inputs)}{',' if inputs else ''})")
    code(f" outs = ({', '.join(outs)}{',' if outs else ''})")
    table, function = code.name("t", program.table), code.name("f", program.function)
    tables = f"id(ins) + {_ITEMS}, id(outs) + {_ITEMS}"
    if program.arenas is not None:
        # An arena is taken from the list while it is in use: another thread gets another.
        arenas = code.name("b", program.arenas)
        code(f" try: arena = {arenas}.pop()")
        code(f" except IndexError: arena = {code.name('n', executable.new_arena)}()")
        code(f" status = {function}({tables}, arena[1], {table})")
        if executable.arena_bytes <= KEPT_ARENA:
            code(f" {arenas}.append(arena)")
    else:
        code(f" status = {function}({tables}, None, {table})")
    # An argument is not contiguous: the program's own call copies it.
    code(f" if status: {', '.join(outs) + ', = ' if outs else ''}{code.name('e', executable)}(ins)")
    results = []
    for k, aval in enumerate(entry.out_avals):
        code(f" y{k} = new(Array); y{k}._value = r{k}; y{k}._aval = {code.name('a', aval)}")
        results.append(f"y{k}")
    if len(results) == 1 and entry.out_tree.num_nodes == 1:
        code(" return y0")
        return
    build = code.name("build", entry.out_tree.builder())
    code(f" return {build}(({', '.join(results)}{',' if results else ''}))")

