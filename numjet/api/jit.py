"""`jit`: trace once for each signature, compile, and call native code.

A signature is the structure of the arguments, the aval of each leaf, the static values and the
flags that change tracing. `JitFunction.__call__` is the way every call takes; under another
transformation the call becomes one `jit` equation.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import types
import weakref
from collections.abc import Callable, Iterable, Sequence
from time import perf_counter
from typing import Any

from numjet.api import dispatch, fastcall
from numjet.api.devices import CpuDevice, asks_nothing, devices
from numjet.api.flat import check_callable, wraps
from numjet.api.shape_struct import ShapeDtypeStruct
from numjet.api.stage_info import Described, MemoryStats, Placed, executable, execute
from numjet.base import config, tree
from numjet.base.tree_registry import LEAF_TYPES
from numjet.core import memo
from numjet.core.array import Array, ArrayImpl, as_array
from numjet.core.avals import ShapedArray
from numjet.core.dtypes import canonical
from numjet.core.jaxpr import ClosedJaxpr
from numjet.core.memo import Memo
from numjet.core.refs import AbstractRef, Ref, RefUse, refuse_returned
from numjet.core.remote import Device, Remote, target
from numjet.core.spread import Spread, SpreadArray
from numjet.core.trace import EVAL, Tracer, current_trace
from numjet.cpu.link.jobs import undisturbed
from numjet.native import calls as fastcall_native
from numjet.ops.jit_call import jit_p
from numjet.transforms.batch import Axis, axis_env as named_axes, extend_axis_env
from numjet.transforms.stage import has_tracers, hoist_consts, stage


class Entry:
    """What is known of one signature of a jitted function."""

    __slots__ = (
        "closed", "consts", "out_tree", "out_avals", "name", "executable", "donate", "calls", "use",
        "mesh_inside",
    )

    def __init__(
        self,
        closed: ClosedJaxpr,
        consts: list,
        out_tree: Any,
        name: str,
        donate: tuple,
        use: RefUse | None = None,
    ) -> None:
        self.closed, self.consts, self.out_tree, self.name = closed, consts, out_tree, name
        self.out_avals = closed.out_avals
        self.donate = donate
        self.executable: Any = None
        self.calls = 0  # that were timed
        # References that the function closes over: arguments behind the others; None: there are
        # none.
        self.use = use if use is not None and use.refs else None
        self.mesh_inside = False  # whether it says itself how values are laid out over devices


# Signatures of one function that get code of their own.
MAX_QUICK = 8
# Signatures of one function that are kept; each takes some 30 KB.
MAX_SIGNATURES = 1024


def _nobody() -> None:
    """The owner of a core that was made for tracing alone."""


# Functions seen before, so that jit(f) made twice traces once.
_shared: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


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
        self.layouts: tuple = (None, None)  # in_shardings and out_shardings
        self._with_refs: dict = {}  # by which arguments are references
        self._static_argnums, self._static_argnames = static_argnums, static_argnames
        self._donate_argnums, self._donate_argnames = donate_argnums, donate_argnames
        self._plain = not (static_argnums or static_argnames or donate_argnums or donate_argnames)
        self._name = getattr(fun, "__name__", type(fun).__name__)
        options = (static_argnums, static_argnames, donate_argnums, donate_argnames)
        try:
            known = _shared.setdefault(fun, {})
            entries = known.get(options)
            if entries is None:
                entries = known.setdefault(options, self._memo())
            self._entries = entries
        except TypeError:  # not hashable or not weakly referenceable: a cache of its own
            self._entries = self._memo()

    def _memo(self) -> Memo:
        return Memo(f"programs of {self._name}", MAX_SIGNATURES, passing=True)

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """The complete way of a call."""
        if config.disable_jit.value:
            return self._fun(*args, **kwargs)
        statics, leaves, treedef = self._flatten(args, kwargs)
        given = list(leaves)
        avals, traced, spread = [], current_trace() is not EVAL, False
        for i, x in enumerate(leaves):
            if type(x) is not ArrayImpl:
                if isinstance(x, Tracer):
                    traced = True
                elif type(x) is SpreadArray:
                    spread = True
                elif type(x) is Ref:
                    return _refs().call_with_refs(self, statics, given, treedef)
                else:
                    x = leaves[i] = self._as_array(x, i, treedef)
            avals.append(x.aval)
        key = (treedef, tuple(avals), statics, config.trace_key(), tuple(named_axes().items()))
        entry = self._entries.get(key)
        if entry is None:
            entry = self._trace(statics, avals, treedef, args, kwargs)
            if not has_tracers(entry.consts) and (entry.use is None or _refs().lasting(entry.use)):
                self._entries[key] = entry
        if entry.use is not None:
            return _refs().call_closed_over(self, entry, leaves)
        if self.layouts != (None, None):
            traced |= has_tracers(entry.consts)
            outs = _layouts().call(self, entry, leaves, treedef, args, kwargs, traced)
        elif traced or has_tracers(entry.consts):
            Spread.marks += entry.mesh_inside
            outs = jit_p.bind(*entry.consts, *leaves, jaxpr=entry.closed, name=entry.name)
        elif (place := self._place_for(entry, leaves)) is not None:
            calls = importlib.import_module("numjet.api.fastcall_remote")
            outs = calls.run(self, entry, treedef, statics, leaves, len(args), place)
        elif spread or entry.mesh_inside:
            outs = _layouts().run(self, entry, leaves, None)
        else:
            if dispatch.arrived(leaves) and self._quick and (owner := self._owner()) is not None:
                return owner(*args, **kwargs)  # which takes the short way now
            if entry.calls and entry.executable.measured <= dispatch.ASYNC_ABOVE:
                self._make_quick(entry, treedef, statics, given, args, kwargs)
            outs = self._execute(entry, leaves, given)
        return tree.tree_unflatten(entry.out_tree, outs)

    def _make_quick(
        self, entry: Entry, treedef: Any, statics: tuple, leaves: list, args: tuple, kwargs: dict
    ) -> None:
        """Have the owner's next call of this signature take the short way."""
        state, owner = config.state[0], self._owner()
        if owner is None or state < 0 or named_axes() or config.numeric_checks[0]:
            return
        if not fastcall.has_short_form(entry, statics, leaves):
            return
        if state != self._quick_state:
            self._quick_state, self._quick = state, 0
            self._calls = None
            if fastcall_native.usable():
                self._calls = fastcall_native.Calls()
                owner.__call__ = self._calls.function(self.call)
        if self._quick >= MAX_QUICK:
            return
        self._quick += 1
        values = {i: value for i, value, _ in statics}
        if self._calls is not None:
            self._calls.add(entry, treedef, values, args, kwargs)
            return
        before = owner.__call__ if self._quick > 1 else self.call
        quick = fastcall.make(entry, treedef, values, leaves, len(args), before)
        if quick is not None:
            owner.__call__ = quick

    def _place_for(self, entry: Entry, leaves: list) -> tuple | None:
        """The devices of another backend that this call runs on, or None."""
        if not Remote.active or self.device is not None:
            return None if isinstance(self.device, CpuDevice | None) else (self.device,)
        inside = Remote.within(entry.closed) if entry.mesh_inside else None
        return target((*entry.consts, *leaves), entry.name) or inside

    def _execute(
        self, entry: Entry, leaves: list, given: Sequence[Any] = (), donated: bool = True
    ) -> list:
        executable = entry.executable
        if not donated and entry.donate:
            return dispatch.run(entry.closed, [*entry.consts, *leaves], entry.name)
        if executable is None:
            n = len(entry.consts)
            executable = dispatch.compiled(
                entry.closed, entry.name, tuple([i + n for i in entry.donate])
            )
            entry.executable = executable
        if (
            entry.calls >= dispatch.TIMED_CALLS
            and executable.measured > dispatch.ASYNC_ABOVE
            and not entry.donate
            and dispatch.may_wait(executable)
        ):
            return dispatch.submit(executable, [*entry.consts, *leaves], entry.out_avals, given)
        values = [x._value for x in (*entry.consts, *leaves)]
        for i in entry.donate:
            i += len(entry.consts)
            if dispatch.is_shared(values, i):
                values[i] = values[i].copy()
        start = perf_counter()
        results = executable(values)
        executable.measured = min(executable.measured, perf_counter() - start)
        entry.calls += 1
        outs = dispatch.wrap(results, entry.out_avals, entry.name)
        for i in entry.donate:
            leaves[i].delete()
        return outs

    # ---------------------------------------------------------------- signatures
    def _flatten(self, args: tuple, kwargs: dict) -> tuple[Any, list, Any]:
        """Static values (as part of the key), dynamic leaves and their structure."""
        if self._plain:
            if not kwargs and LEAF_TYPES.issuperset(map(type, args)):
                return (), list(args), _positional(len(args))
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
                value = _hashable(args[i], f"argument number {i}", self._name)
                statics.append((i, value, type(value)))
        for name in self._static_argnames:
            if name in kwargs:
                value = _hashable(kwargs[name], f"argument {name!r}", self._name)
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

    def _as_array(self, x: Any, position: int, treedef: Any) -> ArrayImpl:
        try:
            return as_array(x)
        except TypeError:
            name = self._arg_names(treedef)[position]
            raise TypeError(
                f"jit({self._name}): argument {name} is {x!r} of type {type(x).__name__}, which is "
                "no array, scalar or "
                "pytree of them. Mark it as static with static_argnums or static_argnames (it must "
                "then be hashable)."
            ) from None

    def _arg_names(self, treedef: Any) -> list[str]:
        """`x`, `params['w']`, ... for each dynamic leaf."""
        args, kwargs = tree.tree_unflatten(treedef, range(treedef.num_leaves))
        names = [f"args[{i}]" for i in range(len(args))]
        try:
            parameters = [
                p
                for p in inspect.signature(self._fun).parameters.values()
                if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
            ]
            keep = [p.name for i, p in enumerate(parameters) if i not in self._static_argnums]
            names[: len(keep)] = keep[: len(args)]
        except (ValueError, TypeError):
            pass  # no signature to read (a builtin): positions serve as names
        out = []
        for name, value in [*zip(names, args, strict=False), *kwargs.items()]:
            out += [name + tree.keystr(path) for path, _ in tree.tree_flatten_with_path(value)[0]]
        return out

    def _trace(
        self, statics: tuple, avals: Sequence[ShapedArray], treedef: Any, args: tuple, kwargs: dict
    ) -> Entry:
        static_args = {k: v for k, v, _ in statics if isinstance(k, int)}
        static_kwargs = {k: v for k, v, _ in statics if isinstance(k, str)}
        out_tree: list = []
        alone = not statics and treedef is _positionals.get(len(avals))

        def flat(*leaves: Any) -> list[Any]:
            if alone:
                out = self._fun(*leaves)
            else:
                dynamic, kw = tree.tree_unflatten(treedef, leaves)
                positional = list(dynamic)
                for i in sorted(static_args):
                    positional.insert(i, static_args[i])
                out = self._fun(*positional, **kw, **static_kwargs)
            outs, structure = tree.tree_flatten(out)
            out_tree.append(structure)
            return [
                x if isinstance(x, Array) else _output(x, self._name, structure, i)
                for i, x in enumerate(outs)
            ]

        if config.no_tracing.value:
            raise RuntimeError(
                f"re-tracing function {self._name} for `jit`, but 'no_tracing' is set."
            )
        if config.explain_cache_misses.value:
            dispatch.logger.warning(
                "TRACING CACHE MISS of %s: no program for arguments %s, static values %s and these "
                "flags.", self._name, ", ".join(a.str_short() for a in avals), statics,
            )
        with undisturbed:  # looking for cycles among the equations would be half of all tracing
            use, marks = RefUse(reads=True), Spread.marks
            jaxpr, consts = stage(flat, avals, self._name, lambda: self._arg_names(treedef), use)
        donated = self._donated(args, kwargs, statics)
        entry = Entry(hoist_consts(jaxpr), consts, out_tree[0], self._name, donated, use)
        entry.mesh_inside = Spread.marks != marks
        return entry

    # ---------------------------------------------------------------- stages
    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """The jaxpr for these arguments (arrays or ShapeDtypeStructs)."""
        statics, leaves, treedef = self._flatten(args, kwargs)
        avals = [_aval_of_spec(x) for x in leaves]
        entry = self._trace(statics, avals, treedef, args, kwargs)
        return Traced(entry, treedef, self, self._place_for(entry, leaves))


