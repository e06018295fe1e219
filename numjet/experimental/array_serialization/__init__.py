"""Arrays and pytrees on disk by way of TensorStore, as JAX writes them.

`serialization` has the managers that libraries use, `pytree_serialization` whole trees in a folder.
Both need the package tensorstore when they are used, and read what JAX wrote, and the other way
round. `numjet.checkpoints` needs nothing.
"""
