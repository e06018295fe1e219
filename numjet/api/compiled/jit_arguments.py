"""Which arguments of a jitted function are values of Python or give their memory away, and what
the others are in the key of a signature.

For `api.compiled.jit` and its core. Numbers and names of arguments say the same as far as the
function's signature tells (`resolve`). What would break it: a structure of positional leaves that
is not the one which `tree_flatten` gives for `((*leaves,), {})`, since both stand in keys.
"""

from __future__ import annotations

import inspect
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from operator import index
from typing import Any

from numjet.api.placement.shape_struct import ShapeDtypeStruct
from numjet.base import config, tree
from numjet.base.errors import JaxRuntimeError
from numjet.core.array import Array, as_array
from numjet.core.avals import ShapedArray
from numjet.core.dtypes import canonical
from numjet.core.jaxpr import ClosedJaxpr
from numjet.core.refs import refuse_returned
from numjet.core.remote import Device
from numjet.core.structural import zeros
from numjet.transforms.simplify import dce_jaxpr

# By how many they are: the structure of arguments that are leaves by position.
positional_trees: dict[int, Any] = {}


def positional_tree(n: int) -> Any:
    found = positional_trees.get(n)
    if found is None:
        # A few at once: the first takes 40 us, those right after it a few each.
        for count in range(n, n + 4):
            if count not in positional_trees:
                positional_trees[count] = tree.tree_structure(((0,) * count, {}))
        found = positional_trees[n]
    return found


def hashable(x: Any, what: str, name: str) -> Any:
    try:
        hash(x)
    except TypeError as error:
        raise ValueError(
            "Non-hashable static arguments are not supported. An error occurred while trying to "
            f"hash an object of type {type(x)}, {x!r}, the static {what} of jit({name}): {error}. "
            "Static arguments are part of the compilation key; pass a tuple, a frozen dataclass "
            "or a string instead."
        ) from None
    return x


class ReturnedSpecError(TypeError):
    """A function returned a ShapeDtypeStruct, which only `eval_shape` takes."""


def output(x: Any, name: str, structure: Any, i: int) -> Any:
    """A result of a traced function, the leaf number `i` of `structure`, as an array."""
    try:
        return as_array(x)
    except TypeError:
        path = tree.keystr(tree.leaf_path(structure, i))
        refuse_returned(x, f"function {name} traced for jit", path)
        mistake = ReturnedSpecError if isinstance(x, ShapeDtypeStruct) else TypeError
        raise mistake(
            f"function {name} traced for jit returned a value of type {type(x)}, which is not a "
            f"valid JAX type: output{path} is {x!r}. Return arrays, scalars and pytrees of them."
        ) from None


def incomparable(name: str, statics: tuple, error: Exception) -> Exception:
    """What is raised where looking a signature up did: static values that `==` does not compare."""
    if not statics:
        return error
    values = ", ".join([f"{value!r} of type {type(value)}" for _, value, *_ in statics])
    return ValueError(
        f"static arguments should be comparable using __eq__. The static arguments of jit({name}), "
        f"{values}, were not: {type(error).__name__}: {error}"
    )


class _NotSpecified:
    """Stands for the function of `jit` where only options are given."""

    def __repr__(self) -> str:
        return "<not-specified>"


NOT_SPECIFIED: Any = _NotSpecified()


def aval_of_spec(x: Any) -> ShapedArray:
    if isinstance(x, ShapeDtypeStruct):
        return x._aval
    if isinstance(x, ShapedArray):
        return x
    if isinstance(x, Array):
        return x.aval
    if hasattr(x, "shape") and hasattr(x, "dtype") and not hasattr(x, "__array__"):
        return ShapedArray(tuple(x.shape), canonical(x.dtype))
    return as_array(x).aval


def rejoined(statics: tuple, dynamic: Sequence[Any], kwargs: dict) -> tuple[list, dict]:
    """Arguments as the function is called with them, the static ones among them."""
    args, kwargs = list(dynamic), dict(kwargs)
    for name, value, _ in statics:  # by number, in order; then by name
        if isinstance(name, int):
            args.insert(name, value)
        else:
            kwargs[name] = value
    return args, kwargs


def as_tuple(x: Any, kind: type) -> tuple:
    if x is None:
        return ()
    if isinstance(x, kind):
        return (x,)
    return tuple([index(i) for i in x]) if kind is int else tuple(x)


