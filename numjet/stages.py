"""numjet.stages: the stages of compiling a function, as `jit(f).trace`, `.lower` and `.compile`
give them."""

from numjet.api.compiled.jit import JitFunction as Wrapped
from numjet.api.compiled.stage_info import ArgInfo as ArgInfo
from numjet.api.compiled.stages import Compiled as Compiled, Lowered as Lowered, Traced as Traced

CompilerOptions = dict[str, str | bool]

__all__ = ["ArgInfo", "Compiled", "CompilerOptions", "Lowered", "Traced", "Wrapped"]


def __dir__() -> list[str]:
    return [*__all__]
