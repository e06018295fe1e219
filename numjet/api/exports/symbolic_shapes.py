"""Shapes of dimension variables: written as text, and solved from the shapes of a call.

`symbolic_shape` and `symbolic_args_specs` are what `numjet.export` shows. `Solver` is made from the
avals of an exported function's arguments: it finds the variables' values in the shapes of a call,
and checks these against everything that the function was traced under.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numjet.api.compiled.jit_arguments import aval_of_spec
from numjet.api.placement.shape_struct import ShapeDtypeStruct
from numjet.base import tree
from numjet.base.errors import InconclusiveDimensionOperation
from numjet.core.avals import ShapedArray
from numjet.core.dim_terms import MOST
from numjet.core.dim_text import Reader
from numjet.core.dims import (
    DimExpr,
    SymbolicScope,
    any_symbolic,
    index_of,
    is_symbolic,
    substituted,
    variables,
)
from numjet.core.jaxpr import Jaxpr


def symbolic_shape(
    shape_spec: str | None,
    *,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
    like: Sequence[int | None] | None = None,
) -> tuple:
    """A shape out of its text, such as "b, 2*n + 1, _, ...".

    shape_spec: sizes with commas between: sums and products of numbers and names, powers as `n^2`,
    and `floordiv(n, 2)`, `mod(n, 2)`, `max(m, n)`, `min(m, n)`. `_` is the size of `like`, `...`
    the sizes of its remaining axes, None all of them. Variables are at least 1. constraints: texts
    `e1 >= e2`, `e1 <= e2` and `e1 == e2` that variables obey besides. scope: that of an earlier
    shape, instead of constraints, so that equal names are equal sizes. like: a shape with numbers
    for what is left open. Result: a tuple of ints and sizes that arithmetic, `==` and, where the
    constraints decide, comparisons work on. Raises ValueError for text that is none of this.

    >>> from numjet import export
    >>> b, n = export.symbolic_shape("b, n", constraints=["n >= 4"])
    >>> n * b + 1, n // n, n >= 3
    (b*n + 1, 1, True)
    """
    if scope is not None and constraints:
        raise ValueError("Cannot specify both a `scope` and `constraints`.")
    if scope is not None and not isinstance(scope, SymbolicScope):
        raise TypeError(f"symbolic_shape: scope must be a SymbolicScope, got {scope!r}.")
    if shape_spec is None:
        shape_spec = "..."
    elif not isinstance(shape_spec, str):
        raise ValueError(
            f"polymorphic shape spec should be None or a string. Found {shape_spec!r}."
        )
    return _parsed(shape_spec, SymbolicScope(constraints) if scope is None else scope, like)


def _parsed(spec: str, scope: SymbolicScope, like: Any) -> tuple:
    text = spec.strip()
    if text.startswith("(") and text.endswith(")"):
        text = text[1:-1]
    reader = Reader(text, scope)
    shape: list[Any] = []
    what = f"syntax error in symbolic shape {spec!r}"
    while reader.next:
        try:
            if reader.next == "...":
                if like is None:
                    told = "spec contains ... but no 'like' shape was given"
                    raise ValueError(reader.wrong(told))
                reader.take()
                shape += [_open(like, i, reader) for i in range(len(shape), len(like))]
                if reader.next:
                    raise ValueError(reader.wrong("expecting the end after ..."))
                break
            if reader.next == "_":
                if like is None:
                    raise ValueError(reader.wrong("spec contains _ but no 'like' shape was given"))
                reader.take()
                shape.append(_open(like, len(shape), reader))
            else:
                size = reader.size()
                known = like[len(shape)] if like is not None and len(shape) < len(like) else None
                if type(size) is int and known is not None and known != size:
                    raise ValueError(
                        reader.wrong(f"different size {size} for known dimension; like={like}")
                    )
                shape.append(size)
            if reader.next:
                reader.take(",")
        except ValueError as error:
            raise ValueError(f"{what} in dimension {len(shape)}: {error}") from None
    return tuple(shape)


def _open(like: Sequence[Any], at: int, reader: Reader) -> Any:
    if at >= len(like) or like[at] is None:
        raise ValueError(reader.wrong(f"no size for dimension {at} in like={tuple(like)}"))
    return index_of(like[at])


def symbolic_args_specs(
    args: Any,
    shapes_specs: Any,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
) -> Any:
    """ShapeDtypeStructs of symbolic shapes, for arguments: what `export(jit(f))` is called with.

    args: the arguments, a pytree of arrays or ShapeDtypeStructs. shapes_specs: a text as
    `symbolic_shape` takes, or None for shapes as they are, for each of them; or a pytree that is a
    prefix of `args`, each for all below. constraints, scope: as there.

    >>> import numjet.numpy as jnp
    >>> from numjet import export
    >>> export.symbolic_args_specs((jnp.ones((3, 4)), jnp.ones(3)), ("b, ...", "b"))[0]
    ShapeDtypeStruct(shape=(b, 4), dtype=float32)
    """
    if scope is not None and constraints:
        raise ValueError("Cannot specify both a `scope` and `constraints`.")
    scope = SymbolicScope(constraints) if scope is None else scope
    leaves, treedef = tree.tree_flatten(args)

    def is_spec(x: Any) -> bool:
        return x is None or isinstance(x, str)

    if isinstance(args, tuple) and isinstance(shapes_specs, list):
        shapes_specs = tuple(shapes_specs)
    specs = tree.broadcast_prefix(shapes_specs, args, is_leaf=is_spec)
    out = []
    for x, spec in zip(leaves, specs, strict=True):
        aval = aval_of_spec(x)
        shape = symbolic_shape(spec, scope=scope, like=aval.shape)
        out.append(ShapeDtypeStruct(shape, aval.dtype))
    return tree.tree_unflatten(treedef, out)


# What JAX's documentation says of the sizes that a program takes.
_PAGE = "https://docs.jax.dev/en/latest/export/shape_poly.html"


def check_known(jaxpr: Jaxpr) -> None:
    """Raise KeyError where a shape has a dimension variable that no argument's shape has."""
    known = _named([v.aval for v in jaxpr.invars])
    outs = [v for eqn in jaxpr.eqns for v in eqn.outvars]
    unknown = sorted(_named([v.aval for v in (*outs, *jaxpr.outvars)]) - known)
    if unknown:
        raise KeyError(
            f"Encountered dimension variable '{unknown[0]}' that is not appearing in the shapes of "
            f"the function arguments. Those that are: {sorted(known)}. Give an argument of a shape "
            f"with it, such as (0, {unknown[0]}). See {_PAGE}#dimension-variables-must-be-solvable-"
            "from-the-input-shapes."
        )


