"""What JAX's private functions do that published libraries call, for those that numjet has no
counterpart of. Named by the rows of private.py, loaded when one of them is asked for."""

from __future__ import annotations

import importlib
import inspect
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from numjet import random
from numjet.api.placement import devices as device_module
from numjet.api.placement.mesh import get_abstract_mesh
from numjet.api.placement.sharding import NamedSharding, PartitionSpec
from numjet.base import tree
from numjet.base.record import NamedTuple
from numjet.base.tree_registry import KINDS
from numjet.core import trace
from numjet.core.array import Array, ArrayImpl
from numjet.core.avals import ShapedArray
from numjet.core.cluster import Cluster
from numjet.core.dtypes import canonical
from numjet.core.trace import EVAL, current_trace
from numjet.core.typed_numbers import (
    TypedComplex as TypedComplex,
    TypedFloat as TypedFloat,
    TypedInt as TypedInt,
    TypedNdArray as TypedNdArray,
)
from numjet.interpreters import batching
from numjet.lax import dot_general, ragged_dot
from numjet.numpy import einsum, result_type, swapaxes
from numjet.numpy.functional import core_sizes, with_checked_results
from numjet.numpy.promote import canonical_axis, join_shapes


# ------------------------------------------------------------------ lines in messages
class Exclusions(set):
    """Files of libraries whose frames no message names as the user's line."""

    def add(self, path: Any) -> None:
        super().add(path)
        trace._internal[path] = True

    def remove(self, path: Any) -> None:
        super().remove(path)
        trace._internal.pop(path, None)

    def discard(self, path: Any) -> None:
        if path in self:
            self.remove(path)


exclude_paths = Exclusions()


def register_exclusion(path: str) -> None:
    """Messages about a traced value name the innermost line outside of numjet and `path`."""
    exclude_paths.add(path)


def api_boundary(fun: Callable, **_: Any) -> Callable:
    """`fun`: tracebacks are shown whole, so that there is nothing to cut at a library's border."""
    return fun


class UnfilteredStackTrace(Exception):
    """Never raised here: tracebacks are not filtered, so none is kept aside."""


def include_frame(frame: Any) -> bool:
    """Whether a traceback shows `frame`: those of registered files are left out."""
    return frame.f_code.co_filename not in exclude_paths


# ------------------------------------------------------------------ arguments
def infer_argnums_and_argnames(
    signature: inspect.Signature,
    argnums: int | Iterable[int] | None,
    argnames: str | Iterable[str] | None,
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Positions and names of the same arguments, where one of them (or neither) is given."""
    only, either = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = signature.parameters.values()
    named = [p.name for p in parameters if p.kind in (only, either)]
    by_name = {p.name for p in parameters if p.kind is either}
    nums = None if argnums is None else (argnums,) if isinstance(argnums, int) else tuple(argnums)
    names = (
        None if argnames is None else (argnames,) if isinstance(argnames, str) else tuple(argnames)
    )
    if nums is None and names is None:
        return (), ()
    if nums is None:
        wanted = by_name.intersection(names or ())
        nums = tuple([i for i, name in enumerate(named) if name in wanted])
    elif names is None:
        names = tuple([named[i] for i in nums if 0 <= i < len(named) and named[i] in by_name])
    return nums, names or ()


def is_vmappable(x: Any) -> bool:
    """Whether `x` is of a class that `batching.register_vmappable` was told of."""
    return type(x) in batching.vmappables


def canonicalize_sharding(
    sharding: Any, api_name: str, check_mesh_consistency: bool = True
) -> NamedSharding | None:
    """`sharding` over the axes of its mesh; a PartitionSpec is one of the current mesh.

    None, and a sharding over no axes, give None. Raises ValueError for a PartitionSpec where no
    mesh is current or that names an axis of type Auto or Manual, and, with
    `check_mesh_consistency`, for a sharding over other axes than the current mesh's; TypeError for
    what is neither.
    """
    if sharding is None:
        return None
    current = get_abstract_mesh()
    if isinstance(sharding, PartitionSpec):
        if not current.axis_names:
            raise ValueError(
                "Using PartitionSpec when you are not under a mesh context is not allowed. Please "
                "pass a NamedSharding instance or enter into a mesh context via `jax.set_mesh`. "
                f"Got {sharding}"
            )
        sharding = NamedSharding(current, sharding)
    elif not isinstance(sharding, NamedSharding):
        raise TypeError(
            f"`out_sharding` argument of {api_name} only supports instances of `NamedSharding` or "
            f"`PartitionSpec`. Got {sharding} of type: {type(sharding)}"
        )
    if not sharding.mesh.axis_names:
        return None
    mesh = sharding.mesh.abstract_mesh
    if check_mesh_consistency and current.axis_names and current != mesh:
        raise ValueError(
            f"Context mesh {current} should match the mesh of sharding {mesh} passed to {api_name}."
        )
    named = [n for part in sharding.spec for n in (part if isinstance(part, tuple) else (part,))]
    hidden = [n for n in named if n in mesh.axis_names and n not in mesh.explicit_axes]
    if hidden:
        raise ValueError(
            f"PartitionSpec passed to {api_name} cannot contain axis names that are of type Auto "
            f"or Manual. Got PartitionSpec: {sharding.spec} with axis name: {hidden[0]}."
        )
    return NamedSharding(mesh, sharding.spec)


# ------------------------------------------------------------------ the state of the process
def trace_state_clean() -> bool:
    """Whether no transformation is under way here."""
    return current_trace() is EVAL


class _TraceContext:
    """Where the current trace is found."""

    @property
    def trace(self) -> trace.Trace:
        """The current trace."""
        return current_trace()


trace_ctx = _TraceContext()


class Backends(Mapping):
    """The backends in use: none, or the CPU's after the first call of `devices`."""

    def __getitem__(self, name: str) -> Any:
        if name not in self._names():
            raise KeyError(name)
        return device_module.devices()[0].client

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())

    @staticmethod
    def _names() -> tuple[str, ...]:
        return () if device_module.before_first_use else ("cpu",)


