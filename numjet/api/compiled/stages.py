"""What is kept of a signature of a jitted function, and the stages of compiling it ahead of time:
`Traced`, `Lowered`, `Compiled`.

`api.compiled.jit_core` makes an `Entry` for each signature and a `Traced` of it; the others follow
from that. Public as `numjet.stages`. What would break it: a `fun` without the methods of `JitCore`
that flatten arguments, name them and run a program.
"""

from __future__ import annotations

import copy
import functools
import importlib
import math
from collections.abc import Callable
from typing import Any

from numjet.api.compiled.jit_arguments import entry_over, usable
from numjet.api.compiled.stage_info import (
    CompiledMemoryStats,
    Described,
    Placed,
    assigned,
    check_compiler_options,
    check_over_axes,
    executable,
    execute,
    meshes_of_results,
    one_device,
    over_axes,
)
from numjet.api.execution.costs import cost_analysis
from numjet.api.placement.devices import SingleDeviceSharding
from numjet.api.placement.mesh import get_abstract_mesh
from numjet.api.placement.shape_struct import ShapeDtypeStruct
from numjet.api.placement.sharding import NamedSharding, PartitionSpec
from numjet.base import config, tree
from numjet.core import dtypes, hi, hooks
from numjet.core.array import Array, as_array
from numjet.core.debug_info import of_jitted, stand_in
from numjet.core.hooks import Sharded
from numjet.core.jaxpr import ASKED, CALLS, FORM, HELD, HELD_VALUES, ClosedJaxpr, Jaxpr, bare
from numjet.core.refs import Ref, RefUse
from numjet.core.shared import Shared
from numjet.core.structural import given_out
from numjet.core.trace import Tracer
from numjet.transforms.varying import manual_results


