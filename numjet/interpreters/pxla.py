"""Names of `jax.interpreters.pxla` that programs ask for: the mesh in scope."""

from __future__ import annotations

from typing import Any

from numjet.api.placement.mesh import Mesh as Mesh, entered_mesh


class ResourceEnv:
    """What `with mesh:` brought into scope."""

    @property
    def physical_mesh(self) -> Mesh:
        """The mesh of the innermost `with mesh:`; an empty one outside."""
        return entered_mesh.get()

    @property
    def shape(self) -> Any:
        """How long each of its axes is."""
        return self.physical_mesh.shape

    @property
    def resource_axes(self) -> set[Any]:
        """The names of its axes."""
        return set(self.physical_mesh.axis_names)


class ThreadResources:
    """What is in scope of the thread that asks.

    >>> from numjet.interpreters import pxla
    >>> pxla.thread_resources.env.physical_mesh.empty
    True
    """

    env = ResourceEnv()


thread_resources = ThreadResources()

__all__ = ["Mesh", "thread_resources"]
