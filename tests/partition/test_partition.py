"""The partitioned program computes what the whole one does: rules, loops, and what they cost.

The program of one device runs under `shard_map` on eight virtual devices, and is compared with the
whole program.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import partitioned
import pytest
from partitioned import on_devices

import numjet as nj
import numjet.numpy as jnp
from numjet import lax
from numjet.cpu import backend
from numjet.experimental.custom_partitioning import (
    ArrayMapping,
    CompoundFactor,
    SdyShardingRule,
    custom_partitioning,
)
from numjet.ops.constraint import mesh_cast_p, sharding_constraint_p
from numjet.partition import propagate
from numjet.partition.emit import Partitioned
from numjet.sharding import NamedSharding

SIZES = {"x": 4, "y": 2}
rng = np.random.default_rng(0)
A = rng.normal(size=(8, 8)).astype(np.float32)
B = rng.normal(size=(8, 4)).astype(np.float32)
BOTH = (("x",), ("y",))
ROWS = (("x",), ())
COLUMNS = ((), ("x",))
JOINED = (("x", "y"), ())


pytestmark = pytest.mark.usefixtures("eight_devices")


def cut(f: Callable, args: tuple, ins: list, outs: list | None = None) -> Partitioned:
    """The program of one device."""
    return partitioned.cut(f, args, ins, outs, SIZES)


def agrees(f: Callable, args: tuple, ins: list, outs: list | None = None) -> Partitioned:
    """Compare the partitioned program with the whole one."""
    found = cut(f, args, ins, outs)
    want = nj.tree.leaves(nj.jit(f)(*args))
    got = on_devices(found, args)
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=2e-5, atol=1e-5)
    return found


UNARY: dict[str, Callable] = {
    "elementwise": lambda x: jnp.tanh(x) * 2 + jnp.where(x > 0, x, 0.0),
    "reduce": lambda x: (x.sum(0), x.max(1), x.min(), x.prod(0), x.mean((0, 1)), (x > 0).any(0)),
    "argmax": lambda x: (jnp.argmax(x, 0), jnp.argmin(x, 1)),
    "shape": lambda x: (x.T, x[:, None], x.reshape(64), x.reshape(4, 2, 8), x.reshape(2, 4, 2, 4),
                        x.reshape(16, 4), x[None].squeeze(0), jnp.broadcast_to(x, (3, 8, 8))),
    "uneven reshape": lambda x: jnp.concatenate([x, x, x]).reshape(16, 12),
    "pieces": lambda x: (x[:4], x[0], x[:, 2:6:2], x[::-1], jnp.pad(x, ((0, 0), (1, 2))),
                         jnp.concatenate([x, x]), jnp.concatenate([x, x], 1), jnp.stack([x, x])),
    "dynamic": lambda x: (lax.dynamic_slice(x, (x[0, 0].astype(int), 0), (2, 8)),
                          x.at[1].set(0.0), x.at[:, 2].add(x[:, 0])),
    "gather": lambda x: (jnp.take(x, jnp.array([3, 0, 7]), axis=0), x[jnp.array([1, 2]), :4],
                         jnp.take_along_axis(x, jnp.argsort(x, 1), 1)),
    "scatter": lambda x: x.at[jnp.array([1, 1, 3])].add(1.0),
    "sorted": lambda x: (jnp.sort(x, 1), jnp.sort(x, 0), jnp.cumsum(x, 0), jnp.cumsum(x, 1),
                         lax.top_k(x, 3)[0]),
    "products": lambda x: (x @ x, x @ x.T, x.T @ x, jnp.einsum("ij,kj->ik", x, x), x @ x[0]),
    "softmax": lambda x: nj.nn.softmax(jnp.sin(x)) - nj.nn.logsumexp(x, axis=0),
    "linear algebra": lambda x: jnp.linalg.cholesky(x @ x.T + 9 * jnp.eye(8)),
    "batch of matrices": lambda x: jnp.linalg.inv(
        x.reshape(4, 2, 8)[:, :, :2] + 3 * jnp.eye(2)),
    "window": lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 3), (1, 1), "SAME"),
    "fft": lambda x: jnp.abs(jnp.fft.fft(x, axis=1)),
    "convolution": lambda x: lax.conv_general_dilated(
        x.reshape(8, 2, 4)[..., None], jnp.ones((3, 2, 2, 1)), (1, 1), "SAME",
        dimension_numbers=("NCHW", "OIHW", "NCHW")),
    "no rule": lambda x: jnp.tile(x, (2, 1)) + jnp.kron(x[:2, :1], x),
    "bits": lambda x: lax.bitcast_convert_type(x, np.uint32),
    "scan": lambda x: lax.scan(lambda c, t: (c + t.sum() * c.mean(), c * t), jnp.ones(8), x),
    "scan of parts": lambda x: lax.scan(lambda c, t: (c * 0.5 + t, c), x, jnp.ones(3)),
    "while": lambda x: lax.while_loop(
        lambda c: c[1].sum() < 1e4, lambda c: (c[0] + c[1].T, jnp.abs(c[1]) * 2), (x, x)),
    "cond": lambda x: lax.cond(x.sum() > 0, lambda v: v.T * 2, lambda v: v, x),
    "calls": lambda x: nj.jit(nj.checkpoint(lambda y: nj.nn.relu(y) ** 2))(x),
    "gradient": nj.grad(lambda x: jnp.sum(nj.nn.softmax(x @ x.T) ** 2)),
    "vmap": nj.vmap(lambda r: jnp.outer(r, r) @ r),
    "random": lambda x: x + nj.random.normal(nj.random.key(1), x.shape),
}


@pytest.mark.parametrize("name", UNARY)
def test_programs_of_one_array(name: str) -> None:
    for layout in (BOTH, COLUMNS):
        agrees(UNARY[name], (A,), [layout])


def test_sums_over_cut_axes_are_completed() -> None:
    found = agrees(lambda x, w: x @ w, (A, B), [BOTH, (("y",), ())])
    assert found.outs == [ROWS] and [m.kind for m in found.moves] == ["psum"]
    assert found.moves[0].nbytes == 32 and "psum over ('y',)" in repr(found)


def test_free_arguments_take_the_layout_they_are_read_in() -> None:
    found = agrees(lambda x, w, b: jnp.tanh(x @ w + b), (A, B, B[0]), [ROWS, None, None])
    assert found.ins == [ROWS, ((), ()), ((),)] and not found.moves
    found = agrees(lambda x, w: x + w, (A, A), [JOINED, None])
    assert found.ins == [JOINED, JOINED] and not found.moves
    found = agrees(lambda: jnp.arange(64.0).reshape(8, 8) * 2, (), [], [COLUMNS])
    assert found.outs == [COLUMNS] and not found.moves


def test_training_step_has_one_reduction_a_gradient() -> None:
    def loss(w: Any, x: Any, y: Any) -> Any:
        return jnp.mean((jnp.tanh(x @ w[0]) @ w[1] - y) ** 2)

    w = (rng.normal(size=(8, 16)).astype(np.float32), rng.normal(size=(16, 4)).astype(np.float32))
    found = cut(lambda a, b, x, y: nj.grad(loss)((a, b), x, y), (*w, A, B),
                [((), ()), ((), ()), ROWS, ROWS])
    assert [m.kind for m in found.moves] == ["psum", "psum"]  # none for the loss, which is not read
    agrees(lambda a, b, x, y: nj.grad(loss)((a, b), x, y), (*w, A, B),
           [((), ()), ((), ()), ROWS, ROWS])


def test_layouts_that_differ_are_exchanged() -> None:
    found = agrees(lambda x: x * 2, (A,), [ROWS], [COLUMNS])
    assert [m.kind for m in found.moves] == ["all_to_all"]
    found = agrees(lambda x: x * 2, (A,), [JOINED], [(("y",), ("x",))])
    agrees(lambda x: x * 2, (A,), [BOTH], [((), ())])
    agrees(lambda x: x * 2, (A,), [((), ("y", "x"))], [((), ("x", "y"))])


OPERATIONS: list[Callable] = [
    lambda a, b: a + b, lambda a, b: a * jnp.cos(b), lambda a, b: a @ b, lambda a, b: a.T - b,
    lambda a, b: a.reshape(4, 2, 8).sum(1).repeat(2, 0) + b, lambda a, b: jnp.sort(a, 0) + b,
    lambda a, b: a - b.mean(0), lambda a, b: a / (1 + jnp.abs(b).sum(1, keepdims=True)),
    lambda a, b: jnp.concatenate([a[:4], b[4:]]), lambda a, b: jnp.where(a > b, a, b[::-1]),
    lambda a, b: jnp.cumsum(a, 1) * 0.1 + b, lambda a, b: a.at[2:4].set(b[:2]),
]


@pytest.mark.parametrize("seed", range(6))
def test_generated_programs(seed: int) -> None:
    chosen = np.random.default_rng(seed)
    layouts = [BOTH, ROWS, COLUMNS, JOINED, (("y",), ("x",)), ((), ("x", "y")), ((), ()), None]
    steps = chosen.integers(0, len(OPERATIONS), 7)
    picks = chosen.integers(0, 99, (7, 2))

    def program(a: Any, b: Any) -> tuple:
        values = [a, b]
        for step, (i, j) in zip(steps, picks, strict=True):
            x, y = values[i % len(values)], values[j % len(values)]
            values.append(jnp.tanh(OPERATIONS[step](x, y)))
        return values[-1], values[-2]

    ins = [layouts[i] for i in chosen.integers(0, len(layouts), 2)]
    outs = [layouts[i] for i in chosen.integers(0, len(layouts), 2)]
    agrees(program, (A, A[::-1] * 0.5), ins, outs)


# ------------------------------------------------------------------ custom_partitioning
def normalized(**how: Any) -> custom_partitioning:
    """Columns of length 1, whose sums of squares the partition joins itself."""
    @custom_partitioning
    def f(x: Any) -> Any:
        return x / jnp.sqrt((x * x).sum(0, keepdims=True) + np.float32(1e-3))

    def part(mesh: Any, args: Any, result: Any) -> tuple:
        (x,) = args
        axes = x.sharding.spec[0] if len(x.sharding.spec) else None

        def local(x: Any) -> Any:
            squares = (x * x).sum(0, keepdims=True)
            return x / jnp.sqrt((lax.psum(squares, axes) if axes else squares) + 1e-3)

        return mesh, local, x.sharding, (x.sharding,)

    f.def_partition(part, **how)
    return f


@pytest.mark.parametrize("how", [
    {"infer_sharding_from_operands": lambda mesh, args, result: args[0].sharding},
    {"sharding_rule": "i j -> i j"}, {"sharding_rule": "... j -> ... j"},
    {"sharding_rule": SdyShardingRule((ArrayMapping("i", "j"),), (("i", "j"),))},
    {"sharding_rule": lambda mesh, args, result: "i j -> i j"},
])  # fmt: skip
@pytest.mark.parametrize("layout", [ROWS, BOTH, COLUMNS, JOINED, ((), ())])
def test_custom_partitioning(how: dict, layout: tuple) -> None:
    f = normalized(**how)
    found = agrees(lambda x: f(x) * 2, (A,), [layout])
    assert found.outs == [layout]
    assert "div" in str(found.closed) and not any(m.kind == "all_gather" for m in found.moves)


def test_custom_partitioning_moves_operands_to_where_the_partition_wants_them() -> None:
    @custom_partitioning
    def product(scale: float, tree: dict) -> dict:
        return {"out": scale * tree["a"] @ tree["b"]}

    product.static_argnums = (0,)
    asked = []

    def part(scale: float, mesh: Any, args: Any, result: Any) -> tuple:
        a, b = args[0]["a"], args[0]["b"]
        asked.append((scale, a.shape, b.shape, result["out"].shape, dict(mesh.shape)))
        rows = NamedSharding(mesh, nj.P("x"))
        wanted = ({"a": rows, "b": NamedSharding(mesh, nj.P())},)
        return mesh, lambda t: {"out": scale * t["a"] @ t["b"]}, {"out": rows}, wanted

    product.def_partition(part, sharding_rule="i k, k j -> i j", need_replication_factors=("k",))
    found = agrees(lambda a, b: product(2.0, {"a": a, "b": b})["out"], (A, B), [ROWS, ROWS])
    assert asked == [(2.0, (8, 8), (8, 4), (8, 4), SIZES)] and found.outs == [ROWS]
    assert [m.kind for m in found.moves] == ["all_gather"]


def test_custom_partitioning_of_factors_in_one_dimension() -> None:
    @custom_partitioning
    def merged(x: Any) -> Any:
        return x.reshape(-1)

    def part(mesh: Any, args: Any, result: Any) -> tuple:
        return mesh, lambda x: x.reshape(-1), result.sharding, (args[0].sharding,)

    merged.def_partition(part, sharding_rule="i j -> (i j)")
    assert agrees(merged, (A,), [ROWS]).outs == [(("x",),)]
    rule = SdyShardingRule((("i", "j"),), ((CompoundFactor("i", "j"),),))
    merged.def_partition(part, sharding_rule=rule)
    assert agrees(merged, (A,), [ROWS]).outs == [(("x",),)]


def test_wrong_custom_partitioning_is_refused() -> None:
    f = custom_partitioning(lambda x: x * 2)
    with pytest.raises(AttributeError, match="before def_partition"):
        f(A)
    wrong = lambda mesh, args, result: (mesh, lambda x: x[:1], result.sharding,  # noqa: E731
                                        (args[0].sharding,))  # fmt: skip
    f.def_partition(wrong, sharding_rule="i j -> i j")
    with pytest.raises(NotImplementedError, match="Differentiation rule"):
        nj.grad(lambda x: f(x).sum())(A)
    with pytest.raises(NotImplementedError, match="Batching rule"):
        nj.vmap(f)(A)
    with pytest.raises(ValueError, match="gave a part of shape"):
        cut(f, (A,), [ROWS])
    for rule, message in (("i j", "no ->"), ("i $ -> i", "no factor"), ("i (j -> i", "balanced"),
                          ("(i j) k -> (i j) k", "must specify its size: i")):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            f.def_partition(f.partition, sharding_rule=rule)
    with pytest.raises(TypeError, match="must be a str"):
        f.def_partition(f.partition, sharding_rule=3)
    for rule, message in (("i -> i j", "names 1 dimensions"),
                          ("i j, k -> i j", "has 2 operands"),
                          ("i i -> i i", "stands twice")):  # fmt: skip
        f.def_partition(f.partition, sharding_rule=rule)
        with pytest.raises(ValueError, match=message):
            cut(f, (A,), [ROWS])
    np.testing.assert_array_equal(nj.jit(f)(A), 2 * A)


def test_what_a_broadcast_alone_gives_is_cut_as_it_is_wanted() -> None:
    """Each device makes its part, of shape operations after the broadcast too."""
    def repeated(x: Any) -> Any:
        return jnp.broadcast_to(x.sum(0), (4, 1, 8)).reshape(4, 8) * 2

    found = agrees(repeated, (A,), [ROWS], [ROWS])
    made = {v.aval.shape for eqn in found.closed.jaxpr.eqns for v in eqn.outvars}
    assert (1, 8) in made and (4, 8) not in made


def test_nested_loops_are_walked_a_few_times_at_every_depth(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each level asks for the layouts within it again, as it finds its own: with an answer for
    each layout of the arguments the work grows with the depth, not as its powers."""
    asked: list = []
    rule_of = propagate.rule_of

    def counted(*args: Any) -> Any:
        asked.append(args)
        return rule_of(*args)

    monkeypatch.setattr(propagate, "rule_of", counted)

    def rules_asked(depth: int) -> int:
        def nested(x: Any, depth: int) -> Any:
            if not depth:
                return jnp.sin(x)
            start = (x, jnp.zeros((8, 8)))
            return lax.scan(lambda c, _: ((nested(c[0], depth - 1) + c[1], c[0]), c[1].sum()),
                            start, None, 2)[0][0]  # fmt: skip

        closed = nj.make_jaxpr(lambda x: nested(x, depth))(A)
        asked.clear()
        propagate.propagate(propagate.flatten(closed).jaxpr, [ROWS], None, SIZES, True)
        return len(asked)

    few, many = rules_asked(2), rules_asked(7)
    assert 0 < many < 7 * few


def test_a_layout_alone_is_no_work() -> None:
    """What says how a value lies is nothing in the program of a processor: the value is not
    copied."""
    def laid_out(x: Any) -> Any:
        mesh = nj.make_mesh((4, 2), ("x", "y"))
        return mesh_cast_p.bind(sharding_constraint_p.bind(x[0], sharding=None), mesh=mesh)

    program = backend.compile(nj.make_jaxpr(laid_out)(A[None]))
    assert "kernel" not in program.program_text()