class JitFunction:
    """A function compiled for each signature it is called with. `__call__` is found in the object:
    at first the complete way, then code generated for the signatures that come again."""

    # Libraries (chex) tell jitted functions by this word in the type's name.
    __qualname__ = "PjitFunction"
    __slots__ = ("__call__", "__dict__", "__weakref__")

    def __init__(
        self,
        fun: Callable,
        static_argnums: tuple[int, ...],
        static_argnames: tuple[str, ...],
        donate_argnums: tuple[int, ...],
        donate_argnames: tuple[str, ...],
    ) -> None:
        functools.update_wrapper(self, fun)
        core = JitCore(fun, static_argnums, static_argnames, donate_argnums, donate_argnames)
        core._owner = weakref.ref(self)
        self._core = core
        self.__call__ = core.call

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """The jaxpr of a compiled function for arguments: a Traced.

        args, kwargs: pytrees of arrays or ShapeDtypeStructs; static arguments as they are.

        >>> import numjet as nj
        >>> print(nj.jit(lambda x: x * 2).trace(1.0).jaxpr)
        { lambda ; a:f32[]. let b:f32[] = mul a 2.0:f32[] in (b,) }
        """
        return self._core.trace(*args, **kwargs)

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """A compiled function for arguments, before machine code is made: a Lowered.

        args, kwargs: pytrees of arrays or ShapeDtypeStructs; static arguments as they are.
        `.as_text()` shows the kernels, `.compile()` goes on.

        >>> import numjet as nj
        >>> nj.jit(lambda x: x * 2).lower(1.0).compile()(3.0)
        Array(6., dtype=float32, weak_type=True)
        """
        return self._core.trace(*args, **kwargs).lower()

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Shapes and dtypes of a compiled function's result, without computing it.

        args, kwargs: pytrees of arrays or ShapeDtypeStructs. Result: ShapeDtypeStructs.

        >>> import numjet as nj, numjet.numpy as jnp
        >>> nj.jit(jnp.sum).eval_shape(jnp.ones(3))
        ShapeDtypeStruct(shape=(), dtype=float32)
        """
        return self._core.trace(*args, **kwargs).out_info

    def clear_cache(self) -> None:
        """Forget every signature of a compiled function: the next call traces it again.

        >>> import numjet as nj
        >>> f = nj.jit(lambda x: x * 2)
        >>> f.clear_cache()
        """
        self._core._entries.clear()
        config.changed()

    def _cache_size(self) -> int:
        return len(self._core._entries)

    @property
    def __signature__(self) -> inspect.Signature:
        """What `inspect.signature` gives: the parameters of the function."""
        return inspect.signature(self._core._fun)

    def __repr__(self) -> str:
        return f"<jit of {self._core._fun!r}>"

    def __reduce__(self) -> Any:
        return str(self.__dict__["__qualname__"])


# By how many they are: the structure of arguments that are leaves by position.
_positionals: dict[int, Any] = {}


def _positional(n: int) -> Any:
    found = _positionals.get(n)
    if found is None:
        # A few at once: the first takes 40 us, those right after it a few each.
        for count in range(n, n + 4):
            if count not in _positionals:
                _positionals[count] = tree.tree_structure(((0,) * count, {}))
        found = _positionals[n]
    return found


def _output(x: Any, name: str, structure: Any, i: int) -> Any:
    refuse_returned(x, f"function {name} traced for jit")
    try:
        return as_array(x)
    except TypeError:
        marked = tree.tree_unflatten(structure, range(structure.num_leaves))
        path = tree.keystr(tree.tree_flatten_with_path(marked)[0][i][0])
        raise TypeError(
            f"jit({name}): output{path} is {x!r} of type {type(x).__name__}. A jitted function "
            "returns arrays, "
            "scalars and pytrees of them."
        ) from None


def _layouts() -> Any:
    """`api.jit_layouts`, which few programs need."""
    return importlib.import_module("numjet.api.jit_layouts")


def _refs() -> Any:
    """`api.refs`, which few programs need."""
    return importlib.import_module("numjet.api.refs")


def _hashable(x: Any, what: str, name: str) -> Any:
    try:
        hash(x)
    except TypeError:
        raise ValueError(
            f"jit({name}): static {what} is not hashable: {x!r} of type {type(x).__name__}. Static "
            "arguments are "
            "part of the compilation key; pass a tuple, a frozen dataclass or a string instead."
        ) from None
    return x


def _aval_of_spec(x: Any) -> ShapedArray:
    if isinstance(x, ShapeDtypeStruct):
        return ShapedArray(x.shape, x.dtype, x.weak_type)
    if isinstance(x, ShapedArray):
        return x
    if isinstance(x, Array):
        return x.aval
    if hasattr(x, "shape") and hasattr(x, "dtype") and not hasattr(x, "__array__"):
        return ShapedArray(tuple(x.shape), canonical(x.dtype))
    return as_array(x).aval


class Traced(Described):
    """A function traced for one signature: `.jaxpr`, `.out_info`, `.lower()`.

    >>> import numjet as nj
    >>> traced = nj.jit(lambda x: x * 2).trace(1.0)
    >>> traced.out_info
    ShapeDtypeStruct(shape=(), dtype=float32, weak_type=True)
    """

    in_tree: Any = None  # its own, of which the other stages tell

    def __init__(self, entry: Entry, in_tree: Any, fun: JitCore, place: Any = None) -> None:
        self._entry, self.in_tree, self._fun, self.place = entry, in_tree, fun, place
        self._traced = self
        self.fun_name = entry.name

    @property
    def jaxpr(self) -> ClosedJaxpr:
        """The jaxpr, closed."""
        jaxpr, n = self._entry.closed.jaxpr, len(self._entry.consts)
        if not n:
            return self._entry.closed
        return ClosedJaxpr(
            jaxpr.replace(constvars=jaxpr.invars[:n], invars=jaxpr.invars[n:]), self._entry.consts
        )

    @property
    def out_info(self) -> Any:
        """Shapes and dtypes of the result."""
        return tree.tree_unflatten(
            self._entry.out_tree,
            [
                ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type)
                for a in self._entry.out_avals
            ],
        )

    @property
    def out_avals(self) -> Any:
        """The aval of each result."""
        return tree.tree_unflatten(self._entry.out_tree, self._entry.out_avals)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run for arguments of this signature, compiling first."""
        return self.lower().compile()(*args, **kwargs)

    def lower(self, **_: Any) -> Lowered:
        """The traced function as kernels: a Lowered.

        >>> import numjet as nj
        >>> type(nj.jit(lambda x: x * 2).trace(1.0).lower()).__name__
        'Lowered'
        """
        return Lowered(self)