def resolve(
    fun: Callable, nums: tuple, names: tuple, both: bool = False, kind: str = "static"
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
    kinds = {p.kind for p in parameters}
    called = getattr(fun, "__name__", fun)
    unnamed = {p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.VAR_POSITIONAL)}
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"jit: argument is not a string: {name!r}. Names are strings.")
        if name in unnamed or name not in by_name and inspect.Parameter.VAR_KEYWORD not in kinds:
            raise ValueError(
                f"Jitted function has invalid argnames {set([name])} in {kind}_argnames. Function "
                f"does not take these args by name: {called} has "
                f"{[known for known in by_name if known not in unnamed]}."
            )
    n, more = sum(positional), inspect.Parameter.VAR_POSITIONAL in kinds
    for i in nums:
        if not (more or -n <= i < n):
            raise ValueError(
                f"Jitted function has {kind}_argnums={tuple(nums)}, but only accepts {n} "
                f"positional arguments ({called})."
            )
    all_nums = {i % n if i < 0 and not more else i for i in map(index, nums)}
    if both:
        return tuple(sorted(all_nums)), tuple(sorted(set(names)))
    all_nums |= {by_name[n] for n in names if n in by_name and positional[by_name[n]]}
    all_names = set(names) | {
        parameters[i].name
        for i in all_nums
        if 0 <= i < len(parameters)
        and parameters[i].kind in (parameters[i].POSITIONAL_OR_KEYWORD, parameters[i].KEYWORD_ONLY)
    }
    return tuple(sorted(all_nums)), tuple(sorted(all_names))


def check_apart(statics: tuple[tuple, tuple], donated: tuple[tuple, tuple]) -> None:
    """Refuse arguments, by number or by name, that are both static and given away."""
    for static, given in zip(statics, donated, strict=True):
        if not set(static).isdisjoint(given):
            raise ValueError(
                "static_argnames and donate_argnames cannot intersect: arguments "
                f"{sorted(set(static) & set(given))} are both static and donated. Static "
                "arguments have no buffer to give away."
            )


def check_donated(leaves: Sequence[Any], donated: Sequence[int]) -> None:
    """Refuse an array that is given twice where one of the places may overwrite it."""
    first: dict[int, int] = {}
    for i, x in enumerate(leaves):
        other = first.setdefault(id(x), i)
        if other != i and (i in donated or other in donated):
            raise JaxRuntimeError(
                "INVALID_ARGUMENT: Attempt to donate the same buffer twice in Execute() "
                f"(flattened argument {i}, first use: {other}): an array that is given away may "
                "be no other argument."
            )


def usable(closed: ClosedJaxpr, n_consts: int, donated: Sequence[int]) -> tuple[int, ...]:
    """Of the donated arguments those that the program reads and whose memory can hold a result."""
    if not donated:
        return ()
    used = used_variables(closed.jaxpr)
    free = Counter([_bytes(a) for a in closed.out_avals])
    out = []
    for i in donated:
        size = _bytes(closed.in_avals[n_consts + i])
        if free[size] and closed.jaxpr.invars[n_consts + i] in used:
            free[size] -= 1
            out.append(i)
    return tuple(out)


def _bytes(aval: Any) -> Any:
    return aval.size * aval.dtype.itemsize


def warn_unusable(entry: Any, kept: Any = None) -> None:
    """Warn of donated arguments that the program reads and no result can take the place of. kept:
    which these are, where more follows from how results lie."""
    n, jaxpr = len(entry.consts), entry.closed.jaxpr
    used = used_variables(jaxpr)
    unusable = [
        entry.closed.in_avals[n + i].str_short()
        for i in entry.asked
        if (i not in entry.donate if kept is None else i in kept) and jaxpr.invars[n + i] in used
    ]
    if unusable:
        warnings.warn(
            f"Some donated buffers were not usable: {', '.join(unusable)}. No result of "
            f"{entry.name} has their size, or lies as they do.",
            stacklevel=5,
        )


def used_variables(jaxpr: Any) -> set:
    """The variables that equations or results of a jaxpr read."""
    return {v for eqn in jaxpr.eqns for v in eqn.invars} | set(jaxpr.outvars)


class NoValue(TypeError):
    """An argument is a ShapeDtypeStruct, which a function is given that does not read it."""


