"""Random numbers. numjet draws the same bits as JAX; the other peers draw others."""

from registry import row


def drawing(name, size):
    def build(s):
        draw = s.jit(lambda key: getattr(s.random, name)(key, (size,)))
        key = s.random.key(7)
        return lambda: draw(key)

    return build


def numpy_drawing(name, size):
    def build(np):
        rng = np.random.default_rng(7)
        return lambda: getattr(rng, name)(size, dtype=np.float32)

    return build


row(
    "normal",
    "normal, 10⁶",
    "random",
    array=drawing("normal", 10**6),
    others={
        "numpy": numpy_drawing("standard_normal", 10**6),
        "torch": lambda torch: lambda: torch.randn(10**6),
    },
    bars={"jax": 0.3},
    compare=("jax",),
    writes=4e6,
)
row(
    "uniform",
    "uniform, 10⁷",
    "random",
    array=drawing("uniform", 10**7),
    others={
        "numpy": numpy_drawing("random", 10**7),
        "torch": lambda torch: lambda: torch.rand(10**7),
    },
    bars={"jax": 0.3},
    compare=("jax",),
    writes=4e7,
)