class Lowered(Described):
    """A traced function cut into kernels: `.as_text()`, `.compile()`.

    >>> import numjet as nj
    >>> lowered = nj.jit(lambda x: x * 2).lower(1.0)
    >>> lowered.out_info
    ShapeDtypeStruct(shape=(), dtype=float32, weak_type=True)
    """

    def __init__(self, traced: Traced) -> None:
        self._traced = traced
        self._executable: Any = None

    def _get(self) -> Any:
        if self._executable is None:
            self._executable = executable(self._traced)
        return self._executable

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """The kernels as text of the loop IR, in the order they run.

        dialect: "jaxpr" gives the jaxpr instead, "stablehlo" what a device of XLA would run.
        debug_info adds nothing: no lines of the source are named.

        >>> import numjet as nj
        >>> print(nj.jit(lambda x: x * 2).lower(1.0).as_text("jaxpr"))
        { lambda ; a:f32[]. let b:f32[] = mul a 2.0:f32[] in (b,) }
        """
        if dialect == "jaxpr":
            return str(self._traced.jaxpr)
        if dialect == "stablehlo":
            hlo = importlib.import_module("numjet.xla.hlo")
            return hlo.module_text(self._traced.jaxpr, self._traced.fun_name)
        if dialect is not None:
            raise NotImplementedError(
                f"as_text: there is no dialect {dialect!r} here. Leave it out for the kernels as "
                "loop IR, or pass 'jaxpr' or 'stablehlo'; compile().as_text() gives LLVM IR."
            )
        return self._get().kernels_text()

    def compiler_ir(self, dialect: str | None = None) -> Any:
        """The jaxpr (dialect "jaxpr"), or the kernels as text; there is no MLIR."""
        return self._traced.jaxpr if dialect == "jaxpr" else self.as_text(dialect)

    def compile(self, compiler_options: Any = None) -> Compiled:
        """Machine code for this signature: a Compiled, which is called with arguments of it.

        compiler_options: for the backend; the CPU's has none.

        >>> import numjet as nj
        >>> nj.jit(lambda x: x * 2).lower(1.0).compile()(3.0)
        Array(6., dtype=float32, weak_type=True)
        """
        return Compiled(self._traced, self._get())

    def cost_analysis(self) -> dict:
        """An estimate of one call: {"flops": ..., "bytes accessed": ...}.

        >>> import numjet as nj
        >>> nj.jit(lambda x: x * 2).lower(1.0).cost_analysis()
        {'flops': 1.0, 'bytes accessed': 8.0}
        """
        return self._get().cost_analysis()

    @property
    def out_info(self) -> Any:
        """Shapes and dtypes of the result."""
        return self._traced.out_info


