"""A denoising autoencoder in haiku, trained with optax.

    python -m numjet.as_jax examples/haiku_autoencoder.py [--out autoencoder.png] [--quick]

Digits of 8 by 8 pixels (from scikit-learn) are covered with noise; a network with a layer of twelve
numbers in its middle learns to clean them. haiku's way: a function of modules made pure by
`hk.transform`, its parameters a dictionary, optax's chain of updates. The picture shows digits,
what covered them, and what was restored. Needs dm-haiku, optax, scikit-learn, matplotlib and tqdm.
On two busy cores 6,000 steps take 15 s on numjet, 21 on JAX;
the program with its imports takes 36 and 95 s.
"""

from __future__ import annotations

import argparse
import time
from typing import NamedTuple

import haiku as hk
import jax
import jax.numpy as jnp
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import optax
from sklearn.datasets import load_digits
from tqdm import tqdm

BATCH, NOISE = 128, 0.35


class State(NamedTuple):
    params: hk.Params
    averaged: hk.Params
    optimizer: optax.OptState
    key: jax.Array


def restore(images: jax.Array) -> jax.Array:
    """The network: images with noise, one a row -> without."""
    encoder = hk.nets.MLP([128, 64, 12], name="encoder", activation=jax.nn.gelu)
    decoder = hk.nets.MLP([64, 128, 64], name="decoder", activation=jax.nn.gelu)
    norm = hk.LayerNorm(axis=-1, create_scale=True, create_offset=True)
    return jax.nn.sigmoid(decoder(norm(encoder(images))))


network = hk.without_apply_rng(hk.transform(restore))
optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(2e-3, weight_decay=1e-4))


def covered(key: jax.Array, images: jax.Array) -> jax.Array:
    return jnp.clip(images + NOISE * jax.random.normal(key, images.shape), 0.0, 1.0)


def loss_of(params: hk.Params, key: jax.Array, images: jax.Array) -> jax.Array:
    return jnp.mean((network.apply(params, covered(key, images)) - images) ** 2)


@jax.jit
def step(state: State, images: jax.Array) -> tuple[State, jax.Array]:
    key, subkey = jax.random.split(state.key)
    loss, gradients = jax.value_and_grad(loss_of)(state.params, subkey, images)
    updates, optimizer_state = optimizer.update(gradients, state.optimizer, state.params)
    params = optax.apply_updates(state.params, updates)
    averaged = optax.incremental_update(params, state.averaged, step_size=0.01)
    return State(params, averaged, optimizer_state, key), loss


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", default="autoencoder.png")
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--quick", action="store_true", help="few steps, to see that it works")
    options = parser.parse_args()
    steps = 300 if options.quick else options.steps

    images = (load_digits().data / 16.0).astype(np.float32)
    rng = np.random.default_rng(0)
    rng.shuffle(images)
    held_out, images = images[:300], images[300:]

    params = network.init(jax.random.key(0), jnp.zeros((1, 64)))
    state = State(params, params, optimizer.init(params), jax.random.key(1))
    history = []
    begun = time.perf_counter()
    for k in (progress := tqdm(range(steps), desc="steps")):
        state, loss = step(state, images[rng.integers(0, len(images), BATCH)])
        if k % 100 == 99:
            history.append(float(loss))
            progress.set_postfix(loss=f"{history[-1]:.4f}")
    seconds = time.perf_counter() - begun

    noisy = covered(jax.random.key(2), held_out)
    restored = network.apply(state.averaged, noisy)
    before = float(jnp.mean((noisy - held_out) ** 2))
    after = float(jnp.mean((restored - held_out) ** 2))
    print(f"error of held-out digits {before:.4f} -> {after:.4f}, {steps} steps in {seconds:.1f} s")

    figure = plt.figure(figsize=(10, 3.2), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(1, 2))
    axes = left.subplots()
    axes.plot(100 * np.arange(1, len(history) + 1), history)
    axes.set(xlabel="step", ylabel="training loss", yscale="log")
    rows = (("digits", held_out), ("with noise", noisy), ("restored", restored))
    grid = right.subplots(3, 10)
    for (name, shown), line in zip(rows, grid, strict=True):
        for axis, image in zip(line, shown, strict=False):
            axis.imshow(np.asarray(image).reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
            axis.set_xticks([])
            axis.set_yticks([])
        line[0].set_ylabel(name, fontsize=8)
    figure.savefig(options.out, dpi=110)
    print(f"The picture is {options.out}.")
    if after > before * (0.9 if options.quick else 0.45):
        raise SystemExit("the noise was not removed as expected")


if __name__ == "__main__":
    main()