def _named(avals: Sequence[Any]) -> set[str]:
    sizes = [n for a in avals for n in getattr(a, "shape", ()) if is_symbolic(n)]
    return set().union(*[variables(n) for n in sizes])


class Solver:
    """The values of dimension variables, from shapes.

    specs: (where the size stands, in words; the size) of all arguments. Raises ValueError where
    they do not determine every variable.
    """

    def __init__(self, told: str, specs: Sequence[tuple[str, Any]]) -> None:
        self.told = told
        self.specs = [(i, where, size) for i, (where, size) in enumerate(specs)]
        symbolic = [s for s in self.specs if is_symbolic(s[2])]
        self.scope = symbolic[0][2].scope if symbolic else None
        wanted = set().union(*[variables(size) for _, _, size in symbolic])
        self.steps: list[tuple[str, int, Any, int, str]] = []
        known: set[str] = set()
        while wanted - known:
            before = len(known)
            for spec in symbolic:  # in their order, again and again
                if (step := _solved(spec, known)) is not None:
                    self.steps.append(step)
                    known.add(step[0])
            if len(known) == before:
                left = [s for s in symbolic if variables(s[2]) - known]
                raise ValueError(
                    f"Cannot solve for values of dimension variables {wanted - known}. We can only "
                    f"solve linear uni-variate constraints. {told} Unprocessed specifications: "
                    + ", ".join([f"'{s[2]}' for dimension size {s[1]}" for s in left])
                    + f". Please see {_PAGE}#dimension-variables-must-be-solvable-from-the-input-"
                    "shapes for more details."
                )

    def __call__(self, sizes: Sequence[Any]) -> dict[str, Any]:
        """The values for the sizes that came, which are in the order of the specs."""
        values: dict[str, Any] = {}
        found: list[str] = []

        def wrong(why: str) -> ValueError:
            return ValueError(
                f"{why} {self.told} Obtained dimension variables: "
                f"{''.join([f'{text}, ' for text in found])}. Please see {_PAGE}"
                "#shape-assertion-errors for more details."
            )

        begin = "Input shapes do not match the polymorphic shapes specification."
        for name, k, rest, at, told in self.steps:
            over = sizes[at] - substituted(rest, values)
            if over % k != 0:
                raise wrong(f"{begin} Division had remainder {over % k} when computing the value "
                            f"of '{name}'.")  # fmt: skip
            values[name] = over // k
            found.append(f"'{name}' = {values[name]} {told} (= {sizes[at]})")
            if not _holds(lambda: values[name] >= 1):  # noqa: B023 - called at once
                raise wrong(f"{begin} Expected value >= 1 for dimension variable '{name}'.")
            if not is_symbolic(values[name]) and values[name] > MOST:
                raise wrong(f"{begin} Expected value <= {MOST} for dimension variable '{name}'.")
        for at, where, size in self.specs:
            if is_symbolic(size) and substituted(size, values) != sizes[at]:
                raise wrong(
                    f"{begin} Found inconsistency between dimension size {where} (= {sizes[at]}) "
                    f"and the specification '{size}' (= {substituted(size, values)})."
                )
        for text, sign, left, right in self.scope.checks if self.scope is not None else ():
            if not variables(left) | variables(right) <= values.keys():
                continue  # a variable that a constraint replaces stands in no shape
            a, b = substituted(left, values), substituted(right, values)
            if sign == "==":
                if a != b:
                    raise wrong(
                        f"Input shapes do not match the symbolic shape constraint {text}. Expected "
                        f"'{left - right}' to be equal to 0, but found {a - b}."
                    )
            elif not _holds(lambda: a >= b if sign == ">=" else a <= b):  # noqa: B023
                slack = left - right if sign == ">=" else right - left
                raise wrong(
                    f"Input shapes do not match the symbolic shape constraint {text}. Expected "
                    f"'{slack}' to be greater or equal to 0, but found "
                    f"{a - b if sign == '>=' else b - a}."
                )
        return values


