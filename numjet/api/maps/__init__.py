"""Functions of one example or of one device's part: `vmap`, `pmap`, `shard_map`."""
