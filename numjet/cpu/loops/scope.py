"""What the emitter knows while it writes a function: values already computed, and dependences.

`Dependences` answers on which loop variables, locals and written buffers an expression or an index
depends. `Scopes` is a stack of dictionaries of computed values: an entry lives as long as its
block, and is dropped when something it depends on changes. Only `emit` uses them. What would break
it: a store or an assignment that is not announced with `Scopes.kill`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from numjet.cpu.builder.builder import Value
from numjet.cpu.loops.index import Atom, Dyn, Index, LoopVar, atoms
from numjet.cpu.loops.ir import Buffer, Expr, Load, Local, ReadLocal

Dependence = LoopVar | Local | Buffer
Set = frozenset[Dependence]
NONE: Set = frozenset()


class Dependences:
    """Memoized sets of what expressions and indices depend on. `written`: the buffers stored to."""

    def __init__(self, written: set[Buffer]):
        self.written = written
        self._exprs: dict[int, tuple[Expr, Set]] = {}
        self._indices: dict[Index, Set] = {}
        self._atoms: dict[int, tuple[Set, bool, Atom]] = {}

    def atom(self, a: Atom) -> tuple[Set, bool]:
        """What an atom depends on, and whether that is loop variables alone."""
        found = self._atoms.get(id(a))
        if found is None:
            deps = self.index(Index(((a, 1),), 0))
            fixed = all([type(d) is LoopVar for d in deps])
            found = self._atoms[id(a)] = deps, fixed, a  # the atom, so that its id stays its own
        return found[:2]

    def index(self, i: Index) -> Set:
        found = self._indices.get(i)
        if found is None:
            deps: set[Dependence] = set()
            for atom in atoms(i):
                if type(atom) is LoopVar:
                    deps.add(atom)
                elif type(atom) is Dyn:
                    deps |= self.expr(atom.expr)
            found = self._indices[i] = frozenset(deps)
        return found

    def expr(self, e: Expr) -> Set:
        known = self._exprs
        found = known.get(id(e))
        if found is not None:
            return found[1]
        stack = [e]
        while stack:  # explicit: fused expressions are deeper than Python's stack
            top = stack[-1]
            if id(top) in known:
                stack.pop()
                continue
            args = top.args_()
            missing = [a for a in args if id(a) not in known]
            if missing:
                stack += missing
                continue
            stack.pop()
            deps: Set = NONE
            for a in args:
                more = known[id(a)][1]
                # Mostly operands depend on the same: one set serves all of them.
                if more is not deps and more:
                    deps = deps | more if deps else more
            if not args:
                for i in top.indices_():
                    deps |= self.index(i)
                if type(top) is ReadLocal:
                    deps |= {top.local}
                elif type(top) is Load and top.buffer in self.written:
                    deps |= {top.buffer}
            known[id(top)] = (top, deps)
        return known[id(e)][1]


class Scopes:
    """Computed values by key, innermost block first."""

    def __init__(self) -> None:
        self._stack: list[dict[Any, Any]] = [{}]
        self._dependents: dict[Dependence, list[tuple[dict, Any]]] = {}

    def push(self) -> None:
        self._stack.insert(0, {})

    def pop(self) -> None:
        del self._stack[0]

    def get(self, key: Any) -> Any:
        for scope in self._stack:
            if key in scope:
                return scope[key]
        return None

    def put(self, key: Any, value: Any, deps: Set = NONE) -> None:
        """Remember `value` in the innermost block until something in `deps` changes."""
        scope = self._stack[0]
        scope[key] = value
        for d in deps:
            if type(d) is not LoopVar:
                self._dependents.setdefault(d, []).append((scope, key))

    def kill(self, changed: Iterable[Dependence]) -> None:
        """Forget everything computed from what changed."""
        for d in changed:
            for scope, key in self._dependents.pop(d, ()):
                scope.pop(key, None)


__all__ = ["Dependence", "Dependences", "Scopes", "Set", "Value"]
