"""Makes a program that shows a difference smaller, as long as it shows one in the same way.

For tools/fuzz.py. A program is cut at any value, which becomes an argument; statements that nobody
needs any more are dropped, operands and calls replaced by simpler ones, axes of arguments made
shorter. What would break it: a check that is not the same each time.
"""

from __future__ import annotations

import ast
import re
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

import numjet as nj
from fuzzing.programs import NAMES, Program, defined, scope

LONGEST = 400  # candidates
SECONDS = 30  # of a candidate: a loop that lost what ends it would go on for ever


class _TooLong(BaseException):
    """A candidate's time is over; no `except Exception` on the way may take it."""


def shrunk(program: Program, fails: Callable[[Program], bool]) -> Program:
    """A smaller program for which `fails` is still true."""
    tried = 0
    progress = True
    while progress:
        progress = False
        for candidate in _smaller(program):
            tried += 1
            if tried > LONGEST:
                return program
            if _within_time(fails, candidate):
                program, progress = candidate, True
                break
    return program


def _within_time(fails: Callable[[Program], bool], candidate: Program) -> bool:
    """Whether `fails` says so before the time is over, without an exception of its own."""

    def stop(*_: object) -> None:
        raise _TooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        return fails(candidate)
    except (Exception, _TooLong):
        return False
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _smaller(program: Program) -> Iterator[Program]:
    if len(program.results) > 1:
        for name in program.results:
            yield _alive(replace(program, results=[name]))
    yield from _cut(program)
    yield from _renamed(program)
    yield from _without(program)
    yield from _simpler(program)


def _tree(program: Program) -> ast.FunctionDef:
    (tree,) = ast.parse(program.text()).body
    assert isinstance(tree, ast.FunctionDef)
    return tree


def _with(program: Program, body: list[ast.stmt], arguments: dict[str, np.ndarray]) -> Program:
    """The program of a changed tree."""
    lines = [line for node in body for line in ast.unparse(node).splitlines()]
    return _alive(replace(program, lines=lines, arguments=arguments))


def _alive(program: Program) -> Program:
    """Without statements and arguments that nothing needs."""
    body = ast.parse("\n".join(program.lines)).body
    needed, kept = set(program.results), list[ast.stmt]()
    for node in reversed(body):
        made = {node.name} if isinstance(node, ast.FunctionDef) else {
            x.id for x in ast.walk(node) if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store)
        }  # fmt: skip
        # A bare expression gives a function its rule.
        used = {x.id for x in ast.walk(node) if isinstance(x, ast.Name)}
        if made & needed or (isinstance(node, ast.Expr) and used & needed):
            kept.insert(0, node)
            needed |= used
    lines = [line for node in kept for line in ast.unparse(node).splitlines()]
    arguments = {k: v for k, v in program.arguments.items() if k in needed}
    return replace(program, lines=lines, arguments=arguments or program.arguments)


def _values(program: Program) -> dict[str, np.ndarray]:
    """Every array of the outermost block, computed plainly."""
    names = re.findall(r"^(v\d+(?:, v\d+)*),? = ", "\n".join(program.lines), re.M)
    flat = [name for group in names for name in group.split(", ")]
    everything = replace(program, results=flat)
    with nj.enable_x64(program.x64), nj.disable_jit():
        f = defined(ast.parse(everything.text()), scope(nj))
        found = f(*[nj.numpy.asarray(x) for x in program.arguments.values()])
    return {name: np.asarray(x) for name, x in zip(flat, found, strict=True)
            if isinstance(x, nj.Array)}


def _cut(program: Program) -> Iterator[Program]:
    """A value becomes an argument: the last ones first."""
    known = _values(program)
    for name in reversed(known):
        if name in program.results and len(program.results) == 1:
            continue
        body = [node for node in _tree(program).body[:-1] if not _makes(node, name)]
        yield _with(program, body, {**program.arguments, name: known[name]})


