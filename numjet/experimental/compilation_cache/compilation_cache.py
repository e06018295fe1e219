"""numjet.experimental.compilation_cache.compilation_cache: the directory of compiled programs.

numjet keeps what it compiled on disk by itself, in the user's cache folder; this names another.
"""

from __future__ import annotations

import os
from typing import Any

from numjet.base import config
from numjet.cpu.link import link


def set_cache_dir(path: Any) -> None:
    """Keep compiled programs in a directory from now on: `config.update("cache_dir", path)`.

    path: a directory, made where it is missing; nothing is taken from one that others may write to,
    which a warning says.

    >>> from numjet.experimental.compilation_cache import compilation_cache
    >>> import tempfile, numjet as nj
    >>> before = nj.config.cache_dir
    >>> compilation_cache.set_cache_dir(tempfile.mkdtemp())
    >>> nj.config.update("cache_dir", before)
    """
    config.cache_dir.set(os.fspath(path))


def reset_cache() -> None:
    """Open the directory anew at the next use: it may have been emptied or removed meanwhile.

    >>> from numjet.experimental.compilation_cache import compilation_cache
    >>> compilation_cache.reset_cache()
    """
    link.reopen_store()


__all__ = ["reset_cache", "set_cache_dir"]
