"""numjet.example_libraries.stax: neural networks as pairs of functions.

A layer is `(init_fun, apply_fun)`: `init_fun(key, input_shape) -> (output_shape, params)` and
`apply_fun(params, inputs, **kwargs) -> outputs`; `kwargs` may hold a `rng` (dropout needs it).
`serial` and `parallel` make layers of layers. Sizes of batch axes may be -1.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

from numjet import lax, numpy as jnp, random
from numjet.nn import (
    elu,
    gelu,
    leaky_relu,
    log_softmax,
    relu,
    selu,
    sigmoid,
    softmax,
    softplus,
    standardize,
)
from numjet.nn.initializers import glorot_normal, normal, ones, zeros

Layer = tuple[Callable, Callable]
_IMAGES = ("NHWC", "HWIO", "NHWC")


def Dense(  # noqa: N802 - JAX's name, as all layers below
    out_dim: int, W_init: Callable | None = None, b_init: Callable | None = None  # noqa: N803
) -> Layer:
    """An affine map of the last axis; params are (W, b).

    out_dim: the size of the axis in the result. W_init, b_init: initializers, Glorot's and small
    normal values unless given. Result: a layer (init_fun, apply_fun).

    >>> import numjet as nj, numjet.numpy as jnp
    >>> from numjet.example_libraries import stax
    >>> init, apply = stax.Dense(3)
    >>> shape, params = init(nj.random.key(0), (-1, 2))
    >>> print(shape, apply(params, jnp.ones((5, 2))).shape)
    (-1, 3) (5, 3)
    """
    w_of, b_of = W_init or glorot_normal(), b_init or normal()

    def init_fun(rng: Any, input_shape: Sequence[int]) -> tuple:
        w_key, b_key = random.split(rng)
        w = w_of(w_key, (input_shape[-1], out_dim))
        return (*input_shape[:-1], out_dim), (w, b_of(b_key, (out_dim,)))

    def apply_fun(params: tuple, inputs: Any, **_: Any) -> Any:
        w, b = params
        return jnp.dot(inputs, w) + b

    return init_fun, apply_fun


def GeneralConv(  # noqa: N802
    dimension_numbers: tuple[str, str, str],
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    W_init: Callable | None = None,  # noqa: N803
    b_init: Callable | None = None,
) -> Layer:
    """A convolution with a bias.

    dimension_numbers: three strings, as `lax.conv_general_dilated` has. out_chan: output features.
    filter_shape: the window's sizes. strides: its steps, 1 unless given. padding: "VALID", "SAME"
    or pairs. W_init, b_init: initializers. params are (W, b). Result: a layer (init_fun,
    apply_fun).

    >>> import numjet as nj
    >>> from numjet.example_libraries import stax
    >>> init, apply = stax.GeneralConv(("NHWC", "HWIO", "NHWC"), 3, (2, 2))
    >>> init(nj.random.key(0), (1, 4, 4, 2))[0]
    (1, 3, 3, 3)
    """
    return _conv(dimension_numbers, out_chan, filter_shape, strides, padding, W_init, b_init, False)


def GeneralConvTranspose(  # noqa: N802
    dimension_numbers: tuple[str, str, str],
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    W_init: Callable | None = None,  # noqa: N803
    b_init: Callable | None = None,
) -> Layer:
    """A transposed convolution (`lax.conv_transpose`) with a bias.

    dimension_numbers: three strings, as `lax.conv_general_dilated` has. out_chan: output features.
    filter_shape: the window's sizes. strides: its steps, 1 unless given. padding: "VALID", "SAME"
    or pairs. W_init, b_init: initializers. params are (W, b). Result: a layer (init_fun,
    apply_fun).

    >>> import numjet as nj
    >>> from numjet.example_libraries import stax
    >>> init, apply = stax.GeneralConvTranspose(("NHWC", "HWIO", "NHWC"), 3, (2, 2))
    >>> init(nj.random.key(0), (1, 4, 4, 2))[0]
    (1, 5, 5, 3)
    """
    return _conv(dimension_numbers, out_chan, filter_shape, strides, padding, W_init, b_init, True)


def _conv(
    numbers: tuple[str, str, str],
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None,
    padding: Any,
    w_init: Callable | None,
    b_init: Callable | None,
    transposed: bool,
) -> Layer:
    lhs, rhs, out = numbers
    steps = tuple(strides) if strides else (1,) * len(filter_shape)
    w_of = w_init or glorot_normal(rhs.index("I"), rhs.index("O"))
    b_of = b_init or normal(1e-6)

    def shapes(input_shape: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        sizes = iter(filter_shape)
        channels = input_shape[lhs.index("C")]
        kernel = tuple([{"O": out_chan, "I": channels}.get(c) or next(sizes) for c in rhs])
        bias = tuple([out_chan if c == "C" else 1 for c in out])
        return kernel, bias

    def run(inputs: Any, w: Any) -> Any:
        if transposed:
            return lax.conv_transpose(inputs, w, steps, padding, dimension_numbers=numbers)
        return lax.conv_general_dilated(
            inputs, w, steps, padding, (1,) * len(steps), (1,) * len(steps), numbers
        )

    def init_fun(rng: Any, input_shape: Sequence[int]) -> tuple:
        kernel, bias = shapes(input_shape)
        w_key, b_key = random.split(rng)
        params = (w_of(w_key, kernel), b_of(b_key, bias))
        return _shape_of(lambda x: run(x, params[0]), input_shape), params

    def apply_fun(params: tuple, inputs: Any, **_: Any) -> Any:
        w, b = params
        return run(inputs, w) + b

    return init_fun, apply_fun


def _shape_of(fun: Callable, input_shape: Sequence[int]) -> tuple[int, ...]:
    """The shape of `fun`'s result; axes of size -1 stay so where their size is passed on."""
    from numjet.api.compiled.abstract import eval_shape
    from numjet.api.placement.shape_struct import ShapeDtypeStruct

    known = [1 if n == -1 else n for n in input_shape]
    shape = list(eval_shape(fun, ShapeDtypeStruct(known, float)).shape)
    for axis, n in enumerate(input_shape):
        if n == -1 and axis < len(shape) and shape[axis] == 1:
            shape[axis] = -1
    return tuple(shape)