backends = Backends()


def backends_are_initialized() -> bool:
    """Whether the devices were asked for: their number cannot be changed any more."""
    return not device_module.before_first_use


# ------------------------------------------------------------------ lists of jaxprs' variables
def safe_zip(*args: Iterable[Any]) -> list[tuple]:
    """`list(zip(*args))` of sequences of one length, else ValueError.

    >>> safe_zip([1, 2], "ab")
    [(1, 'a'), (2, 'b')]
    """
    if not args:
        raise TypeError("safe_zip requires at least 1 argument")
    values = [list(x) for x in args]
    for i, x in enumerate(values):
        if len(x) != len(values[0]):
            raise ValueError(
                f"safe_zip() argument {i} has length {len(x)} but argument 0 has length "
                f"{len(values[0])}. All lengths: {tuple(map(len, values))}"
            )
    return list(zip(*values, strict=True))


def unzip2(pairs: Iterable[tuple]) -> tuple[tuple, tuple]:
    """The first and the second members of pairs.

    >>> unzip2([(1, "a"), (2, "b")])
    ((1, 2), ('a', 'b'))
    """
    both = [(a, b) for a, b in pairs]
    return tuple(a for a, _ in both), tuple(b for _, b in both)


def unzip3(triples: Iterable[tuple]) -> tuple[tuple, tuple, tuple]:
    """The first, second and third members of triples."""
    all_ = [(a, b, c) for a, b, c in triples]
    return tuple(a for a, _, _ in all_), tuple(b for _, b, _ in all_), tuple(c for *_, c in all_)


def split_list(args: Iterable[Any], sizes: Iterable[int]) -> list[list]:
    """Parts of the given sizes, and what is left."""
    rest, parts = list(args), []
    for size in sizes:
        parts.append(rest[:size])
        rest = rest[size:]
    return [*parts, rest]


def partition_list(which: Iterable[bool], values: Iterable[Any]) -> tuple[list, list]:
    """The values whose place in `which` is False, and those where it is True."""
    pairs = safe_zip(which, values)
    return [v for chosen, v in pairs if not chosen], [v for chosen, v in pairs if chosen]


def merge_lists(which: Iterable[bool], unchosen: Iterable[Any], chosen: Iterable[Any]) -> list:
    """What `partition_list` took apart, in its order."""
    parts = (iter(unchosen), iter(chosen))
    try:
        merged = [next(parts[bool(b)]) for b in which]
    except StopIteration:
        raise ValueError("merge_lists: `which` asks for more values than the lists have") from None
    if any(True for part in parts for _ in part):
        raise ValueError("merge_lists: `which` asks for fewer values than the lists have")
    return merged


class GlobalState:
    """Which process this is, of how many, and where they tell each other things by name."""

    service = None
    preemption_sync_manager = None

    @property
    def process_id(self) -> int:
        """The number of this process."""
        return Cluster.index

    @property
    def num_processes(self) -> int:
        """How many there are."""
        return Cluster.count

    @property
    def client(self) -> Any:
        """Values by keys and barriers of all processes; None for one alone."""
        if Cluster.transport is None:
            return None
        return importlib.import_module("numjet.cpu.runtime.watch").store()

    @property
    def coordinator_address(self) -> str | None:
        """Where processes that nobody started together have met."""
        return Cluster.address


global_state = GlobalState()


class IfrtPrograms:
    """Programs for plugins of other runtimes: none can be made here, so it has no names."""