class Compiled(Placed):
    """Machine code for one signature. Call it with arguments of that signature.

    >>> import numjet as nj
    >>> compiled = nj.jit(lambda x: x * 2).lower(1.0).compile()
    >>> compiled(3.0)
    Array(6., dtype=float32, weak_type=True)
    """

    def __init__(self, traced: Traced, executable: Any) -> None:
        self._traced, self._executable = traced, executable

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        fun, entry = self._traced._fun, self._traced._entry
        _, leaves, treedef = fun._flatten(args, kwargs)
        if treedef != self._traced.in_tree:
            raise TypeError(
                f"Compiled {entry.name} was made for arguments {self._traced.in_tree}, got "
                f"{treedef}. Lower and "
                "compile again for another structure."
            )
        values = [x if isinstance(x, Array) else as_array(x) for x in leaves]
        want = entry.closed.in_avals[len(entry.consts) :]
        for i, (x, a) in enumerate(zip(values, want, strict=True)):
            if x.aval.shape != a.shape or x.aval.dtype != a.dtype:
                raise TypeError(
                    f"Compiled {entry.name} was made for {a.str_short()} as argument "
                    f"{fun._arg_names(treedef)[i]}, got {x.aval.str_short()}. Lower and compile "
                    "again."
                )
        if has_tracers(values):
            raise TypeError(
                f"Compiled {entry.name} cannot be transformed. Apply grad or vmap to the jitted "
                "function and "
                "compile the result."
            )
        outs = execute(self._traced, values)
        return tree.tree_unflatten(entry.out_tree, outs)

    def as_text(self, kind: str = "llvm") -> str:
        """The program as LLVM IR, or as assembly.

        kind: "llvm" or "assembly".

        >>> import numjet as nj
        >>> "define" in nj.jit(lambda x: x * 2).lower(1.0).compile().as_text()
        True
        """
        if kind not in ("llvm", "assembly"):
            raise ValueError(f"as_text: kind must be 'llvm' or 'assembly', got {kind!r}.")
        return self._executable.assembly() if kind == "assembly" else self._executable.llvm_text()

    def cost_analysis(self) -> dict:
        """An estimate of one call: {"flops": ..., "bytes accessed": ...}.

        >>> import numjet as nj
        >>> nj.jit(lambda x: x * 2).lower(1.0).compile().cost_analysis()
        {'flops': 1.0, 'bytes accessed': 8.0}
        """
        return self._executable.cost_analysis()

    def memory_analysis(self) -> Any:
        """Bytes of arguments, outputs, temporaries and generated code.

        >>> import numjet as nj
        >>> nj.jit(lambda x: x * 2).lower(1.0).compile().memory_analysis()["output_size_in_bytes"]
        4
        """
        return MemoryStats(self._executable.memory_analysis())

    def runtime_executable(self) -> Any:
        """The executable itself: what the runtime calls."""
        return self._executable


