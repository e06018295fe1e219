"""What misuse of functions gets: messages that name the function and say what to write instead."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet import lax, nn, random

x = jnp.ones(3)


def assign_at() -> None:
    x.at[0] = 1.0


def increase_at() -> None:
    x.at[0] += 1.0


def delete() -> None:
    del x[0]


MISTAKES: dict[str, tuple[type[Exception], Callable, str]] = {
    "x.at[i] = v": (TypeError, assign_at, r"Write x = x\.at\[index\]\.set\(value\)"),
    "x.at[i] += v": (TypeError, increase_at, r"Write x = x\.at\[index\]\.add\(value\)"),
    "x.at(i)": (TypeError, lambda: x.at(0), "brackets"),
    "x.at[i](v)": (TypeError, lambda: x.at[0](1.0), r"\.set\(value\)"),
    "x.at[i].put": (AttributeError, lambda: x.at[0].put(1.0), "'put'.*: set, add"),
    "of a traced array": (
        AttributeError,
        lambda: nj.jit(lambda x: x.at[0].put(1.0))(x),
        "'put'.*: set, add",
    ),
    "del x[i]": (AttributeError, delete, "immutable.*jnp.delete"),
    "hlo": (NotImplementedError, lambda: nj.jit(jnp.sin).lower(x).as_text("hlo"), "'hlo'.*jaxpr"),
    "text": (ValueError, lambda: nj.jit(jnp.sin).lower(x).compile().as_text("hlo"), "'assembly'"),
    "no key": (TypeError, lambda: random.normal((3,)), r"random\.normal.*random\.key\(seed\)"),
    "split": (ValueError, lambda: random.split(random.key(0), -1), "negative sizes"),
    "shape": (TypeError, lambda: random.normal(random.key(0), 2.5), "made of integers, got 2.5"),
    "classes": (TypeError, lambda: nn.one_hot(jnp.arange(3), 3.5), "num_classes.*integer, got 3.5"),
    "power": (TypeError, lambda: jnp.linalg.matrix_power(jnp.eye(2), 1.5), "integer, got 1.5"),
    "struct": (TypeError, lambda: nj.ShapeDtypeStruct(3, float), r"Write \(3,\) for one axis"),
    "arange": (
        nj.errors.ConcretizationTypeError,
        lambda: nj.jit(lambda n: jnp.arange(n))(3),
        "concrete stop",
    ),
    "eval_shape": (TypeError, lambda: nj.eval_shape(3, x), "eval_shape takes a function"),
    "make_jaxpr": (TypeError, lambda: nj.make_jaxpr(3), "make_jaxpr takes a function"),
    "custom_jvp": (TypeError, lambda: nj.custom_jvp(3), "custom_jvp takes a function"),
    "fori_loop": (TypeError, lambda: lax.fori_loop(0, 3, 4, 5), "lax.fori_loop: body_fun argument"),
    "map": (TypeError, lambda: lax.map(3, x), "map: the first argument must be a function"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_misuse_is_explained(name: str) -> None:
    error, call, text = MISTAKES[name]
    with pytest.raises(error, match=text):
        call()


def test_values_that_left_their_function_are_refused_again():
    """Also by what was learned of others before, and where they would be handed on as they are."""
    kept = []

    def keep(x):
        kept.append(x + 1)
        return x

    for _ in range(3):
        nj.make_jaxpr(keep)(np.ones(4, np.float32))
    for x in kept:
        for use in (lambda x: x[1], jnp.mean, jnp.array, jnp.copy, nj.new_ref, nj.device_put):
            with pytest.raises(nj.errors.UnexpectedTracerError):
                use(x)
