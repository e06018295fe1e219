"""Operations drawn at random on arrays of about a million elements, beside JAX's.

    python benchmarks/generated.py SEED COUNT [--peer PYTHON] [--level v3] [--show N]
                                   [--family NAME] [--record FILE.jsonl] [--repeat N] [--rounds N]

Draws COUNT jitted expressions of one or two arrays: reductions, elementwise chains, transposes,
slices, updates, gathers and scatters, normalizations, products, on shapes of one to four axes, of
which many are short, in all element types, and what programs.py has of programs; with --family
calls of one family of families.py, of fewer elements and more operands. Draw k of a SEED is always
the same. A process for each package (PYTHON has JAX, by default that of tests/oracle.py),
both on one core, times each expression by the processor time of the least of N calls; where numjet
took longer, both are asked again, in turn, until each was asked --rounds times, and the least times
count. With --level v3 both are limited to AVX2. Each answer is written to FILE.jsonl at once, and
what is there is not run again. Printed: the N slowest beside JAX, how many had an answer from both,
and the geometric mean. survey.py, which this shares its processes with, has the public operations
one by one.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import pathlib
import random
import sys
from typing import Any

import families
import numpy as np
import peers
import survey
from families import FAMILIES
from programs import PROGRAMS, places

ELEMENTS = 10**6
PATIENCE = 25
# Where numjet took so many times as long, both are asked again.
AGAIN = 1.1
# So many draws are of `programs`.
OF_PROGRAMS = 0.6
# Common types are drawn more often.
DTYPES = (
    "float32 float32 float32 float32 float32 float32 int32 int32 int32 bool int8 uint8 int16 "
    "uint16 uint32 float16 bfloat16 complex64"
).split()
SHORT = (2, 3, 4, 6, 8, 16, 28, 32, 64)
WIDTHS = (1, 2, 3, 4, 5, 7, 8, 10, 13, 16, 20, 31, 32, 50, 64, 100, 128, 200, 256, 500, 1000)

ELEMENTWISE = (
    "abs({a}); {a}*{a}+y; jnp.where({a}>y,{a},y); jnp.maximum({a},y); {a}-y; jnp.sign({a}); "
    "{a}.astype('float32'); {a}.astype('int32'); {a}.astype('uint8'); ({a}>y).astype('float32'); "
    "jnp.clip({a},1,3); jnp.exp(-jnp.abs({a}.astype('float32'))); {a}==0; {a}//3; {a}%7; "
    "jnp.sqrt(jnp.abs({a})); jnp.square({a}); nn.relu({a}); jnp.tanh({a}.astype('float32')); "
    "jnp.logical_and({a}>0,y<0); jnp.floor({a}); jnp.round({a}); jnp.isfinite({a}); {a}**2; "
    "{a}**3; jnp.power(jnp.abs({a}).astype('float32'),1.7)"
).split("; ")
REDUCTIONS = (
    "sum max min mean prod any all argmax argmin var std count_nonzero cumsum cumprod sort median "
    "argsort ptp nanmax nansum nanmean linalg.norm"
).split()
OF_AXES = {"sum", "max", "min", "mean", "prod", "any", "all", "var"}
# By kind and weight. {i}: an axis, {k}: its extent, {p}: the indices before it, {at}: constant
# places along it, {order}: a permutation of the axes, {some}: some of them, {spec}: x's axes, these
# in that order and some that stay, {a}: the operand or something of it.
KINDS: tuple[tuple[float, str], ...] = (
    (12, "{chain}"),
    (10, "jnp.transpose(x,{order}); jnp.transpose(x,{order})*2+1"),
    (8, "jnp.flip(x,{i}); jnp.roll(x,{shift},{i}); jnp.concatenate([x,y],{i}); "
        "jnp.stack([x,y],{i}); jnp.repeat(x,2,{i}); jnp.diff(x,axis={i}); jnp.pad(x,{pads}); "
        "jnp.tile(x,{tiles}); jnp.split(x,[max(1,{k}//3)],axis={i}); jnp.swapaxes(x,{i},0); "
        "jnp.moveaxis(x,{i},-1)"),
    (10, "x[{p}::{step}]; x[{p}1:]-x[{p}:-1]; x[{p}0]; x[{p}::-1]+y; x[{p}{k}//4:max({k}//4+1,"
         "3*{k}//4)]*2; x[{p}-1]+y[{p}0]; x[...,None]*jnp.arange(3); x.at[{p}0].set(1); "
         "x.at[{p}::2].add(1); x.at[{p}{k}//2].multiply(2); x.reshape(-1)[::{step}]"),
    (10, "jnp.take(x,{at},axis={i}); "
         "jnp.take_along_axis(x,jnp.abs(y).astype('int32')%{k},{i}); "
         "x.ravel()[jnp.abs(y.ravel().astype('int32'))*37%100000]; "
         "jnp.zeros(x.shape).at[{p}{at}].add(jnp.take(x,{at},axis={i}).astype('float32')); "
         "jnp.zeros(128).at[jnp.abs(x.astype('int32')).ravel()%128].add(1.); "
         "jax.ops.segment_sum(y,jnp.arange(x.shape[0])//3,num_segments=x.shape[0]//3+1); "
         "jnp.bincount(jnp.abs(x.astype('int32')).ravel()%100,length=100); "
         "jnp.searchsorted(jnp.linspace(-3,3,50),x.astype('float32').ravel()); "
         "nn.one_hot(jnp.abs(x.astype('int32'))%4,4); "
         "jnp.digitize(x.astype('float32'),jnp.linspace(-2,2,9))"),
    (10, "nn.softmax(x.astype('float32'),axis={i}); nn.log_softmax(x.astype('float32'),axis={i}); "
         "jax.scipy.special.logsumexp(x.astype('float32'),axis={i}); "
         "x-jnp.mean(x,axis={i},keepdims=True); x/jnp.sum(jnp.abs(x),{i},keepdims=True); "
         "(x-jnp.mean(x,{i},keepdims=True))/(jnp.std(x,{i},keepdims=True)+1); "
         "x*jnp.max(y,{i},keepdims=True); jnp.sum(x*y,{i}); jnp.argmax(x+y,{i}); "
         "jax.grad(lambda v: jnp.sum(jnp.sin(v)*jnp.sum(v,{i},keepdims=True)))"
         "(x.real.astype('float32')); "
         "jax.grad(lambda v: jnp.sum(jax.scipy.special.logsumexp(v,axis={i})))"
         "(x.real.astype('float32')); "
         "lax.top_k(x.real.astype('float32'),min(3,x.shape[-1])); "
         "jnp.quantile(x.real.astype('float32'),0.3,axis={i}); "
         "jnp.cumsum(x.astype('float32'),{i})*2; jnp.sum(x,dtype=x.dtype,axis={i})"),
    (8, "jnp.einsum('{spec}',x,jnp.transpose(y,{order})); "
        "jnp.sum(jnp.transpose(x,{order}),axis={some}); "
        "jnp.sum(jnp.transpose(x,{order})*jnp.transpose(y,{order}),axis={some}); "
        "jnp.mean(x*y,axis={some}); jnp.swapaxes(x,0,-1)+jnp.swapaxes(y,0,-1); "
        "nn.softmax(jnp.transpose(x,{order}).astype('float32'),axis=-1)"),
    (5, "jnp.einsum('...i,...i->...',x,y); x.ravel().reshape(10,-1).sum(0); jnp.sum(x); "
        "jnp.max(x)-jnp.min(y); jnp.mean(x*y); jnp.any(x>y); jnp.vdot(x,y); jnp.var(x); "
        "jnp.linalg.norm(x.astype('float32')); jax.vmap(lambda v:v-v.mean())(x.astype('float32'))"),
)  # fmt: skip
MATRICES = (
    "x.astype('float32').T@y.astype('float32')[:,:8]; jnp.einsum('ij,ij->j',x,y); jnp.tril(x); "
    "x.astype('float32')@jnp.ones((x.shape[1],5)); jax.vmap(jnp.dot)(x.astype('float32'),"
    "y.astype('float32')); jnp.outer(x[:,0],jnp.arange(7)); "
    "jnp.histogram(x.astype('float32'),20)[0]; "
    "lax.reduce_window(x.astype('float32'),0.,lax.add,(1,min(3,x.shape[1])),(1,1),'VALID')"
)
PICTURES = (
    "x.reshape(x.shape[0],-1).sum(1); jnp.einsum('abcd->bd',x); jnp.einsum('abcd,abcd->ad',x,y); "
    "x.transpose(0,2,3,1)+1; x.mean((0,2,3)); "
    "x.astype('float32')-x.astype('float32').mean((0,1,2)); "
    "lax.reduce_window(x.astype('float32'),-jnp.inf,lax.max,(1,2,2,1),(1,2,2,1),'SAME')"
)
OF_RANK = {2: MATRICES, 4: PICTURES}


def shape(rng: random.Random) -> list[int]:
    """One to four axes, about ELEMENTS elements."""
    kind = rng.random()
    if kind < 0.15:
        return [ELEMENTS]
    if kind < 0.5:
        known = [rng.choice(WIDTHS)]
    elif kind < 0.85:
        known = [rng.choice(SHORT), rng.choice((1, 2, 3, 5, 8, 16, 28, 32, 64, 100))]
    else:
        known = [rng.choice(axis) for axis in ((1, 4, 16, 32), (3, 8, 16, 32), (7, 14, 28, 32, 56))]
    axes = [*known, max(1, ELEMENTS // math.prod(known))]
    rng.shuffle(axes)
    return axes


def reduction(rng: random.Random, axes: int, axis: int, operand: str) -> str:
    """A reduction, a sort or a running operation along an axis; some along two."""
    name = rng.choice(REDUCTIONS)
    along: Any = axis
    if axes > 2 and name in OF_AXES and rng.random() < 0.3:
        along = tuple(rng.sample(range(axes), 2))
    return f"jnp.{name}({operand},axis={along})"


def program(rng: random.Random) -> dict[str, Any]:
    """One of programs.PROGRAMS."""
    (kind,) = rng.choices(PROGRAMS, [kind.weight for kind in PROGRAMS])
    axes = rng.choice(kind.shapes)
    text = rng.choice(kind.texts.split("; ")).format(**places(axes))
    return {"text": text, "shape": list(axes), "dtype": rng.choice(kind.dtypes.split())}


def draw(seed: int, number: int) -> dict[str, Any]:
    """Draw `number` of a seed: a text of x and y, their shape and element type."""
    rng = random.Random(f"{seed} {number}")
    if rng.random() < OF_PROGRAMS:
        return program(rng)
    axes = shape(rng)
    i = rng.randrange(len(axes))
    k = axes[i]
    order = list(range(len(axes)))
    rng.shuffle(order)
    some = tuple(sorted(rng.sample(order, rng.randint(1, len(order)))))
    letters = "abcd"[: len(axes)]
    kept = "".join(rng.sample(letters, rng.randint(0, len(axes) - 1)))
    spec = f"{letters},{''.join([letters[a] for a in order])}->{kept}"
    chained = rng.choice(ELEMENTWISE).format(a="x")
    if rng.random() < 0.3:
        operand = rng.choice(["x", "x", chained])
        text = reduction(rng, len(axes), i, operand)
    else:
        kinds = [*KINDS, *[(8.0, OF_RANK[n]) for n in OF_RANK if n == len(axes)]]
        (kind,) = rng.choices([k for _, k in kinds], [w for w, _ in kinds])
        text = rng.choice(kind.split("; ")).format(
            i=i, k=k, p=":," * i, order=tuple(order), some=some, spec=spec,
            step=rng.choice([2, 2, 3, 5]), shift=rng.choice([1, -1, 3, k // 2]),
            at=f"(jnp.arange({min(2 * k, ELEMENTS)})*7919%{k})",
            pads=tuple((1, 2) if j == i else (0, 0) for j in range(len(axes))),
            tiles=tuple(2 if j == i else 1 for j in range(len(axes))),
            chain=rng.choice(ELEMENTWISE).format(a=rng.choice(["x", chained])),
        )  # fmt: skip
    return {"text": text, "shape": axes, "dtype": rng.choice(DTYPES)}


def operand(
    package: Any, axes: tuple[int, ...], dtype: str, seed: int, bound: int | None = None
) -> Any:
    """The same numbers for each package. bound: of integers from 0 on, of operands of a family."""
    rng = np.random.default_rng(seed)
    if bound is not None:
        values = rng.integers(0, bound, axes) if "int" in dtype else rng.normal(size=axes)
        if len(axes) > 1 and axes[-1] == axes[-2]:
            values = values * (1 if "int" in dtype else 0.3)  # a matrix whose powers stay small
        return package.numpy.asarray(values).astype(dtype)
    if dtype == "bool":
        values = rng.integers(0, 2, axes).astype(bool)
    elif "int" in dtype:
        values = rng.integers(0 if dtype[0] == "u" else -100, 100, axes).astype(dtype)
    else:
        values = rng.normal(size=axes).astype(np.float32)
        if dtype == "complex64":
            values = values + 1j * rng.normal(size=axes).astype(np.float32)
    return package.numpy.asarray(values).astype(dtype)


def worker(name: str) -> None:
    """Answer the questions that come, a line each."""
    package = importlib.import_module(name)
    parts = "lax", "nn", "scipy.special", "scipy.linalg", "random", "ops"
    spaces = {s: importlib.import_module(f"{name}.{s}") for s in parts}
    names = {
        "jax": package, "jnp": package.numpy, "lax": spaces["lax"], "nn": spaces["nn"],
        "grad": package.grad, "vmap": package.vmap, "random": package.random, "ops": package.ops,
        "linalg": package.numpy.linalg,
    }  # fmt: skip
    answers, sys.stdout = sys.stdout, sys.stderr
    last: tuple[Any, Any, list] = (None, len, [])  # as it is asked again in the next round
    for line in sys.stdin:
        task = json.loads(line)
        try:
            if last[0] != task:
                axes, dtype, text = tuple(task["shape"]), task["dtype"], task["text"]
                if dtype in FAMILIES:
                    args = [operand(package, tuple(s), d, seed, bound)
                            for seed, (d, s, bound) in enumerate(axes)]  # fmt: skip
                else:
                    args = [operand(package, axes, dtype, seed) for seed in (0, 1)]
                    text = "lambda x, y: " + text
                last = task, package.jit(eval(text, names)), args
            answer: Any = survey.least(package, *last[1:], task["repeat"], True)
        except Exception as error:  # nothing that this package does: said in the record
            answer = f"{type(error).__name__}: {error}"[:200]
        print(json.dumps(answer), file=answers, flush=True)


def compare(given: argparse.Namespace) -> list[dict[str, Any]]:
    """Ask both packages for what is not in the record yet: draws with their answers."""
    record = given.record
    found = []
    if record is not None and record.exists():
        found = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]
    workers = {"numjet": survey.Worker(sys.executable, "numjet", True, __file__),
               "jax": survey.Worker(given.peer, "jax", True, __file__)}  # fmt: skip
    try:
        for number in range(len(found), given.count):
            if given.family:
                task = families.draw(given.family, given.seed, number)
            else:
                task = draw(given.seed, number)
            task["repeat"] = given.repeat
            told: dict[str, list[Any]] = {package: [] for package in workers}
            for _ in range(given.rounds):
                for package, process in workers.items():
                    told[package].append(process.ask(task, PATIENCE))
                answers = {package: survey.least_of(times) for package, times in told.items()}
                times = [x for x in answers.values() if type(x) is float]
                if len(times) < 2 or times[0] < AGAIN * times[1]:
                    break
            found.append(task | {"answers": answers})
            if record is not None:
                with record.open("a", encoding="utf-8") as out:
                    print(json.dumps(found[-1]), file=out)
    finally:
        for process in workers.values():
            process.stop()
    return found[: given.count]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("seed", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--peer", default=peers.python_of("jax") or sys.executable)
    parser.add_argument("--level", choices=["v3"])
    parser.add_argument("--family", choices=[*FAMILIES])
    parser.add_argument("--show", type=int, default=20)
    parser.add_argument("--record", type=pathlib.Path)
    parser.add_argument("--repeat", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    if given.level:
        os.environ["NUMJET_CPU"] = "x86-64-v3"
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_max_isa=AVX2"
    if given.family:
        os.environ["JAX_ENABLE_X64"] = os.environ["NUMJET_ENABLE_X64"] = "1"
    found = compare(given)
    named = {f"{d['dtype']} {d['shape']} `{d['text']}`": d["answers"] for d in found}
    *lines, _, summary = survey.table({(0, call): answers for call, answers in named.items()}, 0)
    print("\n".join([*lines[: 2 + given.show], "", summary]))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        worker(sys.argv[2])
    else:
        main()
