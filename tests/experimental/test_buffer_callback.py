"""`buffer_callback`, whose callbacks write their results into buffers, and `control_deps`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet.errors import JaxRuntimeError
from numjet.experimental.buffer_callback import (
    Buffer,
    ExecutionContext,
    ExecutionStage,
    buffer_callback,
)
from numjet.experimental.control_deps import control_dep, schedule

x = jnp.linspace(0.0, 3.0, 4)
of_x = nj.ShapeDtypeStruct(x.shape, x.dtype)
number = nj.ShapeDtypeStruct((), x.dtype)


def halve(ctx: ExecutionContext, out: Buffer, a: Buffer) -> None:
    assert ctx.stage is ExecutionStage.EXECUTE and out.writeable and not a.writeable
    assert (out.shape, out.dtype, out.ndim) == (a.shape, a.dtype, a.ndim)
    np.asarray(out)[...] = np.asarray(a) / 2


def test_it_is_called_wherever_the_function_runs() -> None:
    f = buffer_callback(halve, of_x)
    for run in (f, nj.jit(f), lambda a: nj.lax.fori_loop(0, 2, lambda i, c: f(c), 2 * a)):
        np.testing.assert_array_equal(run(x), np.asarray(x) / 2)


@pytest.mark.parametrize("method", [
    "sequential", "expand_dims", "broadcast_all", "legacy_vectorized"])  # fmt: skip
def test_vmap(method: str) -> None:
    def scaled(ctx: ExecutionContext, out: Buffer, a: Buffer, *, by: Buffer) -> None:
        np.asarray(out)[...] = np.asarray(a) * np.asarray(by)

    f = buffer_callback(scaled, number, vmap_method=method)
    twice = nj.vmap(nj.vmap(lambda a: f(a, by=3.0)))(x.reshape(2, 2))
    np.testing.assert_array_equal(twice, 3 * np.asarray(x).reshape(2, 2))
    with pytest.raises(NotImplementedError, match="vmap"):
        nj.vmap(buffer_callback(scaled, number))(x)


def test_trees_aliases_and_dlpack() -> None:
    def write(ctx: ExecutionContext, out: dict, a: Buffer, named: dict) -> None:
        np.from_dlpack(out["sum"])[...] += np.from_dlpack(named["b"])  # it holds `a` at first
        np.asarray(out["count"])[...] = a.ndim

    count = nj.ShapeDtypeStruct((), np.int32)
    f = buffer_callback(write, {"count": count, "sum": of_x}, input_output_aliases={0: 1})
    got = nj.jit(f)(x, {"b": x + 1})
    np.testing.assert_array_equal(got["sum"], 2 * np.asarray(x) + 1)
    assert int(got["count"]) == 1 and float(x[0]) == 0.0
    for aliases in ({0: 2}, {0: 0}, {2: 0}):
        with pytest.raises(ValueError, match="input_output_aliases"):
            buffer_callback(write, {"count": count, "sum": of_x}, input_output_aliases=aliases)(
                x, {"b": x}
            )


def test_effects_and_errors() -> None:
    calls: list[Any] = []

    def note(ctx: ExecutionContext, out: Any, a: Buffer) -> None:
        calls.append(float(np.asarray(a)))

    nj.jit(lambda a: (buffer_callback(note, (), has_side_effect=True)(a), a)[1])(2.0)
    nj.effects_barrier()
    assert calls == [2.0]
    nj.jit(lambda a: (buffer_callback(note, number)(a), a)[1])(3.0)
    assert calls == [2.0]
    with pytest.raises(JaxRuntimeError, match="has to return None"):
        buffer_callback(lambda ctx, out, a: 1, of_x)(x).block_until_ready()
    with pytest.raises(JaxRuntimeError, match="no streams"):
        buffer_callback(lambda ctx, out, a: ctx.stream, of_x)(x).block_until_ready()
    with pytest.raises(ValueError, match="JVP"):
        nj.grad(buffer_callback(halve, number))(1.0)
    with pytest.raises(TypeError, match="shape and dtype"):
        buffer_callback(halve, 3)
    for kind in (Buffer, ExecutionContext):
        with pytest.raises(TypeError, match="makes it"):
            kind()


def test_buffers_that_are_kept_are_no_results() -> None:
    kept: list[Buffer] = []

    def keep(ctx: ExecutionContext, out: Buffer, a: Buffer) -> None:
        kept.append(out)

    y = buffer_callback(keep, of_x)(x).block_until_ready()
    np.asarray(kept[0])[...] = 5
    assert float(y.sum()) == 0.0
    assert np.asarray(kept[0], np.float64).dtype == np.float64


def test_control_deps_change_nothing() -> None:
    def f(a: Any) -> Any:
        b, c = jnp.sin(a), jnp.cos(a)
        assert control_dep(b, c) == () and schedule([c, a, b]) is None
        return b + c

    np.testing.assert_allclose(nj.jit(f)(x), np.sin(x) + np.cos(x), rtol=1e-6)
    with pytest.raises(TypeError):
        control_dep((x, x), x)
