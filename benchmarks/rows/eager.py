"""Operations called one by one from Python on ten numbers: what counts is the dispatch."""

import numpy as np
from registry import row


def ten(rng):
    return (rng.standard_normal(10, dtype=np.float32),)


def two(rng):
    return ten(rng) + ten(rng)


def eager(name, title, array, on_numpy=None, inputs=ten, on_torch=None, **bars):
    programs = {"numpy": on_numpy, "torch": on_torch}
    others = {peer: build for peer, build in programs.items() if build is not None}
    row(
        name,
        title,
        "eager",
        inputs=inputs,
        array=array,
        others=others,
        bars=bars,
        block=False,
        tolerance=1e-5,
    )


eager(
    "eager_add",
    "x + y",
    lambda s: lambda x, y: x + y,
    lambda np: lambda x, y: x + y,
    two,
    lambda torch: lambda x, y: x + y,
    numpy=2.0,
)
eager(
    "eager_one",
    "x + 1",
    lambda s: lambda x: x + 1,
    lambda np: lambda x: x + 1,
    on_torch=lambda torch: lambda x: x + 1,
    numpy=3.0,
)
eager(
    "eager_sin",
    "sin(x)",
    lambda s: lambda x, sin=s.np.sin: sin(x),
    lambda np: lambda x, sin=np.sin: sin(x),
    on_torch=lambda torch: lambda x, sin=torch.sin: sin(x),
    numpy=2.0,
)
eager(
    "eager_sum",
    "sum(x)",
    lambda s: lambda x, sum=s.np.sum: sum(x),
    lambda np: lambda x, sum=np.sum: sum(x),
    on_torch=lambda torch: lambda x, sum=torch.sum: sum(x),
    numpy=2.0,
)
eager(
    "eager_where",
    "where(c, x, y)",
    lambda s: lambda x, y, c, where=s.np.where: where(c, x, y),
    lambda np: lambda x, y, c, where=np.where: where(c, x, y),
    lambda rng: two(rng) + (rng.random(10) > 0.5,),
    lambda torch: lambda x, y, c, where=torch.where: where(c, x, y),
    numpy=2.0,
)
eager("eager_index", "x[3]", lambda s: lambda x: x[3], lambda np: lambda x: x[3], jax=0.02)
eager("eager_slice", "x[2:5]", lambda s: lambda x: x[2:5], lambda np: lambda x: x[2:5], jax=0.02)


def copy_and_set(x):
    x = x.copy()
    x[3] = 1
    return x


eager(
    "eager_at",
    "x.at[3].set(1)",
    lambda s: lambda x: x.at[3].set(1),
    lambda np: copy_and_set,
    jax=0.02,
)


def gradient_of_tanh(s):
    return s.grad(lambda x: s.np.sum(s.np.tanh(x) ** 2))


def torch_gradient_of_tanh(torch):
    def gradient(x):
        x = x.clone().requires_grad_()
        (torch.tanh(x) ** 2).sum().backward()
        return x.grad

    return gradient


eager(
    "eager_grad",
    "grad(sum(tanh(x)²))",
    gradient_of_tanh,
    on_torch=torch_gradient_of_tanh,
    jax=0.04,
)
eager(
    "eager_jvp",
    "jvp of sin(x)·x",
    lambda s: lambda x, t: s.jvp(lambda x: s.np.sin(x) * x, (x,), (t,)),
    inputs=two,
    jax=0.15,
)
eager(
    "eager_vmap",
    "vmap of sin(x)·x",
    lambda s: lambda x: s.vmap(lambda x: s.np.sin(x) * x)(x),
    jax=0.15,
)
