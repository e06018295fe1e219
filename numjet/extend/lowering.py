"""Names for lowering rules: the context they get. MLIR's own objects are not there."""

from __future__ import annotations

from numjet.extend.primitive import LoweringContext as LoweringRuleContext

__all__ = ["LoweringRuleContext"]