def _as_tuple(x: Any, kind: type) -> tuple:
    if x is None:
        return ()
    return (x,) if isinstance(x, kind) else tuple(x)


def jit(
    fun: Callable | None = None,
    /,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    device: Any = None,
    backend: str | None = None,
    inline: bool = False,
    in_shardings: Any = None,
    out_shardings: Any = None,
    compiler_options: Any = None,
) -> Any:
    """Compile `fun` into one native program for each signature of its arguments.

    fun: pure, from pytrees of arrays to pytrees of arrays; left out, the result is a decorator. It
    is traced once for each combination of structure, shapes, dtypes, weak types and layouts of the
    arguments. static_argnums, static_argnames: arguments that are Python values (hashable), for
    each of which it is traced anew. donate_argnums, donate_argnames: arguments whose memory the
    results may take over; they cannot be used afterwards (RuntimeError). keep_unused: pass
    arguments that the program does not read. in_shardings, out_shardings: layouts of arguments and
    results, pytree prefixes. device, backend: where to run, instead of where the arguments are.
    inline: no call of its own within another program. compiler_options: for the backend.

    The returned function has `.trace`, `.lower` (ahead of time) and `.eval_shape`. Differentiation
    and `vmap` pass through it. Raises ValueError for static values that are not hashable,
    TracerBoolConversionError and its family where Python needs the value of a traced array.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> print(nj.jit(lambda x: jnp.sum(x * 2.0))(jnp.ones(3)))
    6.0
    >>> @nj.jit(static_argnames="n")
    ... def power(x, n):
    ...     return x ** n
    >>> print(power(3.0, n=2))
    9.0
    """
    del keep_unused, inline, compiler_options
    layouts = tuple([None if asks_nothing(s) else s for s in (in_shardings, out_shardings)])
    if device is not None and not isinstance(device, Device):
        raise RuntimeError(f"Unknown device {device!r}. numjet.devices() lists the devices.")
    if device is None and backend not in (None, "cpu"):
        device = devices(backend)[0]
    nums, names = _as_tuple(static_argnums, int), _as_tuple(static_argnames, str)
    donate_nums, donate_names = _as_tuple(donate_argnums, int), _as_tuple(donate_argnames, str)

    both = static_argnums is not None and static_argnames is not None
    both_donated = donate_argnums is not None and donate_argnames is not None

    def make(f: Callable) -> JitFunction:
        check_callable("jit", f)
        statics = _resolve(f, nums, names, both)
        donated = _resolve(f, donate_nums, donate_names, both_donated)
        for static, given in zip(statics, donated, strict=True):
            if not set(static).isdisjoint(given):
                raise ValueError(
                    f"jit: arguments {sorted(set(static) & set(given))} are both static and "
                    "donated. Static arguments have no buffer to give away."
                )
        made = JitFunction(f, *statics, *donated)
        made._core.device, made._core.layouts = device, layouts
        return made

    return make if fun is None else make(fun)


