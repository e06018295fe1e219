"""numjet.export: functions staged for given shapes, to be stored and called elsewhere.

An `Exported` holds a jaxpr. `serialize` writes it in a format of numjet's own, which holds for one
version of numjet: pickled records, of which reading makes numjet's and NumPy's classes alone. Read
only what you trust, as with every program. A program of symbolic shapes (`symbolic_shape`) is
written again for the shapes of each call, and remembered for them.
"""

from __future__ import annotations

import importlib as _importlib
import io
import pickle
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from numjet.api.compiled.jit import jit as _jit
from numjet.api.compiled.jit_arguments import used_variables as _used_variables
from numjet.api.derivatives.custom import custom_vjp as _custom_vjp
from numjet.api.derivatives.pullbacks import vjp as _vjp
from numjet.api.exports.export_bytes import (
    Pickler as _Pickler,
    StoredNode as _StoredNode,
    inlined as _inlined,
    known as _known,
    nothing_of as _nothing_of,
    register as _register,
)
from numjet.api.exports.export_layouts import (
    check_calls as _check_calls,
    devices_of as _devices_of,
    laid_out as _laid_out,
    over_mesh_of as _over_mesh_of,
    portable as _portable,
    ran as _ran,
)
from numjet.api.exports.symbolic_shapes import (
    check_known as _check_known,
    check_scopes as _check_scopes,
    solver_of as _solver_of,
    symbolic_args_specs as symbolic_args_specs,
    symbolic_shape as symbolic_shape,
)
from numjet.api.placement.mesh import set_for_arrays as _set_for_arrays
from numjet.api.placement.placements import WhereRun as _WhereRun
from numjet.api.placement.reshard import constrained as _constrained
from numjet.api.placement.shape_struct import ShapeDtypeStruct as _ShapeDtypeStruct
from numjet.api.placement.sharding import NamedSharding as _NamedSharding
from numjet.base import tree as _tree
from numjet.base.class_names import home as _home
from numjet.base.config import config as _config
from numjet.base.tree_registry import kind_of as _kind_of
from numjet.core.avals import ShapedArray as _ShapedArray
from numjet.core.dims import (
    SymbolicScope as SymbolicScope,
    any_symbolic as _any_symbolic,
    is_symbolic as _is_symbolic,
)
from numjet.core.dtypes import float0 as _float0
from numjet.core.jaxpr import (
    ClosedJaxpr as _ClosedJaxpr,
    eval_closed as _eval_closed,
)
from numjet.core.primitive import Primitive as _Primitive
from numjet.core.structural import convert as _convert
from numjet.core.trace import Tracer as _Tracer, aval_of as _aval_of
from numjet.transforms.concrete_sizes import concrete as _concrete
from numjet.version import __version__ as _version

minimum_supported_calling_convention_version = 9
maximum_supported_calling_convention_version = 10
_MAGIC = b"numjet-export 1\n"


class DisabledSafetyCheck:
    """A check of JAX's export that is not made. numjet makes that of the platform alone."""

    def __init__(self, _impl: str) -> None:
        self._impl = _impl

    @classmethod
    def platform(cls) -> DisabledSafetyCheck:
        """The check that the platform is the one exported for."""
        return cls("platform")

    @classmethod
    def custom_call(cls, target_name: str) -> DisabledSafetyCheck:
        """The check that a call of a foreign function is stable."""
        return cls(f"custom_call:{target_name}")

    def is_custom_call(self) -> str | None:
        """The name that `custom_call` was given; None for another check."""
        kind, colon, name = self._impl.partition(":")
        return name if colon and kind == "custom_call" else None

    def __repr__(self) -> str:
        return self._impl

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DisabledSafetyCheck) and self._impl == other._impl

    def __hash__(self) -> int:
        return hash(self._impl)


