"""Programs that mostly move data: scans, transposes, gather and scatter, sorting."""

import numpy as np
from registry import row


def cumsum_inputs(rng):
    return (rng.standard_normal(10**7, dtype=np.float32),)


row(
    "cumsum",
    "cumsum, 10⁷",
    "movement",
    inputs=cumsum_inputs,
    array=lambda s: s.jit(s.np.cumsum),
    others={
        "numpy": lambda np: np.cumsum,
        "torch": lambda torch: lambda x: torch.cumsum(x, 0),
    },
    bars={"jax": 0.08},
    reads=4e7,
    writes=4e7,
    tolerance=2e-3,
)


def square(rng):
    return (rng.standard_normal((4096, 4096), dtype=np.float32),)


row(
    "transpose",
    "transpose, 4096²",
    "movement",
    inputs=square,
    array=lambda s: s.jit(lambda a: a.T),
    others={
        "numpy": lambda np: lambda a: np.ascontiguousarray(a.T),
        "torch": lambda torch: lambda a: a.T.contiguous(),
    },
    bars={"jax": 0.15},
    reads=4 * 4096**2,
    writes=4 * 4096**2,
)
row(
    "transpose_add",
    "a.T + b, 4096²",
    "movement",
    inputs=lambda rng: square(rng) + square(rng),
    array=lambda s: s.jit(lambda a, b: a.T + b),
    others={
        "numpy": lambda np: lambda a, b: a.T + b,
        "torch": lambda torch: lambda a, b: a.T + b,
    },
    bars={"jax": 0.3},
    reads=8 * 4096**2,
    writes=4 * 4096**2,
)


def gather_inputs(rng):
    table = rng.standard_normal((10**6, 64), dtype=np.float32)
    return table, rng.integers(0, 10**6, 10**6).astype(np.int32)


row(
    "gather",
    "gather of 10⁶ rows of 64",
    "movement",
    inputs=gather_inputs,
    array=lambda s: s.jit(lambda table, index: table[index]),
    others={
        "numpy": lambda np: lambda table, index: table[index],
        "torch": lambda torch: lambda table, index: table[index],
    },
    bars={"jax": 0.15},
    reads=256e6,
    writes=256e6,
)


def scatter_inputs(rng):
    return rng.standard_normal(10**6, dtype=np.float32), rng.integers(0, 1000, 10**6).astype(
        np.int32
    )


def numpy_scatter(np):
    return lambda x, index: np.bincount(index, weights=x, minlength=1000).astype(np.float32)


def torch_scatter(torch):
    def scatter(x, index):
        return torch.zeros(1000).index_add_(0, index, x)

    return scatter


def numba_scatter(numba):
    @numba.njit
    def scatter(x, index):
        out = np.zeros(1000, np.float32)
        for i in range(x.size):
            out[index[i]] += x[i]
        return out

    return scatter


row(
    "scatter_add",
    "scatter-add, 10⁶ into 1,000",
    "movement",
    inputs=scatter_inputs,
    array=lambda s: s.jit(lambda x, index: s.np.zeros(1000, "float32").at[index].add(x)),
    others={"numpy": numpy_scatter, "torch": torch_scatter, "numba": numba_scatter},
    bars={"jax": 0.6},
    tolerance=1e-3,
)


def sort_inputs(rng):
    x = rng.standard_normal(10**6, dtype=np.float32)
    x[::1000] = np.nan
    return (x,)


row(
    "sort",
    "sort, 10⁶ with NaN",
    "sort",
    inputs=sort_inputs,
    array=lambda s: s.jit(s.np.sort),
    others={
        "numpy": lambda np: np.sort,
        "torch": lambda torch: lambda x: torch.sort(x).values,
    },
    bars={"jax": 0.05, "numpy": 0.3},
)
row(
    "argsort",
    "stable argsort, 10⁶ with NaN",
    "sort",
    inputs=sort_inputs,
    array=lambda s: s.jit(s.np.argsort),
    others={
        "numpy": lambda np: lambda x: np.argsort(x, stable=True),
        "torch": lambda torch: lambda x: torch.argsort(x, stable=True),
    },
    bars={"jax": 0.05, "numpy": 0.3},
)