def _holds(test: Any) -> bool:
    try:
        return bool(test())
    except InconclusiveDimensionOperation:  # of a caller whose own sizes are symbolic
        return False


def _solved(spec: tuple[int, str, DimExpr], known: set[str]) -> Any:
    """How a size gives a variable: its name, its factor, what is added, the size's place, and where
    that is, in words."""
    at, where, size = spec
    new = variables(size) - known
    if len(new) != 1:
        return None
    (name,) = new
    monomial = ((name, 1),)
    k = size.terms.get(monomial, 0)
    if not k:
        return None
    rest = size - k * size.scope.variable(name)
    if name in variables(rest):
        return None
    return name, k, rest, at, f"from specification '{size}' for dimension {where}"


def solver_of(names: Sequence[str], avals: Sequence[ShapedArray]) -> Solver:
    """The solver for arguments of these names and avals."""
    symbolic = [
        f"{name}.shape = {_told(aval.shape)}"
        for name, aval in zip(names, avals, strict=True)
        if any_symbolic(aval.shape)
    ]
    specs = [
        (f"{name}.shape[{i}]", n)
        for name, aval in zip(names, avals, strict=True)
        for i, n in enumerate(aval.shape)
    ]
    told = f"Using the following polymorphic shapes specifications: {','.join(symbolic)}."
    return Solver(told, specs)


def _told(shape: tuple) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def check_scopes(name: str, args: tuple, kwargs: dict) -> None:
    """Raise ValueError where symbolic sizes of arguments are of several scopes."""
    first: tuple = ()
    for what, given in (("args", args), ("kwargs", kwargs)):
        for path, leaf in tree.tree_leaves_with_path(given):
            for size in getattr(leaf, "shape", ()):
                if not is_symbolic(size):
                    continue
                where, scope = what + tree.keystr(path), size.scope
                first = first or (where, scope)
                if scope is not first[1]:
                    raise ValueError(
                        f"Invalid mixing of symbolic scopes when exporting {name}.\nExpected "
                        f"current (from {first[0]}) scope {first[1]}\nand found for '{size}' "
                        f"({where}) scope {scope}. Make all shapes with one scope: "
                        "symbolic_shape(..., scope=scope)."
                    )