def without_values(jitted: Any, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    """The arguments with zeros for ShapeDtypeStructs. TypeError where the function reads one."""
    statics, leaves, treedef = jitted._flatten(args, kwargs)
    closed = jitted.trace(*args, **kwargs).program
    reads = dce_jaxpr(closed.jaxpr, calls=True)[1]
    for i, x in enumerate(leaves):
        if type(x) is ShapeDtypeStruct:
            if reads[i - len(leaves)] or jitted.keep_unused:
                name = jitted._arg_names(treedef)[i]
                raise TypeError(
                    f"Argument '{name}' of shape {x.dtype}[{','.join(map(str, x.shape))}] of type "
                    f"{type(x)} is not a valid JAX type: it has no value, which the function "
                    "reads. Trace with it instead (.trace, .lower, eval_shape)."
                )
            leaves[i] = zeros(x._aval)
    positional, named = rejoined(statics, *tree.tree_unflatten(treedef, leaves))
    return tuple(positional), named


def argument_array(jitted: Any, x: Any, position: int, treedef: Any) -> Any:
    """An argument of a jitted function that was no Array, as one."""
    try:
        return as_array(x)
    except OverflowError as error:
        raise OverflowError(
            "An overflow was encountered while parsing an argument to a jitted computation, "
            f"whose argument path is {jitted._arg_names(treedef)[position]}. {error}"
        ) from None
    except TypeError:
        if type(x) is ShapeDtypeStruct:
            raise NoValue from None
        raise TypeError(
            f"Error interpreting argument to {jitted._fun!r} as an abstract array. The problematic "
            f"value is of type {type(x)} and was passed to the function at path "
            f"{jitted._arg_names(treedef)[position]}. {x!r} is no array and no number: mark it as "
            "static with static_argnums or static_argnames (it must then be hashable)."
        ) from None


def warn_of_place(device: Any, backend: Any) -> None:
    """Warn who names a device or a backend for `jit`; ValueError for both, RuntimeError for what is
    no device."""
    if device is not None and backend is not None:
        raise ValueError(
            f"can't specify both a device and a backend for jit, got device={device} and "
            f"backend={backend!r}."
        )
    warnings.warn(
        "backend and device argument on jit is deprecated. You can use `jax.device_put(..., "
        'jax.local_devices(backend="cpu")[0])` on the inputs to the jitted function to get the '
        "same behavior.",
        DeprecationWarning,
        stacklevel=3,
    )
    if device is not None and not isinstance(device, Device):
        raise RuntimeError(f"Unknown device {device!r}. numjet.devices() lists the devices.")


def told_of(leaves: Sequence[Any]) -> list[Any]:
    """The shardings that arguments were put in, or were told to have; None for others."""
    return [
        x.sharding if type(x) is ShapeDtypeStruct else getattr(x, "_sharding", None)
        for x in leaves
    ]


def meshes_of(told: Sequence[Any]) -> tuple:
    """The axes of type Auto of the meshes that arguments lie over, by their shardings, None for
    others; empty where none does. A function is traced for each. Axes of type Explicit are a part
    of avals."""
    found: list = []
    some = False
    for sharding in told:
        mesh: Any = getattr(sharding, "mesh", None)
        if mesh is None or mesh.explicit_axes:
            found.append(None)
            continue
        some = True
        found.append(mesh.abstract_mesh)
    return tuple(found) if some else ()


# Where meshes stand in a key.
_MESHES = 5


def says_more(core: Any) -> bool:
    """Whether an equation that calls a jitted function says more than its jaxpr and its name."""
    plain = not (core._donate_argnums or core._donate_argnames or core.inline or core.keep_unused)
    alone = core.layouts == (None, None) and core.layout_trees is None and core.device is None
    return not (plain and alone and core.within_mesh is None)


def entry_over(meshes: tuple | None, entries: Any, key: tuple) -> Any:
    """The entry of a key, for arguments over the axes of meshes (None: traced ones do not tell), or
    None. What was traced for unknown axes is taken for the first that come."""
    entry = entries.get(key)
    if meshes is None:
        return entry
    if entry is None and meshes:
        entry = entries.get((*key[:_MESHES], (), *key[_MESHES + 1 :]))
    if entry is not None and entry.meshes is None:
        keep_over(meshes, entries, key, entry)
    return entry if entry is None or entry.meshes == meshes else None


def keep_over(meshes: tuple | None, entries: Any, key: tuple, entry: Any) -> None:
    """Keep an entry, for traced arguments too."""
    entry.meshes = meshes
    entries[key] = entry
    if meshes:
        entries.setdefault((*key[:_MESHES], (), *key[_MESHES + 1 :]), entry)


def note_kinds(entry: Any, leaves: Sequence[Any]) -> None:
    """Note what a call was given, as `_cache_size` tells calls apart beside their types: where
    arrays were put, what is no array, and the device of what was put nowhere."""
    device = config.default_device.value if config.default_device.anywhere else None
    kinds = device, *[getattr(x, "_sharding", None) or type(x) for x in leaves]
    same = tuple(map(id, kinds))
    if same not in entry.met:
        entry.called.add(kinds)
        if len(entry.met) == _MET:
            entry.met.clear()
        entry.met[same] = kinds


# Calls whose arguments lay alike are known by identity, up to so many.
_MET = 64
