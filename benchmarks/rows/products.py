"""Products of matrices and vectors."""

import numpy as np
from registry import row

BEST = {"best": 1.0}


def pair(left, right, dtype=np.float32):
    return lambda rng: (
        rng.standard_normal(left, dtype=dtype),
        rng.standard_normal(right, dtype=dtype),
    )


def product_row(name, title, left, right, flops, **options):
    row(
        name,
        title,
        "matmul",
        inputs=pair(left, right, options.pop("dtype", np.float32)),
        array=lambda s: s.jit(lambda a, b: a @ b),
        others={
            "numpy": lambda np: lambda a, b: a @ b,
            "torch": lambda torch: lambda a, b: a @ b,
        },
        flops=flops,
        blas=True,
        **options,
    )


for size in (64, 100, 256, 1024, 2048):
    product_row(
        f"matmul_{size}",
        f"product {size}²",
        (size, size),
        (size, size),
        2 * size**3,
        bars=BEST,
    )
product_row(
    "matmul_batched",
    "256 products 64×64",
    (256, 64, 64),
    (256, 64, 64),
    2 * 256 * 64**3,
    bars=BEST,
)


def bias_tanh_inputs(rng):
    return (
        rng.standard_normal((128, 256), dtype=np.float32),
        rng.standard_normal((256, 256), dtype=np.float32) / 16,
        rng.standard_normal(256, dtype=np.float32),
    )


row(
    "matmul_tanh",
    "tanh(128×256×256 product + bias)",
    "matmul",
    inputs=bias_tanh_inputs,
    array=lambda s: s.jit(lambda x, w, b: s.np.tanh(x @ w + b)),
    others={
        "numpy": lambda np: lambda x, w, b: np.tanh(x @ w + b),
        "torch": lambda torch: lambda x, w, b: torch.tanh(torch.addmm(b, x, w)),
    },
    bars=BEST,
    flops=2 * 128 * 256 * 256,
    blas=True,
)
for label, dtype in (("f32", np.float32), ("f64", np.float64)):
    product_row(
        f"matvec_{label}",
        f"matrix-vector 4000² {np.dtype(dtype).name}",
        (4000, 4000),
        (4000,),
        2 * 4000**2,
        dtype=dtype,
        x64=dtype is np.float64,
        double=dtype is np.float64,
        reads=4000**2 * np.dtype(dtype).itemsize,
        bars={"best": 1.0, "limit": 0.85},
    )


def integers(*shapes):
    return lambda rng: tuple(rng.integers(-128, 128, shape, dtype=np.int8) for shape in shapes)


row(
    "matmul_int8",
    "product 512² int8, sums int32",
    "matmul",
    inputs=integers((512, 512), (512, 512)),
    array=lambda s: s.jit(lambda a, b: s.lax.dot(a, b, preferred_element_type=np.int32)),
    others={
        "torch": lambda torch: torch._int_mm,
    },
    bars=BEST,
    flops=2 * 512**3,
)
row(
    "conv_int8",
    "3×3 convolution 8×32×32, 16 to 32 features, int8, sums int32",
    "matmul",
    inputs=integers((8, 32, 32, 16), (3, 3, 16, 32)),
    array=lambda s: s.jit(
        lambda x, k: s.lax.conv_general_dilated(
            x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"),
            preferred_element_type=np.int32,
        )  # fmt: skip
    ),
    bars=BEST,
    flops=2 * 8 * 32 * 32 * 9 * 16 * 32,
)
