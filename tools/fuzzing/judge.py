"""Runs one program in many ways, each beside a plainer one that has to give the same.

For tools/fuzz.py and the tests. A way is (name, what is run, what it is compared with): both give
lists of arrays. Where they differ by more than roundings do in most programs, the plain way is run
with every value of the program disturbed by roundings (`Program.noisy`): what varies then may vary.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

import numjet as nj
import numjet.numpy as jnp
from fuzzing.arrays import is_float, odd_memory, values
from fuzzing.programs import WIDE, Program
from numjet.api.eager import deferral, large
from numjet.base import config
from numjet.core import evaluate

Function = Callable[..., Any]
# What has no derivative under jit has one where Python runs the loop.
# Derivatives that nobody defines, of branches that are not taken where no function is compiled.
REFUSED = ("Reverse-mode differentiation does not work", "can't apply forward-mode autodiff")
DISTURBED = 12  # runs with disturbed values
SPREAD = 8.0  # so many times what they differ by is admitted


@dataclass
class Difference:
    """Two ways do not agree about a program."""

    program: Program
    way: str
    what: str
    platform: str = ""

    def shown_by(self, program: Program, direct: bool) -> bool:
        """Whether another program shows a difference of the same kind."""
        found = check(program, direct, only=self.way, platform=self.platform)
        return found is not None and found.what.split()[0] == self.what.split()[0]


def floats(args: dict[str, np.ndarray]) -> list[int]:
    return [k for k, x in enumerate(args.values()) if is_float(x.dtype)]


def loss_of(f: Function) -> Function:
    """The sum of what a function gives, in numbers that are not alike."""

    def loss(*args: Any) -> Any:
        total = jnp.zeros((), jnp.float32)
        for k, y in enumerate(f(*args)):
            if np.dtype(y.dtype).kind in "fcV":
                total = total + jnp.sum(jnp.real(y).astype(jnp.float32)) * (1 + 0.25 * k)
        return total

    return loss


def tangents(args: Any, nums: list[int]) -> tuple:
    rng = np.random.default_rng(7)
    return tuple(
        values(rng, a.shape, a.dtype) if k in nums
        else np.zeros(a.shape, nj.dtypes.float0) if a.dtype.kind in "iub" else jnp.zeros_like(a)
        for k, a in enumerate(args)
    )  # fmt: skip


def derived(kind: str, f: Function, nums: list[int]) -> Function:
    """A transformation of a program."""
    loss = loss_of(f)
    if kind == "grad":
        return lambda *a: list(nj.grad(loss, tuple(nums))(*a))
    if kind == "grad of checkpoint":
        return lambda *a: list(nj.grad(nj.checkpoint(loss), tuple(nums))(*a))
    if kind == "jvp":
        return lambda *a: _leaves(nj.jvp(f, a, tangents(a, nums)))
    if kind == "jvp of grad":
        def hessian(*a: Any) -> Any:
            def inner(*xs: Any) -> Any:
                full = list(a)
                for k, x in zip(nums, xs, strict=True):
                    full[k] = x
                return nj.grad(loss, tuple(nums))(*full)

            given = tuple(a[k] for k in nums)
            return _leaves(nj.jvp(inner, given, tuple(tangents(a, nums)[k] for k in nums)))

        return hessian
    if kind == "linearize":
        def linear(*a: Any) -> Any:
            of = lambda *xs: f(*_put(a, nums, xs))
            given = [a[k] for k in nums]
            return _leaves(nj.linearize(of, *given)[1](*[tangents(a, nums)[k] for k in nums]))

        return linear
    raise ValueError(kind)


def _put(args: Any, nums: list[int], xs: Any) -> list:
    full = list(args)
    for k, x in zip(nums, xs, strict=True):
        full[k] = x
    return full


def _leaves(tree: Any) -> list:
    return [x for x in nj.tree_util.tree_leaves(tree) if np.dtype(x.dtype) != nj.dtypes.float0]


DERIVED = ("grad", "grad of checkpoint", "jvp", "jvp of grad", "linearize")
Way = tuple[str, Function, Callable[[Function], Function]]


def ways(program: Program, direct: bool, every: bool = False) -> Iterator[Way]:
    """The ways to run a program: (name, run, plain); `run(f)` and `plain(f)` are lists of arrays
    made of the program's function f.

    direct: whether both code generators are there. every: all transformations, not two of them.
    """
    rng = np.random.default_rng([program.seed, 1])
    args = program.arguments
    given, nums = [*args.values()], floats(args)
    if not all([np.isfinite(x).all() for x in given if x.dtype.kind in "fc"]):
        nums = []  # whether nothing times infinity is nothing or NaN is not said of derivatives
    plain = lambda f: _plainly(f, given)
    yield "jit", lambda f: nj.jit(f)(*given), plain
    if direct:
        yield "jit by LLVM", by_llvm(lambda f: nj.jit(f)(*given)), plain
    odd, how = zip(*[odd_memory(rng, x) for x in given], strict=True)
    # Programs are compiled for avals: this costs a call.
    yield f"arguments that are {', '.join(how)}", lambda f: nj.jit(f)(*odd), plain
    if rng.random() < 0.3 or every:
        yield "donated", lambda f: _donated(f, given, rng.integers(2, size=len(given))), plain
    if rng.random() < 0.15 or every:
        yield "eager", lambda f: f(*[jnp.asarray(x) for x in given]), plain
    if np.random.default_rng([program.seed, 3]).random() < 0.3 or every:
        yield "deferred", lambda f: _deferred(f, given), plain
    kinds = ["vmap", "vmap"] + (list(DERIVED) if nums else [])
    chosen = sorted(set(kinds)) if every else [kinds[k] for k in rng.permutation(len(kinds))[:2]]
    for kind in dict.fromkeys(chosen):
        llvm = direct and rng.random() < 0.3
        wrap = by_llvm if llvm else (lambda run: run)
        suffix = " by LLVM" if llvm else ""
        if kind == "vmap":
            stacked, axes = _stacked(rng, given, any_index="[" in program.text())
            yield ("vmap" + suffix, wrap(lambda f, s=stacked, x=axes: nj.jit(nj.vmap(f, x))(*s)),
                   lambda f, s=stacked, x=axes: _one_by_one(f, s, x))  # fmt: skip
            continue
        yield (kind + suffix, wrap(lambda f, k=kind: nj.jit(derived(k, f, nums))(*given)),
               lambda f, k=kind: _plainly(derived(k, f, nums), given))  # fmt: skip
    if program.seed >= WIDE:
        yield from _within(program, given, nums, every)


def _within(program: Program, given: list, nums: list[int], every: bool) -> Iterator[Way]:
    """The program in a loop or a branch, its gradient under vmap: one of them, or `every`."""
    rng = np.random.default_rng([program.seed, 2])
    stacked, axes = _stacked(rng, given, any_index="[" in program.text())
    rows = [x if a is None else np.moveaxis(x, a, 0) for x, a in zip(stacked, axes, strict=True)]
    mapped = [k for k, a in enumerate(axes) if a is not None]

    def scan(f: Function) -> list:
        def body(count: Any, row: Any) -> Any:
            return count + 1, f(*_put([jnp.asarray(x) for x in given], mapped, row))

        return nj.jit(lambda r: nj.lax.scan(body, 0, r)[1])([rows[k] for k in mapped])

    def cond(f: Function) -> list:
        nothing = lambda *a: [jnp.zeros_like(y) for y in nj.eval_shape(f, *a)]
        return nj.jit(lambda test, *a: nj.lax.cond(test, f, nothing, *a))(np.bool_(True), *given)

    found: list[Way] = [
        ("scan", scan, lambda f: _one_by_one(f, stacked, axes)),
        ("cond", cond, lambda f: _plainly(f, given)),
    ]
    if nums:
        gradient = lambda f: derived("grad", f, nums)
        found.append(("vmap of grad", lambda f: nj.jit(nj.vmap(gradient(f), axes))(*stacked),
                      lambda f: _one_by_one(gradient(f), stacked, axes)))  # fmt: skip
    yield from found if every else [found[rng.integers(len(found))]]


def ways_of(program: Program, platform: str) -> Iterator[Way]:
    """The ways to run a program on another platform's device: (name, run, plain), as `ways`; plain
    is what the CPU's compiler gives."""
    args = program.arguments
    given, nums = [*args.values()], floats(args)
    there = nj.device_put(given, nj.devices(platform)[0])
    yield (f"jit on {platform}", lambda f: nj.jit(f)(*there),
           lambda f: nj.jit(f)(*given))  # fmt: skip
    if all([np.isfinite(x).all() for x in given if x.dtype.kind in "fc"]) and nums:
        kind = DERIVED[program.seed % len(DERIVED)]
        yield (f"{kind} on {platform}",
               lambda f: nj.jit(derived(kind, f, nums))(*there),
               lambda f: nj.jit(derived(kind, f, nums))(*given))  # fmt: skip


