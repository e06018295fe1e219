"""The late bindings of the package: what lower layers call and higher ones install.

Each has a name, a type and a default in Python; `tests/test_layers.py` finds those that stand
elsewhere. They are read by way of this module (or of `Remote` and `Sharded`), at every call, since
they may be set at any time, and by another thread. What would break it: a hook that is read under
another name (`from numjet.core.hooks import describe` would keep the default).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def _without(module: str) -> Callable:
    def missing(*_: Any, **__: Any) -> Any:
        raise NotImplementedError(f"numjet.{module} is not loaded, which does this.")

    return missing


def install(owner: type, methods: dict[str, Any]) -> None:
    """Give a class methods that a module above its own writes, instead of those it has.

    Primitive: `bind` (core.trace; with JAX's params extend.jax_params), and what libraries call
    (extend.traces). Trace: what libraries' own traces inherit (extend.traces). Zero: `instantiate`
    (core.structural). Array: operators and methods (numpy.operators), some as programs
    (numpy), those about devices (api.placement.devices) and `mat` (transforms.varying). Tracer:
    operators (numpy.operators). ArrayImpl,
    the classes of `x.at` (AtSlots, AtIndexSlots), StageTrace, StageTracer and ReplayTrace: native
    methods (native.operators, native.record). OverRefs: `bind` (core.ref_equations, once an
    equation of a reference was made). LinearTracer: native operators (native.operators).
    LinearizeTrace: `process` (native.deferral). ScalarMeta: `convert` (numpy.creation).
    """
    for name, value in methods.items():
        setattr(owner, name, value)


class Remote:
    """What a backend of other devices than the CPU installs (`xla.backend`).

    active: whether there are such devices; asked: how often the platform of a computation was asked
    for while functions were traced. A place is a tuple of devices: run(closed, args, place,
    name, donate, committed) gives Arrays on them; put(array, sharding, committed) one;
    evaluate(primitive, args, params, place) runs one operation; loaded(closed, args, place, name)
    is the program that `run` runs. within(closed, shardings) are the devices that constraints in a
    program, or shardings of its results, name; None where they are the CPU's or nobody's.
    capsule(array, ...) and dlpack_device(array) are DLPack's methods; taken(external, device, kind)
    is an Array of another library's memory on a device. defer_plan(plan, arrays) writes a plan's
    operations down and gives its result, or None.

    home(closed, args, name) runs a jaxpr on the CPU, where its arguments were put
    (`api.execution.dispatch`). choose() gives the device of computations on arrays that are nowhere
    in particular, or None for the CPU; single(device, memory_kind=...) is the sharding of one
    device (`api.placement.devices`), everywhere(devices) that of whole arrays on several
    (`api.placement.sharding`). propagated(closed, over, layouts, wanted) are the shardings of
    results over the mesh of `over`, by the partitioner; read_in(closed, over, layouts) the layouts
    in which arguments are read (`api.compiled.sharded_evaluation`).
    """

    active = False
    asked = 0
    run: Callable = _without("xla.backend")
    put: Callable = _without("xla.backend")
    evaluate: Callable = _without("xla.backend")
    loaded: Callable = _without("xla.backend")
    within: Callable = _without("xla.backend")
    capsule: Callable = _without("xla.backend")
    dlpack_device: Callable = _without("xla.backend")
    taken: Callable = _without("xla.backend")
    defer_plan: Callable = _without("xla.backend")
    home: Callable = _without("api.execution.dispatch")
    choose: Callable[[], Any] = lambda: None
    single: Callable[..., Any] = _without("api.placement.devices")
    everywhere: Callable[[tuple], Any] = _without("api.placement.sharding")
    propagated: Callable = _without("api.compiled.sharded_evaluation")
    read_in: Callable = _without("api.compiled.sharded_evaluation")
    check_context: Callable = _without("api.compiled.sharded_evaluation")


class Sharded:
    """What computes with arrays laid out over several devices (`api.compiled.sharded_evaluation`).

    active: whether there is a `ShardedArray`. marks: how many constraints were traced so far.
    memories: whether a traced value was ever put in another memory of its devices. inspects:
    whether a program ever asked where its values lie.
    reads: how often the mesh that is the current one was asked for; context(): that mesh, and
    whatever else `api.placement.mesh` keeps of it, as a key; contexts: whether there ever was one;
    placing: how many meshes of one process are the current one of some block, over which new arrays
    lie. run(closed, args, name, outs, execute, held) runs a jaxpr on arrays, outs: shardings of
    results, None where they follow; evaluate(primitive, args, params) one operation; move(x,
    sharding) gives an array of several processes another layout.
    """

    active = False
    marks = 0
    memories = inspects = False
    reads = 0
    contexts = False
    placing = 0
    context: Callable[[], Any] = lambda: None
    run: Callable = _without("api.compiled.sharded_evaluation")
    evaluate: Callable = _without("api.compiled.sharded_evaluation")
    move: Callable = _without("api.compiled.sharded_evaluation")


# `api.execution.guards` while any thread guards transfers, else None: `made`, `index`, `moved` and
# `fetched` are told of what may be one.
guards: Any = None

# The text of a jaxpr. By `core.jaxpr_print`.
print_jaxpr: Callable[[Any], str] = _without("core.jaxpr_print")

# The text of one equation. By `core.jaxpr_print`.
print_equation: Callable[[Any], str] = _without("core.jaxpr_print")


# How a jaxpr is compiled (once) and run on concrete arrays: (closed jaxpr, arrays, name) gives a
# list of Arrays. Installed by `api.execution.dispatch`.
run_compiled: Callable[[Any, tuple, str], list] = _without("api.execution.dispatch")

# One operation on large operands as a compiled function from a list of NumPy arrays to a list of
# results, or None where NumPy does it as well: (primitive, avals, params, aval or avals of the
# result). Installed by `api.execution.dispatch`.
operation: Callable[[Any, tuple, dict, Any], Callable | None] = lambda *_: None

# An operation on large or deferred operands, written down instead of run: (primitive, arrays,
# params, avals, aval or avals of the result) gives deferred arrays, or None where it is to run at
# once. Installed by `api.eager.deferral`.
defer: Callable[[Any, list, dict, tuple, Any], Any] = lambda *_: None

# Load what defers operations, where nothing did yet. By `api.eager.large`.
load_deferral: Callable[[], None] = lambda: None

# The operations of a `deferred.Plan` on arrays of its avals, written down: a deferred array, or
# None where they are to run one by one. Installed by `api.eager.deferral`.
defer_plan: Callable[[Any, Any], Any] = lambda *_: None

# Whether a `deferred.Plan` can be written down; native code knows it from then on. Installed by
# `api.eager.deferral`.
prepare: Callable[[Any], bool] = lambda _: False

# An operation like one that was deferred before (primitive, operands, params), written down, or
# None. Installed by `api.eager.deferral`.
defer_again: Callable[[Any, tuple, dict], Any] = lambda *_: None

# Evaluation of a primitive for operands of these avals is a NumPy function: (primitive, avals,
# function, aval of the result). It sets `primitive.run` to a function of the operands, which calls
# `evaluate_python` for operands it does not know. None: nothing is learned. By `native.operators`.
learn: Callable[[Any, tuple, Any, Any], None] | None = None

# Evaluation of a primitive with params, as a function of the operands, or None: (primitive, avals,
# params, aval of the result). None: Python evaluates. By `native.operators`.
executor: Callable[[Any, tuple, dict, Any], Callable | None] | None = None

# What was written down is to be known to the tables of operations: (primitive, params, plan). None:
# there are none. By `native.operators`.
learn_later: Callable[[Any, dict, Any], None] | None = None

# Writing an operation on large operands down, or (`waits`) on such of which one at least waits
# itself, as a function of the operands: (primitive, avals, params, aval of the result, waits, the
# function that evaluates it), or None. By `api.eager.deferral`.
planned: Callable[[Any, tuple, dict, Any, bool, Callable], Callable | None] = lambda *_: None

# The sharding of an aval of that many dimensions, placed so. By the package itself, which loads
# `api.placement.sharding` for it.
aval_sharding: Callable[[int, Any], Any] = lambda *_: None

# The aval or avals of an operation's results, some of the operands being placed over Explicit axes
# of a mesh: (primitive, avals, params). Raises ShardingTypeError where these do not say it. By the
# package itself, which loads `partition.explicit` for it.
placed_results: Callable[[Any, tuple, dict], Any] = lambda *_: None

# The sharding of an array of that many dimensions that nobody placed, inside of `set_mesh`; None
# elsewhere. By `api.placement.sharding`.
sharding_of_nowhere: Callable[[int], Any] = lambda _: None

# A value with another placement over Explicit axes: (value, sharding). By `api.placement.sharding`.
# An array that is put on a device, or laid out as a sharding says: (x, place). An array in another
# memory of its devices. Both by api.placement.devices.
device_put: Callable[[Any, Any], Any] = lambda x, _: x
in_memory: Callable[[Any, str], Any] = lambda x, _: x

# An array, bound to the devices where it is. By `api.placement.devices`.
bound: Callable[[Any], Any] = lambda x: x

# A result of the CPU's, on that of its devices which is the default one. By
# `api.placement.devices`.
computed_here: Callable[[Any], Any] = lambda x: x
place_again: Callable[[Any, Any], Any] = lambda x, _: x

# Memory for an array of a shape and a dtype, whose contents are undefined. By
# `api.execution.dispatch`, from the pool that programs' results are from.
new_array: Callable[[tuple[int, ...], Any], Any] = np.empty

# What a function of no arguments gives, with a layout that was asked for as `out_sharding` of the
# function that is named, where that is not the one given: by `api.placement.sharding`.
laid_out: Callable[..., Any] = lambda make, *_: make()

# A pytree of places with shardings for its PartitionSpecs: (places, what else is a leaf). By
# `api.placement.sharding`.
over_current_mesh: Callable[[Any, Callable[[Any], bool]], Any] = lambda places, _: places

# Called when a trace has become long, or an operation was evaluated that will be met again, until
# native code is there for such. By `native.operators`.
# A jaxpr without the references that are made in it (`transforms.stage`).
without_refs: Callable = _without("transforms.stage")
long_trace: Callable[[], None] | None = None

# The walk over a program's equations (`cpu.graph.forms`): (operands, equations, results, words, and
# what tells the numbers of a primitive, of params, of a literal and of an aval). None: Python does
# it. By `native.record`.
describe: Callable[..., bool | None] | None = None

# A file of the compilation cache that is as `cpu.link.folder` wants it: (directory, name, the most
# bytes) gives (content, when it was written), None where Python has to look. By `native.operators`.
read_file: Callable[[bytes, bytes, int], tuple[bytes, float] | None] = lambda *_: None

# What the transpose rule of a recorded equation makes of its cotangent, written down as it was
# before: (patterns, the current staging trace, equation, cotangent) gives the operands' cotangents,
# or None. `transforms.replay` installs its own, and `native.record` one that is native.
transposed: Callable[[Any, Any, Any, Any], Any] = lambda *_: None

# Concrete values that are to be differentiated, with new variables as their tangents, for a trace
# of `transforms.eager`: (trace, a list) gives a list, or None where Python does it. By
# `native.deferral`.
lifted: Callable[[Any, Any], list | None] = lambda *_: None

# What tells a record of linear steps from others, as `transforms.walks` says, and the residuals
# that its backward pass reads: (steps, variables, tangents, cotangents, flags, executor) gives a
# tuple, (steps, places) a list; or None where Python does it. By `native.deferral`.
record_key: Callable[..., tuple | None] = lambda *_: None
residuals: Callable[[Any, list], list | None] = lambda *_: None

# The line of the user's that called who calls this, as `core.trace.user_source` finds it; that
# module installs its own, and `native.record` one that is native.
user_line: Callable[[], Any] = lambda: None

# Called when a file's lines are none of the user's any more. By `native.record`.
lines_changed: Callable[[], None] = lambda: None

# `user_line` for native code that the user's code calls.
caller_line: Callable[[], Any] = lambda: None

# A value as a part of a sum over axes of the `shard_map` that runs. By `api.maps.shard_map`.
pending_sum: Callable[[Any, Any], Any] = lambda x, axes: x

# The mesh of the `shard_map` that runs, whose function sees its axes alone; None outside. By
# `api.maps.shard_map`.
mapped_mesh: Callable[[], Any] = lambda: None

# What a value inside of `shard_map` is printed as, of which each device has its own. By
# `api.maps.shard_map`.
member_text: Callable[[Any], str] = lambda _: "a value of each device"

# Which exception says that a traced value is not known, told by the public function on the stack
# that has it as an argument: (class, beginning of the message), or None. By `api.asked`.
asked: Callable[[], tuple[type[Exception], str] | None] = lambda: None

# What `lower(...).as_text()` shows where no dialect is named: kernels as loop IR, or "stablehlo"
# under JAX's name (as_jax).
text_dialect: Callable[[], str] = lambda: "loops"

# Called when the result of an operation holds what is no number, before that is raised. By
# `api.execution.not_finite`.
not_finite: Callable[[], None] = lambda: None

# The compilation cache for backends beside the CPU's: `digest(bytes)` gives a key, `cache_get(key)`
# bytes or None, `cache_put(key, bytes)`, `cache_damaged(key, reason)`. The module `cpu.link.link`,
# installed by `api.execution.dispatch`.
cache: Any = None