@dataclass(frozen=True, eq=False, repr=False)
class Exported:
    """A function staged for arguments of given shapes and dtypes: `call` runs it.

    fun_name; in_tree and in_avals of (args, kwargs); out_tree and out_avals; platforms: where it
    may be called; nr_devices: how many devices its arguments lay over. Sizes of avals may be
    symbolic. `in_shardings_jax` and `out_shardings_jax` tell how arguments and results lie.
    """

    fun_name: str
    in_tree: Any
    in_avals: tuple[_ShapedArray, ...]
    out_tree: Any
    out_avals: tuple[_ShapedArray, ...]
    platforms: tuple[str, ...]
    disabled_safety_checks: tuple[DisabledSafetyCheck, ...]
    jaxpr: _ClosedJaxpr
    was_read: bool = False
    pullback: Exported | None = None  # of one that was read: what `vjp` gives
    nr_devices: int = 1
    module_kept_var_idx: tuple[int, ...] = ()  # the arguments that the program reads, or keeps
    laid_out: tuple = ((), ())  # how arguments and results are: a Layout each, or None
    calls_such: bool = False  # whether one is called that uses_global_constants
    calling_convention_version: int = maximum_supported_calling_convention_version
    _programs: dict = field(default_factory=dict)  # by the values of dimension variables

    def __getstate__(self) -> dict:
        return {**self.__dict__, "_programs": {}}

    def __repr__(self) -> str:
        return f"Exported(fun_name={self.fun_name}, ...)"

    @property
    def in_shardings_hlo(self) -> tuple:
        """None for each argument: `in_shardings_jax` tells how they lie."""
        return (None,) * len(self.in_avals)

    @property
    def out_shardings_hlo(self) -> tuple:
        """None for each result: `out_shardings_jax` tells how they lie."""
        return (None,) * len(self.out_avals)

    @property
    def uses_global_constants(self) -> bool:
        """Whether the program depends on sizes, or on a platform, that a call tells; or calls an
        exported function which does."""
        several = len(self.platforms) > 1 or any([_any_symbolic(a.shape) for a in self.in_avals])
        return several or self.calls_such

    @property
    def ordered_effects(self) -> tuple:
        """Empty: an exported function has no effects whose order counts."""
        return ()

    @property
    def unordered_effects(self) -> tuple:
        """Empty: an exported function has no other effects."""
        return ()

    def in_shardings_jax(self, mesh: Any) -> tuple:
        """How each argument lies on `mesh`: a NamedSharding, or None where nothing was told.

        mesh: one with the axes of the mesh that the function was exported for (ValueError), over
        any devices.

        >>> import numjet as nj
        >>> from numjet import export, numpy as jnp
        >>> mesh = nj.make_mesh((1,), ("a",))
        >>> placed = nj.NamedSharding(mesh, nj.P("a"))
        >>> exported = export.export(nj.jit(jnp.sin, in_shardings=placed))(jnp.ones(2))
        >>> exported.in_shardings_jax(mesh)[0].spec
        P('a',)
        """
        return tuple([told and told.on(mesh) for told in self.laid_out[0]])

    def out_shardings_jax(self, mesh: Any) -> tuple:
        """How each result lies on `mesh`: a NamedSharding, or None where nothing was told.

        mesh: one with the axes of the mesh that the function was exported for (ValueError).
        """
        return tuple([told and told.on(mesh) for told in self.laid_out[1]])

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """The exported function, on arguments of its structure, shapes and dtypes.

        args, kwargs: pytrees of arrays (ValueError for others). It can be compiled and mapped like
        any other; one that was read has the derivatives that were stored.

        >>> import numjet as nj
        >>> from numjet import export, numpy as jnp
        >>> from numjet import export
        >>> exported = export.export(nj.jit(lambda x: 2.0 * x))(jnp.ones(2))
        >>> exported.call(jnp.ones(2))
        Array([2., 2.], dtype=float32)
        """
        skipped = DisabledSafetyCheck.platform() in self.disabled_safety_checks
        here = _exporting.get()
        wanted = ("cpu",) if here is None else here.platforms
        if not set(wanted) <= set(self.platforms) and not skipped:
            raise ValueError(
                f"Function '{self.fun_name}' was exported for platforms '{self.platforms}' but it "
                f"is used on '{wanted}'. Export it for these, too, or with disabled_checks="
                "[DisabledSafetyCheck.platform()]."
            )
        if here is not None and self.uses_global_constants:
            here.calls_such = True
        leaves, treedef = _tree.tree_flatten((args, kwargs))
        if treedef != self.in_tree:
            raise ValueError(
                "The invocation args and kwargs must have the same pytree structure as when the "
                f"function '{self.fun_name}' was exported, {self.in_tree}, got {treedef}."
            )
        values = self._check([_aval_of(leaf) for leaf in leaves])
        self._check_devices(leaves)
        key = tuple(values.items())
        run = self._programs.get(key)
        if run is None:
            run = self._programs[key] = self._program(values)
        return _tree.tree_unflatten(self.out_tree, self._laid(leaves, run(*leaves)))

    def _check_devices(self, leaves: list) -> None:
        """Raise ValueError for arrays over another number of devices than the export is for; one
        for a single device runs over any. The program checks traced ones."""
        if self.nr_devices == 1 or any([isinstance(x, _Tracer) for x in leaves]):
            return
        lie = [getattr(x, "_sharding", None) for x in leaves]
        over = [s.mesh for s in lie if isinstance(s, _NamedSharding)] or [_set_for_arrays.get()]
        _WhereRun(self.fun_name, self.nr_devices).check(max(1, over[0].size))

    def _laid(self, leaves: list, outs: list) -> list:
        """The results as the export says."""
        meshes = [getattr(getattr(x, "_sharding", None), "mesh", None) for x in leaves]
        mesh = next((m for m in meshes if hasattr(m, "devices_in_order")), None)
        told = self.laid_out[1]
        if mesh is not None and told:
            axes = tuple(mesh.shape.items())
            outs = [
                x if s is None or not s.is_type or s.axes != axes else _constrained(x, s.on(mesh))
                for x, s in zip(outs, told, strict=True)
            ]
        return _over_mesh_of(leaves, outs, told)

    def _where(self) -> list[str]:
        """What the arguments are called in messages."""
        (args, kwargs), names = _tree.tree_unflatten(self.in_tree, list(self.in_avals)), []
        for name, value in (("args", args), ("kwargs", kwargs)):
            names += [name + _tree.keystr(path) for path, _ in _tree.tree_leaves_with_path(value)]
        return names

    def _check(self, avals: Sequence[_ShapedArray]) -> dict:
        """The values of the dimension variables, for arguments of these avals."""
        names = self._where() if _differ(avals, self.in_avals) else [""] * len(avals)
        for where, have, want in zip(names, avals, self.in_avals, strict=True):
            told = f"expected {want.shape} and called with {have.shape}"
            if have.ndim != want.ndim:
                raise ValueError(f"Rank mismatch for {where}: {told}.")
            for axis, (n, m) in enumerate(zip(have.shape, want.shape, strict=True)):
                if n != m and not _is_symbolic(m):
                    raise ValueError(
                        f"Shape mismatch for {where}.shape[{axis}] (expected same constant): "
                        f"{told}. Export the function for these shapes, or for symbolic ones."
                    )
            if have.dtype != want.dtype:
                raise ValueError(
                    f"Dtype mismatch for {where}: expected {want.dtype} and called with "
                    f"{have.dtype}. Convert with .astype()."
                )
        if not any([_any_symbolic(want.shape) for want in self.in_avals]):
            return {}
        solver = self._programs.get("solver")
        if solver is None:
            solver = self._programs["solver"] = _solver_of(self._where(), self.in_avals)
        return solver([n for have in avals for n in have.shape])

    def _program(self, values: dict) -> Callable:
        closed = _concrete(self.jaxpr, values) if values else self.jaxpr
        weak = [a.weak_type for a in self.out_avals]  # whatever those of the arguments are
        count, name, (ins, results) = self.nr_devices, self.fun_name, self.laid_out

        def placed(*xs: Any) -> list:
            xs = tuple([x if s is None else s.marked(x) for x, s in zip(xs, ins, strict=True)])
            outs = [
                y if y.dtype == _float0 else _convert(y, y.aval.dtype, w)
                for y, w in zip(_eval_closed(closed, *xs), weak, strict=True)
            ]
            outs = [y if s is None else s.marked(y) for y, s in zip(outs, results, strict=True)]
            return [_ran(y, name, count) for y in outs]

        run: Any = _jit(placed)
        if self.was_read:  # the program has none of the rules that the function had
            plain, run = run, _custom_vjp(run)
            run.defvjp(
                lambda *xs: (plain(*xs), xs), lambda xs, cts: self.vjp().call(*xs, *cts)
            )
        return run

    def has_vjp(self) -> bool:
        """Whether `vjp` gives the pullback.

        >>> import numjet as nj
        >>> from numjet import export, numpy as jnp
        >>> from numjet import export
        >>> exported = export.export(nj.jit(lambda x: 2.0 * x))(jnp.ones(2))
        >>> exported.has_vjp()
        True
        """
        return not self.was_read or self.pullback is not None

    def vjp(self) -> Exported:
        """The exported pullback: of the arguments and the results' cotangents, it gives those of
        the arguments.

        Raises ValueError for one that was stored with vjp_order=0.

        >>> import numjet as nj
        >>> from numjet import export, numpy as jnp
        >>> from numjet import export
        >>> exported = export.export(nj.jit(lambda x: 2.0 * x))(jnp.ones(2))
        >>> exported.vjp().call(jnp.ones(2), jnp.ones(2))
        (Array([2., 2.], dtype=float32),)
        """
        if not self.has_vjp():
            raise ValueError(
                "No VJP is available: the function was serialized with vjp_order=0. Serialize it "
                "with vjp_order=1."
            )
        if self.pullback is not None:
            return self.pullback
        count = len(self.in_avals)

        def pullback(*args: Any) -> tuple:
            flat = lambda *xs: _eval_closed(self.jaxpr, *xs)  # noqa: E731
            return _vjp(flat, *args[:count])[1](list(args[count:]))

        cotangents = [a.to_tangent_aval() for a in self.out_avals]
        found = export(_jit(pullback))(*_shapes((*self.in_avals, *cotangents)))
        ins, results = self.laid_out
        return _replaced(
            found, fun_name="fun_vjp_jax", platforms=self.platforms,
            disabled_safety_checks=self.disabled_safety_checks,
            nr_devices=max(self.nr_devices, found.nr_devices),
            laid_out=((None,) * count + tuple(results), ins),
        )  # fmt: skip

    def serialize(self, vjp_order: int = 0) -> bytearray:
        """The exported function as bytes, for `deserialize`.

        vjp_order: how many times what is read may be differentiated. Result: a bytearray. Raises
        ValueError for functions that call back into Python, and for a negative number.

        >>> import numjet as nj
        >>> from numjet import export, numpy as jnp
        >>> from numjet import export
        >>> exported = export.export(nj.jit(lambda x: 2.0 * x))(jnp.ones(2))
        >>> export.deserialize(exported.serialize()).fun_name
        '<lambda>'
        """
        if vjp_order < 0:
            raise ValueError(f"Exported.serialize: vjp_order is negative: {vjp_order}.")
        out = io.BytesIO()
        try:
            _Pickler(out).dump(self._stored(vjp_order))
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise ValueError(
                f"Exported.serialize: {self.fun_name} holds what cannot be stored ({error}): "
                "callbacks, or nodes of classes that other processes do not have."
            ) from error
        version = _version.encode() + b"\n"
        return bytearray(_MAGIC + version + out.getvalue())

    def _stored(self, vjp_order: int) -> Exported:
        """What is written: programs without functions of Python, the pullbacks' too."""
        pullback = self.vjp()._stored(vjp_order - 1) if vjp_order else None
        strong = {
            name: tuple([a.strip_weak_type() for a in avals])  # the bytes say no more
            for name, avals in (("in_avals", self.in_avals), ("out_avals", self.out_avals))
        }
        return _replaced(
            self, jaxpr=_inlined(self.jaxpr), was_read=True, pullback=pullback, **strong
        )

    @property
    def mlir_module_serialized(self) -> bytes:
        """The text of `mlir_module`, which is what XLA's compilers read as well, as bytes."""
        return self.mlir_module().encode()

    def mlir_module(self, serialized: bool = True) -> str:
        """The program as text of StableHLO: what a device of XLA would run. `jaxpr` is the program
        that runs here. serialized: whether it is text, which it always is.

        >>> import numjet as nj
        >>> from numjet import export, numpy as jnp
        >>> exported = export.export(nj.jit(lambda x: 2.0 * x))(jnp.ones(2))
        >>> "stablehlo.multiply" in exported.mlir_module()
        True
        """
        shown = _importlib.import_module("numjet.xla.shown").shown
        return str(shown(self.jaxpr, self.fun_name, self.out_tree, (), False))