def by_llvm(run: Function) -> Function:
    """The same with LLVM as the generator."""

    def other(f: Function) -> Any:
        with config.direct_code(False):
            return [np.asarray(x) for x in run(f)]

    return other


def _plainly(f: Function, args: Any) -> list:
    """What a function gives operation by operation."""
    with nj.disable_jit():
        return f(*[jnp.asarray(x) for x in args])


def _deferred(f: Function, args: Any) -> list:
    """What a function gives where its operations wait for each other, as those on large arrays do;
    the last of three runs, since what ran before is written down by native code."""
    sizes, counts = (evaluate.LARGE, large.LARGE), dict(deferral._counts)
    evaluate.LARGE = large.LARGE = 8
    deferral._counts.update(found=0, compiled=0)
    try:
        with config.eager_fusion(True):
            waiting = [f(*[jnp.asarray(x) for x in args]) for _ in range(3)]
            runs = [[np.asarray(x) for x in found] for found in waiting]
    finally:
        evaluate.LARGE, large.LARGE = sizes
        deferral._counts.update(counts)
    for found in runs[:-1]:
        for x, y in zip(found, runs[-1], strict=True):
            if x.dtype.kind in "biu" and not np.array_equal(x, y):
                raise AssertionError(f"deferred again it gives {y} instead of {x}")
    return runs[-1]


