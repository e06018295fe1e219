"""What JAX's `jit` equation says beside its jaxpr and its name: where arguments and results lie,
which arguments were given away, whether it is written in place.

Equations of `make_jaxpr` say it (the flag `jax_equations`), those of programs that run do not. For
`ops.jit_call`, which makes and derives the equations, and `core.jaxpr_print`, which shows of this
what was asked for. What would break it: a derivation that gives other than one entry an operand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numjet.base.class_names import shown_as


@shown_as("UnspecifiedValue")
class UnspecifiedValue:
    """A sharding that nobody asked for."""

    def __repr__(self) -> str:
        return "UnspecifiedValue"

    def __reduce__(self) -> str:
        return "UNSPECIFIED"


UNSPECIFIED = UnspecifiedValue()
# Those that have an entry for each operand, and for each result.
_OF_OPERANDS = {"in_shardings": UNSPECIFIED, "in_layouts": None, "donated_invars": False}
_OF_RESULTS = {"out_shardings": UNSPECIFIED, "out_layouts": None}
# As they are where nobody asked for anything.
_OF_CALL = {"keep_unused": False, "inline": False, "compiler_options_kvs": ()}
NAMES = frozenset((*_OF_OPERANDS, *_OF_RESULTS, *_OF_CALL))


def completed(told: dict[str, Any], n_in: int, n_out: int) -> dict[str, Any]:
    """All of them, of a call of `n_in` operands and `n_out` results; what is missing is neutral.
    Operands before those that entries are there for have none."""
    found = {**_OF_CALL, **told}
    for names, n in ((_OF_OPERANDS, n_in), (_OF_RESULTS, n_out)):
        for name, neutral in names.items():
            given = told.get(name, ())
            found[name] = (neutral,) * (n - len(given)) + tuple(given)
    return found


def derived(
    told: dict[str, Any], ins: Sequence[int | None], outs: Sequence[int | None]
) -> dict[str, Any]:
    """Those of a call that was derived from another: for each operand and each result the place of
    the one that it belongs to, None where there is none."""
    found = {name: value for name, value in told.items() if name in _OF_CALL}
    for names, places in ((_OF_OPERANDS, ins), (_OF_RESULTS, outs)):
        for name, neutral in names.items():
            if name in told:
                found[name] = tuple([neutral if i is None else told[name][i] for i in places])
    return found


def turned(
    told: dict[str, Any], residuals: int, ins: Sequence[int], outs: Sequence[int]
) -> dict[str, Any]:
    """Those of the transposed call: its operands, behind residuals, are cotangents of the results
    at `outs`, its results those of the operands at `ins`. Nothing is given away."""
    found = {name: value for name, value in told.items() if name in _OF_CALL}
    for kind, neutral in (("shardings", UNSPECIFIED), ("layouts", None)):
        if f"in_{kind}" in told:
            given = [told[f"out_{kind}"][i] for i in outs]
            found[f"in_{kind}"] = (neutral,) * residuals + tuple(given)
            found[f"out_{kind}"] = tuple([told[f"in_{kind}"][i] for i in ins])
    return found


def mapped(
    told: dict[str, Any], ins: Sequence[int | None], outs: Sequence[int | None]
) -> dict[str, Any]:
    """Those of the call under `vmap`, where the batch's axis is in each operand and result; it is
    cut over nothing."""
    found = dict(told)
    for name, dims in (("in_shardings", ins), ("out_shardings", outs)):
        if name in told:
            found[name] = tuple(map(_with_axis, told[name], dims))
    return found


def _with_axis(sharding: Any, dim: int | None) -> Any:
    spec = getattr(sharding, "spec", None)
    if spec is None or dim is None:
        return sharding
    entries = [*spec, *[None] * (dim - len(spec))]
    return sharding.update(spec=type(spec)(*entries[:dim], None, *entries[dim:]))


def without_first(told: dict[str, Any], n: int) -> dict[str, Any]:
    """Without the first `n` operands."""
    return {name: value[n:] if name in _OF_OPERANDS else value for name, value in told.items()}


def worth_showing(told: dict[str, Any]) -> dict[str, Any]:
    """Without what nobody asked for."""
    shown = {}
    for name, value in told.items():
        neutral = _OF_OPERANDS.get(name, _OF_RESULTS.get(name, NAMES))
        if name == "inline" or value == _OF_CALL.get(name, NAMES):
            continue
        if neutral is NAMES or any([x is not neutral for x in value]):
            shown[name] = value
    return shown
