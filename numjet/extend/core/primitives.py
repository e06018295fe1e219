"""The primitives under the names of `jax.extend.core.primitives`: `sin_p`, `scan_p`, `jit_p`, ...

Each is the record that `numjet`'s own equations hold, so that programs compare an equation's
primitive with it. `call_p` and `closed_call_p` are calls of a jaxpr that stay calls. What would
break it: a record that is renamed; `_OTHER` has the names that differ.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from numjet.core.jaxpr import ClosedJaxpr, Jaxpr, eval_closed
from numjet.core.primitive import REGISTRY
from numjet.core.ref_equations import get_p as get_p, swap_p as swap_p
from numjet.extend.linear_util import WrappedFun
from numjet.extend.primitive import LoweredFun, Primitive
from numjet.transforms.batch import Axis
from numjet.transforms.calls import call_batch, call_jvp, call_transpose

# Names whose record is called otherwise: `name_p` is the record `name` else.
_OTHER = {
    "add_jaxvals_p": "add_any",
    "linear_solve_p": "custom_linear_solve",
    "remat_p": "remat2",
    "scatter_add_p": "scatter-add",
    "scatter_max_p": "scatter-max",
    "scatter_min_p": "scatter-min",
    "scatter_mul_p": "scatter-mul",
    "scatter_sub_p": "scatter-sub",
}
# Modules that hold primitives and load when they are first used.
_LATER = (
    "api.callbacks api.derivatives.implicit custom_batching lax random ops.random_bits ops.linalg "
    "ops.collective ops.permute api.maps.custom_partition experimental.checkify"
).split()


class CallPrimitive(Primitive):
    """A call of a jaxpr, its param `call_jaxpr` (closed, or without constants)."""

    call_primitive = True

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.multiple_results = True
        self.def_impl(self._run)
        self.def_effectful_abstract_eval(
            lambda *avals, call_jaxpr, **_: (_closed(call_jaxpr).out_avals, call_jaxpr.effects)
        )
        self.lowerings[None] = LoweredFun(self._run, multiple_results=True)
        self.jvp_rule, self.fancy_batch_rule = self._call_jvp, self._call_batch
        self.transpose = self._call_transpose

    def _run(self, *args: Any, call_jaxpr: Any, **_: Any) -> list[Any]:
        closed = _closed(call_jaxpr)
        return eval_closed(closed, *args)

    def _again(self, params: dict) -> Any:
        def bind(closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
            return self.bind(*args, **{**params, "call_jaxpr": closed})

        return bind

    def _call_jvp(self, primals: Any, tangents: Any, *, call_jaxpr: Any, **params: Any) -> tuple:
        return call_jvp(self._again(params), _closed(call_jaxpr), tuple(primals), tuple(tangents))

    def _call_batch(
        self, axis: Any, args: Any, dims: Any, *, call_jaxpr: Any, **params: Any
    ) -> tuple:
        mapped = Axis(axis.size, axis.name, axis.spmd_name)
        return call_batch(
            self._again(params), _closed(call_jaxpr), mapped, tuple(args), tuple(dims)
        )

    def _call_transpose(self, cts: Any, *args: Any, call_jaxpr: Any, **params: Any) -> list:
        return call_transpose(self._again(params), _closed(call_jaxpr), cts, args)


def _closed(call_jaxpr: Any) -> ClosedJaxpr:
    return ClosedJaxpr(call_jaxpr, []) if isinstance(call_jaxpr, Jaxpr) else call_jaxpr


def call_impl(f: WrappedFun, *args: Any, **params: Any) -> Any:
    """Call a wrapped function: how a call that an equation holds is evaluated.

    f: what `linear_util.wrap_init` gave. args: its arguments; params: what the equation says of the
    call, which the function has already. Result: what f gives.

    >>> from numjet.extend import core, linear_util
    >>> core.call_impl(linear_util.wrap_init(lambda x: [x + 1]), 2, name="f")
    [3]
    """
    del params  # what an equation says of the call; the function has its arguments
    return f.call_wrapped(*args)


call_p = CallPrimitive("call")
closed_call_p = CallPrimitive("closed_call")


def registered(name: str) -> Any:
    """The primitive of a name, from a module that loads later, too.

    name: as jaxprs print it. Result: the record, None where there is none.

    >>> from numjet.extend.core import primitives
    >>> primitives.registered("sin")
    sin
    """
    for module in ("", *_LATER):
        if module:
            importlib.import_module(f"numjet.{module}")
        if name in REGISTRY:
            return REGISTRY[name]
    return None


def __getattr__(name: str) -> Any:
    if name.endswith("_p"):
        found = registered(_OTHER.get(name, name.removesuffix("_p")))
        if found is not None:
            globals()[name] = found
            return found
    raise AttributeError(
        f"module 'numjet.extend.core.primitives' has no attribute {name!r}: numjet has no such "
        "primitive (its operations are made of others)."
    )


def __dir__() -> list[str]:
    importlib.import_module("numjet.lax")
    ours = {record: name for name, record in _OTHER.items()}
    names = [ours.get(record, record + "_p") for record in REGISTRY]
    return sorted({*globals(), "random_gamma_p", *[name for name in names if name.isidentifier()]})