def _makes(node: ast.stmt, name: str) -> bool:
    return isinstance(node, ast.Assign) and any(
        isinstance(x, ast.Name) and x.id == name for t in node.targets for x in ast.walk(t)
    )


def _renamed(program: Program) -> Iterator[Program]:
    """Without a second name of a value."""
    for node in ast.walk(_tree(program)):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name):
            (target,) = node.targets
            if isinstance(target, ast.Name):
                line, names = ast.unparse(node), (target.id, node.value.id)
                text = "\n".join(x for x in program.lines if x.strip() != line)
                lines = re.sub(rf"\b{names[0]}\b", names[1], text).splitlines()
                results = [names[1] if x == names[0] else x for x in program.results]
                yield _alive(replace(program, lines=lines, results=results))


def _without(program: Program) -> Iterator[Program]:
    """Without a statement of an inner function."""
    tree = _tree(program)
    places = [
        (outer, k) for outer in ast.walk(tree) if isinstance(outer, ast.FunctionDef)
        for k in range(len(outer.body) - 1) if outer is not tree
    ]  # fmt: skip
    for outer, k in places:
        node = outer.body.pop(k)
        try:
            yield _with(program, tree.body[:-1], program.arguments)
        finally:
            outer.body.insert(k, node)


class _Replace(ast.NodeTransformer):
    """The node at a place by another one."""

    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self.new if node is self.old else self.generic_visit(node)


def _simpler(program: Program) -> Iterator[Program]:
    """A call, subscript or operation by one of its operands."""
    count = sum(1 for _ in _expressions(_tree(program)))
    for k in range(count):
        for choice in range(4):
            tree = _tree(program)
            node = list(_expressions(tree))[k]
            operands = list(_operands(node))
            if choice < len(operands):
                changed = _Replace(node, operands[choice]).visit(tree)
                yield _with(program, changed.body[:-1], program.arguments)


def _expressions(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call | ast.BinOp | ast.Subscript | ast.Compare):
            yield node


def _operands(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Call):
        yield from [x for x in node.args if isinstance(x, ast.Name | ast.Call | ast.BinOp)]
        if isinstance(node.func, ast.Attribute) and not isinstance(node.func.value, ast.Name):
            yield node.func.value
    elif isinstance(node, ast.BinOp):
        yield from (node.left, node.right)
    elif isinstance(node, ast.Subscript):
        yield node.value
    elif isinstance(node, ast.Compare):
        yield node.left


REPRODUCER = '''"""{what}

Seed {seed}; way: {way}. Run with NUMJET_CPU={level} and, for LLVM, NUMJET_DIRECT_CODE=0.
"""
import numpy as np
import numjet
import numjet.numpy as jnp
import numjet.scipy.special as jsp
from numjet import {names}

numjet.config.update("enable_x64", {x64})

{text}

arguments = [{arguments}]
with numjet.disable_jit():
    want = program(*arguments)
got = jit(program)(*arguments)
for g, w in zip(got, want):
    print(g, w, sep="\\n")
'''


def reproducer(program: Program, way: str, what: str, level: str) -> str:
    """A script that shows the difference (of `jit`; other ways are named in its head)."""
    lines = ",\n    ".join(_array(x) for x in program.arguments.values())
    return REPRODUCER.format(
        what=what, seed=program.seed, way=way, level=level, x64=program.x64, text=program.text(),
        names=', '.join((*NAMES, 'nn', 'ops')),
        arguments=f"\n    {lines},\n",
    )  # fmt: skip


def _array(x: np.ndarray) -> str:
    shown = x.astype(np.float32) if x.dtype.kind == "V" else x
    with np.printoptions(threshold=100_000):
        text = repr(shown.tolist()).replace("nan", "np.nan").replace("inf", "np.inf")
    if x.size == 0:
        return f"jnp.zeros({x.shape}, '{x.dtype.name}')"
    return f"jnp.array({text}, '{x.dtype.name}')"