def _replaced(exported: Exported, **fields: Any) -> Exported:
    known = {f: getattr(exported, f) for f in Exported.__dataclass_fields__}
    return Exported(**{**known, "_programs": {}, **fields})


def _differ(avals: Sequence[_ShapedArray], wanted: Sequence[_ShapedArray]) -> bool:
    return any([
        a.shape != b.shape or a.dtype != b.dtype for a, b in zip(avals, wanted, strict=True)
    ])  # fmt: skip


def _shapes(avals: Sequence[_ShapedArray]) -> list:
    return [_ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in avals]


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == (_Primitive.__module__, "_by_name"):
            return _registered  # modules of primitives load when they are first used
        if _known(module, name):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} is no class of numjet's")


def _registered(name: str) -> _Primitive:
    found = _importlib.import_module("numjet.extend.core.primitives").registered(name)
    if found is None:
        raise pickle.UnpicklingError(f"there is no primitive {name!r} here")
    return found


_PLATFORMS = ("cpu", "cuda", "rocm", "tpu")


@dataclass
class _Asked:
    """What an export under way asks for: its platforms. calls_such: whether what it calls
    uses_global_constants."""

    platforms: tuple[str, ...]
    calls_such: bool = False


_exporting: ContextVar[_Asked | None] = ContextVar("numjet.export", default=None)


