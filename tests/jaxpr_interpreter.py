"""Jaxprs run by the primitives' references alone: what compiled programs are compared with."""

from __future__ import annotations

from typing import Any

import numpy as np

from numjet.core.avals import ShapedArray
from numjet.core.jaxpr import ClosedJaxpr, Jaxpr, Literal
from numjet.cpu import backend
from numjet.transforms.stage import stage_closed


def spec(*shape: int, dtype: Any = np.float32) -> ShapedArray:
    return ShapedArray(shape, np.dtype(dtype))


def interpret(closed: ClosedJaxpr | Jaxpr, *args: Any) -> list[np.ndarray]:
    """The results of a jaxpr, control flow in Python."""
    jaxpr, consts = (
        (closed.jaxpr, closed.consts) if isinstance(closed, ClosedJaxpr) else (closed, [])
    )
    env: dict[Any, np.ndarray] = {}
    for var, value in zip((*jaxpr.constvars, *jaxpr.invars), (*consts, *args), strict=True):
        env[var] = np.asarray(getattr(value, "_value", value))

    def read(atom: Any) -> np.ndarray:
        return np.asarray(atom.value._value) if type(atom) is Literal else env[atom]

    for eqn in jaxpr.eqns:
        outs = _equation(eqn.primitive, eqn.params, [read(a) for a in eqn.invars], eqn.outvars)
        env.update(zip(eqn.outvars, map(np.asarray, outs), strict=True))
    return [read(a) for a in jaxpr.outvars]


def _equation(primitive: Any, params: dict, args: list, outvars: Any) -> list:
    if primitive.name == "scan":
        return _scan(params, args, outvars)
    if primitive.name == "while":
        first, second = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
        carry = args[second:]
        while interpret(params["cond_jaxpr"], *args[:first], *carry)[0]:
            carry = interpret(params["body_jaxpr"], *args[first:second], *carry)
        return carry
    if primitive.name == "cond":
        chosen = min(max(int(args[0]), 0), len(params["branches"]) - 1)
        return interpret(params["branches"][chosen], *args[1:])
    for key in ("jaxpr", "call_jaxpr"):
        if isinstance(params.get(key), ClosedJaxpr | Jaxpr):
            return interpret(params[key], *args)
    with np.errstate(all="ignore"):
        out = primitive.reference(*args, **params)
    return list(out) if primitive.multiple_results else [out]


def _scan(params: dict, args: list, outvars: Any) -> list:
    consts, n = args[: params["num_consts"]], params["num_carry"]
    carry, xs = args[len(consts) : len(consts) + n], args[len(consts) + n :]
    rows: list[list] = []
    steps = range(params["length"])
    for i in reversed(steps) if params["reverse"] else steps:
        outs = interpret(params["jaxpr"], *consts, *carry, *[x[i] for x in xs])
        carry = outs[:n]
        rows.append(outs[n:])
    if params["reverse"]:
        rows.reverse()
    ys = [
        np.stack([row[k] for row in rows]) if rows else np.zeros(v.aval.shape, v.aval.dtype)
        for k, v in enumerate(outvars[n:])
    ]
    return [*carry, *ys]


def samples(avals: Any, seed: int = 0) -> list[np.ndarray]:
    """Random arguments: floats around zero, small non-negative integers."""
    rng = np.random.default_rng(seed)
    out = []
    for aval in avals:
        if aval.dtype.kind == "b":
            out.append(rng.integers(0, 2, aval.shape).astype(bool))
        elif aval.dtype.kind in "iu":
            out.append(rng.integers(0, 10, aval.shape).astype(aval.dtype))
        elif aval.dtype.kind == "c":
            out.append(
                (rng.standard_normal(aval.shape) + 1j * rng.standard_normal(aval.shape)).astype(
                    aval.dtype
                )
            )
        else:
            out.append(np.asarray(rng.standard_normal(aval.shape)).astype(aval.dtype))
    return out


def compiled(
    fun: Any, *avals: ShapedArray, tolerance: float = 2e-5, args: Any = None, options: Any = None
) -> Any:
    """Compile `fun(*tracers) -> list`, compare a run with the references; the executable."""
    closed = stage_closed(lambda *xs: _as_list(fun(*xs)), avals)
    executable = backend.compile(closed, options)
    args = samples(avals) if args is None else args
    want = interpret(closed, *[a.copy() for a in args])
    got = executable(args)
    assert len(got) == len(want)
    for mine, theirs in zip(got, want, strict=True):
        assert mine.shape == theirs.shape and mine.dtype == theirs.dtype
        if mine.dtype.kind in "fcV":
            wide = np.complex128 if mine.dtype.kind == "c" else np.float64
            np.testing.assert_allclose(
                mine.astype(wide), theirs.astype(wide), rtol=tolerance, atol=tolerance
            )
        else:
            np.testing.assert_array_equal(mine, theirs)
    return executable


def _as_list(out: Any) -> list:
    return list(out) if isinstance(out, tuple | list) else [out]
