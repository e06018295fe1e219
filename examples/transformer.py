"""Train a small transformer data-parallel and tensor-parallel, on one process or several.

    python examples/transformer.py [--out transformer.png] [--steps 150]   eight virtual devices
    mpiexec -n 4 python examples/transformer.py --tensor 2                 2 x 2 processes

The task: sequences of letters that repeat after a gap, so that the second half can be foretold by
attention alone. The mesh has two axes. Batches are cut over "data"; the heads of attention and the
hidden units of the layers behind it over "tensor". Only the weights and the batch are told how they
lie: the partitioner finds the layout of everything else and the sums that join the parts, among
them one for each gradient. Each process makes its own share of a batch, keys differ by process; a
checkpoint is saved every 50 steps, and a run that was killed goes on from it (--folder). The last
batch of the evaluation is smaller than the others: rows of weight zero fill it up. Exit status 1 if
the loss on the second half stays above 0.5.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

os.environ.setdefault(
    "NUMJET_NUM_CPU_DEVICES",
    "1" if {"PMI_RANK", "OMPI_COMM_WORLD_RANK"} & os.environ.keys() else "8",
)

import numpy as np

import numjet as nj
import numjet.numpy as jnp
from numjet import checkpoints, random

P = nj.P
UNDER_MPI = bool({"PMI_RANK", "OMPI_COMM_WORLD_RANK"} & os.environ.keys())
LETTERS, WIDTH, HEADS, LAYERS, LENGTH, BATCH = 16, 64, 4, 2, 32, 64
RATE = 3e-3


def init(key):
    """Weights, and beside them how each lies over the mesh."""
    keys = iter(random.split(key, 3 + 4 * LAYERS))
    normal = lambda *shape: random.normal(next(keys), shape) * shape[0] ** -0.5  # noqa: E731
    params = {"embed": normal(LETTERS, WIDTH), "place": normal(LENGTH, WIDTH) * 0.5, "layers": []}
    specs = {"embed": P(), "place": P(), "layers": []}
    for _ in range(LAYERS):
        params["layers"].append({
            "qkv": normal(WIDTH, 3, HEADS, WIDTH // HEADS),
            "out": normal(WIDTH, WIDTH).reshape(HEADS, WIDTH // HEADS, WIDTH),
            "up": normal(WIDTH, 4 * WIDTH), "down": normal(4 * WIDTH, WIDTH),
        })
        specs["layers"].append({
            "qkv": P(None, None, "tensor"), "out": P("tensor"), "up": P(None, "tensor"),
            "down": P("tensor"),
        })
    params["head"], specs["head"] = normal(WIDTH, LETTERS), P()
    return params, specs


def norm(x):
    """Each position with mean zero and variance one."""
    x = x - x.mean(-1, keepdims=True)
    return x * jnp.sqrt(1 / (jnp.mean(x * x, -1, keepdims=True) + 1e-5))


def logits(params, letters):
    """letters: int32[batch, length] -> float32[batch, length, LETTERS]."""
    length = letters.shape[1]
    x = nj.nn.one_hot(letters, LETTERS) @ params["embed"] + params["place"][:length]
    mask = jnp.tril(jnp.ones((length, length), bool))
    for layer in params["layers"]:
        q, k, v = jnp.moveaxis(jnp.einsum("btw,wnhd->btnhd", norm(x), layer["qkv"]), 2, 0)
        scores = jnp.einsum("bthd,bshd->bhts", q, k) * (WIDTH // HEADS) ** -0.5
        weights = nj.nn.softmax(jnp.where(mask, scores, -1e9))
        x = x + jnp.einsum("bhts,bshd,hdw->btw", weights, v, layer["out"])
        x = x + nj.nn.gelu(norm(x) @ layer["up"]) @ layer["down"]
    return norm(x) @ params["head"]


def loss(params, letters, weight):
    """Mean cross-entropy of the next letter in the second half, over rows of weight one."""
    log_p = nj.nn.log_softmax(logits(params, letters[:, :-1]))
    right = jnp.sum(log_p * nj.nn.one_hot(letters[:, 1:], LETTERS), -1)[:, LENGTH // 2 :]
    return -jnp.sum(right * weight[:, None]) / (jnp.sum(weight) * right.shape[1])


def train_step(state, letters, weight):
    """One step of Adam."""
    params, first, second, count = state
    value, grads = nj.value_and_grad(loss)(params, letters, weight)
    count = count + 1
    first = nj.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, grads)
    second = nj.tree.map(lambda v, g: 0.98 * v + 0.02 * g * g, second, grads)
    scale = RATE * jnp.sqrt(1 - 0.98**count) / (1 - 0.9**count)
    params = nj.tree.map(
        lambda p, m, v: p - scale * m / (jnp.sqrt(v) + 1e-8), params, first, second
    )
    return value, (params, first, second, count)


def sequences(generator, rows):
    """int32[rows, LENGTH + 1]: letters, and the same again."""
    half = generator.integers(0, LETTERS, (rows, LENGTH // 2 + 1))
    return np.concatenate([half, half], 1)[:, : LENGTH + 1].astype(np.int32)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="transformer.png")
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--tensor", type=int, default=2, help="devices along the axis 'tensor'")
    parser.add_argument("--folder", help="where checkpoints are saved, and found")
    options = parser.parse_args()
    if UNDER_MPI:
        nj.distributed.initialize()
    count = nj.device_count()
    tensor = options.tensor if count % options.tensor == 0 else 1
    types = (nj.sharding.AxisType.Auto,) * 2  # the partitioner finds layouts; no types say them
    mesh = nj.make_mesh((count // tensor, tensor), ("data", "tensor"), types)
    lies = lambda spec: nj.NamedSharding(mesh, spec)  # noqa: E731
    params, specs = init(random.key(0))
    params = nj.tree.map(lambda p, s: nj.device_put(p, lies(s)), params, specs)
    zeros = nj.tree.map(lambda p: nj.device_put(np.zeros(p.shape, np.float32), p.sharding), params)
    state = (params, zeros, zeros, nj.device_put(np.float32(0), lies(P())))
    start = (options.folder and checkpoints.latest(options.folder)) or 0
    if start:
        state = checkpoints.restore(options.folder, state)

    # The rows of a batch that this process makes: those of its place along "data".
    data = lies(P("data"))
    rows = nj.device_put(np.zeros(BATCH, np.float32), data)
    mine = sorted({(s.index[0].start or 0, s.index[0].stop or BATCH)
                   for s in rows.addressable_shards})  # fmt: skip
    share = sum(stop - first for first, stop in mine)
    generator = np.random.default_rng([start, mine[0][0]])

    def batch(generator, full):
        """A batch of which `full` rows of this process count."""
        letters = sequences(generator, share)
        weight = (np.arange(share) < full).astype(np.float32)
        put = lambda x: nj.make_array_from_process_local_data(data, x)  # noqa: E731
        return put(letters), put(weight)

    step = nj.jit(train_step, donate_argnums=0)
    losses, began = [], time.perf_counter()
    for i in range(start, options.steps):
        value, state = step(state, *batch(generator, share))
        losses.append(float(value))
        if options.folder and (i + 1) % 50 == 0:
            checkpoints.save(options.folder, state, i + 1)
    seconds = time.perf_counter() - began
    evaluate = nj.jit(loss)
    test = np.random.default_rng([99, mine[0][0]])
    sizes = [share, share, share // 2]  # the last batch is half full
    found = [float(evaluate(state[0], *batch(test, full))) for full in sizes]
    final = np.average(found, weights=sizes)
    if nj.process_index() == 0:
        print(f"mesh {dict(mesh.shape)} on {nj.process_count()} process(es): "
              f"{len(losses) / seconds:.1f} steps/s, loss {losses[0] if losses else final:.3f} -> "
              f"{final:.3f}")  # fmt: skip
        draw(losses, start, state, mesh, options.out)
    return int(final > 0.5)


def draw(losses, start, state, mesh, path) -> None:
    """The loss, and which device holds which part of a layer."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(13, 3.6), layout="constrained")
    axes[0].semilogy(range(start, start + len(losses)), losses)
    axes[0].set(title="loss on what can be foretold", xlabel="step")
    for ax, name in zip(axes[1:], ("up", "down"), strict=True):
        weight = state[0]["layers"][0][name]
        owner = np.zeros(weight.shape)
        for shard in weight.global_shards:
            if shard.replica_id == 0:
                owner[shard.index] = shard.device.id
        ax.imshow(owner, cmap="tab10", vmin=0, vmax=9, aspect="auto", interpolation="nearest")
        ax.set(title=f"{name}: the first device that holds each part", xlabel=str(weight.shape))
    figure.suptitle(f"mesh {dict(mesh.shape)} on {nj.process_count()} process(es)")
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    sys.exit(main())
