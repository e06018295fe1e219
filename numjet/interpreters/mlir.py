"""How primitives of the user's are lowered: `register_lowering` and `lower_fun`.

numjet compiles without MLIR. A rule made of `lower_fun` is traced like every function; of a rule
that asks for MLIR itself compiled programs call the primitive's `def_impl` in Python. The names of
MLIR are there so that such rules can be defined; calling them raises NeedsMLIR, a
NotImplementedError. What would break it: see `extend.primitive`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numjet.api.jit import clear_caches
from numjet.api.sharding import Mesh as Mesh
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


def lower_fun(fun: Callable, multiple_results: bool = True) -> Callable:
    """A lowering rule from a function of arrays, `fun(*arrays, **params)`, that gives a sequence of
    arrays, or one where `multiple_results` is False."""
    return LoweredFun(fun, multiple_results)


def register_lowering(
    prim: Any,
    rule: Callable,
    platform: str | None = None,
    inline: bool = True,
    cacheable: bool = True,
) -> None:
    """Compiled programs run `prim` by `rule(ctx, *values, **params)`.

    A rule for the platform "cpu" goes before one for all; those for others are kept, as every
    program runs on the CPU. inline and cacheable speak of modules that are not made here.
    """
    if prim.expansion is not None:
        prim.lowerings[platform] = rule
    elif platform in (None, "cpu"):
        if not isinstance(rule, LoweredFun):
            raise NeedsMLIR(f"register_lowering: {prim.name} is numjet's own primitive. {NO_MLIR}")
        prim.loops = Expand(rule.fun)
    clear_caches()


def _needs_mlir(name: str, kind: str = "function") -> Any:
    def needs(*_: Any, **__: Any) -> Any:
        raise NeedsMLIR(f"interpreters.mlir.{name} makes a part of an MLIR module. {NO_MLIR}")

    needs.__name__ = needs.__qualname__ = name
    needs.__doc__ = f"Raises NeedsMLIR: {NO_MLIR}"
    return needs


class _Missing:
    """A class of MLIR: it can be named, not made."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise NeedsMLIR(f"interpreters.mlir.{type(self).__name__} is part of MLIR. {NO_MLIR}")


_CLASSES = (
    "ConstantHandler LoweringParameters LoweringResult ModuleContext ReplicaAxisContext "
    "SPMDAxisContext ShapePolyLoweringState ShardingContext Token TokenSet"
).split()
_FUNCTIONS = (
    "aval_to_ir_type aval_to_ir_types core_call_lowering dense_bool_array dense_bool_elements "
    "dense_int_array dense_int_elements dtype_to_ir_type emit_python_callback flatten_ir_types "
    "flatten_ir_values flatten_lowering_ir_args func_dialect hlo i32_attr i64_attr ir_attribute "
    "ir_constant ir_constants ir_type_handlers jaxpr_subcomp lower_jaxpr_to_fun "
    "lower_jaxpr_to_module lower_with_sharding_in_types make_ir_context merge_mlir_modules "
    "module_to_bytecode module_to_string register_constant_handler shape_tensor token_type "
    "unflatten_ir_values_like_types cache_lowering delegate_lowering eval_dynamic_shape"
).split()


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
        found = _needs_mlir(name)
    else:
        raise AttributeError(f"module 'numjet.interpreters.mlir' has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_CLASSES, *_FUNCTIONS})


__all__ = ["LoweringRuleContext", "lower_fun", "lowerable_effects", "register_lowering"]
