"""How primitives of the user's are lowered: `register_lowering` and `lower_fun`.

numjet compiles without MLIR. A rule made of `lower_fun` is traced like every function; of a rule
that asks for MLIR itself compiled programs call the primitive's `def_impl` in Python. The names of
MLIR are there so that such rules can be defined; calling them raises NeedsMLIR, a
NotImplementedError. What would break it: see `extend.primitive`.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from numjet.api.compiled.jit import clear_caches
from numjet.api.placement.mesh import Mesh as Mesh
from numjet.core.lowering import Expand
from numjet.extend.primitive import (
    NO_MLIR,
    LoweredFun,
    LoweringContext as LoweringRuleContext,
    NeedsMLIR as NeedsMLIR,
    Value as Value,
    lowerable_effects as lowerable_effects,
)

LoweringRule = Callable
MeshAxisName = AxisContext = Any


def lower_fun(fun: Callable, multiple_results: bool = True) -> Callable:
    """A lowering rule from a function of arrays.

    fun(*arrays, **params): gives a sequence of arrays, or one where multiple_results is False.
    Result: a rule (ctx, *values, **params) for `register_lowering`.

    >>> from numjet.interpreters import mlir
    >>> callable(mlir.lower_fun(lambda x: x + 1, multiple_results=False))
    True
    """
    return LoweredFun(fun, multiple_results)


# Those that rules may be for; programs run on the CPU.
_PLATFORMS = ("cpu", "cuda", "gpu", "oneapi", "rocm", "tpu")


def register_lowering(
    prim: Any,
    rule: Callable,
    platform: str | None = None,
    inline: bool = True,
    cacheable: bool = True,
) -> None:
    """Have compiled programs run a primitive by a rule.

    prim: a primitive of `extend.core.Primitive`. rule(ctx, *values, **params): gives the results,
    as `lower_fun` makes it. platform: a rule for "cpu" goes before one for all (None); those for
    others are kept, as every program runs on the CPU. inline and cacheable speak of modules that
    are not made here.

    >>> from numjet.extend.core import Primitive
    >>> from numjet.interpreters import mlir
    >>> mlir.register_lowering(Primitive("twice"), mlir.lower_fun(lambda x: 2 * x, False))
    """
    if platform is not None and platform not in _PLATFORMS:
        raise NotImplementedError(
            f"Registering an MLIR lowering rule for primitive {prim} for an unknown platform "
            f"{platform}. Known platforms are: {', '.join(_PLATFORMS)}."
        )
    if prim.expansion is not None:
        before = prim.lowering
        prim.lowerings[platform] = rule
        if before is None or before is prim.lowering:
            return  # no program was compiled by another rule: a library's import forgets nothing
    elif platform not in (None, "cpu"):
        return
    else:
        if not isinstance(rule, LoweredFun):
            raise NeedsMLIR(f"register_lowering: {prim.name} is numjet's own primitive. {NO_MLIR}")
        prim.loops = Expand(rule.fun)
    clear_caches()


def _needs_mlir(name: str, parameters: str = "*args, **kwargs") -> Any:
    def needs(*_: Any, **__: Any) -> Any:
        raise NeedsMLIR(f"interpreters.mlir.{name} makes a part of an MLIR module. {NO_MLIR}")

    needs.__name__ = needs.__qualname__ = name
    needs.__signature__ = _signature(parameters)  # type: ignore[attr-defined]
    needs.__doc__ = f"Raises NeedsMLIR: {NO_MLIR}"
    return needs


def _signature(parameters: str) -> inspect.Signature:
    """The signature that a list of parameters, as in a definition, stands for."""
    found: list[inspect.Parameter] = []
    kind: Any = inspect.Parameter.POSITIONAL_OR_KEYWORD
    for text in filter(None, parameters.split(", ")):
        name, equals, default = text.partition("=")
        if name == "*":
            kind = inspect.Parameter.KEYWORD_ONLY
        elif name.startswith("**"):
            found.append(inspect.Parameter(name[2:], inspect.Parameter.VAR_KEYWORD))
        elif name.startswith("*"):
            found.append(inspect.Parameter(name[1:], inspect.Parameter.VAR_POSITIONAL))
            kind = inspect.Parameter.KEYWORD_ONLY
        else:
            value = ast.literal_eval(default) if equals else inspect.Parameter.empty
            found.append(inspect.Parameter(name, kind, default=value))
    return inspect.Signature(found)


class _Missing:
    """A class of MLIR: it can be named, not made."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise NeedsMLIR(f"interpreters.mlir.{type(self).__name__} is part of MLIR. {NO_MLIR}")


