"""Fused elementwise programs."""

import numpy as np
from registry import row

MILLION = 10**6


def normal(size, dtype=np.float32):
    return lambda rng: (rng.standard_normal(size, dtype=dtype),)


row(
    "chain",
    "tanh(exp(-x²)+sin x), 10⁶",
    "elementwise",
    inputs=normal(MILLION),
    array=lambda s: s.jit(lambda x: s.np.tanh(s.np.exp(-x * x) + s.np.sin(x))),
    others={
        "numpy": lambda np: lambda x: np.tanh(np.exp(-x * x) + np.sin(x)),
        "torch": lambda torch: lambda x: torch.tanh(torch.exp(-x * x) + torch.sin(x)),
    },
    bars={"jax": 0.2},
    reads=4 * MILLION,
    writes=4 * MILLION,
)
row(
    "log64",
    "log, 10⁶ float64",
    "elementwise",
    inputs=lambda rng: (rng.random(MILLION) * 100 + 1e-3,),
    array=lambda s: s.jit(s.np.log),
    others={"numpy": lambda np: np.log, "torch": lambda torch: torch.log},
    bars={"jax": 0.3, "numpy": 1.0},
    x64=True,
    reads=8 * MILLION,
    writes=8 * MILLION,
)
row(
    "sin64",
    "sin, 10⁶ float64",
    "elementwise",
    inputs=lambda rng: (rng.random(MILLION) * 200 - 100,),
    array=lambda s: s.jit(s.np.sin),
    others={"numpy": lambda np: np.sin, "torch": lambda torch: torch.sin},
    bars={"jax": 0.3, "numpy": 1.0},
    x64=True,
    reads=8 * MILLION,
    writes=8 * MILLION,
)


def numpy_gelu(np):
    def gelu(x):
        inner = np.float32(0.7978845608) * (x + np.float32(0.044715) * x * x * x)
        return np.float32(0.5) * x * (1 + np.tanh(inner))

    return gelu


row(
    "gelu",
    "gelu, 3·10⁶",
    "elementwise",
    inputs=normal(3 * MILLION),
    array=lambda s: s.jit(s.nn.gelu),
    others={
        "numpy": numpy_gelu,
        "torch": lambda torch: lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
    },
    bars={"jax": 1.0, "numpy": 1.0},
    reads=12 * MILLION,
    writes=12 * MILLION,
)
row(
    "logaddexp",
    "logaddexp, 10⁶",
    "elementwise",
    inputs=lambda rng: (
        rng.standard_normal(MILLION, dtype=np.float32),
        rng.standard_normal(MILLION, dtype=np.float32),
    ),
    array=lambda s: s.jit(s.np.logaddexp),
    others={"numpy": lambda np: np.logaddexp, "torch": lambda torch: torch.logaddexp},
    bars={"jax": 0.4, "numpy": 1.0},
    reads=8 * MILLION,
    writes=4 * MILLION,
)
