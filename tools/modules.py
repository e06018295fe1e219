"""The list of modules: `python tools/modules.py` writes docs/modules.md out of their docstrings,
with `--print` to the screen.

Each module with the first sentence of its docstring, by folder. tests/test_docs.py holds the page
to the sources.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "modules.md"
HEAD = """# Modules

Every module of the package with the first sentence of its docstring, which says more: what may use
the module, and what would break it. docs/architecture.md says how the folders hang together.
Written by `python tools/modules.py`.
"""


def first_sentence(path: Path) -> str:
    """What a module says of itself first, as one line."""
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    paragraph = " ".join(text.split("\n\n")[0].split())
    found = re.match(r".*?\.(?=\s|$)", paragraph)
    return re.sub(r"^(Public namespace )?`?numjet[\w.]*`?: ", "", found[0] if found else paragraph)


def lines() -> Iterator[str]:
    """The page, line by line."""
    yield from HEAD.splitlines()
    paths = sorted((ROOT / "numjet").rglob("*.py"), key=lambda p: (p.parent.parts, p.stem))
    for folder, members in groupby(paths, key=lambda p: p.parent):
        yield ""
        yield f"## `{folder.relative_to(ROOT)}/`"
        yield ""
        for path in members:
            name = "the package" if path.stem == "__init__" else f"`{path.name}`"
            if said := first_sentence(path):
                yield f"- {name}: {said}"


if __name__ == "__main__":
    text = "\n".join(lines()) + "\n"
    if sys.argv[1:] == ["--print"]:
        sys.stdout.write(text)
    else:
        PAGE.write_text(text)
