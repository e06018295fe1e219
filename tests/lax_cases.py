"""Checks of `lax` expressions against JAX and against the transformations' laws.

A test file under tests/ops lists CASES: a name to (expression, arguments). The expression is a
string of `lax`, `np`, x, y, z that both libraries evaluate. `against_oracle` compares value,
forward and reverse derivative with JAX; `check_laws` compares eager with jit, vmap with a loop;
`checks_of` makes the tests of both.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from oracle import run_in_oracle

from numjet import lax
from numjet.api.compiled.jit import jit
from numjet.api.derivatives.autodiff import grad, jvp
from numjet.api.maps.mapping import vmap
from numjet.base import config

Cases = dict[str, tuple]


def checks_of(cases: Cases, *, laws_rtol: float = 2e-5, **options: Any) -> tuple:
    """The tests of a file's cases: against JAX (`options` as of `against_oracle`), and the laws."""

    @pytest.mark.oracle
    def test_against_jax() -> None:
        against_oracle(cases, **options)

    @pytest.mark.parametrize("name", cases)
    def test_laws(name: str) -> None:
        check_laws(cases[name], rtol=laws_rtol)

    return test_against_jax, test_laws


# Shared by both sides: `lax`, `grad`, `jvp` are the library's own.
_COMMON = """
def weights(shape, dtype):
    return np.cos(np.arange(int(np.prod(shape)))).reshape(shape).astype(dtype)

def real_dtype(dtype):
    return np.zeros((), dtype).real.dtype

def inexact(dtype):
    return np.dtype(dtype).kind in "fcV"

def loss_of(f):
    def loss(*args):
        out = f(*args)
        if np.dtype(out.dtype).kind == "c":
            half = np.asarray(0.5, real_dtype(out.dtype))
            out = lax.add(lax.real(out), lax.mul(lax.imag(out), half))
        axes = tuple(range(len(out.shape)))
        return lax.reduce_sum(lax.mul(out, weights(out.shape, out.dtype)), axes)
    return loss

def derivatives(f, args, out, name, result):
    which = tuple(i for i, a in enumerate(args) if inexact(a.dtype))
    if not which or not inexact(result.dtype):
        return
    def of_some(*some):
        full = list(args)
        for i, s in zip(which, some):
            full[i] = s
        return f(*full)
    some = [args[i] for i in which]
    tangents = [weights(a.shape, a.dtype) for a in some]
    out[name + ".jvp"] = np.asarray(jvp(of_some, tuple(some), tuple(tangents))[1])
    grads = grad(loss_of(of_some), tuple(range(len(some))))(*some)
    for i, g in enumerate(grads):
        out[name + f".grad{i}"] = np.asarray(g)

def collect(cases, out):
    for name, (source, differentiate, args) in cases.items():
        f = eval("lambda x=None, y=None, z=None: " + source, {"lax": lax, "np": np})
        result = f(*args)
        out[name] = np.asarray(result)
        if differentiate:
            try:
                derivatives(f, args, out, name, result)
            except NotImplementedError:
                out[name + ".refused"] = np.asarray(True)
"""


def _arguments(cases: Cases) -> dict[str, np.ndarray]:
    return {
        f"arg_{i}_{k}": np.asarray(a)
        for i, (_, *args) in enumerate(cases.values())
        for k, a in enumerate(args)
    }


def _plain(cases: Cases, only_values: frozenset) -> dict:
    return {
        name: (source, name not in only_values, [np.asarray(a) for a in args])
        for name, (source, *args) in cases.items()
    }