def _donated(f: Function, args: Any, which: Any) -> list:
    """Some arguments donated, while a view of one is held, which has to stay as it is."""
    arrays = [jnp.array(x) for x in args]
    held, before = np.asarray(arrays[0]), np.array(args[0])
    nums = tuple(k for k, chosen in enumerate(which) if chosen)
    found = [np.array(x) for x in nj.jit(f, donate_argnums=nums)(*arrays)]
    if held.tobytes() != before.tobytes():
        raise AssertionError("the memory of an argument was overwritten while NumPy saw it")
    if found and nums:  # once more, with nothing that holds the memory
        del held
        arrays = [jnp.array(x) for x in args]
        found = list(nj.jit(f, donate_argnums=nums)(*arrays))
    return found


def _stacked(rng: np.random.Generator, args: Any, any_index: bool) -> tuple[list, tuple]:
    """Arguments for three examples, and which axes are mapped."""
    axes = [int(rng.integers(x.ndim + 1)) if rng.random() < 0.8 else None for x in args]
    if all(axis is None for axis in axes):
        axes[0] = 0
    stacked = []
    for x, axis in zip(args, axes, strict=True):
        others = [x, values(rng, x.shape, x.dtype), values(rng, x.shape, x.dtype)]
        stacked.append(x if axis is None else np.stack(others, axis))
    return stacked, tuple(axes)


def _one_by_one(f: Function, stacked: list, axes: tuple) -> list:
    rows = []
    for k in range(3):
        row = [x if a is None else np.take(x, k, axis=a) for x, a in zip(stacked, axes)]
        rows.append([np.asarray(y) for y in _plainly(f, row)])
    return [np.stack(column) for column in zip(*rows, strict=True)]


# ---- comparing


