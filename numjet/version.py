"""numjet.version: the version, as text and as numbers."""

__version__ = "0.1.0"
__version_info__ = (0, 1, 0)