def _convention() -> int:
    """The version that JAX's flag asks for. Raises ValueError for one that is not known."""
    asked = _config.read("jax_export_calling_convention_version")
    first, last = (
        minimum_supported_calling_convention_version, maximum_supported_calling_convention_version)
    if not first <= asked <= last:
        raise ValueError(
            f"The requested export calling convention version {asked} is outside the range of "
            f"supported versions [{first}..{last}]"
        )
    return int(asked)


def export(
    fun_jit: Any,
    *,
    platforms: Sequence[str] | None = None,
    disabled_checks: Sequence[DisabledSafetyCheck] = (),
    _override_lowering_rules: Any = None,
) -> Callable[..., Exported]:
    """`fun_jit`, staged for arguments of given shapes and dtypes, so that it can be stored.

    fun_jit: what `jit` made, or a function of `numpy` (ValueError for others). platforms: where the
    result may be called, by default the CPU: `call` raises ValueError on others unless
    disabled_checks has `DisabledSafetyCheck.platform()`. Result: a function of arguments, or of
    ShapeDtypeStructs, that gives an Exported, the same program for all platforms; KeyError where
    the program's shapes have a dimension variable that no argument's has.

    >>> import numjet as nj
    >>> from numjet import export, numpy as jnp
    >>> exported = export.export(nj.jit(lambda x: 2 * x))(jnp.arange(3))
    >>> exported.call(jnp.arange(3))
    Array([0, 2, 4], dtype=int32)
    """
    plain = not hasattr(fun_jit, "trace")
    module = _home(fun_jit) or str(getattr(fun_jit, "__module__", ""))
    if plain and module.startswith("numjet.numpy"):
        fun_jit = _jit(fun_jit)  # many of JAX's are jitted
    if not hasattr(fun_jit, "trace") or not hasattr(fun_jit, "lower"):
        raise ValueError(
            f"Function to be exported must be the result of `jit` but is: {fun_jit}. Pass "
            "jit(fun)."
        )
    if _override_lowering_rules is not None:
        raise NotImplementedError("export: there is no MLIR whose lowerings could be replaced.")
    if isinstance(platforms, str):
        raise TypeError(f"export: platforms must be a sequence of names, got {platforms!r}.")
    fun_name, wanted = getattr(fun_jit, "__name__", "<unnamed>"), tuple(platforms or ("cpu",))
    able = [p for p in wanted if p in _PLATFORMS]  # where donated arguments give their memory

    def exported(*args: Any, **kwargs: Any) -> Exported:
        version = _convention()
        _check_scopes(fun_name, args, kwargs)
        asked = _Asked(wanted)
        token = _exporting.set(asked)
        try:
            traced = fun_jit.trace(*args, **kwargs)
        finally:
            _exporting.reset(token)
        if able and len(able) < len(wanted) and traced._entry.donate:
            raise NotImplementedError(
                "In multi-platform lowering either all or no lowering platforms should support "
                f"donation. Lowering for {wanted} of which only {able} support donation."
            )
        closed, in_tree = traced.program, traced.in_tree      # without static arguments
        leaves = _tree.tree_leaves((args, kwargs))
        if len(traced.layouts) != len(closed.in_avals):
            raise NotImplementedError("export: functions of references are not exported.")
        _check_known(closed.jaxpr)
        results, out_tree = _tree.tree_flatten(traced.out_info)
        told = [getattr(x, "sharding", None) for x in results]
        count = _devices_of(leaves, [*traced.layouts, *told], closed)
        _check_calls(closed, count)
        over_axes = dict(traced._over_axes)  # told by axes alone
        ins = _laid_out([over_axes.get(i, s) for i, s in enumerate(traced.layouts)])
        outs = _laid_out(told)
        used = _used_variables(closed.jaxpr)
        keeps = getattr(traced._fun, "keep_unused", False)
        kept = [keeps or v in used for v in closed.jaxpr.invars]
        made = Exported(
            fun_name,
            in_tree,
            tuple(closed.in_avals),
            out_tree,
            tuple(closed.out_avals),
            wanted,
            tuple(disabled_checks),
            _portable(closed, count, [*ins, *outs]),
            calls_such=closed.cache.setdefault("calls_such", asked.calls_such),
            nr_devices=count,
            module_kept_var_idx=tuple([i for i, is_kept in enumerate(kept) if is_kept]),
            laid_out=(ins, outs),
            calling_convention_version=version,
        )
        if any([_any_symbolic(a.shape) for a in made.in_avals]):
            made._programs["solver"] = _solver_of(made._where(), made.in_avals)
        return made

    return exported


