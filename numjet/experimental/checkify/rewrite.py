"""A checked program: a jaxpr with checks made into one that also returns its first error.

`find_sites(jaxpr, categories)` lists, in the order of the program, the places that may report an
error; `run(...)` evaluates the jaxpr under the current trace and keeps, in a `Report`, the number
of the first site that failed and what it had to tell. Loops carry the report, branches return it.

Called by `checkify` alone. What would break it: a primitive that holds jaxprs under other names
than those below - then `find_sites` refuses it if there is a `check` inside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from numjet.base import config
from numjet.core import dtypes
from numjet.core.avals import ShapedArray
from numjet.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Literal, subjaxprs
from numjet.core.structural import zeros
from numjet.core.trace import aval_of
from numjet.experimental.checkify.sites import (
    CHECKS,
    DivisionByZeroError,
    FailedCheckError,
    IndexMessage,
    NaNError,
    OOBError,
    PlainMessage,
    Site,
    check_p,
)
from numjet.numpy import any as jnp_any, argmax, asarray, isnan, logical_and, stack, take, where
from numjet.ops.bodies import split
from numjet.ops.while_loop import MAPPED
from numjet.transforms.stage import stage_closed

Categories = frozenset[type]
_INT = ShapedArray((), dtypes.int32)
# Operations that only move or choose values: a NaN in their result was one before.
_MOVES = frozenset(
    "abs broadcast_in_dim clamp concatenate conj convert_element_type copy copy_p dynamic_slice "
    "dynamic_update_slice expand_dims gather imag max min name neg pad real reduce_max reduce_min "
    "reduce_precision reshape rev scatter select_n sign slice sort squeeze stop_gradient transpose "
    "device_put argmax argmin reduce_window_max reduce_window_min cummax cummin".split()
)
_CUSTOM = ("custom_jvp_call", "custom_vjp_call")


class Report:
    """The first error so far: `code` is 0, or the number of its site from 1; `payloads` what the
    sites have to tell, a list for each."""

    __slots__ = ("code", "payloads")

    def __init__(self, code: Any, payloads: list[list[Any]]) -> None:
        self.code, self.payloads = code, payloads

    @classmethod
    def empty(cls, sites: Sequence[Site]) -> Report:
        return cls(zeros(_INT), [[zeros(a) for a in site.avals] for site in sites])

    def add(self, number: int, bad: Any, values: Sequence[Any]) -> None:
        """Site `number` (from 0) failed if `bad`; only the first failure is kept."""
        first = logical_and(bad, self.code == 0)
        self.code = where(first, asarray(number + 1, dtypes.int32), self.code)
        self.payloads[number] = [
            where(first, new if new.dtype == old.dtype else new.astype(old.dtype), old)
            for new, old in zip(values, self.payloads[number], strict=True)
        ]

    def flat(self, sites: slice) -> list[Any]:
        """The code and the payloads of some sites."""
        return [self.code, *[x for payload in self.payloads[sites] for x in payload]]

    def update(self, sites: slice, values: Sequence[Any]) -> None:
        """The inverse of `flat`."""
        self.code, *rest = values
        left = iter(rest)
        self.payloads[sites] = [[next(left) for _ in payload] for payload in self.payloads[sites]]


# ------------------------------------------------------------------ the sites of a jaxpr
def find_sites(jaxpr: Jaxpr, categories: Categories) -> tuple[Site, ...]:
    """The sites of `jaxpr`, remembered with it."""
    key = ("check_sites", categories)
    found = jaxpr.cache.get(key)
    if found is None:
        found = tuple([site for eqn in jaxpr.eqns for site in _sites_of(eqn, categories)])
        jaxpr.cache[key] = found
    return found


def _sites_of(eqn: Eqn, categories: Categories) -> Iterator[Site]:
    name, params = eqn.primitive.name, eqn.params
    if eqn.primitive is check_p:
        if FailedCheckError in categories:
            avals = tuple([v.aval for v in eqn.invars[1:]])
            yield Site(FailedCheckError, params["message"], avals)
        return
    inner = _inner(eqn)
    if inner is not None:
        sites = [site for closed in inner for site in find_sites(closed.jaxpr, categories)]
        if sites and name == "while" and MAPPED in params["body_jaxpr"].cache:
            raise ValueError(
                "Checkify does not support batched while-loops (checkify-of-vmap-of-while): "
                "examples that have stopped run on with the others and would report errors. Put "
                "the vmap outside of checkify, or use lax.scan."
            )
        yield from sites
        return
    if any(CHECKS & sub.effects for sub in subjaxprs(params)):
        raise NotImplementedError(
            f"checkify: a check inside of {name} cannot be reported. Call it outside of the "
            "functions that are passed there."
        )
    if OOBError in categories and name in _LIMITS and _LIMITS[name](eqn) is not None:
        yield Site(OOBError, IndexMessage(eqn.invars[0].aval.shape), (_INT, _INT))
    if DivisionByZeroError in categories and name == "div":
        yield Site(DivisionByZeroError, PlainMessage("division by zero"))
    if NaNError in categories and name not in _MOVES and any(
        dtypes.is_inexact(v.aval.dtype) for v in eqn.outvars
    ):
        yield Site(NaNError, PlainMessage(f"nan generated by primitive: {name}."))


def _inner(eqn: Eqn) -> list[ClosedJaxpr] | None:
    """The jaxprs of an equation whose sites can be reported, in the order of the report."""
    name, params = eqn.primitive.name, eqn.params
    if name in ("jit", "remat2", "scan"):
        return [params["jaxpr"]]
    if name == "cond":
        return list(params["branches"])
    if name == "while":
        return [params["cond_jaxpr"], params["body_jaxpr"]]
    if name in _CUSTOM:
        return [params["call_jaxpr"]]
    if name == "shard_map":
        return [_on_whole_arrays(eqn)]
    return None


def _on_whole_arrays(eqn: Eqn) -> ClosedJaxpr:
    """What an equation of `shard_map` runs."""
    key = ("whole", *[v.aval for v in eqn.invars])
    found = eqn.params["jaxpr"].cache.get(key)
    if found is None:
        rule: Any = eqn.primitive.loops  # which traces the function on whole arrays
        with config.jax_equations(False):
            found = stage_closed(
                lambda *xs: rule.fn(*xs, **eqn.params),
                [v.aval for v in eqn.invars],
            )
        eqn.params["jaxpr"].cache[key] = found
    return found


# ------------------------------------------------------------------ limits of indices
def _gather_limits(eqn: Eqn) -> tuple | None:
    params = eqn.params
    axes = params["dimension_numbers"].start_index_map
    shape = eqn.invars[0].aval.shape
    return axes, [shape[a] - params["slice_sizes"][a] for a in axes]


def _scatter_limits(eqn: Eqn) -> tuple | None:
    params = eqn.params
    numbers, shape = params["dimension_numbers"], eqn.invars[0].aval.shape
    gone = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    kept = [axis for axis in range(len(shape)) if axis not in gone]
    updates = eqn.invars[2].aval.shape
    window = dict(zip(kept, [updates[d] for d in numbers.update_window_dims], strict=True))
    axes = numbers.scatter_dims_to_operand_dims
    return axes, [shape[a] - window.get(a, 1) for a in axes]


def _slice_limits(eqn: Eqn) -> tuple | None:
    shape = eqn.invars[0].aval.shape
    update = eqn.primitive.name == "dynamic_update_slice"
    sizes = eqn.invars[1].aval.shape if update else eqn.params["slice_sizes"]
    limits = [n - k for n, k in zip(shape, sizes, strict=True)]
    return (range(len(shape)), limits) if shape else None


_LIMITS: dict[str, Callable[[Eqn], tuple | None]] = {
    "gather": _gather_limits,
    "dynamic_slice": _slice_limits,
    "dynamic_update_slice": _slice_limits,
    **dict.fromkeys(
        ("scatter", "scatter-add", "scatter-sub", "scatter-mul", "scatter-min", "scatter-max"),
        _scatter_limits,
    ),
}


def _out_of_bounds(eqn: Eqn, values: Sequence[Any]) -> tuple[Any, list[Any]]:
    """Whether an index reaches outside, and the first that does with its axis."""
    axes, limits = _LIMITS[eqn.primitive.name](eqn)  # type: ignore[misc]
    name = eqn.primitive.name
    if name.startswith("dynamic"):
        starts = values[2:] if name == "dynamic_update_slice" else values[1:]
        indices = stack([asarray(s).astype(dtypes.int32) for s in starts])
    else:
        indices = values[1]
    flat = indices.reshape(-1, len(limits))
    bad = logical_and(flat >= 0, flat <= np.asarray(limits, np.int32)) ^ True
    at = argmax(bad.reshape(-1))
    axis = take(np.asarray(list(axes), np.int32), at % len(limits))
    return jnp_any(bad), [take(flat.reshape(-1), at).astype(dtypes.int32), axis]


# ------------------------------------------------------------------ running a jaxpr
def run(
    jaxpr: Jaxpr,
    consts: Sequence[Any],
    args: Sequence[Any],
    categories: Categories,
    report: Report,
    at: int,
) -> list[Any]:
    """Evaluate `jaxpr`, whose first site has number `at`, and report into `report`."""
    env: dict[Any, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))
    for eqn in jaxpr.eqns:
        values = [v.value if type(v) is Literal else env[v] for v in eqn.invars]  # type: ignore[index]
        count = len(list(_sites_of(eqn, categories)))
        outs = _run_eqn(eqn, values, categories, report, slice(at, at + count))
        env.update(zip(eqn.outvars, outs, strict=True))
        at += count
    return [v.value if type(v) is Literal else env[v] for v in jaxpr.outvars]  # type: ignore[index]


def _run_eqn(
    eqn: Eqn, values: list[Any], categories: Categories, report: Report, sites: slice
) -> list[Any]:
    name, params = eqn.primitive.name, eqn.params
    if eqn.primitive is check_p:
        if sites.start < sites.stop:
            report.add(sites.start, values[0], values[1:])
        return []
    if _inner(eqn) is not None and (
        sites.start < sites.stop or any(CHECKS & sub.effects for sub in subjaxprs(params))
    ):
        return _CALLS[name](eqn, values, categories, report, sites)
    at = sites.start
    outs = eqn.primitive.bind(*values, **params)
    outs = list(outs) if eqn.primitive.multiple_results else [outs]
    for site in _sites_of(eqn, categories) if _inner(eqn) is None else ():
        if site.category is OOBError:
            report.add(at, *_out_of_bounds(eqn, values))
        elif site.category is DivisionByZeroError:
            report.add(at, jnp_any(asarray(values[1]) == 0), ())
        else:
            numbers = [x for x in outs if dtypes.is_inexact(aval_of(x).dtype)]
            bad = jnp_any(isnan(numbers[0]))
            for x in numbers[1:]:
                bad = bad | jnp_any(isnan(x))
            report.add(at, bad, ())
        at += 1
    return outs


def _checked(
    closed: ClosedJaxpr, categories: Categories, report: Report, sites: slice, at: int
) -> Callable:
    """`closed` as a function (report's values, *args) -> (report's values, *outs), where the report
    is of `sites` and the sites of `closed` begin at number `at`."""
    shapes = [[aval_of(x) for x in payload] for payload in report.payloads]

    def call(told: Sequence[Any], args: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        inner = Report(None, [[zeros(a) for a in payload] for payload in shapes])
        inner.update(sites, told)
        outs = run(closed.jaxpr, closed.consts, args, categories, inner, at)
        return inner.flat(sites), outs

    return call


def _avals(values: Sequence[Any]) -> list[ShapedArray]:
    return [aval_of(x) for x in values]


def _run_jit(
    eqn: Eqn, values: list, categories: Categories, report: Report, sites: slice
) -> list[Any]:
    (closed,) = _inner(eqn)  # type: ignore[misc]
    return run(closed.jaxpr, closed.consts, values, categories, report, sites.start)


def _run_remat(
    eqn: Eqn, values: list, categories: Categories, report: Report, sites: slice
) -> list[Any]:
    told = report.flat(sites)
    call = _checked(eqn.params["jaxpr"], categories, report, sites, sites.start)
    closed = stage_closed(
        lambda *xs: sum(call(xs[: len(told)], xs[len(told) :]), []), _avals([*told, *values])
    )
    outs = eqn.primitive.bind(*told, *values, **{**eqn.params, "jaxpr": closed})
    report.update(sites, outs[: len(told)])
    return list(outs[len(told) :])


def _run_cond(
    eqn: Eqn, values: list, categories: Categories, report: Report, sites: slice
) -> list[Any]:
    told, (index, *operands) = report.flat(sites), values
    branches, at = [], sites.start
    for branch in eqn.params["branches"]:
        call = _checked(branch, categories, report, sites, at)
        branches.append(
            stage_closed(
                lambda *xs, call=call: sum(call(xs[: len(told)], xs[len(told) :]), []),
                _avals([*told, *operands]),
            )
        )
        at += len(find_sites(branch.jaxpr, categories))
    outs = eqn.primitive.bind(
        index, *told, *operands, **{**eqn.params, "branches": tuple(branches)}
    )
    report.update(sites, outs[: len(told)])
    return list(outs[len(told) :])


def _run_scan(
    eqn: Eqn, values: list, categories: Categories, report: Report, sites: slice
) -> list[Any]:
    params, told = eqn.params, report.flat(sites)
    n_consts, n_carry, n = params["num_consts"], params["num_carry"], len(told)
    call = _checked(params["jaxpr"], categories, report, sites, sites.start)

    def body(*xs: Any) -> list[Any]:
        consts, inner, rest = split(xs, n_consts, n)
        return sum(call(inner, [*consts, *rest]), [])

    consts, rest = split(values, n_consts)
    in_avals = params["jaxpr"].in_avals
    closed = stage_closed(body, [*in_avals[:n_consts], *_avals(told), *in_avals[n_consts:]])
    outs = eqn.primitive.bind(
        *consts, *told, *rest, **{**params, "jaxpr": closed, "num_carry": n_carry + n}
    )
    report.update(sites, outs[:n])
    return list(outs[n:])


def _run_while(
    eqn: Eqn, values: list, categories: Categories, report: Report, sites: slice
) -> list[Any]:
    # The condition's checks run where its values are known: before the loop and after each round.
    params = eqn.params
    n_cond, n_body = params["cond_nconsts"], params["body_nconsts"]
    cond, body = params["cond_jaxpr"], params["body_jaxpr"]
    cond_consts, body_consts, carry = split(values, n_cond, n_body)
    in_condition = len(find_sites(cond.jaxpr, categories))
    if in_condition:
        run(cond.jaxpr, cond.consts, [*cond_consts, *carry], categories, report, sites.start)
    told = report.flat(sites)
    n = len(told)
    in_cond = _checked(cond, categories, report, sites, sites.start)
    in_body = _checked(body, categories, report, sites, sites.start + in_condition)

    def condition(*xs: Any) -> list[Any]:
        consts, inner, rest = split(xs, n_cond, n)
        return in_cond(inner, [*consts, *rest])[1]

    def step(*xs: Any) -> list[Any]:
        of_cond, of_body, inner, rest = split(xs, n_cond, n_body, n)
        inner, rest = in_body(inner, [*of_body, *rest])
        if in_condition:
            inner, _ = in_cond(inner, [*of_cond, *rest])
        return [*inner, *rest]

    carry_avals = body.in_avals[n_body:]
    cond_avals, body_avals = cond.in_avals[:n_cond], body.in_avals[:n_body]
    outs = eqn.primitive.bind(
        *cond_consts,
        *cond_consts,
        *body_consts,
        *told,
        *carry,
        cond_jaxpr=stage_closed(condition, [*cond_avals, *_avals(told), *carry_avals]),
        body_jaxpr=stage_closed(step, [*cond_avals, *body_avals, *_avals(told), *carry_avals]),
        cond_nconsts=n_cond,
        body_nconsts=n_cond + n_body,
    )
    report.update(sites, outs[:n])
    return list(outs[n:])


def _run_custom(
    eqn: Eqn, values: list, categories: Categories, report: Report, sites: slice
) -> list[Any]:
    # The function is run for its report; its results come of the call that has the user's rules,
    # which loses its checks.
    closed = eqn.params["call_jaxpr"]
    run(closed.jaxpr, closed.consts, values, categories, report, sites.start)
    silent = Report.empty(())
    plain = stage_closed(
        lambda *xs: run(closed.jaxpr, closed.consts, xs, frozenset(), silent, 0), _avals(values)
    )
    return list(eqn.primitive.bind(*values, **{**eqn.params, "call_jaxpr": plain}))


_CALLS: dict[str, Callable] = {
    "jit": _run_jit,
    "shard_map": _run_jit,
    "remat2": _run_remat,
    "cond": _run_cond,
    "scan": _run_scan,
    "while": _run_while,
    "custom_jvp_call": _run_custom,
    "custom_vjp_call": _run_custom,
}
