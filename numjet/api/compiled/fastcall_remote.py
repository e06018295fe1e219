"""Calls of a compiled signature on a device of another backend, as straight Python code.

As `api.compiled.fastcall`, for programs that `Remote.loaded` gives; `api.compiled.jit_core` calls
`run`. Where all leaves are arrays that lie on the program's devices, their handles go into a
prepared frame and the results come out of it. Other calls are handed on. Calls on one device are
native code's, where there is such (`native.calls`). What would break it: a program that reads its
arguments after it was started.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numjet.api.compiled import fastcall
from numjet.base import config
from numjet.core import hooks
from numjet.core.hooks import Remote, Sharded
from numjet.core.remote import RemoteArray
from numjet.transforms.batch import axis_env


def run(core: Any, entry: Any, treedef: Any, statics: tuple, leaves: list, args: tuple,
        kwargs: dict, place: tuple) -> list:  # fmt: skip
    """A call of a jitted function that goes the complete way. The second call of a program has the
    next one take the short way: where nothing of it happens in Python, nothing is donated, and each
    leaf is where the program runs."""
    values, first = [*entry.consts, *leaves], len(entry.consts)
    donate = [i + first for i in entry.donate]
    if not place:
        results = Remote.home(entry.closed, values, entry.name)
        for i in donate:
            values[i].delete()
        return results
    short = not entry.donate and all([
        type(x) is RemoteArray and x._buffer is not None for x in leaves
    ])
    committed = core.device is not None
    outs: list = Remote.run(entry.closed, values, place, entry.name, donate, committed)
    if short and core.device is None and len(leaves) <= fastcall.MAX_LEAVES:
        loaded = Remote.loaded(entry.closed, values, outs[0]._buffer.devices if outs else place,
                               entry.name)
        loaded.calls += 1
        if loaded.calls == 2:
            _install(core, entry, treedef, statics, leaves, args, kwargs, loaded)
    return outs


def _install(core: Any, entry: Any, treedef: Any, statics: tuple, leaves: list, args: tuple,
             kwargs: dict, loaded: Any) -> None:  # fmt: skip
    state, owner = config.state[0], core._owner()
    checks = config.debug_nans, config.debug_infs, config.no_execution
    if owner is None or state < 0 or axis_env() or any([flag.value for flag in checks]):
        return
    if entry.reads_mesh and Sharded.contexts:
        return
    if loaded.module.calls or loaded.program.alone or any(
        [not isinstance(key, int) for key, *_ in statics]
    ):
        return
    if any([x._buffer is None or x._buffer.devices is not loaded.place for x in leaves]):
        return
    if not core._begin_quick(owner, state):
        return
    values, alone = {i: value for i, value, _ in statics}, loaded.program.num_devices == 1
    if core._calls is not None and alone and (
        core._calls.add(entry, treedef, values, args, kwargs, loaded)
    ):
        return
    before = owner.__call__ if core._quick > 1 or core._calls is not None else core.call
    quick = make(entry, treedef, values, leaves, len(args), before, loaded)
    if quick is not None:
        owner.__call__ = quick


def make(entry: Any, treedef: Any, statics: dict, leaves: list, n_args: int, other: Callable,
         loaded: Any) -> Callable | None:  # fmt: skip
    """The function for calls of `entry`'s signature with arguments that lie as `leaves` do; other
    calls go to `other`. None where there is no short way."""
    program = loaded.program
    code = fastcall._Code()
    code.scope.update(
        other=other, closed=entry, Remote=RemoteArray, new=RemoteArray.__new__,
        Buffer=loaded.buffer, new_buffer=loaded.buffer.__new__, made=program.client.handle_of,
        devices=program.devices, pop=program.frames.pop, push=program.frames.append,
        execute=program.execute, check=loaded.check, line=hooks.user_line, options=program.options,
        starting=program.starting, launches=program.launches, next=next, maker=program.name,
    )
    code("def call(*args, **kw):")
    code(f" if state[0] != {config.state[0]} or current() is not EVAL or axes() is not NO_AXES: "
         f"{fastcall._MISS}")
    if not fastcall._read(code, treedef, statics, n_args):
        return None
    devices, consts = program.num_devices, [c._buffer for c in loaded.on_device(entry.consts)]
    held = [code.name("c", c.handles) for c in (*loaded.consts, *consts)]
    code.name("k", consts)  # whose handles are good as long as they live
    code(" try:")
    for i, x in enumerate(leaves):
        # Deleted arrays have no buffer, and go the complete way, as do values that are no arrays.
        code(f"  b{i} = x{i}._buffer")
        placed = "" if x._sharding is None and devices == 1 else (
            f" and x{i}._sharding is {code.name('s', x._sharding)}")
        code(f"  if not (type(x{i}) is Remote and x{i}._aval is {code.name('a', x.aval)} and "
             f"b{i}.devices is devices{placed}): {fastcall._MISS}")
    handles = [*held, *[f"b{i}.handles" for i in range(len(leaves))]]
    code("  " + ("; ".join([f"h{i} = {h}" for i, h in enumerate(handles)]) or "pass"))
    code(f" except AttributeError: {fastcall._MISS}")
    code(" try: frame = pop()")
    code(f" except IndexError: frame = {code.name('n', program.new_frame)}({len(handles)})")
    code(" ref, rows, outs = frame.quick")
    ways = range(devices)
    if handles:
        code(f" {', '.join([f'i{d}' for d in ways])}, = rows")
        code("; ".join([f" i{d}[{i}] = h{i}[{d}]"
                        for d in ways for i in range(len(handles))]).replace("; ", ";"))
    if devices > 1:
        code(" with starting:")
        code("  options.launch_id = next(launches) & 0x7FFFFFFF")
    code(f"{'  ' if devices > 1 else ' '}error = execute(ref)")
    code(" if error: check(error)")
    code(f" {', '.join([f'o{d}' for d in ways])}, = outs")
    code(" source = line()")
    shardings, results = loaded.shardings_out(leaves), []
    for k, (aval, sharding) in enumerate(zip(entry.out_avals, shardings, strict=True)):
        code(f" r{k} = new_buffer(Buffer); r{k}.devices = devices; r{k}.source = source; "
             f"r{k}.maker = maker; "
             f"r{k}.handles = ({', '.join([f'made(o{d}[{k}])' for d in ways])},)")
        placed = "" if sharding is None else f"; y{k}._sharding = {code.name('s', sharding)}"
        aval = aval if sharding is None else aval.over(sharding)
        code(f" y{k} = new(Remote); y{k}._buffer = r{k}; "
             f"y{k}._aval = {code.name('a', aval)}{placed}")
        results.append(f"y{k}")
    code(" push(frame)")
    if len(results) == 1 and entry.out_tree.num_nodes == 1:
        code(" return y0")
    else:
        build = code.name("build", entry.out_tree.builder())
        code(f" return {build}(({', '.join(results)}{',' if results else ''}))")
    exec(compile("\n".join(code.lines) + "\n", "<numjet call>", "exec"), code.scope)
    return code.scope["call"]
