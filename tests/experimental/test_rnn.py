"""experimental.rnn: an LSTM whose weights are one vector."""

from __future__ import annotations

import numpy as np
import pytest

import numjet as nj
import numjet.numpy as jnp
from numjet.experimental import rnn


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def _by_hand(x, h, c, w_ih, w_hh, bias):
    """One sequence in one direction, step by step, in NumPy."""
    rows = []
    for row in x:
        i, f, g, o = np.split(w_ih @ row + w_hh @ h + bias, 4)
        c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
        h = _sigmoid(o) * np.tanh(c)
        rows.append(h)
    return np.array(rows), h, c


@pytest.mark.parametrize("layers, both", [(1, False), (2, False), (2, True)])
def test_sequences_of_different_lengths_are_computed_each_alone(layers, both):
    sizes = (2, 3, layers, both)
    rng = np.random.default_rng(0)
    weights = rng.normal(size=rnn.get_num_params_in_lstm(*sizes)).astype("float32") / 2
    parts = [{k: np.asarray(v) for k, v in part.items()}
             for part in rnn.unpack_lstm_weights(jnp.asarray(weights), *sizes)]
    ways = 2 if both else 1
    x = rng.normal(size=(2, 5, 2)).astype("float32")
    h_0, c_0 = rng.normal(size=(2, layers * ways, 2, 3)).astype("float32")
    lengths = np.array([5, 3])
    run = nj.jit(lambda w: rnn.lstm(x, h_0, c_0, w, lengths, *sizes[:3], 0.0, both))
    y, h_n, c_n = run(weights)
    for n, length in enumerate(lengths):
        rows = x[n, :length]
        for layer in range(layers):
            outs = []
            for way in range(ways):
                cell = layer * ways + way
                out, h, c = _by_hand(
                    rows[::-1] if way else rows, h_0[cell, n], c_0[cell, n], parts[0][cell],
                    parts[1][cell], parts[2][cell] + parts[3][cell])
                outs.append(out[::-1] if way else out)
                np.testing.assert_allclose(h_n[cell, n], h, rtol=2e-4, atol=1e-5)
                np.testing.assert_allclose(c_n[cell, n], c, rtol=2e-4, atol=1e-5)
            rows = np.concatenate(outs, -1)
        np.testing.assert_allclose(y[n, :length], rows, rtol=2e-4, atol=1e-5)
        assert not np.any(y[n, length:])


def test_the_vector_of_weights_is_laid_out_as_by_cudnn():
    sizes = (2, 3, 2, True)
    count = rnn.get_num_params_in_lstm(*sizes)
    w_ih, w_hh, b_ih, b_hh = rnn.unpack_lstm_weights(jnp.arange(count), *sizes)
    assert [int(w.ravel()[0]) for w in w_ih.values()] == [0, 60, 120, 228]
    assert [int(w.ravel()[0]) for w in w_hh.values()] == [24, 84, 192, 300]
    assert [int(b[0]) for b in b_ih.values()] == [336, 360, 384, 408]
    assert [int(b[0]) for b in b_hh.values()] == [348, 372, 396, 420]
    assert w_ih[3].shape == (12, 6) and w_hh[3].shape == (12, 3)
    swapped = rnn.swap_lstm_gates(jnp.arange(count), *sizes)
    assert swapped[12:27].tolist() == [18, 19, 20, 21, 22, 23, 12, 13, 14, 15, 16, 17, 24, 25, 26]
    assert np.array_equal(rnn.swap_lstm_gates(swapped, *sizes), np.arange(count))
    with pytest.raises(ValueError, match="736 weights"):
        rnn.unpack_lstm_weights(jnp.zeros(10), 3, 4, 2, True)


def test_weights_are_drawn_evenly_and_dropout_is_refused():
    weights = rnn.init_lstm_weight(nj.random.key(0), 3, 4, 2, True)
    np.testing.assert_allclose(weights[:3], [0.447667, 0.47857988, -0.16770852], rtol=1e-5)
    assert float(jnp.abs(weights).max()) <= 0.5
    start = jnp.zeros((1, 1, 4))
    with pytest.raises(NotImplementedError, match="dropout"):
        rnn.lstm(jnp.ones((1, 2, 3)), start, start, jnp.zeros(144), jnp.array([2]), 3, 4, 1, 0.5,
                 False)
