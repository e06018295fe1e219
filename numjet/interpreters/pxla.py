"""Names of `jax.interpreters.pxla` that programs ask for: the mesh in scope."""

from __future__ import annotations

from numjet.api.mesh import Mesh as Mesh

__all__ = ["Mesh"]