def _resolve(
    fun: Callable, nums: tuple, names: tuple, both: bool = False
) -> tuple[tuple, tuple]:
    """Numbers and names; where only one of them was given (not `both`), the other follows from it
    by the function's signature."""
    if not nums and not names:
        return (), ()
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (ValueError, TypeError):
        return nums, names
    by_name = {p.name: i for i, p in enumerate(parameters)}
    positional = [p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters]
    variadic = any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters)
    for name in names:
        if name not in by_name and not variadic:
            raise ValueError(
                f"jit: {getattr(fun, '__name__', fun)} has no argument named {name!r}; it has "
                f"{list(by_name)}."
            )
    for i in nums:
        if not variadic and not -len(parameters) <= i < len(parameters):
            raise ValueError(
                f"jit: {getattr(fun, '__name__', fun)} has no argument number {i}; it has "
                f"{len(parameters)}."
            )
    all_nums = {i % len(parameters) if i < 0 else i for i in nums}
    if both:
        return tuple(sorted(all_nums)), tuple(sorted(set(names)))
    all_nums |= {by_name[n] for n in names if n in by_name and positional[by_name[n]]}
    all_names = set(names) | {
        parameters[i].name
        for i in all_nums
        if i < len(parameters)
        and parameters[i].kind in (parameters[i].POSITIONAL_OR_KEYWORD, parameters[i].KEYWORD_ONLY)
    }
    return tuple(sorted(all_nums)), tuple(sorted(all_names))


