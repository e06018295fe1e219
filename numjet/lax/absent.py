"""Primitives of JAX that numjet has no operation for.

They have a name, so that libraries can register rules for them when they are imported; binding one
raises NotImplementedError. `numjet.lax` loads them when it is asked for one.
"""

from __future__ import annotations

from typing import Any

from numjet.extend.primitive import Primitive

_REMEDIES = {
    "ragged_all_to_all": "Use lax.all_to_all of parts that are padded to one length.",
    "select_and_scatter": "Use the gradient of lax.reduce_window, or lax.select_and_scatter_add.",
}


def _absent(name: str) -> Primitive:
    def refuse(*_: Any, **__: Any) -> Any:
        raise NotImplementedError(f"{name} has no operation here. {_REMEDIES[name]}")

    made = Primitive(name)
    made.def_impl(refuse)
    made.def_abstract_eval(refuse)
    return made


ragged_all_to_all_p = _absent("ragged_all_to_all")
select_and_scatter_p = _absent("select_and_scatter")
