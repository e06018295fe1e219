"""The entry of the native backend: `compile(closed_jaxpr, options) -> Executable`.

Called by the API layer (through `numjet.cpu.compile`). Options: `donate`, the indices of arguments
whose memory results may take over.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numjet.core.jaxpr import ClosedJaxpr
from numjet.cpu import link, pipeline
from numjet.cpu.executable import Executable


def compile(closed_jaxpr: ClosedJaxpr, options: Mapping[str, Any] | None = None) -> Executable:
    """Native code for `closed_jaxpr`.

    options: {"donate": indices of donated arguments}. The result is called with a list of
    C-contiguous NumPy arrays (physical dtypes) and returns a list of fresh ones.
    """
    options = options or {}
    build = pipeline.run(pipeline.Build(closed_jaxpr, options.get("donate", ())))
    image = link.compile_module(build.llvm)
    program = build.program
    facts = pipeline.facts(build)
    facts["code_bytes"] = len(image)

    def texts() -> dict[str, str]:
        return {"program": program.text(), "llvm": build.llvm,
                "kernels": "\n\n".join(build.kernel_texts())}

    return Executable(
        image, consts=program.consts, hosts=program.hosts,
        args=[(v.shape, v.dtype) for v in program.args], outs=[(v.shape, v.dtype) for v in program.outs],
        facts=facts, texts=texts, aliases=program.aliases)