def deserialize(blob: bytearray) -> Exported:
    """What `Exported.serialize` wrote, as an Exported again.

    blob: a bytearray (or bytes). Raises ValueError for other bytes, and for those of another
    version of numjet.

    >>> import numjet as nj
    >>> from numjet import export, numpy as jnp
    >>> exported = export.export(nj.jit(lambda x: 2 * x))(jnp.arange(3))
    >>> export.deserialize(exported.serialize()).call(jnp.arange(3))
    Array([0, 2, 4], dtype=int32)
    """
    data = bytes(blob)
    head = _MAGIC + _version.encode() + b"\n"
    if not data.startswith(head):
        raise ValueError(
            "export.deserialize: the bytes are not what Exported.serialize of this version of "
            f"numjet ({_version}) wrote. Export the function again."
        )
    try:
        return _Unpickler(io.BytesIO(data[len(head) :])).load()
    except (pickle.UnpicklingError, EOFError, AttributeError, ImportError, TypeError) as error:
        raise ValueError(f"export.deserialize: the bytes are damaged ({error}).") from error


def default_export_platform() -> str:
    """The platform that functions are exported for: "cpu".

    >>> from numjet import export
    >>> export.default_export_platform()
    'cpu'
    """
    return "cpu"


def is_symbolic_dim(p: Any) -> bool:
    """Whether a size is an expression of dimension variables, and no number.

    p: any object.

    >>> from numjet import export
    >>> export.is_symbolic_dim(3), export.is_symbolic_dim(export.symbolic_shape("b")[0])
    (False, True)
    """
    return _is_symbolic(p)


