"""Diffrax after its documentation: ordinary, controlled, stochastic equations; adjoints; events."""
import diffrax
import jax
import jax.numpy as jnp
import numpy as np


def decay(t, y, args):
    return -args * y


def solve(rate, solver=None, **keywords):
    controller = diffrax.PIDController(rtol=1e-6, atol=1e-8)
    return diffrax.diffeqsolve(
        diffrax.ODETerm(decay), solver or diffrax.Tsit5(), 0.0, 2.0, 0.1, jnp.array([1.0, 3.0]),
        args=rate, stepsize_controller=controller, **keywords)


def test_explicit_and_implicit_solvers():
    for solver in (diffrax.Tsit5(), diffrax.Dopri5(), diffrax.Dopri8(), diffrax.Heun(),
                   diffrax.Kvaerno3()):
        end = solve(0.7, solver).ys[-1]
        np.testing.assert_allclose(end, np.exp(-1.4) * np.array([1, 3]), rtol=1e-3)


def test_saving_at_times_and_dense_output():
    times = jnp.linspace(0, 2, 5)
    out = jax.jit(lambda r: solve(r, saveat=diffrax.SaveAt(ts=times)).ys)(0.5)
    np.testing.assert_allclose(out[:, 0], np.exp(-0.5 * times), rtol=1e-4)
    dense = solve(0.5, saveat=diffrax.SaveAt(dense=True))
    np.testing.assert_allclose(dense.evaluate(1.3)[0], np.exp(-0.65), rtol=1e-4)


def test_gradients_of_the_adjoints():
    for adjoint in (diffrax.RecursiveCheckpointAdjoint(), diffrax.BacksolveAdjoint(),
                    diffrax.DirectAdjoint()):
        slope = jax.grad(lambda r: solve(r, adjoint=adjoint).ys[-1, 0])(0.5)
        np.testing.assert_allclose(slope, -2 * np.exp(-1.0), rtol=1e-3)


def test_a_stochastic_equation_is_reproducible():
    path = diffrax.VirtualBrownianTree(0.0, 1.0, 1e-3, (), jax.random.key(0))
    terms = diffrax.MultiTerm(diffrax.ODETerm(lambda t, y, a: -y),
                              diffrax.ControlTerm(lambda t, y, a: 0.1, path))
    ends = [diffrax.diffeqsolve(terms, diffrax.Euler(), 0.0, 1.0, 0.01, 1.0).ys for _ in range(2)]
    np.testing.assert_array_equal(*ends)
    assert 0.1 < float(ends[0][0]) < 0.7


def test_an_event_stops_the_bouncing_ball():
    event = diffrax.Event(lambda t, y, args, **kw: y[0] < 0)
    out = diffrax.diffeqsolve(
        diffrax.ODETerm(lambda t, y, a: (y[1], -9.81)), diffrax.Tsit5(), 0.0, jnp.inf, 0.01,
        (jnp.array(10.0), jnp.array(0.0)), event=event)
    assert abs(float(out.ts[-1]) - np.sqrt(20 / 9.81)) < 0.2


def test_batches():
    rates = jnp.array([0.1, 0.5, 1.0])
    ends = jax.jit(jax.vmap(lambda r: solve(r).ys[-1, 0]))(rates)
    np.testing.assert_allclose(ends, np.exp(-2 * rates), rtol=1e-4)
