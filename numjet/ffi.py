"""Calls of compiled functions by name: XLA's foreign function interface, on the CPU.

A target is a function that a C or C++ compiler made from the interface's headers (or that has its
binary interface): it is called with pointers to the operands and results of the call, with their
shapes and dtypes, and with attributes. Programs call targets from Python, without the interpreter's
lock, as they call `pure_callback`: eagerly, inside of `jit`, of loops and branches, under `vmap` by
`vmap_method`. The headers come with jaxlib's wheel (`include_dir`).
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from numjet.api.placement.layout import Layout
from numjet.base import ffi_structs as structs
from numjet.core import dtypes, ffi_api, ffi_targets
from numjet.core.array import as_array
from numjet.core.avals import ShapedArray
from numjet.core.ffi_api import FfiError
from numjet.extend.primitive import NeedsMLIR, Value
from numjet.ops.callback import VMAP_METHODS
from numjet.ops.foreign import ffi_call_p, hashable
from numjet.random.keys import key_data, wrap_key_data

_STAGES = ("instantiate", "prepare", "initialize", "execute")


# ------------------------------------------------------------------ calls
def _results(result_shape_dtypes: Any) -> tuple[list[Any], type | None]:
    """What each result is like, and the type of the sequence (None: one result)."""
    several = isinstance(result_shape_dtypes, tuple | list)
    specs = list(result_shape_dtypes) if several else [result_shape_dtypes]
    for i, spec in enumerate(specs):
        if not (hasattr(spec, "shape") and hasattr(spec, "dtype")):
            raise ValueError(
                "All elements of result_shape_dtypes must have 'shape' and 'dtype' attributes. Got "
                f"{spec} at position {i}."
            )
    return specs, type(result_shape_dtypes) if several else None


def _is_key(x: Any) -> bool:
    return dtypes.is_key(getattr(x, "dtype", None))


def _stored(spec: Any) -> ShapedArray:
    """The aval of a result in a handler's memory: keys are words there."""
    if _is_key(spec):
        return ShapedArray((*spec.shape, spec.dtype.itemsize // 4), dtypes.uint32)
    return ShapedArray(tuple(spec.shape), dtypes.native(spec.dtype))


def _fastest_first(layout: Any, aval: ShapedArray, keys: bool, what: str) -> tuple[int, ...]:
    """A layout's axes from the fastest on. keys: the array holds words of keys, which lie side by
    side; their axis is no part of the layout."""
    rank = len(aval.shape)
    if layout is None:
        return tuple(range(rank))[::-1]
    order = tuple(layout.major_to_minor if isinstance(layout, Layout) else layout)
    if keys:
        order = (*order, rank - 1)
    if any([not isinstance(axis, int) for axis in order]) or sorted(order) != list(range(rank)):
        raise ValueError(
            f"ffi_call: incorrect layout {order} of {what}, {aval.str_short()}: the layout must be "
            f"a permutation of [0, {rank})."
        )
    return order[::-1]


def _aliases(
    given: dict[int, int] | None, args: Sequence[Any], results: Sequence[ShapedArray]
) -> tuple[tuple[int, int], ...]:
    found = tuple([(int(i), int(o)) for i, o in (given or {}).items()])
    for i, o in found:
        told = f"input_output_aliases contains the mapping '{i}:{o}'"
        if not 0 <= i < len(args):
            raise ValueError(f"{told} with input index {i} outside the range [0, {len(args)}).")
        if not 0 <= o < len(results):
            raise ValueError(
                f"{told} with output index {o} outside the range [0, {len(results)})."
            )
        have, want = args[i].aval, results[o]
        if (have.shape, have.dtype) != (want.shape, want.dtype):
            raise ValueError(
                f"{told} referring to an input with abstract value {have.str_short()} and an "
                f"output with a different abstract value {want.str_short()}."
            )
    return found


def _operand(x: Any) -> Any:
    try:
        found = as_array(x)
    except TypeError:
        raise TypeError(
            f"Argument '{x}' of type '{type(x)}' is not a valid JAX type: ffi_call takes arrays "
            "and numbers."
        ) from None
    return key_data(found) if dtypes.is_key(found.dtype) else found


def _check_versions(version: int, text: str | None, attributes: dict) -> None:
    if version >= 4 and text is not None:
        raise ValueError(
            "The use of the legacy_backend_config parameter requires custom_call_api_version < 4; "
            f"got {version}."
        )
    if version < 4 and attributes:
        raise ValueError(
            "The use of ffi_call attributes requires a custom call API version of at least 4; got "
            f"api_version={version}."
        )


def ffi_call(
    target_name: str,
    result_shape_dtypes: Any,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_layouts: Sequence[Any] | None = None,
    output_layouts: Any = None,
    input_output_aliases: dict[int, int] | None = None,
    custom_call_api_version: int = 4,
    legacy_backend_config: str | None = None,
) -> Callable[..., Any]:
    """A function that calls the target of a name.

    It takes arrays, and attributes by name: a bool, int (64 bits), float (64 bits), a NumPy scalar
    or array of these, a string, or a dictionary of attributes. Its result is an array, or a tuple
    or list of them, as result_shape_dtypes is.

    target_name: what `register_ffi_target` was given. result_shape_dtypes: an object with shape and
    dtype, or a tuple or list of them. has_side_effect: the call is kept where nobody reads its
    results. vmap_method: as of `pure_callback`. input_layouts, output_layouts: for each operand and
    result None, or its axes from the slowest to the fastest (a sequence or a `Layout`), in which
    order its memory is handed over. input_output_aliases: which operand's memory is which result's
    too; the target gets a copy of the operand there. custom_call_api_version: 4; of targets that
    were registered with api_version 0: 1 for functions of results and operands, 2 with a status, 3
    with legacy_backend_config before that.

    Raises ValueError for layouts and aliases that do not fit, TypeError for attributes of other
    types, JaxRuntimeError for what the target tells and where there is none. Raises ValueError
    where it is differentiated: give it a rule with `custom_jvp` or `custom_vjp`.

    >>> import ctypes
    >>> import numjet as nj, numjet.numpy as jnp
    >>> from numjet import ffi
    >>> @ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_float), ctypes.POINTER(ctypes.c_void_p))
    ... def negated(out, ins):
    ...     out[0] = -ctypes.c_float.from_address(ins[0]).value
    >>> ffi.register_ffi_target("negated", ffi.pycapsule(negated), api_version=0)
    >>> spec = nj.ShapeDtypeStruct((), jnp.float32)
    >>> call = ffi.ffi_call("negated", spec, custom_call_api_version=1)
    >>> print(nj.jit(call)(2.0))
    -2.0
    """
    if vmap_method is not None and vmap_method not in VMAP_METHODS:
        raise ValueError(
            f"vmap_method must be on of the allowed methods {[*VMAP_METHODS, None]}, but got: "
            f"{vmap_method} (ffi_call)."
        )
    specs, several = _results(result_shape_dtypes)
    results = [_stored(spec) for spec in specs]
    layouts = [None] * len(specs) if output_layouts is None else output_layouts
    if several is None and output_layouts is not None:
        layouts = [output_layouts]
    if len(layouts) != len(specs):
        raise ValueError(
            f"The number of outputs ({len(specs)}) must equal the number of output layouts "
            f"({len(layouts)})."
        )

    def call(*args: Any, **attributes: Any) -> Any:
        operands = [_operand(x) for x in args]
        _check_versions(custom_call_api_version, legacy_backend_config, attributes)
        given = [None] * len(args) if input_layouts is None else input_layouts
        if len(given) != len(args):
            raise ValueError(
                f"The number of input arguments ({len(args)}) must equal the number of input "
                f"layouts ({len(given)})."
            )
        outs = ffi_call_p.bind(
            *operands,
            target_name=target_name,
            attributes=tuple([(k, hashable(k, x)) for k, x in sorted(attributes.items())]),
            result_avals=tuple(results),
            has_side_effect=bool(has_side_effect),
            vmap_method=vmap_method,
            input_layouts=tuple([
                _fastest_first(layout, x.aval, _is_key(arg), "an operand")
                for layout, x, arg in zip(given, operands, args, strict=True)
            ]),
            output_layouts=tuple([
                _fastest_first(layout, aval, _is_key(spec), "a result")
                for layout, aval, spec in zip(layouts, results, specs, strict=True)
            ]),
            input_output_aliases=_aliases(input_output_aliases, operands, results),
            custom_call_api_version=custom_call_api_version,
            legacy_backend_config=legacy_backend_config,
            instance=None,
        )  # fmt: skip
        outs = [
            wrap_key_data(x, dtype=spec.dtype) if _is_key(spec) else x
            for x, spec in zip(outs, specs, strict=True)
        ]
        return outs[0] if several is None else several(outs)

    return call


# ------------------------------------------------------------------ lowerings
class _Operation:
    """A call within a lowering rule; `results`: a list of what the rule gives."""

    def __init__(self, results: list[Value]) -> None:
        self.results = results

    @property
    def result(self) -> Value:
        (found,) = self.results
        return found


# What of an operation's description has to do with modules alone.
_UNREAD = frozenset(["extra_attributes", "result_types", "called_computations"])


def _lowering_layouts(layouts: Sequence[Any] | None) -> list[Any] | None:
    """Layouts of a rule, where a tuple begins with the fastest axis, from the slowest on."""
    if layouts is None:
        return None
    return [x if x is None or isinstance(x, Layout) else tuple(x)[::-1] for x in layouts]


def build_ffi_lowering_function(
    call_target_name: str,
    *,
    operand_layouts: Sequence[Any] | None = None,
    result_layouts: Sequence[Any] | None = None,
    backend_config: Mapping[str, Any] | str | None = None,
    skip_ffi_layout_processing: bool = False,
    **lowering_args: Any,
) -> Callable[..., Any]:
    """As `ffi_lowering`, but the rule gives an operation, whose `results` are a list.

    call_target_name, operand_layouts, result_layouts, backend_config, lowering_args: as of
    `ffi_lowering`. skip_ffi_layout_processing: layouts are written in MLIR, so that none may be
    given.

    Raises NotImplementedError for what only MLIR's operations have.

    >>> from numjet import ffi
    >>> callable(ffi.build_ffi_lowering_function("negated"))
    True
    """
    options = dict(lowering_args)
    version = int(options.pop("api_version", 4))
    aliases = options.pop("operand_output_aliases", None)
    effects = bool(options.pop("has_side_effect", False))
    unread = [name for name in options if name not in _UNREAD or options[name]]
    if unread or skip_ffi_layout_processing and (operand_layouts or result_layouts):
        raise NeedsMLIR(
            f"ffi_lowering: {', '.join(unread) or 'layouts'} of {call_target_name} are MLIR's, "
            "which numjet has not. Call ffi.ffi_call in mlir.lower_fun(function of arrays)."
        )
    text = backend_config if isinstance(backend_config, str) else None
    fixed = dict(backend_config) if isinstance(backend_config, Mapping) else {}

    def rule(ctx: Any, *operands: Any, **params: Any) -> _Operation:
        call = ffi_call(
            call_target_name,
            tuple(ctx.avals_out),
            has_side_effect=effects,
            input_layouts=_lowering_layouts(operand_layouts),
            output_layouts=_lowering_layouts(result_layouts),
            input_output_aliases=aliases,
            custom_call_api_version=version,
            legacy_backend_config=text,
        )
        given = [x.array if type(x) is Value else x for x in operands]
        return _Operation([Value(x) for x in call(*given, **fixed, **params)])

    return rule


def ffi_lowering(
    call_target_name: str,
    *,
    operand_layouts: Sequence[Any] | None = None,
    result_layouts: Sequence[Any] | None = None,
    backend_config: Mapping[str, Any] | str | None = None,
    skip_ffi_layout_processing: bool = False,
    **lowering_args: Any,
) -> Callable[..., Any]:
    """A rule for `interpreters.mlir.register_lowering`: the primitive is a call of a target, whose
    attributes are the primitive's params.

    call_target_name: what `register_ffi_target` was given. operand_layouts, result_layouts: for
    each None, a `Layout`, or axes from the fastest to the slowest. backend_config: a dictionary of
    more attributes, or the text of the older interface. skip_ffi_layout_processing: layouts are
    written in MLIR, so that none may be given. lowering_args: has_side_effect,
    operand_output_aliases (`input_output_aliases` of `ffi_call`) and api_version.

    Raises NotImplementedError for what only MLIR's operations have.

    >>> from numjet import ffi
    >>> from numjet.extend.core import Primitive
    >>> from numjet.interpreters import mlir
    >>> mlir.register_lowering(Primitive("negate"), ffi.ffi_lowering("negated"), platform="cpu")
    """
    build = build_ffi_lowering_function(
        call_target_name,
        operand_layouts=operand_layouts,
        result_layouts=result_layouts,
        backend_config=backend_config,
        skip_ffi_layout_processing=skip_ffi_layout_processing,
        **lowering_args,
    )

    def rule(ctx: Any, *operands: Any, **params: Any) -> list[Any]:
        return build(ctx, *operands, **params).results  # type: ignore[no-any-return]

    return rule


# ------------------------------------------------------------------ targets
def _address(capsule: Any, what: str) -> int:
    """The pointer in a capsule, whatever name it has."""
    if type(capsule).__name__ != "PyCapsule":
        raise FfiError(
            structs.INVALID_ARGUMENT,
            f"Unsupported custom call target type for {what}: {type(capsule).__name__}. Wrap a "
            "function of ctypes with ffi.pycapsule.",
        )
    api = ctypes.pythonapi
    name = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(("PyCapsule_GetName", api))
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
        ("PyCapsule_GetPointer", api)
    )
    return int(pointer(capsule, name(capsule)))


def register_ffi_target(
    name: str, fn: Any, platform: str = "cpu", api_version: int = 1, **kwargs: Any
) -> None:
    """Make a compiled function known under a name.

    name: what `ffi_call` asks for. fn: a capsule that holds its address (`pycapsule`), or a
    dictionary of capsules: its handlers by the stages "instantiate" and "execute"; the others run
    on GPUs alone. platform: "cpu"; functions for others are kept, and never called. api_version: 1
    for handlers of XLA's typed interface, 0 for functions `f(result, operands)` of the older one.
    kwargs: traits, which tell what graphs of CUDA may hold.

    Raises JaxRuntimeError where another function has the name and for handlers that were compiled
    for another version of the interface, TypeError where fn is None.

    >>> from numjet import ffi
    >>> ffi.register_ffi_target("fft_on_gpu", None, platform="CUDA")  # kept for a GPU
    """
    unknown = sorted(set(kwargs) - {"traits"})
    if unknown:
        raise TypeError(f"register_ffi_target() got an unexpected keyword argument {unknown[0]!r}")
    if isinstance(name, bytes):
        name = name.decode()
    if api_version not in (0, 1):
        raise FfiError(
            structs.UNIMPLEMENTED,
            f"API version {api_version} is not supported by register_ffi_target. Supported "
            "versions are 0 and 1.",
        )
    if ffi_targets.platform_name(platform) != "host":
        return
    if fn is None:
        raise TypeError(
            f"register_ffi_target: incompatible function arguments: the target {name!r} is None."
        )
    what = f"api_version={api_version}"
    if isinstance(fn, dict) and api_version == 1:
        stages = {k: _address(x, what) for k, x in fn.items() if k in _STAGES}
    else:
        stages = {"execute": _address(fn, what)}
    ffi_targets.register(name, platform, stages, typed=api_version == 1)


def register_ffi_target_as_batch_partitionable(name: str) -> None:
    """Tell that a target computes each example of a batch by itself.

    Arrays that are cut over devices are given to targets whole all the same, and the results are
    right either way.

    name: the target's.

    >>> from numjet import ffi
    >>> ffi.register_ffi_target_as_batch_partitionable("negated")
    """
    if not isinstance(name, str):
        raise TypeError(
            f"register_ffi_target_as_batch_partitionable: expected a name, got {name!r}."
        )


def register_ffi_type(name: str, type_registration: Any, platform: str = "cpu") -> None:
    """Give the type of a target's state its number; before the target is registered.

    name: the type's, of which there is one in the process. type_registration: a dictionary with
    capsules: "type_id" points to where the number is written, "type_info" (if any) to what tells
    how a state is deleted. platform: "cpu"; types for others are not registered.

    Raises JaxRuntimeError for what is no such dictionary, and where the name has another number.

    >>> from numjet import ffi
    >>> import ctypes
    >>> number = ctypes.c_int64(0)
    >>> ffi.register_ffi_type("counter", {"type_id": ffi.pycapsule(ctypes.addressof(number))})
    >>> number.value > 0
    True
    """
    if ffi_targets.platform_name(platform) != "host":
        return
    if not isinstance(type_registration, dict) or "type_id" not in type_registration:
        raise FfiError(
            structs.INVALID_ARGUMENT,
            "The type_id argument to register_custom_call_type must be a dictionary holding a "
            "pointer to a XLA_FFI_TypeId in `type_id` and optional pointer to a XLA_FFI_TypeInfo "
            "in `type_info` fields.",
        )
    info = type_registration.get("type_info")
    ffi_api.register_type(
        name,
        _address(type_registration["type_id"], "a type's number"),
        None if info is None else _address(info, "a type's description"),
    )


def register_ffi_type_id(name: str, obj: Any, platform: str = "cpu") -> None:
    """Raises ValueError, as in JAX: use `register_ffi_type`, which is told how states are deleted.

    name, obj, platform: what it took.

    >>> from numjet import ffi
    >>> ffi.register_ffi_type_id("t", None)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
        ...
    ValueError: ...
    """
    raise ValueError(
        "register_ffi_type_id is not supported any more. Use register_ffi_type(name, {'type_id': "
        "capsule, 'type_info': capsule})."
    )


def pycapsule(funcptr: Any) -> Any:
    """The address of a compiled function in a capsule, as `register_ffi_target` takes it.

    funcptr: a function of a library that ctypes loaded, a callback that it made (which has to stay
    alive), a pointer or an address. Raises ValueError for null.

    >>> import ctypes
    >>> from numjet import ffi
    >>> type(ffi.pycapsule(ctypes.pythonapi.Py_IsInitialized)).__name__
    'PyCapsule'
    """
    made = ctypes.PYFUNCTYPE(
        ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
    )(("PyCapsule_New", ctypes.pythonapi))
    pointer = funcptr if isinstance(funcptr, int) else ctypes.cast(funcptr, ctypes.c_void_p).value
    return made(pointer, None, None)


def include_dir() -> str:
    """The folder of the interface's headers (`xla/ffi/api/ffi.h`), which come with jaxlib.

    They are jaxlib's own; numjet reads none of them. Raises FileNotFoundError where jaxlib is not
    installed.

    >>> from numjet import ffi
    >>> ffi.include_dir()  # doctest: +SKIP
    '/usr/lib/python3/dist-packages/jaxlib/include'
    """
    found = importlib.util.find_spec("jaxlib")
    for folder in (found.submodule_search_locations or []) if found else []:
        path = os.path.join(folder, "include")
        if os.path.isdir(path):
            return path
    raise FileNotFoundError(
        "ffi.include_dir: the headers of XLA's foreign function interface are a part of jaxlib, "
        "which is not installed. Install it, or unpack its wheel (pip download jaxlib --no-deps), "
        "whose folder it is."
    )


__all__ = [
    "build_ffi_lowering_function", "ffi_call", "ffi_lowering", "include_dir", "pycapsule",
    "register_ffi_target", "register_ffi_target_as_batch_partitionable", "register_ffi_type",
    "register_ffi_type_id",
]  # fmt: skip


def __dir__() -> list[str]:
    return [*__all__]
