"""Reductions over any axis, and row-wise programs that reduce and use the result."""

import numpy as np
from registry import row

MEMORY = {"limit": 0.85, "best": 1.0}


def fused_sum_inputs(rng):
    return tuple(rng.standard_normal(10**7, dtype=np.float32) for _ in range(3))


row(
    "fused_sum",
    "sum(x·2·y+z), 10⁷",
    "reductions",
    inputs=fused_sum_inputs,
    array=lambda s: s.jit(lambda x, y, z: s.np.sum(x * 2 * y + z)),
    others={
        "numpy": lambda np: lambda x, y, z: np.sum(x * 2 * y + z),
        "torch": lambda torch: lambda x, y, z: torch.sum(x * 2 * y + z),
    },
    bars=MEMORY,
    reads=12e7,
    tolerance=1e-3,
)
CUBE = 256**3
for label, dtype in (("f32", np.float32), ("f64", np.float64)):
    for axis in range(3):
        row(
            f"sum_{label}_{axis}",
            f"sum of 256³ {np.dtype(dtype).name} over axis {axis}",
            "reductions",
            inputs=lambda rng, dtype=dtype: (rng.standard_normal((256,) * 3, dtype=dtype),),
            array=lambda s, axis=axis: s.jit(lambda x: s.np.sum(x, axis=axis)),
            others={
                "numpy": lambda np, axis=axis: lambda x: np.sum(x, axis=axis),
                "torch": lambda torch, axis=axis: lambda x: torch.sum(x, dim=axis),
            },
            bars=MEMORY,
            x64=dtype is np.float64,
            reads=CUBE * np.dtype(dtype).itemsize,
        )
row(
    "var",
    "variance over axis 0, 20,000×300",
    "reductions",
    inputs=lambda rng: (rng.standard_normal((20_000, 300), dtype=np.float32),),
    array=lambda s: s.jit(lambda x: s.np.var(x, axis=0)),
    others={
        "numpy": lambda np: lambda x: np.var(x, axis=0),
        "torch": lambda torch: lambda x: torch.var(x, dim=0, correction=0),
    },
    bars=MEMORY,
    reads=4 * 6e6,
)
row(
    "argmax",
    "argmax of rows, 300×20,000",
    "reductions",
    inputs=lambda rng: (rng.standard_normal((300, 20_000), dtype=np.float32),),
    array=lambda s: s.jit(lambda x: s.np.argmax(x, axis=1)),
    others={
        "numpy": lambda np: lambda x: np.argmax(x, axis=1),
        "torch": lambda torch: lambda x: torch.argmax(x, dim=1),
    },
    bars=MEMORY,
    reads=4 * 6e6,
)


def array_softmax(s):
    return s.jit(lambda x: s.nn.softmax(x, axis=-1))


def numpy_softmax(np):
    def softmax(x):
        e = np.exp(x - x.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    return softmax


def array_layer_norm(s):
    def layer_norm(x):
        centred = x - x.mean(-1, keepdims=True)
        variance = (centred * centred).mean(-1, keepdims=True)
        return centred / s.np.sqrt(variance + 1e-5)

    return s.jit(layer_norm)


def numpy_layer_norm(np):
    def layer_norm(x):
        centred = x - x.mean(-1, keepdims=True)
        variance = (centred * centred).mean(-1, keepdims=True)
        return centred / np.sqrt(variance + np.float32(1e-5))

    return layer_norm


def array_logsumexp(s):
    return s.jit(lambda x: s.nn.logsumexp(x, axis=-1))


def numpy_logsumexp(np):
    def logsumexp(x):
        top = x.max(-1, keepdims=True)
        return np.log(np.exp(x - top).sum(-1)) + top[:, 0]

    return logsumexp


ROW_PROGRAMS = (
    (
        "softmax",
        array_softmax,
        numpy_softmax,
        lambda torch: lambda x: torch.softmax(x, dim=-1),
        0.25,
        True,
    ),
    (
        "layer_norm",
        array_layer_norm,
        numpy_layer_norm,
        lambda torch: lambda x: torch.nn.functional.layer_norm(x, x.shape[-1:]),
        0.25,
        True,
    ),
    (
        "logsumexp",
        array_logsumexp,
        numpy_logsumexp,
        lambda torch: lambda x: torch.logsumexp(x, dim=-1),
        0.5,
        False,
    ),
)
for rows, columns in ((10_000, 1_000), (1_000_000, 10)):
    for name, array, numpy, torch, bar, writes in ROW_PROGRAMS:
        row(
            name if columns == 1_000 else f"{name}_10",
            f"{name.replace('_', ' ')}, {rows:,}×{columns:,}",
            "rows",
            inputs=lambda rng, shape=(rows, columns): (
                rng.standard_normal(shape, dtype=np.float32),
            ),
            array=array,
            others={"numpy": numpy, "torch": torch},
            bars={"jax": bar if columns == 1_000 else 1.0},
            reads=4e7,
            writes=4e7 if writes else 4 * rows,
        )