# Of images, NHWC, and of sequences, NHC.
Conv = functools.partial(GeneralConv, _IMAGES)
ConvTranspose = functools.partial(GeneralConvTranspose, _IMAGES)
Conv1DTranspose = functools.partial(GeneralConvTranspose, ("NHC", "HIO", "NHC"))


def BatchNorm(  # noqa: N802
    axis: int | Sequence[int] = (0, 1, 2),
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
    beta_init: Callable = zeros,
    gamma_init: Callable = ones,
) -> Layer:
    """Mean zero and variance one over axes, then a scale and a shift; there are no running
    averages.

    axis: the axes that are averaged. epsilon: is added to the variance. center, scale: whether
    there are a shift and a scale. beta_init, gamma_init: their initializers. params are (beta,
    gamma), () for one that is left out. Result: a layer (init_fun, apply_fun).

    >>> import numjet as nj, numjet.numpy as jnp
    >>> from numjet.example_libraries import stax
    >>> init, apply = stax.BatchNorm(axis=0)
    >>> shape, params = init(nj.random.key(0), (-1, 1))
    >>> apply(params, jnp.array([[1.0], [3.0]])).round(3)
    Array([[-1.],
           [ 1.]], dtype=float32)
    """
    axes = (axis,) if isinstance(axis, int) else tuple(axis)

    def init_fun(rng: Any, input_shape: Sequence[int]) -> tuple:
        shape = tuple([n for i, n in enumerate(input_shape) if i not in axes])
        beta_key, gamma_key = random.split(rng)
        beta = beta_init(beta_key, shape) if center else ()
        return tuple(input_shape), (beta, gamma_init(gamma_key, shape) if scale else ())

    def apply_fun(params: tuple, x: Any, **_: Any) -> Any:
        beta, gamma = params
        whole = tuple([None if i in axes else slice(None) for i in range(x.ndim)])
        z = standardize(x, axes, epsilon=epsilon)
        if scale:
            z = gamma[whole] * z
        return z + beta[whole] if center else z

    return init_fun, apply_fun


def elementwise(fun: Callable, **fun_kwargs: Any) -> Layer:
    """A layer without parameters that applies a function to each element.

    fun: a function of an array; fun_kwargs: further arguments of it. Result: a layer (init_fun,
    apply_fun).

    >>> from numjet import numpy as jnp
    >>> from numjet.example_libraries import stax
    >>> stax.elementwise(jnp.square)[1]((), jnp.array([3.0]))
    Array([9.], dtype=float32)
    """
    return _keeps_shape(lambda x: fun(x, **fun_kwargs))


def _keeps_shape(fun: Callable) -> Layer:
    def init_fun(rng: Any, input_shape: Any) -> tuple:
        return input_shape, ()

    return init_fun, lambda params, inputs, **_: fun(inputs)


Tanh = elementwise(jnp.tanh)
Relu = elementwise(relu)
Exp = elementwise(jnp.exp)
LogSoftmax = elementwise(log_softmax, axis=-1)
Softmax = elementwise(softmax, axis=-1)
Softplus = elementwise(softplus)
Sigmoid = elementwise(sigmoid)
Elu = elementwise(elu)
LeakyRelu = elementwise(leaky_relu)
Selu = elementwise(selu)
Gelu = elementwise(gelu)
Identity = _keeps_shape(lambda x: x)


