"""A drawn program: arguments, lines of Python, results; its text, and running the text.

For the fuzzer. A program's text sees numjet or JAX by one set of names (`scope`), so that both run
it. Every value is assigned to a name; `noisy` uses that to disturb each by roundings.
"""

from __future__ import annotations

import ast
import importlib
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

# What the text of a program refers to.
NAMES = ("grad", "jit", "jvp", "vjp", "vmap", "linearize", "checkpoint", "custom_jvp",
         "custom_vjp", "jacfwd", "jacrev", "hessian", "value_and_grad", "random",
         "lax")  # fmt: skip
WIDE = 2_000_000  # the first seed of the wider generator
AIMED = 5_000_000  # of the aimed one
EDGES = 8_000_000  # of the edge one


def scope(package: Any) -> dict[str, Any]:
    """The names that a program's text uses, of numjet or of JAX."""
    found = {name: getattr(package, name) for name in NAMES}
    return {**found, "np": np, "jnp": package.numpy, "nn": package.nn, "ops": package.ops,
            "jsp": importlib.import_module(f"{package.__name__}.scipy.special")}  # fmt: skip


@dataclass
class Program:
    """`lines` compute `results` of `arguments`; x64: under enable_x64."""

    seed: int
    x64: bool
    arguments: dict[str, np.ndarray]
    lines: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)

    def text(self) -> str:
        """The definition of `program`."""
        body = "\n".join([*self.lines, f"return [{', '.join(self.results)}]"])
        return f"def program({', '.join(self.arguments)}):\n{textwrap.indent(body, '    ')}\n"

    def function(self, package: Any) -> Callable[..., list]:
        """`program` under a package."""
        return defined(ast.parse(self.text()), scope(package))

    def noisy(self, package: Any, seed: int) -> Callable[..., list]:
        """`program` whose every value is multiplied by one plus or minus a few roundings."""
        tree = ast.fix_missing_locations(_Noise().visit(ast.parse(self.text())))
        return defined(tree, scope(package) | {"noise": Noise(package, seed)})


def defined(tree: ast.Module, names: dict[str, Any]) -> Callable[..., list]:
    """The function `program` of a module's tree."""
    exec(compile(tree, "<program>", "exec"), names)
    return names["program"]


class _Noise(ast.NodeTransformer):
    """name = value  ->  name = noise(value); so with what functions inside of a value give."""

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        f = node.func
        if isinstance(f, ast.Attribute) and isinstance(f.value, ast.Name) and f.value.id in (
            "jnp", "nn", "jsp"
        ):  # fmt: skip
            return ast.Call(ast.Name("noise", ast.Load()), [node], [])
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.Assign:
        self.generic_visit(node)
        node.value = ast.Call(ast.Name("noise", ast.Load()), [node.value], [])
        return node


class Noise:
    """Multiplies the floats of a tree by 1 + k ε, k drawn from -2 to 2 for each element."""

    def __init__(self, package: Any, seed: int) -> None:
        self.package, self.rng = package, np.random.default_rng(seed)

    def __call__(self, value: Any) -> Any:
        return self.package.tree_util.tree_map(self.one, value)

    def one(self, x: Any) -> Any:
        dtype, jnp = getattr(x, "dtype", bool), self.package.numpy
        if not jnp.issubdtype(dtype, jnp.inexact):  # integers of few bits are of kind "V", too
            return x
        dtype = np.dtype(dtype)
        epsilon = float(ml_dtypes.finfo(dtype).eps)
        factor = 1 + epsilon * self.rng.integers(-2, 3, x.shape)
        return x * np.asarray(factor).astype(dtype)
