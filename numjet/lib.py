"""numjet.lib: empty, as `jax.lib` is: what was there has moved to `extend`."""