def _pool(
    name: str, reducer: Callable, start: float, average: bool, example: str
) -> Callable[..., Layer]:
    def pooling(
        window_shape: Sequence[int],
        strides: Sequence[int] | None = None,
        padding: Any = "VALID",
        spec: str | None = None,
    ) -> Layer:
        names = spec or ("N" + "HWDXYZ"[: len(window_shape)] + "C")

        def every_axis(sizes: Sequence[int]) -> tuple[int, ...]:
            left = iter(sizes)
            return tuple([1 if c in "NC" else next(left) for c in names])

        if strides is not None and len(strides) != len(window_shape):
            raise ValueError(
                f"pooling: strides {tuple(strides)} must be as many as the sizes of the window "
                f"{tuple(window_shape)}."
            )
        window = every_axis(window_shape)
        steps = every_axis(strides or (1,) * len(window_shape))

        def run(x: Any) -> Any:
            out = lax.reduce_window(x, start, reducer, window, steps, padding)
            if not average:
                return out
            inside = jnp.ones([1 if c in "NC" else n for c, n in zip(names, x.shape, strict=True)])
            return out / lax.reduce_window(inside, 0.0, lax.add, window, steps, padding)

        def init_fun(rng: Any, input_shape: Sequence[int]) -> tuple:
            return _shape_of(run, input_shape), ()

        return init_fun, lambda params, inputs, **_: run(inputs)

    what = {"Max": "maximum", "Sum": "sum", "Avg": "mean"}[name[:3]]
    pooling.__name__ = pooling.__qualname__ = name
    pooling.__doc__ = f"""The {what} of each window of an image, as a layer without parameters.

    window_shape: the window's sizes along the axes that spec calls neither N nor C. strides: its
    steps, 1 unless given (ValueError for another number). padding: "VALID", "SAME" or pairs. spec:
    the axes, such as "NHWC", which is meant unless given. Result: a layer (init_fun, apply_fun).

    >>> from numjet.example_libraries import stax
    >>> init, apply = stax.{name}((2,), (2,))
    >>> apply((), jnp.arange(4.0).reshape(1, 4, 1)).ravel()
    Array([{example}], dtype=float32)
    """
    return pooling


MaxPool = _pool("MaxPool", lax.max, -jnp.inf, False, "1., 3.")
SumPool = _pool("SumPool", lax.add, 0.0, False, "1., 5.")
AvgPool = _pool("AvgPool", lax.add, 0.0, True, "0.5, 2.5")


def _flatten_init(rng: Any, input_shape: Sequence[int]) -> tuple:
    size = 1
    for n in input_shape[1:]:
        size *= n
    return (input_shape[0], size), ()


Flatten: Layer = (
    _flatten_init,
    lambda params, inputs, **_: jnp.reshape(inputs, (inputs.shape[0], -1)),
)


def FanOut(num: int) -> Layer:  # noqa: N802
    """The same value several times, as a list; for `parallel`.

    num: how often. Result: a layer (init_fun, apply_fun).

    >>> from numjet.example_libraries import stax
    >>> stax.FanOut(2)[1]((), 5)
    [5, 5]
    """
    return (
        lambda rng, input_shape: ([input_shape] * num, ()),
        lambda params, inputs, **_: [inputs] * num,
    )


def _sum_all(inputs: Sequence[Any]) -> Any:
    total = inputs[0]
    for x in inputs[1:]:
        total = operator.add(total, x)
    return total


FanInSum: Layer = (
    lambda rng, input_shape: (input_shape[0], ()),
    lambda params, inputs, **_: _sum_all(inputs),
)


def FanInConcat(axis: int = -1) -> Layer:  # noqa: N802
    """The values of a list joined along an axis.

    axis: an integer. Result: a layer (init_fun, apply_fun).

    >>> from numjet import numpy as jnp
    >>> from numjet.example_libraries import stax
    >>> stax.FanInConcat()[1]((), [jnp.ones(1), jnp.zeros(1)])
    Array([1., 0.], dtype=float32)
    """

    def init_fun(rng: Any, input_shape: Sequence[Sequence[int]]) -> tuple:
        first = list(input_shape[0])
        first[axis] = sum([shape[axis] for shape in input_shape])
        return tuple(first), ()

    return init_fun, lambda params, inputs, **_: jnp.concatenate(inputs, axis)


