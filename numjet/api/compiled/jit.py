"""`jit`: a function that is traced once for each signature, compiled, and run as native code.

`JitFunction` is what users hold; its calls are those of a `JitCore` (`api.compiled.jit_core`), or
code generated for signatures that come again (`api.compiled.fastcall`, `native.calls`). What would
break it: a reference from a core to its `JitFunction`, which would then not be freed at once.
"""

from __future__ import annotations

import inspect
import sys
import types
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from numjet.api.compiled.jit_arguments import (
    NOT_SPECIFIED,
    as_tuple,
    check_apart,
    resolve,
    warn_of_place,
)
from numjet.api.compiled.jit_core import JitCore, jit_layouts, programs_of
from numjet.api.compiled.stage_info import check_compiler_options
from numjet.api.compiled.stages import Lowered, Traced
from numjet.api.flat import check_callable, wraps
from numjet.api.placement.devices import CpuDevice, asks_nothing, devices
from numjet.base import config, tree
from numjet.base.class_names import shown_as
from numjet.core import memo

# The numbers and the names of no arguments.
_NO_ARGUMENTS: tuple[tuple, tuple] = (), ()


@shown_as("PjitFunction")
class JitFunction:
    """A function compiled for each signature it is called with. `__call__` is found in the object:
    at first the complete way, then code generated for the signatures that come again."""

    # How often it forgot what it did, which else it remembers itself (`core.alike`).
    clearings = 0
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
        wraps(fun)(self)
        core = JitCore(fun, static_argnums, static_argnames, donate_argnums, donate_argnames)
        core._owner, core.tells = weakref.ref(self), True
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
        self.__dict__["clearings"] = self.clearings + 1
        config.changed()

    def _cache_size(self) -> int:
        """How many signatures were called."""
        return sum([len(entry.called) for entry in {*self._core._entries.values()}])

    @property
    def _fun(self) -> Callable:
        """The function itself, under the name that libraries read it by (nutpie)."""
        return self._core._fun

    @property
    def __signature__(self) -> inspect.Signature:
        """What `inspect.signature` gives: the parameters of the function."""
        return inspect.signature(self._core._fun)

    def __repr__(self) -> str:
        try:
            return f"<PjitFunction of {self.__dict__['__wrapped__']!r}>"
        except Exception:  # whatever the function's own text raises
            return "<PjitFunction>"

    def __getstate__(self) -> dict[str, Any]:
        """What JAX's has of its state: the function's name."""
        return {"function_name": self._core._name}

    def __copy__(self) -> JitFunction:
        return self

    def __deepcopy__(self, memo: dict) -> JitFunction:
        return self

    def __reduce__(self) -> Any:
        """By its name, where a module has it under that. Otherwise, and of the main module, which
        is another one where it is read, by the function and what `jit` was told: cloudpickle writes
        any function down, pickle those that their module has."""
        own, core = self.__dict__, self._core
        found = sys.modules.get(own["__module__"])
        for part in own["__qualname__"].split("."):
            found = getattr(found, part, None)
        if found is self and own["__module__"] != "__main__":
            return str(own["__qualname__"])
        arguments = (core._static_argnums, core._static_argnames,
                     core._donate_argnums, core._donate_argnames)  # fmt: skip
        return _made_again, (core._fun, arguments, {name: getattr(core, name) for name in _TOLD})


# What `jit` is told beside the function and its arguments' parts, as a core holds it.
_TOLD = ("device", "device_of_jit", "inline", "keep_unused", "layouts", "layout_trees",
         "compiler_options")  # fmt: skip


def _made_again(fun: Callable, arguments: tuple, told: dict[str, Any]) -> JitFunction:
    """A jitted function that was pickled, with nothing traced yet."""
    made = JitFunction(fun, *arguments)
    for name, value in told.items():
        setattr(made._core, name, value)
    if told["layout_trees"] is not None:
        made._core._entries = made._core._memo_of(tree.tree_structure(told["layout_trees"]))
    return made


def jit(
    fun: Callable = NOT_SPECIFIED,
    /,
    *,
    in_shardings: Any = None,
    out_shardings: Any = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    device: Any = None,
    backend: str | None = None,
    inline: bool = False,
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
    inline: no call of its own within another program. compiler_options: a dictionary of XLA's,
    which change nothing here.

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
    if compiler_options is not None and not isinstance(compiler_options, Mapping):
        check_compiler_options(compiler_options)
    trees = (in_shardings, out_shardings)
    layouts: tuple = trees
    orders = False
    if trees != (None, None):
        jit_layouts().checked(in_shardings, out_shardings, device, backend)
        orders = jit_layouts().names_orders(trees)
        layouts = tuple([None if s is None or asks_nothing(s) else s for s in trees])
    if device is not None or backend is not None:
        warn_of_place(device, backend)
    if isinstance(device, CpuDevice) and not asks_nothing(device):
        layouts = jit_layouts().of_device(device)
    if device is None and backend not in (None, "cpu"):
        device = devices(backend)[0]
    nums, names = as_tuple(static_argnums, int), as_tuple(static_argnames, str)
    donate_nums, donate_names = as_tuple(donate_argnums, int), as_tuple(donate_argnames, str)
    both = static_argnums is not None and static_argnames is not None
    both_donated = donate_argnums is not None and donate_argnames is not None

    def make(f: Callable) -> JitFunction:
        check_callable("jit", f)
        statics, donated = _NO_ARGUMENTS, _NO_ARGUMENTS
        if nums or names:
            statics = resolve(f, nums, names, both)
        if donate_nums or donate_names:
            donated = resolve(f, donate_nums, donate_names, both_donated, "donate")
            check_apart(statics, donated)
        made = JitFunction(f, *statics, *donated)
        made._core.device, made._core.layouts = device, layouts
        made._core.device_of_jit = isinstance(device, CpuDevice) and layouts != trees
        if trees != (None, None):
            made._core.layout_trees = trees
            made._core.orders = orders
            made._core._entries = made._core._memo_of(tree.tree_structure(trees))
        if compiler_options is not None:  # which are looked at when it is traced
            made._core.compiler_options, made._core._entries = compiler_options, made._core._memo()
        made._core.inline, made._core.keep_unused = bool(inline), bool(keep_unused)
        return made

    return make if fun is NOT_SPECIFIED else make(fun)


def clear_caches() -> None:
    """Forget every traced and compiled function, and every shortcut that was learned
    (`debug.memos`).

    What was compiled is traced and built again at its next call (the disk cache stays). For tests
    and measurements; nothing needs it to be correct.

    >>> import numjet as nj
    >>> nj.clear_caches()
    """
    # Taken at once: other threads may add functions meanwhile.
    for fun in [alive for known in programs_of.keyrefs() if (alive := known()) is not None]:
        for entries in list(programs_of.get(fun, {}).values()):
            entries.clear()
    memo.clear()
    config.changed()