_CLASSES = (
    "ConstantHandler LoweringParameters LoweringResult ModuleContext ReplicaAxisContext "
    "SPMDAxisContext ShapePolyLoweringState ShardingContext Token TokenSet"
).split()
# Functions of MLIR, with what they take.
_FUNCTIONS = {
    "aval_to_ir_type": "ctx, aval",
    "aval_to_ir_types": "ctx, aval",
    "core_call_lowering": "ctx, *args, name, backend=None, call_jaxpr",
    "dense_int_array": "*args, **kwargs",
    "dense_int_elements": "xs",
    "dtype_to_ir_type": "dtype",
    "emit_python_callback": "ctx, callback, token, operands, operand_avals, result_avals, *, "
    "has_side_effect, returns_token=True, partitioned=False, sharding=None",
    "flatten_ir_types": "xs",
    "flatten_ir_values": "xs",
    "ir_constant": "val, *, const_lowering=None, aval=None",
    "ir_constants": "val, *, const_lowering=None, aval=None",
    "jaxpr_subcomp": "ctx, jaxpr, name_stack, tokens, consts_for_constvars, *args, "
    "dim_var_values, const_lowering, outer_traceback",
    "lower_jaxpr_to_fun": "ctx, name, jaxpr, effects, *, num_const_args, main_function=False, "
    "replicated_args=None, in_avals, arg_shardings=None, result_shardings=None, "
    "use_sharding_annotations=True, input_output_aliases=None, xla_donated_args=None, "
    "arg_names=None, result_names=None, arg_memory_kinds=None, result_memory_kinds=None, "
    "arg_layouts=None, result_layouts=None, propagated_out_mem_kinds=None",
    "lower_jaxpr_to_module": "module_name, jaxpr, *, num_const_args, in_avals, ordered_effects, "
    "platforms, backend, axis_context, donated_args, replicated_args=None, arg_shardings=None, "
    "result_shardings=None, in_layouts=None, out_layouts=None, arg_names=None, "
    "result_names=None, num_partitions=1, all_default_mem_kind=True, "
    "input_output_aliases=None, propagated_out_mem_kinds=None, lowering_parameters",
    "make_ir_context": "",
    "merge_mlir_modules": "dst_module, sym_name, src_module, dst_symtab=None",
    "module_to_bytecode": "module",
    "module_to_string": "module, enable_debug_info=None",
    "register_constant_handler": "type_, handler_fun",
    "shape_tensor": "ctx, sizes",
    "token_type": "*args, **kwargs",
    "unflatten_ir_values_like_types": "xs, ys",
}


def ir_attribute(val: Any) -> Any:
    """An attribute of an operation: the value itself, as `ffi.ffi_lowering` takes it.

    val: a number, a string or an array.

    >>> from numjet.interpreters import mlir
    >>> mlir.ir_attribute("left")
    'left'
    """
    return val


def i32_attr(i: int) -> np.int32:
    """A number of 32 bits as an attribute.

    i: the number.

    >>> from numjet.interpreters import mlir
    >>> mlir.i32_attr(3).dtype
    dtype('int32')
    """
    return np.int32(i)


def i64_attr(i: int) -> np.int64:
    """A number of 64 bits as an attribute.

    i: the number.

    >>> from numjet.interpreters import mlir
    >>> mlir.i64_attr(3).dtype
    dtype('int64')
    """
    return np.int64(i)


class _Dialect:
    """A module of MLIR, such as `ir` and `hlo`: using a name of it raises NeedsMLIR."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _needs_mlir(f"{self._name}.{name}")


ir = _Dialect("ir")
hlo = _Dialect("hlo")
ir_type_handlers: dict = {}
ir_tree_registry: dict = {}
# Numbers that name transfers in modules, as other code of the programming model has them.
DEVICE_TO_DEVICE_TYPE, SEND_TO_HOST_TYPE, RECV_FROM_HOST_TYPE = 1, 2, 3


def __getattr__(name: str) -> Any:
    if name in _CLASSES:
        found: Any = type(name, (_Missing,), {"__doc__": f"Part of MLIR. {NO_MLIR}"})
    elif name in _FUNCTIONS:
        found = _needs_mlir(name, _FUNCTIONS[name])
    else:
        raise AttributeError(f"module 'numjet.interpreters.mlir' has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_CLASSES, *_FUNCTIONS})


__all__ = [
    "LoweringRuleContext", "i32_attr", "i64_attr", "ir_attribute", "lower_fun", "lowerable_effects",
    "register_lowering",
]  # fmt: skip
