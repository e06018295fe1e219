"""numjet.experimental.rnn: recurrent networks (LSTM) whose weights are one vector, as for cuDNN.

For users. The weights of all layers and directions stand in one vector: W_ih and W_hh of each layer
and direction, then b_ih and b_hh of each, the gates in the order i, f, g, o. What would break it:
another order, in which networks that were saved could not be read.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from numjet import lax, nn, random
from numjet.core.array import as_array
from numjet.numpy import arange, concatenate, flip, split, stack, swapaxes, tanh, where, zeros

__all__ = [
    "PRNGKeyArray",
    "get_num_params_in_lstm",
    "init_lstm_weight",
    "lstm",
    "lstm_ref",
    "swap_lstm_gates",
    "unpack_lstm_weights",
]

PRNGKeyArray = Any
Weights = dict[int, Any]


def _cells(
    input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> Iterator[tuple[int, int]]:
    """The number of each layer's direction, and how many features come into it."""
    directions = 2 if bidirectional else 1
    for cell in range(num_layers * directions):
        yield cell, input_size if cell < directions else hidden_size * directions


def get_num_params_in_lstm(
    input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> int:
    """How many weights an LSTM has.

    >>> from numjet.experimental import rnn
    >>> rnn.get_num_params_in_lstm(3, 4, 1, bidirectional=False)
    144
    """
    return sum(
        4 * hidden_size * (features + hidden_size + 2)
        for _, features in _cells(input_size, hidden_size, num_layers, bidirectional)
    )


def init_lstm_weight(
    rng: Any, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> Any:
    """Weights from [-k, k), evenly distributed, where k is 1 / √hidden_size.

    rng: a key. Result: float32[get_num_params_in_lstm(...)].

    >>> import numjet as nj
    >>> from numjet.experimental import rnn
    >>> rnn.init_lstm_weight(nj.random.key(0), 3, 4, 1, bidirectional=False).shape
    (144,)
    """
    count = get_num_params_in_lstm(input_size, hidden_size, num_layers, bidirectional)
    k = math.sqrt(1 / hidden_size)
    return random.uniform(rng, (count,), minval=-k, maxval=k)


def unpack_lstm_weights(
    weights: Any, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> tuple[Weights, Weights, Weights, Weights]:
    """The matrices and vectors of a vector of weights: W_ih, W_hh, b_ih, b_hh.

    weights: [get_num_params_in_lstm(...)] (ValueError for another size). Result: dictionaries by
    the number of the layer, or twice that (and one more for the reverse direction) where there are
    two directions: [4 * hidden_size, features], [4 * hidden_size, hidden_size], and twice
    [4 * hidden_size], the gates in the order i, f, g, o.

    >>> import numjet.numpy as jnp
    >>> from numjet.experimental import rnn
    >>> w_ih, w_hh, b_ih, b_hh = rnn.unpack_lstm_weights(jnp.zeros(144), 3, 4, 1, False)
    >>> w_ih[0].shape, b_hh[0].shape
    ((16, 3), (16,))
    """
    weights = as_array(weights)
    count = get_num_params_in_lstm(input_size, hidden_size, num_layers, bidirectional)
    if weights.shape != (count,):
        raise ValueError(
            f"unpack_lstm_weights: an LSTM of these sizes has {count} weights, got an array of "
            f"shape {weights.shape}."
        )
    found: tuple[Weights, ...] = ({}, {}, {}, {})
    rows = 4 * hidden_size
    place = 0
    cells = list(_cells(input_size, hidden_size, num_layers, bidirectional))
    parts = [(kind, cell, width) for cell, features in cells
             for kind, width in ((0, features), (1, hidden_size))]
    parts += [(kind, cell, 0) for cell, _ in cells for kind in (2, 3)]
    for kind, cell, width in parts:
        size = rows * width if kind < 2 else rows
        part = weights[place : place + size]
        found[kind][cell] = part.reshape(rows, width) if kind < 2 else part
        place += size
    w_ih, w_hh, b_ih, b_hh = found
    return w_ih, w_hh, b_ih, b_hh


def swap_lstm_gates(
    weights: Any, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> Any:
    """A vector of weights with the gates g and o exchanged, as other libraries have them.

    >>> import numjet.numpy as jnp
    >>> from numjet.experimental import rnn
    >>> rnn.swap_lstm_gates(jnp.arange(16), 1, 1, 1, False)
    Array([ 0,  1,  3,  2,  4,  5,  7,  6,  8,  9, 11, 10, 12, 13, 15, 14],      dtype=int32)
    """
    sizes = (input_size, hidden_size, num_layers, bidirectional)
    w_ih, w_hh, b_ih, b_hh = unpack_lstm_weights(weights, *sizes)

    def swapped(part: Any) -> Any:
        i, f, g, o = split(part, 4)
        return concatenate([i, f, o, g]).reshape(-1)

    matrices = [swapped(w[cell]) for cell in w_ih for w in (w_ih, w_hh)]
    return concatenate(matrices + [swapped(b[cell]) for cell in b_ih for b in (b_ih, b_hh)])


def lstm(
    x: Any, h_0: Any, c_0: Any, weights: Any, seq_lengths: Any, input_size: int, hidden_size: int,
    num_layers: int, dropout: float, bidirectional: bool, precision: Any = None,
) -> tuple[Any, Any, Any]:
    """An LSTM over sequences of different lengths, with the weights in one vector.

    weights: [get_num_params_in_lstm(...)]. precision has no effect. Everything else, and the
    result, as in `lstm_ref`.

    >>> import numjet as nj, numjet.numpy as jnp
    >>> from numjet.experimental import rnn
    >>> weights = rnn.init_lstm_weight(nj.random.key(0), 3, 4, 1, False)
    >>> start = jnp.zeros((1, 2, 4))
    >>> y, h_n, c_n = rnn.lstm(
    ...     jnp.ones((2, 5, 3)), start, start, weights, jnp.array([5, 3]), 3, 4, 1, 0.0, False)
    >>> y.shape
    (2, 5, 4)
    """
    sizes = (input_size, hidden_size, num_layers, bidirectional)
    parts = unpack_lstm_weights(weights, *sizes)
    return lstm_ref(
        x, h_0, c_0, *parts, seq_lengths, input_size, hidden_size, num_layers, dropout,
        bidirectional,
    )


def lstm_ref(
    x: Any, h_0: Any, c_0: Any, W_ih: Weights, W_hh: Weights, b_ih: Weights, b_hh: Weights,
    seq_lengths: Any, input_size: int, hidden_size: int, num_layers: int, dropout: float,
    bidirectional: bool,
) -> tuple[Any, Any, Any]:
    """An LSTM over sequences of different lengths.

    x: [sequences, steps, input_size]. h_0, c_0: [layers * directions, sequences, hidden_size], the
    states to begin with. W_ih, W_hh, b_ih, b_hh: as `unpack_lstm_weights` gives them. seq_lengths:
    [sequences], how many steps of each count. dropout: 0 (NotImplementedError for others). Result:
    (y, h_n, c_n): [sequences, steps, hidden_size * directions], zero behind the sequences' ends,
    and the states at their ends, shaped as h_0. Source: Hochreiter & Schmidhuber 1997, with the
    two biases of each gate that cuDNN has.

    >>> import numjet.numpy as jnp
    >>> from numjet.experimental import rnn
    >>> parts = rnn.unpack_lstm_weights(jnp.zeros(144), 3, 4, 1, False)
    >>> start = jnp.zeros((1, 2, 4))
    >>> y, h_n, c_n = rnn.lstm_ref(
    ...     jnp.ones((2, 5, 3)), start, start, *parts, jnp.array([5, 3]), 3, 4, 1, 0.0, False)
    >>> h_n.shape
    (1, 2, 4)
    """
    if dropout:
        raise NotImplementedError(
            f"lstm: dropout is {dropout}; only 0 is there. Drop elements of x and y with "
            "random.bernoulli."
        )
    x, h_0, c_0, lengths = map(as_array, (x, h_0, c_0, seq_lengths))
    directions = 2 if bidirectional else 1
    h_n, c_n = [], []
    for layer in range(num_layers):
        outs = []
        for direction in range(directions):
            cell = layer * directions + direction
            weights = (W_ih[cell], W_hh[cell], b_ih[cell] + b_hh[cell])
            y, h, c = _one_way(x, h_0[cell], c_0[cell], weights, lengths, bool(direction))
            outs.append(y)
            h_n.append(h)
            c_n.append(c)
        x = concatenate(outs, -1)
    return x, stack(h_n), stack(c_n)


def _one_way(
    x: Any, h: Any, c: Any, weights: tuple, lengths: Any, backwards: bool
) -> tuple[Any, Any, Any]:
    """A layer in one direction: what it gives at each step, and its states at the ends.

    Backwards it begins at each sequence's own last step: the steps before it, which lie behind the
    end, leave the states as they are.
    """
    w_ih, w_hh, bias = weights
    steps = x.shape[1]
    inputs = swapaxes(x @ w_ih.T + bias, 0, 1)
    counts = (arange(steps)[:, None] < lengths)[..., None]
    if backwards:
        inputs, counts = flip(inputs, 0), flip(counts, 0)

    def step(carry: tuple, now: tuple) -> tuple:
        h, c = carry
        given, counts = now
        i, f, g, o = split(given + h @ w_hh.T, 4, -1)
        later = nn.sigmoid(f) * c + nn.sigmoid(i) * tanh(g)
        out = nn.sigmoid(o) * tanh(later)
        carry = (where(counts, out, h), where(counts, later, c))
        return carry, where(counts, out, zeros((), out.dtype))

    (h, c), y = lax.scan(step, (h, c), (inputs, counts))
    return swapaxes(flip(y, 0) if backwards else y, 0, 1), h, c