def Dropout(rate: float, mode: str = "train") -> Layer:  # noqa: N802
    """Keep each element with a probability, and scale what is kept.

    rate: the probability to keep. mode: "train", or anything else for the identity. Raises
    ValueError where `apply_fun` gets no `rng`. Result: a layer (init_fun, apply_fun).

    >>> import numjet as nj, numjet.numpy as jnp
    >>> from numjet.example_libraries import stax
    >>> init, apply = stax.Dropout(0.5, mode="test")
    >>> apply((), jnp.ones(2), rng=nj.random.key(0))
    Array([1., 1.], dtype=float32)
    """

    def apply_fun(params: tuple, inputs: Any, **kwargs: Any) -> Any:
        rng = kwargs.get("rng")
        if rng is None:
            raise ValueError(
                "Dropout layer requires apply_fun to be called with a PRNG key argument. That is, "
                "instead of `apply_fun(params, inputs)`, call `apply_fun(params, inputs, rng)`."
            )
        if mode != "train":
            return inputs
        keep = random.bernoulli(rng, rate, inputs.shape)
        return jnp.where(keep, inputs / rate, 0)

    return lambda rng, input_shape: (input_shape, ()), apply_fun


def serial(*layers: Layer) -> Layer:
    """Layers one after the other; params are a list.

    layers: as many as there are. Result: a layer (init_fun, apply_fun).

    >>> import numjet as nj
    >>> from numjet.example_libraries import stax
    >>> init, apply = stax.serial(stax.Dense(4), stax.Relu, stax.Dense(1))
    >>> init(nj.random.key(0), (-1, 2))[0]
    (-1, 1)
    """
    inits, applies = [layer[0] for layer in layers], [layer[1] for layer in layers]

    def init_fun(rng: Any, input_shape: Any) -> tuple:
        params = []
        for init in inits:
            rng, own = random.split(rng)
            input_shape, param = init(own, input_shape)
            params.append(param)
        return input_shape, params

    def apply_fun(params: Sequence[Any], inputs: Any, **kwargs: Any) -> Any:
        for apply, param, rng in zip(
            applies, params, _keys(kwargs.pop("rng", None), len(layers)), strict=True
        ):
            inputs = apply(param, inputs, rng=rng, **kwargs)
        return inputs

    return init_fun, apply_fun


def parallel(*layers: Layer) -> Layer:
    """Each layer on its own element of a list; params are a tuple.

    layers: as many as the list has elements. Result: a layer (init_fun, apply_fun).

    >>> from numjet import numpy as jnp
    >>> from numjet.example_libraries import stax
    >>> init, apply = stax.parallel(stax.Identity, stax.Relu)
    >>> apply([(), ()], [jnp.array([-1.0]), jnp.array([-1.0])])
    [Array([-1.], dtype=float32), Array([0.], dtype=float32)]
    """
    inits, applies = [layer[0] for layer in layers], [layer[1] for layer in layers]

    def init_fun(rng: Any, input_shape: Sequence[Any]) -> tuple:
        keys = random.split(rng, len(layers))
        made = [f(k, s) for f, k, s in zip(inits, keys, input_shape, strict=True)]
        return tuple([shape for shape, _ in made]), tuple([param for _, param in made])

    def apply_fun(params: Sequence[Any], inputs: Sequence[Any], **kwargs: Any) -> Any:
        keys = _keys(kwargs.pop("rng", None), len(layers))
        return [
            f(p, x, rng=r, **kwargs)
            for f, p, x, r in zip(applies, params, inputs, keys, strict=True)
        ]

    return init_fun, apply_fun


def _keys(rng: Any, count: int) -> Sequence[Any]:
    return [None] * count if rng is None else random.split(rng, count)


def shape_dependent(make_layer: Callable[[Any], Layer]) -> Layer:
    """A layer that is made where the shape of its input is known.

    make_layer(input_shape): gives the layer. Result: a layer (init_fun, apply_fun).

    >>> import numjet as nj
    >>> from numjet.example_libraries import stax
    >>> init, apply = stax.shape_dependent(lambda shape: stax.Dense(shape[-1]))
    >>> init(nj.random.key(0), (-1, 2))[0]
    (-1, 2)
    """
    return (
        lambda rng, input_shape: make_layer(input_shape)[0](rng, input_shape),
        lambda params, inputs, **kwargs: make_layer(inputs.shape)[1](params, inputs, **kwargs),
    )


logsoftmax, randn, glorot = log_softmax, normal, glorot_normal


__all__ = [
    "AvgPool", "BatchNorm", "Conv", "Conv1DTranspose", "ConvTranspose", "Dense", "Dropout", "Elu",
    "Exp", "FanInConcat", "FanInSum", "FanOut", "Flatten", "Gelu", "GeneralConv",
    "GeneralConvTranspose", "Identity", "LeakyRelu", "LogSoftmax", "MaxPool", "Relu", "Selu",
    "Sigmoid", "Softmax", "Softplus", "SumPool", "Tanh", "elementwise", "glorot", "logsoftmax",
    "parallel", "randn", "serial", "shape_dependent",
]  # fmt: skip


def __dir__() -> list[str]:
    return [*__all__]