def make_jaxpr(
    fun: Callable,
    static_argnums: int | Iterable[int] = (),
    axis_env: Sequence[tuple[Any, int]] | None = None,
    return_shape: bool = False,
) -> Callable:
    """A function that returns the jaxpr of `fun` for its arguments: what tracing makes of it.

    static_argnums: arguments that are Python values. axis_env: (name, size) of each axis that
    collectives in `fun` may name. return_shape: return the pair of the jaxpr and the output's
    ShapeDtypeStructs. Arguments may be arrays, numbers or ShapeDtypeStructs. The result is a
    ClosedJaxpr (`.jaxpr`, `.consts`, `.in_avals`, `.out_avals`).

    >>> import numjet as nj, numjet.numpy as jnp
    >>> print(nj.make_jaxpr(jnp.sin)(1.0))
    { lambda ; a:f32[]. let b:f32[] = sin a in (b,) }
    """
    check_callable("make_jaxpr", fun)
    nums = _as_tuple(static_argnums, int)

    @wraps(fun)
    def maker(*args: Any, **kwargs: Any) -> Any:
        core = JitCore(fun, *_resolve(fun, nums, ()), (), ())
        if axis_env:
            with contextlib.ExitStack() as stack:
                for axis, size in axis_env:
                    stack.enter_context(extend_axis_env(Axis(size, axis)))
                traced = core.trace(*args, **kwargs)
        else:
            traced = core.trace(*args, **kwargs)
        return (traced.jaxpr, traced.out_info) if return_shape else traced.jaxpr

    return maker


