"""The networks of the benchmark, written once for numjet and JAX, and their random parameters.

Used by the training rows, by the compilation rows (cold.py), and nowhere else.
"""

from __future__ import annotations

from typing import Any

import numpy as np

BATCH, LENGTH, WIDTH, HEADS, LAYERS, VOCABULARY = 8, 64, 128, 4, 6, 256
RATE = 1e-3


def normal(rng: np.random.Generator, *shape: int, scale: float = 1.0) -> np.ndarray:
    return rng.standard_normal(shape, dtype=np.float32) * np.float32(scale)


def mlp_inputs(rng: np.random.Generator, width: int = 256, batch: int = 128, depth: int = 4):
    """Parameters of `depth` square layers, a batch, and its targets."""
    layers = [
        {"w": normal(rng, width, width, scale=width**-0.5), "b": np.zeros(width, np.float32)}
        for _ in range(depth)
    ]
    return layers, normal(rng, batch, width), normal(rng, batch, width)


def mlp_loss(s: Any):
    def loss(layers, x, y):
        for layer in layers[:-1]:
            x = s.np.tanh(x @ layer["w"] + layer["b"])
        return s.np.mean((x @ layers[-1]["w"] + layers[-1]["b"] - y) ** 2)

    return loss


def transformer_inputs(rng: np.random.Generator):
    """Parameters of the transformer and a batch of tokens."""
    scale = WIDTH**-0.5
    layers = [
        {
            "norm1": np.ones(WIDTH, np.float32),
            "norm2": np.ones(WIDTH, np.float32),
            "query_key_value": normal(rng, WIDTH, 3 * WIDTH, scale=scale),
            "out": normal(rng, WIDTH, WIDTH, scale=scale),
            "up": normal(rng, WIDTH, 4 * WIDTH, scale=scale),
            "up_bias": np.zeros(4 * WIDTH, np.float32),
            "down": normal(rng, 4 * WIDTH, WIDTH, scale=scale / 2),
            "down_bias": np.zeros(WIDTH, np.float32),
        }
        for _ in range(LAYERS)
    ]
    parameters = {
        "embedding": normal(rng, VOCABULARY, WIDTH),
        "position": normal(rng, LENGTH, WIDTH, scale=0.1),
        "layers": layers,
        "head": normal(rng, WIDTH, VOCABULARY, scale=scale),
    }
    return parameters, rng.integers(0, VOCABULARY, (BATCH, LENGTH + 1)).astype(np.int32)


def transformer_loss(s: Any):
    """Mean cross-entropy of the next token; causal attention, layer norm first, gelu."""
    xp = s.np

    def normed(x, scale):
        centred = x - x.mean(-1, keepdims=True)
        return scale * centred / xp.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)

    def attention(x, layer):
        split = (x @ layer["query_key_value"]).reshape(BATCH, LENGTH, 3, HEADS, WIDTH // HEADS)
        query, key, value = (split[:, :, i].transpose(0, 2, 1, 3) for i in range(3))
        scores = query @ key.transpose(0, 1, 3, 2) * (WIDTH // HEADS) ** -0.5
        seen = xp.tril(xp.ones((LENGTH, LENGTH), bool))
        mixed = s.nn.softmax(xp.where(seen, scores, -1e9), axis=-1) @ value
        return mixed.transpose(0, 2, 1, 3).reshape(BATCH, LENGTH, WIDTH) @ layer["out"]

    def loss(parameters, tokens):
        x = parameters["embedding"][tokens[:, :-1]] + parameters["position"]
        for layer in parameters["layers"]:
            x = x + attention(normed(x, layer["norm1"]), layer)
            hidden = s.nn.gelu(normed(x, layer["norm2"]) @ layer["up"] + layer["up_bias"])
            x = x + hidden @ layer["down"] + layer["down_bias"]
        logits = s.nn.log_softmax(x @ parameters["head"], axis=-1)
        return -xp.mean(xp.take_along_axis(logits, tokens[:, 1:, None], axis=-1))

    return loss


def step(s: Any, loss: Any, rate: float = RATE):
    """A step of gradient descent: (parameters, data...) to (loss, new parameters)."""

    def train(parameters, *data):
        value, gradient = s.value_and_grad(loss)(parameters, *data)
        return value, s.map(lambda p, g: p - rate * g, parameters, gradient)

    return train


def deep(s: Any):
    def run(x, w):
        for _ in range(200):
            x = s.np.tanh(x @ w)
        return x

    return run


def chain(s: Any):
    return lambda x: s.np.tanh(s.np.exp(-x * x) + s.np.sin(x))


def program(name: str, s: Any) -> tuple:
    """A compilation row's function and the NumPy arguments it is compiled for."""
    rng = np.random.default_rng(1)
    if name == "chain":
        return chain(s), (normal(rng, 10**6),)
    if name == "mlp":
        return s.value_and_grad(mlp_loss(s)), mlp_inputs(rng)
    if name == "transformer":
        return s.value_and_grad(transformer_loss(s)), transformer_inputs(rng)
    if name == "deep":
        return deep(s), (normal(rng, 32, 32), normal(rng, 32, 32, scale=0.2))
    raise ValueError(name)
