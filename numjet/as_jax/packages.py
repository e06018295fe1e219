"""The small packages `jax` and `jaxlib` that hand every import over to `numjet.as_jax`.

`install` puts them, with metadata, into the active environment, where pip, entry points and
libraries then find JAX 0.10.2, or the version that is asked for; `uninstall` takes them away again.
`lend_to_children` keeps the same files in a folder of the cache and names it in PYTHONPATH, so that
processes which a program starts (workers of pytest-xdist, multiprocessing) find them without an
installation.

Called by `python -m numjet.as_jax`. The metadata must keep the form that pip reads, RECORD above
all.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import sys
import sysconfig
import tempfile
from importlib.metadata import Distribution
from pathlib import Path

from numjet.as_jax.finder import JAX_VERSION
from numjet.as_jax.metadata import installed
from numjet.cpu.host import cache_directory

_NAMES = ("jax", "jaxlib")
_SUMMARY = "numjet under JAX's name: made by `python -m numjet.as_jax install`"
_INITIAL = '''"""numjet under the name {name}; `python -m numjet.as_jax uninstall` removes it."""

import numjet.as_jax  # puts numjet's modules in the place of this one
'''
# What the installation is known by; pip shows it too.
_INSTALLER = "numjet.as_jax"


def _files(name: str, version: str = JAX_VERSION) -> dict[str, str]:
    """Path below site-packages -> text, RECORD included."""
    info = f"{name}-{version}.dist-info"
    extras = "".join(f"Provides-Extra: {extra}\n" for extra in ("cpu", "ci", "minimum-jaxlib"))
    files = {
        f"{name}/__init__.py": _INITIAL.format(name=name),
        f"{info}/METADATA": (
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: {_SUMMARY}\n"
            f"Requires-Dist: numjet\n{extras}"
        ),
        f"{info}/WHEEL": (
            f"Wheel-Version: 1.0\nGenerator: {_INSTALLER}\nRoot-Is-Purelib: true\n"
            "Tag: py3-none-any\n"
        ),
        f"{info}/INSTALLER": f"{_INSTALLER}\n",
        f"{info}/top_level.txt": f"{name}\n",
    }
    rows = []
    for path, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest())
        rows.append(f"{path},sha256={digest.rstrip(b'=').decode()},{len(text.encode())}")
    files[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,"]) + "\n"
    return files


def _site() -> Path:
    return Path(sysconfig.get_path("purelib"))


def _write(folder: Path, version: str = JAX_VERSION) -> None:
    for name in _NAMES:
        for path, text in _files(name, version).items():
            place = folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            if not place.exists() or place.read_text() != text:
                scratch = place.with_name(f"{place.name}.{os.getpid()}")
                scratch.write_text(text)
                scratch.replace(place)


def _is_ours(found: Distribution) -> bool:
    return (found.read_text("INSTALLER") or "").strip() == _INSTALLER


def install(version: str = JAX_VERSION) -> str:
    """Put `jax` and `jaxlib` into the active environment; returns what was done, in a sentence.

    `version` is what pip and `importlib.metadata` are told, for libraries that want a later one
    than that whose names numjet has; `jax.__version__` does not change.

    Exits with a message where the real JAX (or jaxlib) is installed, where the folder is not
    writable, and where `version` is no version.
    """
    if not re.fullmatch(r"\d+(\.\d+)+", version):
        sys.exit(f"numjet.as_jax: {version!r} is no version of JAX; give numbers, like 0.11.1.")
    for name in _NAMES:
        found = installed(name, besides=_lent())
        if found is not None and not _is_ours(found):
            sys.exit(
                f"numjet.as_jax: {name} {found.version} is installed in this environment, and "
                "would be overwritten. Remove it first (pip uninstall jax jaxlib), or make a new "
                "environment; without installing, `python -m numjet.as_jax script.py` runs a "
                "program on numjet beside the real JAX."
            )
    if any(installed(name, besides=_lent()) for name in _NAMES):
        uninstall()  # of another version
    try:
        _write(_site(), version)
    except OSError as error:
        sys.exit(
            f"numjet.as_jax: cannot write into {_site()} ({error}). Make an environment of your "
            "own (python -m venv), or run programs as `python -m numjet.as_jax script.py`."
        )
    return f"numjet answers to jax and jaxlib {version} in {_site()}."


def uninstall() -> str:
    """Remove what `install` put there; returns what was done, in a sentence."""
    removed = []
    for name in _NAMES:
        found = installed(name, besides=_lent())
        if found is None:
            continue
        if not _is_ours(found):
            sys.exit(
                f"numjet.as_jax: the {name} {found.version} in this environment is not numjet's: "
                f"nothing removed. pip uninstall {name} removes it."
            )
        version = found.version  # before its file goes
        for path in _files(name, version):
            (_site() / path).unlink(missing_ok=True)
        for cached in (_site() / name / "__pycache__").glob("*.pyc"):
            cached.unlink()
        for folder in (f"{name}/__pycache__", name, f"{name}-{version}.dist-info"):
            if (_site() / folder).is_dir():
                (_site() / folder).rmdir()
        removed.append(name)
    if not removed:
        return "numjet.as_jax was not installed in this environment: nothing to remove."
    return f"Removed {' and '.join(removed)} of numjet from {_site()}."


def _lent() -> Path:
    cache = os.environ.get("NUMJET_CACHE_DIR") or cache_directory() or tempfile.gettempdir()
    return Path(cache).absolute() / "as_jax"


def lend_to_children() -> None:
    """Let Python processes that this one starts find the alias."""
    try:
        _write(_lent())
    except OSError:
        return  # Without a writable folder the program itself runs all the same.
    # In this process too: what hands its own sys.path on (pytest-xdist) then hands on this folder.
    sys.path.insert(1, str(_lent()))
    ours = str(Path(__file__).resolve().parents[2])
    paths = [str(_lent()), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    if ours != sysconfig.get_path("purelib"):
        paths.append(ours)
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(paths))