def check(program: Program, direct: bool, only: str = "", every: bool = False,
          platform: str = "") -> Difference | None:
    """The first way of a program (or that of a name) that differs from the plain one. platform:
    another one than the CPU, whose ways these are."""
    with nj.enable_x64(program.x64), np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        f = program.function(nj)
        found = ways_of(program, platform) if platform else ways(program, direct,
                                                                 every or bool(only))
        for name, run, plainly in found:
            if only and name != only:
                continue
            try:
                want = [np.asarray(x) for x in plainly(f)]
            except Exception:
                continue  # e.g. a derivative that nobody defines
            try:
                got = [np.asarray(x) for x in run(f)]
            except Exception as error:
                if isinstance(error, NotImplementedError):
                    continue
                if any([words in str(error) for words in REFUSED]):
                    continue
                words = f"{type(error).__name__}: {error}"[:2000]
                return Difference(program, name, words, platform)
            what = differs(got, want, lambda k, of=plainly: of(program.noisy(nj, k)))
            if what:
                return Difference(program, name, what, platform)
    return None


TOLERANCE = {"float64": 1e-9, "complex128": 1e-9, "float16": 1e-2, "bfloat16": 5e-2}


def differs(got: list, want: list, disturbed: Callable[[int], list]) -> str:
    """What differs, or "". disturbed(k): the wanted values of a program disturbed by roundings."""
    if len(got) != len(want):
        return f"{len(got)} results instead of {len(want)}"
    suspects = []
    for k, (g, w) in enumerate(zip(got, want, strict=True)):
        if g.shape != w.shape or g.dtype != w.dtype:
            return f"result {k} is {g.dtype}{g.shape} instead of {w.dtype}{w.shape}"
        if not _close(g, w):
            suspects.append(k)
    if not suspects:
        return ""
    runs = [[np.asarray(x) for x in disturbed(seed)] for seed in range(DISTURBED)]
    for k in suspects:
        others = [want[k]] + [run[k] for run in runs]
        bad = _outside(got[k], others)
        if bad.any():
            place = tuple(int(n) for n in np.argwhere(bad)[0])
            return (f"result {k}, {got[k].dtype}{got[k].shape}, {int(bad.sum())} elements differ, "
                    f"at {place} {got[k][place]} instead of {want[k][place]} "
                    f"(disturbed {[str(o[place]) for o in others[1:4]]})")  # fmt: skip
    return ""


def _wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def _close(g: np.ndarray, w: np.ndarray) -> bool:
    if g.dtype.kind not in "fcV":
        return bool(np.array_equal(g, w))
    rtol = TOLERANCE.get(g.dtype.name, 2e-5)
    return bool(np.allclose(_wide(g), _wide(w), rtol=rtol, atol=rtol, equal_nan=True))


def _outside(got: np.ndarray, others: list[np.ndarray]) -> np.ndarray:
    """Where a value lies outside what disturbed programs give, and a margin."""
    if got.dtype.kind == "c":
        parts = [_outside(got.real, [o.real for o in others]),
                 _outside(got.imag, [o.imag for o in others])]  # fmt: skip
        size = np.max([np.abs(o) for o in others], axis=0)
        # The parts of a complex number round with its size.
        near = ~np.isfinite(got) & ~np.isfinite(others[0]) | (
            np.abs(got - others[0]) <= TOLERANCE.get(got.dtype.name, 2e-5) * (size + 1)
        )  # what infinite parts make of each other is not said
        return (parts[0] | parts[1]) & ~near
    rounds = jnp.issubdtype(got.dtype, jnp.inexact)
    epsilon = float(ml_dtypes.finfo(got.dtype).eps) if rounds else 0.0
    g, o = got.astype(np.float64), np.stack([x.astype(np.float64) for x in others])
    low, high = o.min(0), o.max(0)  # NaN where one is
    size = np.maximum(np.abs(low), np.abs(high))
    # Errors that cancel in one element show in its neighbours.
    typical = np.max(np.where(np.isfinite(o), np.abs(o), 0), initial=0.0)
    margin = SPREAD * (high - low) + 64 * epsilon * size + 16 * epsilon * typical
    inside = (g >= low - margin) & (g <= high + margin)
    unclear = np.isnan(low) & ~np.isnan(o).all(0)  # sometimes NaN
    infinite = np.isinf(low) | np.isinf(high)
    same = (np.isnan(g) & np.isnan(o).any(0)) | (o == g).any(0)
    return ~(inside | same | unclear | (infinite & ~np.isnan(g) & (low != high)))
