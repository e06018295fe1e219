"""What `print_saved_residuals` prints: arguments first, then what is computed."""

from __future__ import annotations

from typing import Any

import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet.ad_checkpoint import checkpoint_name, print_saved_residuals


def layer(w: nj.Array, x: nj.Array) -> nj.Array:
    return jnp.sin(jnp.dot(w, x))


def network(w1: nj.Array, w2: nj.Array, x: nj.Array) -> nj.Array:
    first = checkpoint_name(layer(w1, x), "first")
    return layer(w2, first)


ARGUMENTS = jnp.ones((3, 2)), jnp.ones((2, 3)), jnp.ones(2)


def test_arguments_come_first(capsys: pytest.CaptureFixture) -> None:
    print_saved_residuals(network, *ARGUMENTS)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == [
        "f32[3,2] from the argument w1",
        "f32[2,3] from the argument w2",
        "f32[2] from the argument x",
    ]
    assert [line.split(" from ")[0] for line in lines[3:]] == [
        "f32[3] output of cos", "f32[3] named 'first'", "f32[2] output of cos",
    ]  # fmt: skip
    assert lines[3].endswith("(layer)") and lines[4].endswith("(network)")


def test_what_checkpoint_saves_is_told_with_its_own_line(capsys: pytest.CaptureFixture) -> None:
    keep = nj.checkpoint_policies.dots_with_no_batch_dims_saveable
    for f, ends in (
        (nj.checkpoint(network, policy=keep), ["(layer)", "(layer)"]),
        (lambda w1, w2, x: nj.checkpoint(layer)(w2, nj.checkpoint(layer)(w1, x)), ["(layer)"]),
        (nj.checkpoint(network, policy=nj.checkpoint_policies.save_only_these_names("first")),
         ["(network)"]),
    ):  # fmt: skip
        print_saved_residuals(f, *ARGUMENTS)
        lines = capsys.readouterr().out.splitlines()[3:]
        assert [line.split()[-1] for line in lines] == ends


def test_calls_and_loops_are_told_as_such(capsys: pytest.CaptureFixture) -> None:
    def told(f: Any) -> list[str]:
        print_saved_residuals(f, jnp.ones(3))
        lines = capsys.readouterr().out.splitlines()
        return [line.split(" from <")[0].split(" from /")[0] for line in lines]

    assert told(lambda a: nj.jit(lambda b: jnp.sin(b))(a)) == [
        "f32[3] output of jitted function '<lambda>'"
    ]
    assert told(lambda a: nj.lax.scan(lambda c, t: (jnp.sin(c) * t, None), 1.0, a)[0]) == [
        "f32[3] from the argument a", "f32[3] output of scan", "f32[3] output of scan"
    ]
    assert told(jnp.tanh) == ["f32[3] output of tanh", "f32[3] output of sub"]  # JAX's rule
