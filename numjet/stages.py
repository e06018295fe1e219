"""numjet.stages: the stages of compiling a function, as `jit(f).trace`, `.lower` and `.compile`
give them."""

from numjet.api.jit import (
    Compiled as Compiled,
    JitFunction as Wrapped,
    Lowered as Lowered,
    Traced as Traced,
)
from numjet.api.stage_info import ArgInfo as ArgInfo

__all__ = ["ArgInfo", "Compiled", "Lowered", "Traced", "Wrapped"]


def __dir__() -> list[str]:
    return [*__all__]