def splash_attention(*_: Any, **__: Any) -> Any:
    """Raises NotImplementedError: these kernels, their masks and sizes of blocks are for TPUs."""
    raise NotImplementedError(
        "splash_attention is a kernel for TPUs, which numjet does not have. Use "
        "jax.nn.dot_product_attention (mask=..., is_causal=True, local_window_size=...)."
    )


# ------------------------------------------------------------------ values and avals
def physical_aval(aval: Any) -> Any:
    """The aval of the memory of values of `aval`."""
    return aval


# ------------------------------------------------------------------ pytrees
class RegistryEntry(NamedTuple):
    """How nodes of a type are taken apart: `to_iter(node)` gives the children and static data, of
    which `from_iter(data, children)` makes a node."""

    to_iter: Any
    from_iter: Any


class Registry(Mapping):
    """The types that are registered as pytree nodes."""

    def __contains__(self, cls: Any) -> bool:
        return cls in KINDS

    def __getitem__(self, cls: type) -> Any:
        kind = KINDS[cls]
        return RegistryEntry(kind.flatten, kind.unflatten)

    def __iter__(self) -> Iterator[type]:
        return iter(KINDS)

    def __len__(self) -> int:
        return len(KINDS)


registry = Registry()


# ------------------------------------------------------------------ kinds of values
class ExtendedDType:
    """Base of dtypes that libraries declare. No array has one: asking for it is a TypeError."""


def reconstruct_array(fun: Callable, args: tuple, state: tuple, aval_state: dict) -> Array:
    """The Array of a pickle that JAX wrote: NumPy's way to make one, and the weak type."""
    value = fun(*args)
    value.__setstate__(state)
    weak = aval_state.get("weak_type", False)
    return ArrayImpl(value, ShapedArray(value.shape, value.dtype, weak))


# ------------------------------------------------------------------ dtypes
def to_complex_dtype(dtype: Any) -> np.dtype:
    """The complex dtype whose parts hold numbers of `dtype`."""
    return np.dtype(result_type(dtype, np.complex64))


# ------------------------------------------------------------------ products
# Finders of paths for sizes of other kinds than numbers: opt_einsum's takes them all.
einsum_handlers: dict[type, Callable] = {}


def einsum_of_path(
    operands: Iterable[Any],
    contractions: Iterable[tuple],
    precision: Any,
    preferred_element_type: Any,
    _dot_general: Callable = dot_general,
    out_sharding: Any = None,
) -> Any:
    """The sum of products that opt_einsum's list of contractions describes, in its order.

    operands: arrays. contractions: tuples that begin with the positions of what is multiplied
    (which leaves the list; the result is put at its end), the letters that are summed over, and the
    subscripts. precision, preferred_element_type, _dot_general, out_sharding: as in `einsum`.
    """
    left, asked = list(operands), list(contractions)
    for k, (positions, _, subscripts, *_) in enumerate(asked):
        chosen = [left.pop(i) for i in positions]
        left.append(
            einsum(
                subscripts, *chosen, precision=precision, _dot_general=_dot_general,
                preferred_element_type=preferred_element_type,
                out_sharding=out_sharding if k == len(asked) - 1 else None,
            )
        )  # fmt: skip
    return left[0]


def gmm(
    lhs: Any,
    rhs: Any,
    group_sizes: Any,
    preferred_element_type: Any = np.float32,
    tiling: Any = (128, 128, 128),
    group_offset: Any = None,
    existing_out: Any = None,
    transpose_rhs: bool = False,
    interpret: bool = False,
) -> Array:
    """The rows of `lhs` [m, k], in groups one behind the other, times a matrix for each group.

    rhs: [groups, k, n], or [groups, n, k] with `transpose_rhs`. group_sizes: [groups], integers;
    rows behind the last group give 0. preferred_element_type: dtype of the result. tiling and
    interpret say how a TPU does it, and change nothing. NotImplementedError for `group_offset` and
    `existing_out`, parts of a product over several devices.
    """
    if group_offset is not None or existing_out is not None:
        raise NotImplementedError(
            "gmm: there is no group_offset and no existing_out. Give the groups that rhs has, and "
            "add the results up."
        )
    matrices = swapaxes(rhs, 1, 2) if transpose_rhs else rhs
    return ragged_dot(
        lhs, matrices, group_sizes, preferred_element_type=np.dtype(preferred_element_type)
    )


