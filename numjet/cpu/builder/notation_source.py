"""The source of native functions, as syntax trees.

For `notation` and its parts. What would break it: a file that changed after it was imported.
"""

from __future__ import annotations

import ast
import contextlib
import linecache
from collections.abc import Iterator, Sequence

from numjet.base.errors import InternalError
from numjet.cpu.builder.records import Native


class NoSource(InternalError):
    """The Python source of native functions is not there to be compiled."""


_trees: dict[str, dict[int, ast.FunctionDef]] = {}


def _functions(body: Sequence[ast.stmt]) -> Iterator[ast.FunctionDef]:
    """The functions of a module or a function, and those inside of them."""
    for node in body:
        if isinstance(node, ast.FunctionDef):
            yield node
            yield from _functions(node.body)
        elif isinstance(node, ast.If):
            yield from _functions([*node.body, *node.orelse])


def syntax_tree(text: str) -> ast.Module:
    """The syntax tree of a file. CPython 3.11 counts the depth of trees for all threads together,
    and raises SystemError when another thread makes one meanwhile."""
    for _ in range(5):
        with contextlib.suppress(SystemError):
            return ast.parse(text)
    return ast.parse(text)


def source_of(native: Native) -> ast.FunctionDef:
    """The syntax tree of a native function."""
    code = native.function.__code__
    functions = _trees.get(code.co_filename)
    if functions is None:
        lines = linecache.getlines(code.co_filename, native.function.__globals__)
        if not lines:
            raise NoSource(
                f"native code cannot be compiled: {code.co_filename} is not there. Install numjet "
                "with its .py files."
            )
        functions = {
            node.decorator_list[0].lineno if node.decorator_list else node.lineno: node
            for node in _functions(syntax_tree("".join(lines)).body)
        }
        _trees[code.co_filename] = functions
    found = functions.get(code.co_firstlineno)
    if found is None or found.name != native.function.__name__:
        raise NoSource(f"native code cannot be compiled: {code.co_filename} has changed.")
    return found


def expression_of(native: Native) -> ast.expr | None:
    """The expression that a native function returns, where it does nothing else."""
    body = [x for x in source_of(native).body
            if not (isinstance(x, ast.Expr) and isinstance(x.value, ast.Constant))]  # fmt: skip
    return body[0].value if len(body) == 1 and isinstance(body[0], ast.Return) else None