def register_namedtuple_serialization(nodetype: type, *, serialized_name: str) -> type:
    """Lets `Exported.serialize` write structures with this class of named tuples.

    nodetype: a class made by `collections.namedtuple` or `typing.NamedTuple`. serialized_name: what
    it is called in the bytes, where they are read too. Result: nodetype. Raises ValueError for
    other classes, and where the class or the name is registered already.

    >>> import collections
    >>> from numjet import export
    >>> Moments = collections.namedtuple("Moments", "mean var")
    >>> export.register_namedtuple_serialization(Moments, serialized_name="doc.Moments") is Moments
    True
    """
    if not (isinstance(nodetype, type) and issubclass(nodetype, tuple)
            and hasattr(nodetype, "_fields")):  # fmt: skip
        raise ValueError(
            "Use `export.register_pytree_node_serialization` for types other than "
            f"`collections.namedtuple`, got {nodetype}."
        )
    return _register(_StoredNode(nodetype, serialized_name, _nothing_of, _nothing_of, None))


def register_pytree_node_serialization(
    nodetype: type,
    *,
    serialized_name: str,
    serialize_auxdata: Callable,
    deserialize_auxdata: Callable,
    from_children: Callable | None = None,
) -> type:
    """Lets `Exported.serialize` write structures with nodes of this class.

    nodetype: a class that is registered as a pytree node (ValueError otherwise, unless
    from_children is given). serialized_name: what it is called in the bytes, where they are read
    too. serialize_auxdata: of the node's static data, bytes; deserialize_auxdata: the reverse.
    from_children: of the static data and the children, a node; by default what the class is
    registered with. Result: nodetype. Raises ValueError where the class or the name is registered
    already.

    >>> from numjet import export, tree_util
    >>> @tree_util.register_pytree_node_class
    ... class Scale:
    ...     def __init__(self, by, unit):
    ...         self.by, self.unit = by, unit
    ...     def tree_flatten(self):
    ...         return (self.by,), self.unit
    ...     @classmethod
    ...     def tree_unflatten(cls, unit, children):
    ...         return cls(*children, unit)
    >>> export.register_pytree_node_serialization(
    ...     Scale, serialized_name="doc.Scale", serialize_auxdata=str.encode,
    ...     deserialize_auxdata=bytes.decode) is Scale
    True
    """
    if from_children is None and _kind_of(nodetype) is None:
        raise ValueError(
            "If `from_children` is not present, you must call first "
            f"`tree_util.register_pytree_node` for `{nodetype}`"
        )
    return _register(
        _StoredNode(
            nodetype, serialized_name, serialize_auxdata, deserialize_auxdata, from_children
        )
    )


__all__ = [
    "DisabledSafetyCheck", "Exported", "SymbolicScope", "default_export_platform", "deserialize",
    "export", "is_symbolic_dim", "maximum_supported_calling_convention_version",
    "minimum_supported_calling_convention_version", "register_namedtuple_serialization",
    "register_pytree_node_serialization", "symbolic_args_specs", "symbolic_shape",
]  # fmt: skip


def __dir__() -> list[str]:
    return [*__all__]