# ------------------------------------------------------------------ tests
def check_close(
    xs: Any, ys: Any, atol: Any = None, rtol: Any = None, err_msg: str = ""
) -> None:
    """Assert that the leaves of two pytrees are alike. Where no tolerances are given they are 1e-15
    for 64-bit numbers (1e-6 without x64), 1e-6 for 32-bit ones, 1e-3 for float16, 1e-2 for
    bfloat16, 0.1 for shorter ones, 0 for integers. A tolerance may be a dictionary with one
    for each dtype, by type or name; what it lacks has the usual one."""
    tree.tree_map(lambda x, y: _check_leaf(x, y, atol, rtol, err_msg), xs, ys)


def _check_leaf(x: Any, y: Any, atol: Any, rtol: Any, err_msg: str) -> None:
    x, y = np.asarray(x), np.asarray(y)
    names = [canonical(a.dtype).name for a in (x, y)]

    def tolerance(given: Any) -> float:
        if given is not None and not isinstance(given, Mapping):
            return given
        named = {np.dtype(dtype).name: value for dtype, value in (given or {}).items()}
        return max({**_TOLERANCES, **named}.get(name, 0.0) for name in names)

    x, y = [a.astype(np.float32) if a.dtype.kind == "V" else a for a in (x, y)]
    np.testing.assert_allclose(
        x, y, atol=tolerance(atol), rtol=tolerance(rtol), err_msg=err_msg
    )


_TOLERANCES = {
    "float8_e4m3fn": 0.1, "float8_e5m2": 0.1, "bfloat16": 1e-2, "float16": 1e-3, "float32": 1e-6,
    "complex64": 1e-6, "float64": 1e-15, "complex128": 1e-15,
}  # fmt: skip


# ------------------------------------------------------------------ the generator of random bits
def threefry_seed(seed: Any) -> Array:
    """The two words of the key that a seed makes."""
    return random.key_data(random.key(seed, impl="threefry2x32"))


def threefry_split(key: Any, shape: tuple[int, ...]) -> Array:
    """The words of as many keys as `shape` says, derived from the words of one."""
    return random.key_data(random.split(random.wrap_key_data(key, impl="threefry2x32"), shape))


def threefry_random_bits(key: Any, bit_width: int, shape: tuple[int, ...]) -> Array:
    """Random unsigned integers of `bit_width` bits, from the words of a key."""
    made = random.wrap_key_data(key, impl="threefry2x32")
    return random.bits(made, shape, np.dtype(f"uint{bit_width}"))


# The version of jaxlib's extension module that JAX 0.10.2 comes with: which features it has.
jaxlib_extension_version = 467


# ------------------------------------------------------------------ axes
def canonicalize_axis(axis: Any, num_dims: int) -> int:
    """`axis` counted from the front; ValueError where there is no such axis.

    >>> canonicalize_axis(-1, 3)
    2
    """
    return canonical_axis(axis, num_dims)


def index_tuple(x: Any) -> tuple[int, ...]:
    """An integer, or several, as a tuple of Python integers.

    >>> index_tuple(1), index_tuple([1, 2])
    ((1,), (1, 2))
    """
    try:
        return (operator.index(x),)
    except TypeError:
        return tuple(map(operator.index, x))


def is_cuda_compute_capability_at_least(capability: str) -> bool:
    """Whether the GPUs are at least of this compute capability ("9.0"): False where none is."""
    least = tuple(map(int, capability.split(".")))
    found = [str(getattr(d, "compute_capability", "0")) for d in device_module.devices()]
    return all([tuple(map(int, own.split("."))) >= least for own in found])


# ------------------------------------------------------------------ vectorize
def apply_excluded(
    function: Callable, excluded: Iterable[int | str], args: tuple, kwargs: dict
) -> tuple[Callable, list, dict]:
    """`function` of the arguments that are not excluded by place or name, and these."""
    held = {key for key in excluded if key in kwargs or (key in range(len(args)))}
    places = [i for i in range(len(args)) if i not in held]
    fixed = {name: value for name, value in kwargs.items() if name in held}

    def of_the_rest(*values: Any, **named: Any) -> Any:
        full = list(args)
        for place, value in zip(places, values, strict=True):
            full[place] = value
        return function(*full, **named, **fixed)

    rest = {name: value for name, value in kwargs.items() if name not in held}
    return of_the_rest, [args[i] for i in places], rest


def parse_input_dimensions(args: tuple, cores: list[tuple], context: str = "") -> tuple:
    """The shape that the leading axes broadcast to, and the sizes of the named core axes."""
    if len(args) != len(cores):
        raise TypeError(
            f"wrong number of positional arguments: expected {len(cores)}, got {len(args)} "
            f"{context}"
        )
    leads, sizes = core_sizes(args, cores)
    return join_shapes("vectorize", leads, ValueError), sizes


def check_output_dims(function: Callable, sizes: dict, cores: list[tuple], _: str = "") -> Callable:
    """`function`, whose results must have these core axes."""
    return with_checked_results(function, cores, sizes)