def against_oracle(
    cases: Cases,
    *,
    rtol: float = 2e-5,
    atol: float = 2e-6,
    x64: bool = False,
    only_values: Any = (),
) -> None:
    """Compare every case with JAX; all mismatches are reported together.

    only_values: names whose derivatives are not compared.
    """
    only_values = frozenset(only_values)
    listing = "\n".join(
        f"cases[{name!r}] = ({source!r}, {name not in only_values}, "
        f"[{', '.join(f'arg_{i}_{k}' for k in range(len(args)))}])"
        for i, (name, (source, *args)) in enumerate(cases.items())
    )
    script = (
        "from jax import lax, grad, jvp\n"
        + _COMMON
        + "cases = {}\n"
        + listing
        + "\nwith np.errstate(all='ignore'):\n    collect(cases, out)\n"
    )
    want = run_in_oracle(script, x64=x64, **_arguments(cases))
    got: dict[str, np.ndarray] = {}
    scope: dict[str, Any] = {"np": np, "lax": lax, "grad": grad, "jvp": jvp}
    exec(_COMMON, scope)
    with config.enable_x64(x64), np.errstate(all="ignore"):
        scope["collect"](_plain(cases, only_values), got)
    # Where JAX has no derivative, ours is not compared.
    refused = [k.removesuffix("refused") for k in want if k.endswith(".refused")]
    want, got = (
        {k: v for k, v in side.items() if not k.startswith(tuple(refused))} if refused else side
        for side in (want, got)
    )
    problems = [f"{k}: only one side has it" for k in want.keys() ^ got.keys()]
    for key in want.keys() & got.keys():
        problems.extend(_differences(key, got[key], want[key], rtol, atol))
    assert not problems, "\n".join(sorted(problems))


def _differences(
    key: str, got: np.ndarray, want: np.ndarray, rtol: float, atol: float
) -> list[str]:
    if got.dtype != want.dtype or got.shape != want.shape:
        return [f"{key}: {got.dtype}{got.shape} instead of {want.dtype}{want.shape}"]
    if want.dtype.kind in "biu":
        same = np.array_equal(got, want)
    else:
        if want.dtype.kind == "V" or want.dtype.itemsize < 4:
            got, want, rtol, atol = got.astype(np.float32), want.astype(np.float32), 2e-2, 2e-2
        with np.errstate(all="ignore"):
            same = bool(np.allclose(got, want, rtol=rtol, atol=atol, equal_nan=True))
    return [] if same else [f"{key}:\n  got  {got.ravel()[:12]}\n  want {want.ravel()[:12]}"]


def check_laws(case: tuple, *, rtol: float = 2e-5, atol: float = 2e-6) -> None:
    """jit = eager; vmap over the first and the last axis, of all and of single arguments = a
    loop."""
    source, *args = case
    args = [np.asarray(a) for a in args]
    f = eval("lambda x=None, y=None, z=None: " + source, {"lax": lax, "np": np})
    eager = np.asarray(f(*args))
    problems = _differences("jit", np.asarray(jit(f)(*args)), eager, rtol, atol)
    n = len(args)
    if n:
        patterns = [(0,) * n, (-1,) * n]
        patterns += [tuple(0 if i == k else None for i in range(n)) for k in range(n) if n > 1]
        for axes in patterns:
            problems.extend(_check_vmap(f, args, axes, rtol, atol))
    assert not problems, "\n".join(problems)


def _check_vmap(f: Any, args: list, axes: tuple, rtol: float, atol: float) -> list[str]:
    def vary(a: np.ndarray, i: int) -> np.ndarray:
        if a.dtype == np.bool_:
            return a if i == 0 else ~a
        if a.dtype.kind in "iu":
            return np.roll(a, i) if a.ndim else (a + a.dtype.type(i)).astype(a.dtype)
        return (a * a.dtype.type(1 - 0.25 * i)).astype(a.dtype)

    copies = [
        [vary(a, i) if axis is not None else a for i in range(3)]
        for a, axis in zip(args, axes, strict=True)
    ]
    stacked = [
        np.stack(c, axis) if axis is not None else c[0]
        for c, axis in zip(copies, axes, strict=True)
    ]
    # vmap counts axes from the front of the stacked argument.
    places = tuple(
        None if axis is None else axis % s.ndim for axis, s in zip(axes, stacked, strict=True)
    )
    want = np.stack([np.asarray(f(*row)) for row in zip(*copies, strict=True)])
    return _differences(f"vmap {axes}", np.asarray(vmap(f, places)(*stacked)), want, rtol, atol)


def sample(
    *shape: int, seed: int = 0, dtype: Any = np.float32, low: float = -2.0, high: float = 2.0
) -> np.ndarray:
    """Reproducible uniform numbers; whole ones for integer dtypes."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind == "c":
        return (rng.uniform(low, high, shape) + 1j * rng.uniform(low, high, shape)).astype(dtype)
    if dtype.kind in "iu":
        return rng.integers(int(low), int(high) + 1, shape).astype(dtype)
    return rng.uniform(low, high, shape).astype(dtype)
