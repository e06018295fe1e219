"""Orbax after its documentation: saving and restoring pytrees."""
import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp

TREE = {"w": jnp.arange(6.0).reshape(2, 3), "step": 3, "nested": [jnp.ones(2), np.zeros(4)]}


def test_save_and_restore(tmp_path):
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(tmp_path / "state", TREE)
        checkpointer.wait_until_finished()
        again = checkpointer.restore(tmp_path / "state", TREE)
    for a, b in zip(jax.tree.leaves(TREE), jax.tree.leaves(again), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_manager_keeps_the_last_steps(tmp_path):
    options = ocp.CheckpointManagerOptions(max_to_keep=2)
    with ocp.CheckpointManager(tmp_path / "run", options=options) as manager:
        for step in range(4):
            manager.save(step, args=ocp.args.StandardSave(TREE))
        manager.wait_until_finished()
        assert manager.all_steps() == [2, 3] and manager.latest_step() == 3
        again = manager.restore(3, args=ocp.args.StandardRestore(TREE))
    np.testing.assert_array_equal(again["w"], TREE["w"])
