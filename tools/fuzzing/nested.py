"""Statements with functions inside: branches, loops, transformations, rules by the user."""

from __future__ import annotations

from typing import Any

from fuzzing.arrays import is_float
from fuzzing.drawer import Drawer, Named, statement

DEEPEST = 2


def nested(weight: float) -> Any:
    """As `statement`, of a family that gives definitions and an expression; not too deep."""

    def add(draw: Any) -> Any:
        def family(d: Drawer) -> None:
            found = None if d.depth >= DEEPEST else draw(d)
            if found is not None:
                definitions, text = found
                d.attempt(text, definitions)

        statement(weight)(family)
        return draw

    return add


def same(value: Any) -> Any:
    """A function's result like `value`."""
    return lambda inner, names: inner.like(value)


def small_float(d: Drawer) -> Named | None:
    return d.floating(lambda v: 0 < v.size <= 2000)


def scalar_of(d: Drawer) -> str | None:
    """A truth value that is computed."""
    x = d.pick(lambda v: v.size > 0 and v.dtype.kind in "iufV")
    return None if x is None else f"jnp.max({x[0]}) > {d.number(-1, 2)}"


@nested(1)
def branch(d: Drawer) -> tuple[str, str] | None:
    x, test = d.pick(), scalar_of(d)
    if x is None or test is None:
        return None
    wanted = x[1]
    made = [d.block([x[1]], d.number(1, 3), same(wanted)) for _ in range(d.number(2, 4))]
    if None in made:
        return None
    definitions = "\n".join([f[1] for f in made])
    names = [f[0] for f in made]
    if len(names) == 2:
        return definitions, f"lax.cond({test}, {names[0]}, {names[1]}, {x[0]})"
    index = d.pick(lambda v: v.ndim == 0 and v.dtype.kind in "iu")
    which = str(d.number(-1, 4)) if index is None else index[0]
    return definitions, f"lax.switch({which}, [{', '.join(names)}], {x[0]})"


@nested(1.2)
def scan(d: Drawer) -> tuple[str, str] | None:
    xs = d.pick(lambda v: v.ndim > 0 and 0 < v.shape[0] <= 20 and v.size <= 2000)
    init = d.pick(lambda v: v.size <= 500)
    if xs is None or init is None:
        return None

    def result(inner: Drawer, names: list[str]) -> str | None:
        carry, y = inner.like(init[1]), inner.pick()
        return None if carry is None or y is None else f"{carry}, {y[0]}"

    made = d.block([init[1], xs[1][0]], d.number(1, 5), result)
    if made is None:
        return None
    options = d.one(["", ", reverse=True", ", unroll=2", ""])
    return made[1], f"lax.scan({made[0]}, {init[0]}, {xs[0]}{options})"


@nested(0.8)
def counted(d: Drawer) -> tuple[str, str] | None:
    x = d.pick(lambda v: v.size <= 1000)
    if x is None:
        return None
    count = d.scope["jnp"].asarray(1)
    made = d.block([count, x[1]], d.number(1, 4), same(x[1]))
    if made is None:
        return None
    return made[1], f"lax.fori_loop(0, {d.number(0, 5)}, {made[0]}, {x[0]})"


@nested(0.6)
def looped(d: Drawer) -> tuple[str, str] | None:
    x = d.pick(lambda v: v.size <= 1000)
    if x is None:
        return None
    count = d.scope["jnp"].asarray(1)

    def result(inner: Drawer, names: list[str]) -> str | None:
        found = inner.like(x[1])
        return None if found is None else f"{names[0]} + 1, {found}"

    made = d.block([count, x[1]], d.number(1, 4), result)
    if made is None:
        return None
    return made[1], f"lax.while_loop(lambda s: s[0] < {d.number(0, 5)}, lambda s: {made[0]}(*s), (0, {x[0]}))"  # noqa: E501


def total(inner: Drawer, names: list[str]) -> str | None:
    found = inner.floating()
    return None if found is None else f"jnp.sum({found[0]})"


@nested(1.2)
def gradient(d: Drawer) -> tuple[str, str] | None:
    x = small_float(d)
    made = None if x is None else d.block([x[1]], d.number(1, 4), total)
    if x is None or made is None:
        return None
    wrap = d.one(["grad({})", "grad(jit({}))", "grad(checkpoint({}))", "jit(grad({}))"])
    return made[1], f"{wrap.format(made[0])}({x[0]})"


def last(inner: Drawer, names: list[str]) -> str | None:
    return inner.made[-1] if inner.made else None


def last_float(inner: Drawer, names: list[str]) -> str | None:
    found = inner.floating()
    return None if found is None else found[0]


@nested(1)
def forward(d: Drawer) -> tuple[str, str] | None:
    x = small_float(d)
    made = None if x is None else d.block([x[1]], d.number(1, 4), last_float)
    if x is None or made is None:
        return None
    f = made[0]
    return made[1], d.one([
        f"jvp({f}, ({x[0]},), (jnp.cos({x[0]}),))", f"linearize({f}, {x[0]})[1](jnp.sin({x[0]}))",
        f"vjp({f}, {x[0]})[1](jnp.ones_like({f}({x[0]})))", f"checkpoint({f})({x[0]})",
        f"jit({f})({x[0]})",
    ])  # fmt: skip


@nested(1.2)
def mapped(d: Drawer) -> tuple[str, str] | None:
    x = d.pick(lambda v: v.ndim > 0 and 0 < v.shape[0] <= 64 and v.size <= 2000)
    y = d.pick(lambda v: v.size <= 500)
    if x is None or y is None:
        return None
    axis = d.number(0, x[1].ndim)
    if not x[1].shape[axis]:
        return None
    example = d.scope["jnp"].take(x[1], 0, axis=axis)
    made = d.block([example, y[1]], d.number(1, 4), last)
    if made is None:
        return None
    inner = d.one(["{}", "jit({})", "checkpoint({})"]).format(made[0])
    return made[1], f"vmap({inner}, in_axes=({axis}, None), out_axes={d.one(['0', '-1', '0'])})({x[0]}, {y[0]})"  # noqa: E501


@nested(0.6)
def mapped_gradient(d: Drawer) -> tuple[str, str] | None:
    x = d.floating(lambda v: v.ndim > 1 and 0 < v.shape[0] <= 64 and 0 < v.size <= 1000)
    made = None if x is None else d.block([x[1][0]], d.number(1, 4), total)
    return None if x is None or made is None else (made[1], f"vmap(grad({made[0]}))({x[0]})")


@nested(0.7)
def ruled(d: Drawer) -> tuple[str, str] | None:
    """A function whose derivative is given: not its own, so that it is seen to be used.

    It may not close over what is differentiated (docs/limits.md; JAX raises, too).
    """
    x = small_float(d)
    if x is None:
        return None
    forwards = d.chance(0.5)
    made = d.block([x[1]], d.number(1, 3), lambda inner, names: inner.like(x[1]), False)
    if made is None or not is_float(x[1].dtype):
        return None
    f, g = made[0], d.fresh("f")
    if forwards:
        text = (f"{made[1]}\n{g} = custom_jvp({f})\n"
                f"{g}.defjvp(lambda p, t: ({g}(*p), t[0] * jnp.cos(p[0])))")  # fmt: skip
    else:
        text = (f"{made[1]}\n{g} = custom_vjp({f})\n"
                f"{g}.defvjp(lambda x: ({f}(x), x), lambda x, ct: (ct * jnp.sin(x),))")  # fmt: skip
    return text, d.one([f"{g}({x[0]})", f"grad(lambda x: jnp.sum({g}(x) * x))({x[0]})"])
