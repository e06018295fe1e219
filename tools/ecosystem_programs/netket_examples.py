"""NetKet after its documentation: variational Monte Carlo with natural gradients, exact states."""
import flax.linen as nn
import jax.numpy as jnp
import netket as nk
import numpy as np


def test_the_energy_of_an_ising_chain_falls():
    chain = nk.graph.Chain(6)
    spins = nk.hilbert.Spin(0.5, chain.n_nodes)
    energy = nk.operator.IsingJax(spins, chain, h=1.0)
    state = nk.vqs.MCState(
        nk.sampler.MetropolisLocal(spins, n_chains=16), nk.models.RBM(alpha=1, param_dtype=float),
        n_samples=256, n_discard_per_chain=5, seed=1, sampler_seed=2)  # fmt: skip
    driver = nk.driver.VMC_SR(
        energy, nk.optimizer.Sgd(0.05), variational_state=state, diag_shift=0.01)
    log = nk.logging.RuntimeLog()
    driver.run(20, out=log, show_progress=False)
    means = log.data["Energy"]["Mean"].real
    assert means[-1] < means[0]
    assert means[-1] > nk.exact.lanczos_ed(energy)[0] - 0.5


def test_sums_over_all_states_are_those_of_the_matrix():
    class Model(nn.Module):
        @nn.compact
        def __call__(self, x):
            return jnp.sum(nk.nn.log_cosh(nn.Dense(8, param_dtype=complex)(x)), -1)

    spins = nk.hilbert.Spin(0.5, 4)
    energy = nk.operator.Heisenberg(spins, nk.graph.Chain(4))
    state = nk.vqs.FullSumState(spins, Model(), seed=0)
    vector = state.to_array()
    want = np.vdot(vector, energy.to_dense() @ vector) / np.vdot(vector, vector)
    found, slopes = state.expect_and_grad(energy)
    np.testing.assert_allclose(found.mean, want, rtol=1e-5)
    assert slopes["Dense_0"]["kernel"].shape == (4, 8)


def test_states_and_their_numbers():
    bosons = nk.hilbert.Fock(3, N=4, n_particles=4)
    states = bosons.all_states()
    np.testing.assert_array_equal(bosons.states_to_numbers(states), np.arange(bosons.n_states))
    np.testing.assert_array_equal(states.sum(1), 4)