class Entry:
    """What is known of one signature of a jitted function."""

    __slots__ = (
        "closed", "consts", "out_tree", "out_avals", "name", "executable", "asked", "donate",
        "calls", "use", "mesh_inside", "memories", "reads_mesh", "context", "shares", "flows",
        "platform", "called", "met", "meshes", "without_values",
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
        # The arguments whose memory was given away, and those of them that a result can lie in:
        # only these are deleted.
        self.asked = donate
        self.donate = usable(closed, len(consts), donate) if donate else ()
        self.executable: Any = None
        # Kinds of arguments that it was run with, by itself; the last of them by their identities.
        self.called: set[tuple] = set()
        self.met: dict[tuple, tuple] = {}
        self.meshes: tuple | None = None  # the axes that arguments lay over; None: nobody knows
        self.calls = 0  # that were timed
        # References that the function closes over: arguments behind the others; None: there are
        # none.
        self.use = use if use is not None and use.refs else None
        self.memories: list | None = None  # the kinds that its results are put in
        self.mesh_inside = False  # whether it says itself how values are laid out over devices
        # Whether the function asked for the current mesh, and what that was.
        self.reads_mesh, self.context = False, None
        # The platform that it was traced for, where the function asked for that.
        self.platform: str | None = None
        # Whether results have dtype float0, which are NumPy arrays to who called.
        self.without_values = dtypes.float0 in [a.dtype for a in self.out_avals]
        self.shares = False  # whether it takes gradients of what members of an axis may share
        # What of the arguments varied inside of shard_map, with the jaxpr as it was traced.
        self.flows: tuple[dict, Jaxpr] | None = None

    def note_form(self, jaxpr: Jaxpr, form: bool) -> None:
        """The form that the function was traced in, and what follows of it for the other one.
        jaxpr: as it was staged."""
        self.closed.cache[FORM] = form
        for name in {ASKED, CALLS} & jaxpr.cache.keys():
            self.closed.cache[name] = jaxpr.cache[name]
        if HELD in self.closed.cache and CALLS in jaxpr.cache:
            self.closed.cache[HELD_VALUES] = self.consts

    @property
    def depends(self) -> bool:
        """Whether it holds for the mesh, the platform or the members around it alone."""
        return bool(
            self.reads_mesh or self.platform is not None or self.shares or self.flows
            or self.mesh_inside
        )

    def unflatten(self, outs: list) -> Any:
        """The results as the function returns them."""
        if self.without_values:
            outs = given_out(outs)
        return tree.tree_unflatten(self.out_tree, outs)


def of_another(
    core: Any, shared: Any, meshes: Any, key: tuple, donated: Callable[[], tuple]
) -> Entry | None:
    """The entry of a key that follows from one of the same function in the other form, or with
    other arguments given away (of which `donated` tells the places), or None. shared: the programs
    of all functions, by function and options."""
    own = core._entries
    if own and (entry := of_other_form(own, meshes, key)) is not None:
        return entry
    try:
        known = shared.get(core._fun, {})
    except TypeError:  # not hashable or not weakly referenceable
        return None
    for options, entries in list(known.items()) if len(known) > 1 else ():
        if entries is own or len(options) != 5 or options[4] is not None or not entries:
            continue
        other = entry_over(meshes, entries, key) or of_other_form(entries, meshes, key)
        if other is not None and other.use is None and not other.depends:
            if own is known.get((*options[:2], core._donate_argnums, core._donate_argnames, None)):
                return Entry(other.closed, other.consts, other.out_tree, other.name, donated())
    return None


def of_other_form(entries: Any, meshes: Any, key: tuple) -> Entry | None:
    """The entry of a key that follows from one that was traced in the other form, JAX's or ours,
    or None."""
    other = entry_over(meshes, entries, (*key[:3], config.key_in_other_form(key[3]), *key[4:]))
    if other is None or other.use is not None or other.depends:
        return None
    forms = importlib.import_module("numjet.transforms.forms")
    found = forms.in_form(other.closed, other.consts, bool(config.jax_equations.value))
    return found and Entry(found[0], found[1], other.out_tree, other.name, other.asked)


class Traced(Described):
    """A function traced for one signature: `.jaxpr`, `.out_info`, `.lower()`.

    >>> import numjet as nj
    >>> traced = nj.jit(lambda x: x * 2).trace(1.0)
    >>> traced.out_info
    ShapeDtypeStruct(shape=(), dtype=float32, weak_type=True)
    """

    in_tree: Any = None  # its own, of which the other stages tell

    def __init__(
        self, entry: Entry, in_tree: Any, fun: Any, place: Any = None, layouts: Any = (),
        again: Callable[[], Entry] | None = None, conflict: str | None = None,
    ) -> None:  # fmt: skip
        """again: traces once more, in the equations that JAX writes; None: these are they.
        conflict: why it cannot be lowered."""
        self._entry, self.in_tree, self._fun, self.place = entry, in_tree, fun, place
        self._again, self._conflict = again, conflict
        # The sharding of each argument that was told, or that it had; None where there was none.
        self.layouts = layouts
        # The shardings that were asked for the results, None for those that follow; None where none
        # was.
        self.results: list | None = None
        self._over_axes: list = []
        # How each argument lies in memory, where somebody asked; None: row by row.
        self.orders: list = [None] * len(layouts)
        self.one: Any = None  # the sharding of the one device that it is bound to
        # References among the arguments, by their places: what they hold is the program's argument,
        # and what they hold at the end are results behind the others.
        self.refs: dict[int, Ref] = {}
        self.fun_name = entry.name

    @property
    def _traced(self) -> Traced:  # type: ignore[override] # an attribute of the other stages
        return self  # an attribute would be a cycle of references

    @functools.cached_property
    def jaxpr(self) -> ClosedJaxpr:
        """The jaxpr, closed, in the equations that JAX writes, for which the function is traced
        once more. `program` is what runs."""
        return self.program if self._again is None else self._closed(self._again())

    @property
    def program(self) -> ClosedJaxpr:
        """The jaxpr that runs, closed."""
        return self._closed(self._entry)

    def _closed(self, entry: Entry) -> ClosedJaxpr:
        closed, n = entry.closed, len(entry.consts)
        refs = [] if entry.use is None else entry.use.shown
        if n or refs:
            ins = closed.jaxpr.invars
            last = len(ins) - len(refs)
            jaxpr = closed.jaxpr.replace(constvars=[*ins[:n], *ins[last:]], invars=ins[n:last])
            closed = ClosedJaxpr(jaxpr, [*entry.consts, *refs])
        if Sharded.contexts:
            closed.jaxpr.cache["context"] = entry.context
        if type(closed.jaxpr.debug) in (str, type(None)):
            fun = self._fun
            closed.jaxpr.debug = functools.partial(  # made when it is asked for
                of_jitted, stand_in(fun._fun), fun._static_argnums, self.in_tree, entry.out_tree,
            )  # fmt: skip
        return closed

    @property
    def out_info(self) -> Any:
        """Shapes and dtypes of the result, and the shardings that it was asked for."""
        found = [ShapeDtypeStruct.like(a) for a in self._own_avals()]
        if get_abstract_mesh().are_all_axes_explicit:  # what is cut nowhere says so, too
            whole = [a.sharding for a in self._own_avals()]
        else:
            meshes = meshes_of_results(self._entry, self.layouts)[: len(found)]  # then references
            whole = [
                m if m is None else NamedSharding(m, PartitionSpec(*(None,) * len(x.shape)))
                for x, m in zip(found, meshes, strict=True)
            ]
        found = [
            x if sharding is None or getattr(a, "placed", self) is not None
            else x.update(sharding=sharding)
            for x, a, sharding in zip(found, self._own_avals(), whole, strict=True)
        ]  # fmt: skip
        told, trees = self.results, self._fun.layout_trees
        if told is None and trees is not None and isinstance(trees[1], SingleDeviceSharding):
            told = [trees[1]] * len(found)  # which asks for nothing, and is told all the same
        if told is not None:
            found = [x if s is None else x.update(sharding=s)
                     for x, s in zip(found, told, strict=True)]  # fmt: skip
        return hi.types_of(tree.tree_unflatten(self._entry.out_tree, found))

    def complete(self, told: list) -> None:
        """Look up the shardings that were asked for the results, in the mesh that is current, and
        which arguments were told to lie over axes alone. told: the arguments' shardings."""
        self._over_axes = over_axes(told)
        if self._fun.layouts[1] is not None:
            layouts = importlib.import_module("numjet.api.compiled.jit_layouts")
            self.results = layouts.of_results(self._fun, self._entry.out_tree)
        if self.place is None:
            self.one = one_device(told, self.layouts, self.results, self._entry)
            if self.one is not None:
                self.layouts = [s or self.one for s in self.layouts]

    @property
    def out_avals(self) -> Any:
        """The aval of each result."""
        return tree.tree_unflatten(self._entry.out_tree, self._own_avals())

    def _own_avals(self) -> list:
        """Those of the results, without what references hold at the end."""
        avals = self._entry.out_avals[: self._entry.out_tree.num_leaves]
        if self._entry.flows is None or not Shared.axes.get():
            return avals
        manual = manual_results(*self._entry.flows, self._entry.consts)
        return [a.update_manual_axis_type(m) for a, m in zip(avals, manual)]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run for arguments of this signature, compiling first."""
        return self.lower().compile()(*args, **kwargs)

    def lower(self, *, lowering_platforms: Any = None, **_: Any) -> Lowered:
        """The traced function as kernels: a Lowered.

        lowering_platforms: names of platforms; needed where arguments were told to lie over the
        axes of an AbstractMesh alone, without an effect else.

        >>> import numjet as nj
        >>> type(nj.jit(lambda x: x * 2).trace(1.0).lower()).__name__
        'Lowered'
        """
        if self._conflict is not None:
            raise ValueError(self._conflict)
        for effect in self._entry.closed.effects:
            if refused := getattr(effect, "refused", ""):
                raise ValueError(refused)
        told = [s for s in [*self.layouts, *(self.results or ())] if hasattr(s, "layout")]
        check_over_axes(self._over_axes, told, lowering_platforms)
        if told or self._entry.mesh_inside:
            check = importlib.import_module("numjet.api.compiled.sharded_evaluation").check_devices
            for over in told or [None]:
                check(self._entry.closed, over, self.fun_name)
        return Lowered(self)


class Lowered(Described):
    """A traced function cut into kernels: `.as_text()`, `.compile()`.

    >>> import numjet as nj
    >>> lowered = nj.jit(lambda x: x * 2).lower(1.0)
    >>> lowered.out_info
    ShapeDtypeStruct(shape=(), dtype=float32)
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

        dialect: "loops" are these; "jaxpr" gives the jaxpr instead, "stablehlo" what a device of
        XLA would run, which under JAX's name (as_jax) is shown where no dialect is named.
        debug_info adds nothing: no lines of the source are named.

        >>> import numjet as nj
        >>> print(nj.jit(lambda x: x * 2).lower(1.0).as_text("jaxpr"))
        { lambda ; a:f32[]. let b:f32[] = mul a 2.0:f32[] in (b,) }
        """
        dialect = hooks.text_dialect() if dialect is None else dialect
        if dialect == "jaxpr":
            return str(self._traced.program)
        if dialect == "stablehlo":
            traced = self._traced
            return importlib.import_module("numjet.xla.shown").shown(
                traced.program, traced.fun_name, traced._entry.out_tree, traced._entry.asked,
                traced._fun.keep_unused,
            )
        if dialect != "loops":
            mistake = NotImplementedError if dialect == "hlo" else ValueError
            raise mistake(
                f"as_text: there is no dialect {dialect!r} here. Pass 'loops' for the kernels as "
                "loop IR, 'jaxpr' or 'stablehlo'; compile().as_text() gives LLVM IR."
            )
        return self._get().kernels_text()

    def compiler_ir(self, dialect: str | None = None) -> Any:
        """The jaxpr (dialect "jaxpr"), or the kernels as text; there is no MLIR."""
        return self._traced.program if dialect == "jaxpr" else self.as_text(dialect)

    def compile(
        self, compiler_options: Any = None, *, device_assignment: Any = None
    ) -> Compiled:
        """Machine code for this signature: a Compiled, which is called with arguments of it.

        compiler_options: a dictionary of XLA's, which change nothing here; JaxRuntimeError for
        other names. device_assignment: the devices in the order of the mesh, where arguments were
        told to lie over axes alone (RuntimeError without), else those that follow from the
        arguments (ValueError for others).

        >>> import numjet as nj
        >>> nj.jit(lambda x: x * 2).lower(1.0).compile()(3.0)
        Array(6., dtype=float32, weak_type=True)
        """
        check_compiler_options(compiler_options)
        traced = self._traced
        if traced._over_axes or device_assignment is not None:
            traced = copy.copy(traced)
            traced.layouts = assigned(self._traced, device_assignment)
        return Compiled(traced, self._get())

    def cost_analysis(self) -> dict:
        """An estimate of one call: {"flops": ..., "transcendentals": ..., "bytes accessed": ...}.

        It is told from the jaxpr, so nothing is compiled: bytes are of each operation by itself.

        >>> import numjet as nj
        >>> nj.jit(lambda x: x * 2).lower(1.0).cost_analysis()
        {'flops': 1.0, 'bytes accessed': 12.0}
        """
        return cost_analysis(self._traced.program.jaxpr)

    @property
    def out_info(self) -> Any:
        """Shapes and dtypes of the result, over the mesh of the arguments. What runs knows no weak
        types."""
        over = next((s.mesh for s in self._traced.layouts if hasattr(s, "mesh")), None)

        def told(x: Any) -> Any:
            x = x.update(weak_type=False)
            if over is None or getattr(x.sharding, "mesh", None) != over.abstract_mesh:
                return x
            return x.update(sharding=x.sharding.update(mesh=over))

        return tree.tree_map(told, self._traced.out_info)


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
        leaves, treedef = tree.tree_flatten(hi.lower((args, kwargs)))
        if treedef != self._traced.in_tree:
            raise TypeError(
                "Function compiled with input pytree does not match the input pytree it was "
                f"called with: {entry.name} was compiled for {self._traced.in_tree}, got "
                f"{treedef}. Lower and compile again for another structure."
            )
        refs: list[Any] = [leaves[i] for i in self._traced.refs]
        for i in self._traced.refs:
            leaves[i] = leaves[i].value() if isinstance(leaves[i], Ref) else leaves[i]
        values = [x if isinstance(x, Array) else as_array(x) for x in leaves]
        want = entry.closed.in_avals[len(entry.consts) :]
        for x in values:
            if isinstance(x, Tracer):
                raise TypeError(
                    "Cannot apply JAX transformations to a function lowered and compiled for a "
                    f"particular signature. Detected argument of Tracer type {type(x)}: apply grad "
                    f"or vmap to the jitted function {entry.name} and compile the result."
                )
        other = [
            f"Argument '{name}' compiled with {a.str_short()} and called with "
            f"{x.aval.str_short()}"
            for name, x, a in zip(fun._arg_names(treedef), values, want)
            if x.aval.shape != a.shape or x.aval.dtype != a.dtype
        ] if [x.aval for x in values] != want[: len(values)] else []  # fmt: skip
        if other:
            raise TypeError(
                "Argument types differ from the types for which this computation was compiled "
                f"({entry.name}). Lower and compile again. The mismatches are:\n"
                + "\n".join(other)
            )
        if entry.use is not None:
            values, refs = [*values, *entry.use.values()], [*refs, *entry.use.written]
        outs = execute(self._traced, values)
        if refs:
            n = len(outs) - len(refs)
            for ref, value in zip(refs, outs[n:], strict=True):
                if isinstance(ref, Ref):  # else an array, which is not changed
                    ref.put_back(value)
            outs = outs[:n]
        return entry.unflatten(outs)

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
        """An estimate of one call: {"flops": ..., "transcendentals": ..., "bytes accessed": ...}.

        Bytes are what the compiled kernels read and write. On devices of XLA: what XLA tells. Of
        arguments over several devices: what one of these does.

        >>> import numjet as nj
        >>> nj.jit(lambda x: x * 2).lower(1.0).compile().cost_analysis()
        {'flops': 1.0, 'bytes accessed': 8.0}
        """
        told = self._executable.cost_analysis()
        if self._traced.place is not None:
            return told
        own = self._of_a_device()
        if own is not None:
            return cost_analysis(own.closed.jaxpr)
        moved = told["bytes accessed"]
        return {**cost_analysis(self._traced.program.jaxpr), "bytes accessed": moved}

    def _of_a_device(self) -> Any:
        """The program of one device, where arguments lie over several of this process, or None."""
        layouts, closed = self._traced.layouts, self._traced._entry.closed
        over = next((s for s in layouts if hasattr(s, "layout") and s.num_devices > 1), None)
        if over is None or self._traced.place is not None or over.mesh.is_multi_process:
            return None
        n = len(self._traced._entry.consts)
        ins = [None] * n + [
            s.layout(a.ndim) if hasattr(s, "layout") else None
            for s, a in zip(layouts, closed.in_avals[n:], strict=True)
        ]
        emit = importlib.import_module("numjet.partition.emit")
        return emit.partition(bare(closed), ins, [None] * len(closed.out_avals), over.mesh.shape)

    def memory_analysis(self) -> Any:
        """Bytes of arguments, outputs, temporaries and generated code; of what lies over several
        devices those of one.

        >>> import numjet as nj
        >>> nj.jit(lambda x: x * 2).lower(1.0).compile().memory_analysis()["output_size_in_bytes"]
        4
        """
        facts = self._executable.memory_analysis()
        if self._of_a_device() is not None:
            args = self._expected
            results = tree.tree_leaves(self.output_shardings)
            entry = self._traced._entry
            for what, shardings, avals in (
                ("argument", args, entry.closed.in_avals[len(entry.consts) :]),
                ("output", results, entry.out_avals),
            ):
                facts[f"{what}_size_in_bytes"] = sum([
                    math.prod(s.shard_shape(a.shape)) * a.dtype.itemsize
                    for s, a in zip(shardings, avals, strict=True)
                    if s is not None
                ])
        return CompiledMemoryStats(facts)

    def runtime_executable(self) -> Any:
        """The executable itself: what the runtime calls."""
        return self._executable