def eval_shape(fun: Callable, *args: Any, **kwargs: Any) -> Any:
    """Structure, shapes and dtypes of `fun(*args, **kwargs)`, without computing it.

    args, kwargs: pytrees of arrays, or of objects with `shape` and `dtype` such as
    ShapeDtypeStruct. Result: the output's pytree with ShapeDtypeStructs as leaves. `fun` is traced:
    what it raises, TypeErrors for shapes that do not fit among it, arrives.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> nj.eval_shape(jnp.sum, nj.ShapeDtypeStruct((2, 3), "float32"))
    ShapeDtypeStruct(shape=(), dtype=float32)
    """
    check_callable("eval_shape", fun)
    given: list[Any] = []  # a ShapeDtypeStruct that the function returns is its own answer
    refs = [isinstance(x, Ref) for x in tree.tree_leaves((args, kwargs))]

    @wraps(fun)
    def values(*args: Any, **kwargs: Any) -> Any:
        if any(refs):
            traced, structure = tree.tree_flatten((args, kwargs))
            args, kwargs = structure.unflatten(
                [Ref(AbstractRef(x.aval), x) if r else x for x, r in zip(traced, refs, strict=True)]
            )
        leaves, treedef = tree.tree_flatten(fun(*args, **kwargs))
        given[:] = [x if isinstance(x, ShapeDtypeStruct) else None for x in leaves]
        return treedef.unflatten(
            [x if s is None else False for x, s in zip(leaves, given, strict=True)]
        )

    leaves, treedef = tree.tree_flatten(
        JitFunction(values, (), (), (), ()).trace(*args, **kwargs).out_info
    )
    return treedef.unflatten([x if s is None else s for x, s in zip(leaves, given, strict=True)])


def clear_caches() -> None:
    """Forget every traced and compiled function, and every shortcut that was learned
    (`debug.memos`).

    What was compiled is traced and built again at its next call (the disk cache stays). For tests
    and measurements; nothing needs it to be correct.

    >>> import numjet as nj
    >>> nj.clear_caches()
    """
    # Taken at once: other threads may add functions meanwhile.
    for fun in [alive for known in _shared.keyrefs() if (alive := known()) is not None]:
        for entries in list(_shared.get(fun, {}).values()):
            entries.clear()
    memo.clear()
    config.changed()
