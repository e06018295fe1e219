"""The entry of the native backend: `compile(closed_jaxpr, options) -> Executable`.

Called by the API layer (through `numjet.cpu.compile`). Options: `donate`, the indices of arguments
whose memory results may take over.
"""

from __future__ import annotations

import importlib
import os
import re
import tempfile
import threading
from collections.abc import Mapping
from typing import Any

from numjet.base.config import check_ir
from numjet.base.errors import InternalError
from numjet.core.dtypes import physical
from numjet.core.jaxpr import ClosedJaxpr
from numjet.cpu import link, program_cache
from numjet.cpu.executable import Executable

# What else must be compiled for a program: done on another thread meanwhile.
_SYMBOLS = re.compile(r"@(nj_\w+)")
_HELPERS = re.compile(r"@(nj_lanes_\w+|nj_parallel_for)")


def _compiler() -> Any:
    """The compiler proper: forty modules that a process with all programs on disk never loads."""
    return importlib.import_module("numjet.cpu.pipeline")


def compile(closed_jaxpr: ClosedJaxpr, options: Mapping[str, Any] | None = None) -> Executable:
    """Native code for `closed_jaxpr`.

    options: {"donate": indices of donated arguments}. The result is called with a list of
    C-contiguous NumPy arrays (physical dtypes) and returns a list of fresh ones.
    """
    donate = tuple((options or {}).get("donate", ()))

    def build() -> Any:
        compiler = _compiler()
        return compiler.run(compiler.Build(closed_jaxpr, donate))

    key = program_cache.key(closed_jaxpr, donate)
    data = None if key is None else link.cache_get(key)
    if data is not None:
        facts, consts, hosts, aliases, image = program_cache.unpack(data, closed_jaxpr)
        if not _linked(facts.get("libraries", {})):
            for name in facts["providers"]:
                importlib.import_module(name)
        return _executable(
            closed_jaxpr, image, consts, hosts, facts, aliases, lambda: _texts(build())
        )
    built = build()
    image = _object(built)
    program, facts = built.program, _compiler().facts(built)
    facts["code_bytes"] = len(image)
    facts["providers"] = program_cache.providers(built.llvm)
    if facts["providers"] == ["numjet.cpu.kernels"]:
        libraries = importlib.import_module("numjet.cpu.kernels.libraries")
        facts["libraries"] = libraries.keys(set(_SYMBOLS.findall(built.llvm)))
    if key is not None:
        data = program_cache.pack(built, facts, image)
        if data is not None:
            link.cache_put(key, data)
    return _executable(
        closed_jaxpr,
        image,
        program.consts,
        program.hosts,
        facts,
        program.aliases,
        lambda: _texts(built),
    )


def _linked(libraries: Mapping[str, str]) -> bool:
    """Link the libraries of kernels that a cached program calls, symbol -> cache key, without the
    modules that write them; False where one is not in the cache (or none is named)."""
    missing = {s: key for s, key in libraries.items() if link.defined_symbol(s) is None}
    images = {symbol: link.cache_get(key) for symbol, key in missing.items()}
    if not libraries or None in images.values():
        return False
    for symbol, image in images.items():
        assert image is not None
        library = link.load([image])
        library.leak()
        link.define_symbol(symbol, library.address("entry"))
    return True


def _object(built: Any) -> bytes:
    """Machine code; a fault of the compiler names the file that holds the module."""
    failures: list[BaseException] = []
    wanted = [x for x in set(_HELPERS.findall(built.llvm)) if link.defined_symbol(x) is None]

    def helpers() -> None:
        try:
            link.resolve(sorted(wanted))
        except BaseException as failure:  # raised below, in the caller's thread
            failures.append(failure)

    beside = threading.Thread(target=helpers)
    try:
        if not wanted:
            return link.compile_module(built.llvm, verify=check_ir.value)
        beside.start()
        try:
            image = link.compile_module(built.llvm, verify=check_ir.value)
        finally:
            beside.join()
        if failures:
            raise failures[0]
        return image
    except InternalError as error:
        handle, path = tempfile.mkstemp(prefix="numjet-", suffix=".ll")
        with os.fdopen(handle, "w") as file:
            file.writelines(f"; {line}\n" for line in built.program.text().splitlines())
            file.write(built.llvm)
        raise InternalError(f"{error} The module is in {path}; please report it.") from error


def _executable(
    closed: ClosedJaxpr,
    image: bytes,
    consts: list,
    hosts: dict,
    facts: dict,
    aliases: dict,
    texts: Any,
) -> Executable:
    return Executable(
        image,
        consts=consts,
        hosts=hosts,
        facts=facts,
        texts=texts,
        aliases=aliases,
        args=[(a.shape, physical(a.dtype)) for a in closed.in_avals],
        outs=[(a.shape, physical(a.dtype)) for a in closed.out_avals],
    )


def _texts(build: Any) -> dict[str, str]:
    return {
        "program": build.program.text(),
        "llvm": build.llvm,
        "kernels": "\n\n".join(build.kernel_texts()),
    }
