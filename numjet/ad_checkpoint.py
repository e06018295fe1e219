"""Rematerialization: `checkpoint`, its policies, and names for values that policies choose."""
from typing import Any

from numjet.api.autodiff import checkpoint as checkpoint, checkpoint_policies as checkpoint_policies
from numjet.base import tree as _tree
from numjet.core.array import as_array as _as_array
from numjet.transforms.remat import name_p as _name_p


def checkpoint_name(x: Any, name: str) -> Any:
    """`x` (a pytree), named for `checkpoint_policies.save_only_these_names` and its kin.

    >>> from numjet.ad_checkpoint import checkpoint_name
    >>> print(checkpoint_name(1.5, "hidden"))
    1.5
    """
    return _tree.tree_map(lambda leaf: _name_p.bind(_as_array(leaf), name=name), x)
