"""Where arrays live: devices, meshes, shardings, layouts, and moving between them."""
