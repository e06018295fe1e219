"""numjet.nn: activation functions, softmax, one-hot codes, attention, initializers."""

from numjet.api.compiled.hashed import hold as _hold
from numjet.api.eager.large import wrap_public as _wrap_public
from numjet.nn import initializers
from numjet.nn.activations import (
    celu,
    elu,
    gelu,
    glu,
    hard_sigmoid,
    hard_silu,
    hard_swish,
    hard_tanh,
    identity,
    leaky_relu,
    log1mexp,
    log_sigmoid,
    mish,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    soft_sign,
    softplus,
    sparse_plus,
    sparse_sigmoid,
    squareplus,
    swish,
    tanh,
)
from numjet.nn.attention import (
    dot_product_attention,
    get_scaled_dot_general_config,
    scaled_dot_general,
    scaled_matmul,
)
from numjet.nn.normalization import (
    log_softmax,
    logmeanexp,
    logsumexp,
    one_hot,
    softmax,
    standardize,
)

__all__ = [
    "celu",
    "dot_product_attention",
    "elu",
    "gelu",
    "get_scaled_dot_general_config",
    "glu",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "identity",
    "initializers",
    "leaky_relu",
    "log1mexp",
    "log_sigmoid",
    "log_softmax",
    "logmeanexp",
    "logsumexp",
    "mish",
    "one_hot",
    "relu",
    "relu6",
    "scaled_dot_general",
    "scaled_matmul",
    "selu",
    "sigmoid",
    "silu",
    "soft_sign",
    "softmax",
    "softplus",
    "sparse_plus",
    "sparse_sigmoid",
    "squareplus",
    "standardize",
    "swish",
    "tanh",
]

_hold(globals(), __name__)
_wrap_public(
    globals(), __name__,
    [name for name in __all__ if name not in ("initializers", "get_scaled_dot_general_config",
                                              "one_hot", "identity", "relu")],
)  # fmt: skip
