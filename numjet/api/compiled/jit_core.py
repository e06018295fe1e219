"""What a jitted function does: it finds or makes the program of a call's signature, and runs it.

For `api.compiled.jit`, whose functions each hold a `JitCore`, and for what traces as they do
(`api.compiled.abstract`, `api.eager.prebuilt`). A signature is the structure of the arguments, the
aval of each leaf, the static values and the flags that change tracing. `JitCore.call` is the way
that every call can take; under another transformation the call becomes one `jit` equation. What
would break it: something that tracing reads and that is no part of the key.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import importlib
import types
import weakref
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

from numjet.api.compiled import fastcall
from numjet.api.compiled.jit_arguments import (
    NoValue,
    argument_array,
    aval_of_spec,
    check_donated,
    entry_over,
    hashable,
    incomparable,
    keep_over,
    meshes_of,
    note_kinds,
    output,
    positional_tree,
    positional_trees,
    rejoined,
    says_more,
    told_of,
    warn_unusable,
    without_values,
)
from numjet.api.compiled.stage_info import check_compiler_options, expected
from numjet.api.compiled.stages import Entry, Traced, of_another
from numjet.api.execution import dispatch
from numjet.api.placement.devices import CpuDevice, in_memories
from numjet.api.placement.placements import ORDERS
from numjet.api.placement.shape_struct import ShapeDtypeStruct
from numjet.base import config, log, spans, tracebacks, tree
from numjet.base.spans import recorders
from numjet.base.tree_registry import LEAF_TYPES
from numjet.base.undisturbed import undisturbed
from numjet.core import hi, hooks
from numjet.core.array import Array, ArrayImpl
from numjet.core.avals import ShapedArray
from numjet.core.debug_info import Tracing, argument_names
from numjet.core.hooks import Remote, Sharded
from numjet.core.jaxpr import HELD, eval_jaxpr, note_form
from numjet.core.memo import Memo
from numjet.core.refs import Ref, RefUse
from numjet.core.remote import platform_of, target, traced_for
from numjet.core.sharded import ShardedArray, any_sharded
from numjet.core.shared import NOTHING_MANUAL, Flow, Shared
from numjet.core.trace import EVAL, Tracer, current_trace
from numjet.native import calls as fastcall_native
from numjet.ops.bodies import name_of
from numjet.ops.constraint import result_memories
from numjet.ops.jit_call import jit_p
from numjet.transforms.batch import axis_env as named_axes
from numjet.transforms.stage import has_tracers, hoist_consts, stage
from numjet.transforms.varying import along

_FORM = config.jax_equations
# Signatures of one function that get code of their own.
MAX_QUICK = 8
# Signatures of one function that are kept; each takes some 30 KB.
MAX_SIGNATURES = 1024


def _nobody() -> None:
    """The owner of a core that was made for tracing alone."""


# Functions seen before, so that jit(f) made twice traces once.
programs_of: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def _over_mesh() -> bool:
    """Whether results lie over the mesh of `set_mesh` where no argument lies elsewhere."""
    return bool(Sharded.placing) and hooks.sharding_of_nowhere(0) is not None


def may_be_quick(entry: Entry, leaves: list) -> bool:
    """Whether calls such as the present one may be prebuilt."""
    if config.state[0] < 0 or named_axes() or config.numeric_checks[0]:
        return False
    if entry.reads_mesh and Sharded.contexts or _over_mesh():
        return False
    return fastcall.has_short_form(entry, leaves)


@functools.cache
def jit_layouts() -> Any:
    """`api.compiled.jit_layouts`, which few programs need."""
    return importlib.import_module("numjet.api.compiled.jit_layouts")


def _refs() -> Any:
    """`api.compiled.refs`, which few programs need."""
    return importlib.import_module("numjet.api.compiled.refs")


class JitCore:
    """What a jitted function knows: its options, and a program for each signature.

    It does not refer to the `JitFunction` around it, nor do the calls generated for it, so a
    jitted function that nobody holds is gone at once.
    """

    def __init__(
        self,
        fun: Callable,
        static_argnums: tuple[int, ...],
        static_argnames: tuple[str, ...],
        donate_argnums: tuple[int, ...],
        donate_argnames: tuple[str, ...],
    ) -> None:
        self._fun = fun
        self._owner: Callable[[], Any] = _nobody
        self._quick_state, self._quick = -1, 0
        self._calls: Any = None
        self.device: Any = None  # that `jit` was told
        self.device_of_jit = False  # whether that is a CPU's, to which arguments come
        self.inline = self.keep_unused = False  # written in place while another is staged
        self.tells = False  # whether it is explained why it is traced
        self.layouts: tuple = (None, None)  # in_shardings and out_shardings
        self.layout_trees: tuple | None = None  # both as given; None where there are none
        self.orders = False  # whether they say how arrays lie in memory
        # Of `pjit`: what enters the mesh of `with mesh:`, None where there is none to enter.
        self.within_mesh: Any = None
        self.compiler_options: Any = None
        self._with_refs: dict = {}  # by which arguments are references
        self._static_argnums, self._static_argnames = static_argnums, static_argnames
        self._donate_argnums, self._donate_argnames = donate_argnums, donate_argnames
        self._plain = not (static_argnums or static_argnames or donate_argnums or donate_argnames)
        self._name = name_of(fun)
        self._entries = self._memo_of(None)

    def _memo_of(self, trees: Any) -> Memo:
        """The signatures of all that was jitted of this function with the same options; `trees`:
        the structure of in_shardings and out_shardings, which are checked once a signature."""
        options = (self._static_argnums, self._static_argnames, self._donate_argnums,
                   self._donate_argnames, trees)  # fmt: skip
        try:
            known = programs_of.setdefault(self._fun, {})
            entries = known.get(options)
            return known.setdefault(options, self._memo()) if entries is None else entries
        except TypeError:  # not hashable or not weakly referenceable: a cache of its own
            return self._memo()

    def keep_with(self, fun: Any, key: tuple) -> None:
        """Keep the programs with `fun`, of which this one's function is a form that `key` tells, so
        that they are found by whoever makes the form anew."""
        with contextlib.suppress(TypeError):  # not hashable or not weakly referenceable
            self._entries = programs_of.setdefault(fun, {}).setdefault(key, self._entries)

    def _memo(self) -> Memo:
        return Memo(f"programs of {self._name}", MAX_SIGNATURES, passing=True)

    @tracebacks.is_boundary
    def call(self, *args: Any, **kwargs: Any) -> Any:
        """The complete way of a call."""
        try:
            try:
                return self._call(args, kwargs)
            except NoValue:
                given = without_values(self, args, kwargs)
            return self._call(*given)
        except Exception as error:
            tracebacks.hide(error)
            raise

    def _call(self, args: tuple, kwargs: dict) -> Any:
        if config.disable_jit.value:
            return self._fun(*args, **kwargs)
        if self.within_mesh is not None and (entered := self.within_mesh()) is not None:
            with entered:
                return self.call(*args, **kwargs)
        statics, leaves, treedef = self._flatten(args, kwargs)
        given = list(leaves)
        avals, traced, sharded = [], current_trace() is not EVAL, False
        for i, x in enumerate(leaves):
            if type(x) is not ArrayImpl:
                if isinstance(x, Tracer):
                    traced = True
                elif type(x) is ShardedArray:
                    sharded = True
                elif type(x) is Ref:
                    return _refs().call_with_refs(self, statics, given, treedef)
                elif type(x) in hi.TYPES:
                    return _refs().call_with_values(self, statics, given, treedef)
                else:
                    x = leaves[i] = argument_array(self, x, i, treedef)
            avals.append(x.aval)
        if self.layouts[0] is not None:  # axes of type Explicit are a part of avals
            jit_layouts().lay_out(self, leaves, treedef, args, kwargs)
            avals = [x.aval for x in leaves]
        flows = along(leaves) if traced and Shared.axes.get() else {}
        known = sharded or self.layouts[0] is not None
        meshes = None if traced else meshes_of(told_of(leaves)) if known else ()
        entry = self._entry(
            statics, avals, treedef, args, kwargs, flows, self._platform(leaves), meshes)
        if entry.shares and traced and Shared.axes.get():  # which only their traces tell
            return self._fun(*args, **kwargs)
        if entry.use is not None:
            return _refs().call_closed_over(self, entry, leaves, args, kwargs)
        if not traced:
            note_kinds(entry, given)
        told = {}
        if traced and _FORM.uses and (config.jax_form() if says_more(self) else _FORM.value):
            told = jit_layouts().in_equation(self, entry, treedef, args, kwargs)
        if self.layouts != (None, None):
            traced |= has_tracers(entry.consts)
            outs = jit_layouts().call(self, entry, leaves, traced, told)
        elif traced or has_tracers(entry.consts):
            Sharded.marks += entry.mesh_inside
            if self.inline and current_trace().staging is current_trace():
                note_form(entry.closed)
                outs = eval_jaxpr(entry.closed.jaxpr, [], *entry.consts, *leaves)
                return tree.tree_unflatten(entry.out_tree, outs)
            outs = jit_p.bind(*entry.consts, *leaves, jaxpr=entry.closed, name=entry.name, **told)
        elif entry.memories is not None:
            outs = in_memories(jit_layouts().run(self, entry, leaves, None), entry.memories)
        elif (place := self._place_for(entry, leaves)) is not None:
            calls = importlib.import_module("numjet.api.compiled.fastcall_remote")
            outs = calls.run(self, entry, treedef, statics, leaves, args, kwargs, place)
        elif sharded or entry.mesh_inside or Sharded.placing and _over_mesh():
            outs = jit_layouts().run(self, entry, leaves, None)
        else:
            if dispatch.arrived(leaves) and self._quick and (owner := self._owner()) is not None:
                return owner(*args, **kwargs)  # which takes the short way now
            if entry.calls and entry.executable.measured <= dispatch.ASYNC_ABOVE:
                self._make_quick(entry, treedef, statics, given, args, kwargs)
            outs = self._execute(entry, leaves, given)
        return entry.unflatten(outs)

    def _entry(
        self, statics: tuple, avals: Sequence[ShapedArray], treedef: Any, args: tuple, kwargs: dict,
        flows: dict[Any, Flow] | None = None, platform: str = "cpu", meshes: Any = None,
    ) -> Entry:
        """The function traced for a signature, now or before. flows: what of the arguments varies
        along the axes of shard_maps around, a part of it. platform: where it will run. meshes: the
        axes that arguments lie over; None: traced ones do not tell."""
        key: Any = (
            treedef, tuple(avals), statics, config.trace_key(), tuple(named_axes().items()),
            meshes or (), Shared.axes.get(),
            *[(name, tuple(flow.given)) for name, flow in (flows or {}).items()],
        )  # fmt: skip
        try:
            entry = entry_over(meshes, self._entries, key)
        except Exception as error:
            raise incomparable(self._name, statics, error) from error
        if entry is not None and entry.reads_mesh:
            if Sharded.contexts and entry.context != (context := Sharded.context()):
                key = (*key, context)
                entry = self._entries.get(key)
            Sharded.reads += 1
        if entry is not None and entry.platform is not None:
            if entry.platform != platform:
                key = (*key, platform)
                entry = self._entries.get(key)
            Remote.asked += 1
        if entry is None or entry.use is not None and not entry.use.current():
            given_away = functools.partial(self._donated, args, kwargs, statics)
            entry = of_another(self, programs_of, meshes, key, given_away)
            if entry is None:
                if config.explain_cache_misses.value and self.tells:
                    explain = importlib.import_module("numjet.api.compiled.cache_misses").explain
                    known, names = list(self._entries), functools.partial(self._arg_names, treedef)
                    log.logger().warning(explain(self._fun, self._name, key, known, names))
                before, asked = traced_for.set(platform), Remote.asked
                try:
                    entry = self._trace(statics, avals, treedef, args, kwargs, flows or {})
                finally:
                    traced_for.reset(before)
                entry.platform = platform if Remote.asked != asked else None
            if not has_tracers(entry.consts) and (entry.use is None or _refs().lasting(entry.use)):
                keep_over(meshes, self._entries, key, entry)
        return entry

    def _make_quick(
        self, entry: Entry, treedef: Any, statics: tuple, leaves: list, args: tuple, kwargs: dict
    ) -> None:
        """Have the owner's next call of this signature take the short way."""
        state, owner = config.state[0], self._owner()
        if owner is None or not may_be_quick(entry, leaves):
            return
        if self.within_mesh is not None and Sharded.contexts:  # the next call may be in one
            return
        if not self._begin_quick(owner, state):
            return
        values = {i: value for i, value, _ in statics}
        if self._calls is not None:
            self._calls.add(entry, treedef, values, args, kwargs)
            return
        before = owner.__call__ if self._quick > 1 else self.call
        quick = fastcall.make(entry, treedef, values, leaves, len(args), before)
        if quick is not None:
            owner.__call__ = quick

    def _begin_quick(self, owner: Any, state: int) -> bool:
        """Make ready for one more prebuilt call under the flags as they are; False where there are
        enough of them."""
        if state != self._quick_state:
            calls = fastcall_native.Calls() if fastcall_native.usable() else None
            if calls is not None:
                owner.__call__ = calls.function(self.call)
            # The state last, by which other threads know that the rest is there.
            self._calls, self._quick, self._quick_state = calls, 0, state
        self._quick += 1
        return self._quick <= MAX_QUICK

    def _platform(self, leaves: list) -> str:
        """The platform that a call with these arguments belongs to."""
        if not Remote.active:
            return "cpu"
        device = self.device
        return platform_of(leaves, self._name) if device is None else device.client.platform

    def _place_for(self, entry: Entry, leaves: list) -> tuple | None:
        """The devices of another backend that this call runs on, or None; () where an argument was
        put on the CPU."""
        if not Remote.active or self.device is not None:
            return None if isinstance(self.device, CpuDevice | None) else (self.device,)
        inside = Remote.within(entry.closed) if entry.mesh_inside else None
        found = target((*entry.consts, *leaves), entry.name)
        return found or inside or found

    def _execute(self, entry: Entry, leaves: list, given: Sequence[Any] = ()) -> list:
        executable = entry.executable
        if executable is None:
            n = len(entry.consts)
            executable = dispatch.compiled(
                entry.closed, entry.name, tuple([i + n for i in entry.donate])
            )
            entry.executable = executable
            if entry.asked:
                warn_unusable(entry)
        if (
            entry.calls >= dispatch.TIMED_CALLS
            and executable.measured > dispatch.ASYNC_ABOVE
            and not entry.donate
            and dispatch.may_wait(executable)
        ):
            return dispatch.submit(executable, [*entry.consts, *leaves], entry.out_avals, given)
        if entry.donate:
            check_donated(leaves, entry.donate)
        values = [x._value for x in (*entry.consts, *leaves)]
        for i in entry.donate:
            k = i + len(entry.consts)
            if config.numeric_checks[0]:  # a failed program is evaluated once more
                values[k] = values[k].copy()
                continue
            if not leaves[i]._give_up():
                leaves[i]._value  # noqa: B018 - another thread was faster: raises
            if dispatch.is_shared(values, k):
                values[k] = values[k].copy()
        start = perf_counter()
        if recorders:
            results = spans.during("program", f"jit({entry.name})", executable, values)
        else:
            results = executable(values)
        executable.measured = min(executable.measured, perf_counter() - start)
        entry.calls += 1
        outs = dispatch.wrap(results, entry.closed, [*entry.consts, *leaves], entry.name)
        for i in entry.donate:
            leaves[i].delete()
        return outs

    # ---------------------------------------------------------------- signatures
    def _flatten(self, args: tuple, kwargs: dict) -> tuple[Any, list, Any]:
        """Static values (as part of the key), dynamic leaves and their structure."""
        if hi.TYPES:
            args, kwargs = hi.lower((args, kwargs))
        if self._plain:
            if not kwargs and LEAF_TYPES.issuperset(map(type, args)):
                return (), list(args), positional_tree(len(args))
            leaves, treedef = tree.tree_flatten((args, kwargs))
            return (), leaves, treedef
        statics, dynamic, kw = self._split(args, kwargs)
        leaves, treedef = tree.tree_flatten((dynamic, kw))
        return statics, leaves, treedef

    def _split(self, args: tuple, kwargs: dict) -> tuple[tuple, tuple, dict]:
        n = len(args)
        nums = {i % n if -n <= i < n else i for i in self._static_argnums} if n else set()
        statics: list[tuple[Any, Any, type]] = []  # with the type, since 1 == 1.0 == True
        for i in sorted(nums):
            if i < n:
                value = hashable(args[i], f"argument number {i}", self._name)
                statics.append((i, value, type(value)))
        for name in self._static_argnames:
            if name in kwargs:
                value = hashable(kwargs[name], f"argument {name!r}", self._name)
                statics.append((name, value, type(value)))
        dynamic = tuple([x for i, x in enumerate(args) if i not in nums])
        return (
            tuple(statics),
            dynamic,
            {k: v for k, v in kwargs.items() if k not in self._static_argnames},
        )

    def _donated(self, args: tuple, kwargs: dict, statics: tuple) -> tuple[int, ...]:
        """Indices of donated leaves among the dynamic ones."""
        if not (self._donate_argnums or self._donate_argnames):
            return ()
        static_nums = {k for k, *_ in statics if isinstance(k, int)}
        n, marks = len(args), []
        donate = {i % n for i in self._donate_argnums if -n <= i < n} if n else set()
        dynamic = tuple(
            [
                tree.tree_map(lambda _, d=(i in donate): d, x)
                for i, x in enumerate(args)
                if i not in static_nums
            ]
        )
        kw = {
            k: tree.tree_map(lambda _, d=(k in self._donate_argnames): d, v)
            for k, v in kwargs.items()
            if k not in self._static_argnames
        }
        marks = tree.tree_leaves((dynamic, kw))
        return tuple([i for i, m in enumerate(marks) if m])

    def _arg_names(self, treedef: Any) -> list[str]:
        return argument_names(self._fun, self._static_argnums, treedef)

    def _trace(
        self, statics: tuple, avals: Sequence[ShapedArray], treedef: Any, args: tuple, kwargs: dict,
        flows: dict[Any, Flow],
    ) -> Entry:
        out_tree: list = []
        alone = not statics and treedef is positional_trees.get(len(avals))

        def flat(*leaves: Any) -> list[Any]:
            if alone:
                out = self._fun(*leaves)
            else:
                positional, kw = rejoined(statics, *tree.tree_unflatten(treedef, leaves))
                out = self._fun(*positional, **kw)
            outs, structure = tree.tree_flatten(hi.lower(out))
            out_tree.append(structure)
            return [
                x if isinstance(x, Array) else output(x, self._name, structure, i)
                for i, x in enumerate(outs)
            ]

        native = isinstance(self._fun, types.MethodDescriptorType)
        if self._owner() is not None and not native:
            weakref.ref(self._fun)  # TypeError where programs could not be kept with the function
        if self.compiler_options is not None:
            check_compiler_options(self.compiler_options, self._name)
        if config.no_tracing.value:
            raise RuntimeError(
                f"re-tracing function {self._name} for `jit`, but 'no_tracing' is set."
            )
        start, asks = perf_counter(), config.asked.forms
        with undisturbed:  # garbage collections among the equations are half of tracing
            use, marks = RefUse(reads=True, reshapes=True, behind=True), Sharded.marks
            reads, context, shares = Sharded.reads, Sharded.context(), Shared.here.unknown
            outermost = current_trace().staging is None  # of others nothing is told
            with spans.span("trace", self._name) if outermost else contextlib.nullcontext():
                traced = Tracing(self._fun, "jit", treedef, static=self._static_argnums)
                jaxpr, consts = stage(flat, avals, self._name, traced, use, flows, True)
        dispatch.keep_apart(consts)
        jaxpr.debug = traced.told(out_tree[0])
        log.compiling(
            config.log_compiles.value and outermost, "Finished tracing %s for jit in %.6f sec",
            self._name, perf_counter() - start,
        )  # fmt: skip
        if self.layout_trees is not None:
            _, dynamic, kw = self._split(args, kwargs)
            jit_layouts().check_prefixes(self, dynamic, kw, treedef, out_tree[0])
        donated = self._donated(args, kwargs, statics)
        entry = Entry(hoist_consts(jaxpr), consts, out_tree[0], self._name, donated, use)
        if consts and not has_tracers(consts):
            entry.closed.cache[HELD] = len(consts)
        entry.note_form(jaxpr, bool(_FORM.value))
        config.asked.restore(asks)  # a call of it has a form of its own
        entry.mesh_inside = Sharded.marks != marks or any_sharded(consts)
        if entry.mesh_inside and Sharded.memories:
            kinds = result_memories(entry.closed)
            if self.layout_trees is not None and self.layout_trees[1] is not None:
                kinds = jit_layouts().not_told(self, entry.out_tree, kinds)
            entry.memories = kinds if any(kinds) else None
        entry.reads_mesh, entry.context = Sharded.reads != reads, context
        entry.shares = Shared.here.unknown != shares
        entry.flows = (flows, jaxpr) if flows else None
        return entry

    # ---------------------------------------------------------------- stages
    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """The jaxpr for these arguments (arrays or ShapeDtypeStructs)."""
        if self.within_mesh is not None and (entered := self.within_mesh()) is not None:
            with entered:
                return self.trace(*args, **kwargs)
        statics, leaves, treedef = self._flatten(args, kwargs)
        if Ref in [*map(type, leaves)]:
            return _refs().trace_with_refs(self, statics, leaves, treedef)
        avals, flows = [*map(aval_of_spec, leaves)], {}
        if Shared.axes.get():
            flows = along([x if isinstance(x, Tracer) else a for x, a in zip(leaves, avals)])
        avals = [a.update_manual_axis_type(NOTHING_MANUAL) for a in avals]
        platform, told = self._platform(leaves), told_of(leaves)
        meshes = meshes_of(told)
        entry = self._entry(statics, avals, treedef, args, kwargs, flows, platform, meshes)
        place, found = self._place_for(entry, leaves), expected(told)
        conflict = None
        if self.layouts != (None, None):
            found, conflict = jit_layouts().told(self, entry, leaves, treedef, args, kwargs, found)
        if Sharded.placing:
            found = jit_layouts().over_context(found, avals)
        if Remote.active and self.device is None:
            place = Remote.within(entry.closed, found) or place
        again = None
        if not config.jax_equations.value:  # flags and axes are context variables
            again = functools.partial(
                contextvars.copy_context().run, self._in_jax_equations, statics, avals, treedef,
                flows, platform, meshes,
            )  # fmt: skip
        traced = Traced(entry, treedef, self, place or None, found, again, conflict)
        others = [x for x in leaves if type(x) is not ArrayImpl]  # arrays tell no layout
        if self.orders or ORDERS or any([getattr(x, "layout", None) for x in others]):
            traced.orders = jit_layouts().orders_told(self, leaves, args, kwargs, treedef)
        traced.complete(told)
        return traced

    def _in_jax_equations(
        self, statics: tuple, avals: Sequence[ShapedArray], treedef: Any, *rest: Any
    ) -> Entry:
        """The entry in the equations that JAX writes. It is not kept which values were passed."""
        leaves = [ShapeDtypeStruct.like(a) for a in avals]
        args, kwargs = rejoined(statics, *tree.tree_unflatten(treedef, leaves))
        with config.jax_equations(True):
            return self._entry(statics, avals, treedef, tuple(args), kwargs, *rest)
