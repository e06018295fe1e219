"""numjet.experimental.random: a random generator that keeps its own state.

For users. A generator is a key and a mutable counter; each draw folds the counter into the key and
counts on, so that programs that call it under `jit`, in loops and under `vmap` (of `split`) draw
anew each time. What would break it: another order of folding and splitting, which gives other
numbers than JAX's generators.

>>> from numjet.experimental import random
>>> rng = random.stateful_rng(42)
>>> rng.uniform(), rng.uniform()
(Array(0.5302608, dtype=float32), Array(0.72766423, dtype=float32))
"""

from __future__ import annotations

import dataclasses
import operator
from typing import Any

import numpy as np

from numjet import random, ref
from numjet.base.tree_registry import register_dataclass
from numjet.core.array import as_array
from numjet.core.refs import Ref, new_ref
from numjet.extend.traces import trace_state_clean
from numjet.numpy import broadcast_shapes, zeros

__all__ = [
    "StatefulPRNG",
    "stateful_rng",
]

Size = Any


@register_dataclass
@dataclasses.dataclass(frozen=True)
class StatefulPRNG:
    """A generator, which `stateful_rng` makes.

    A pytree of a typed key and a Ref that counts the draws. It cannot be returned by transformed
    functions, nor carried by loops: they use it by closure, or as an argument.
    """

    _base_key: Any
    _counter: Ref

    def key(self, shape: Size = ()) -> Any:
        """A new key, or an array of keys of a shape.

        shape: a number or numbers. ValueError for what `split` gave, which `vmap` takes apart.

        >>> from numjet.experimental import random
        >>> random.stateful_rng(0).key((2, 3)).shape
        (2, 3)
        """
        if self._base_key.ndim:
            raise ValueError(
                "cannot operate on split stateful generator: its key has the shape "
                f"{self._base_key.shape}. Map over it with vmap, or use spawn."
            )
        new = random.fold_in(self._base_key, self._counter[...])
        ref.addupdate(self._counter, ..., 1)
        return new if _is_empty(shape) else random.split(new, shape)

    def split(self, num: Size) -> StatefulPRNG:
        """Generators that are independent of each other, as one for `vmap`.

        num: how many, or the shape.

        >>> import numjet as nj
        >>> from numjet.experimental import random
        >>> rng = random.stateful_rng(123)
        >>> nj.vmap(lambda rng, x: x + rng.uniform())(rng.split(3), nj.numpy.zeros(3))
        Array([0.35525954, 0.21937883, 0.5336956 ], dtype=float32)
        """
        keys = self.key(num)
        return StatefulPRNG(keys, new_ref(zeros(keys.shape, int)))

    def spawn(self, n_children: int) -> list[StatefulPRNG]:
        """A list of generators that are independent of each other.

        n_children: a number, not negative (ValueError).

        >>> from numjet.experimental import random
        >>> rng = random.stateful_rng(123)
        >>> [child.integers(0, 10, 2) for child in rng.spawn(2)]
        [Array([4, 5], dtype=int32), Array([2, 1], dtype=int32)]
        """
        if operator.index(n_children) < 0:
            raise ValueError(f"spawn: n_children is {n_children}; it may not be negative.")
        keys = self.key(n_children)
        return [StatefulPRNG(keys[i], new_ref(0)) for i in range(n_children)]

    def random(self, size: Size = None, dtype: Any = float) -> Any:
        """Numbers from [0, 1), evenly distributed.

        size: the shape; one number unless given. dtype: floating.

        >>> from numjet.experimental import random
        >>> random.stateful_rng(42).random(2, "float16").dtype
        dtype('float16')
        """
        return self.uniform(size=size, dtype=dtype)

    def uniform(self, low: Any = 0, high: Any = 1, size: Size = None, *, dtype: Any = float) -> Any:
        """Numbers from [low, high), evenly distributed.

        low, high: numbers or arrays that broadcast to size. size: the shape; theirs unless given.
        dtype: floating.

        >>> from numjet.experimental import random
        >>> random.stateful_rng(42).uniform(1, 2)
        Array(1.5302608, dtype=float32)
        """
        shape = _shape(size, low, high)
        return random.uniform(self.key(), shape, dtype, minval=low, maxval=high)

    def normal(self, loc: Any = 0, scale: Any = 1, size: Size = None, *, dtype: Any = float) -> Any:
        """Numbers from the normal distribution.

        loc, scale: mean and standard deviation, numbers or arrays that broadcast to size. size: the
        shape; theirs unless given. dtype: floating.

        >>> from numjet.experimental import random
        >>> random.stateful_rng(42).normal(size=3).shape
        (3,)
        """
        shape = _shape(size, loc, scale)
        return random.normal(self.key(), shape, dtype) * scale + loc

    def integers(
        self, low: Any, high: Any = None, size: Size = None, *, dtype: Any = int
    ) -> Any:
        """Integers from [low, high), or from [0, low) where no high is given.

        low, high: integers or arrays of them that broadcast to size. size: the shape; theirs unless
        given. dtype: of integers.

        >>> from numjet.experimental import random
        >>> random.stateful_rng(42).integers(10, size=4).shape
        (4,)
        """
        if high is None:
            low, high = 0, low
        return random.randint(self.key(), _shape(size, low, high), low, high, dtype)


def stateful_rng(seed: Any = None, *, impl: str | None = None) -> StatefulPRNG:
    """A generator of random numbers that keeps its own state.

    seed: an integer; one of NumPy's making unless given, which traced code cannot ask for
    (TypeError). impl: the generator of the bits, as in `random.key`.

    >>> from numjet.experimental import random
    >>> rng = random.stateful_rng(0)
    >>> bool(rng.normal() == rng.normal())
    False
    """
    if seed is None:
        if not trace_state_clean():
            raise TypeError(
                "When used within transformed code, stateful_rng requires an explicit seed to be "
                "set. Pass an integer, or draw from a generator that was made outside."
            )
        seed = int(np.random.default_rng().integers(2**31))
    return StatefulPRNG(random.key(seed, impl=impl), new_ref(0))


def _is_empty(shape: Size) -> bool:
    return isinstance(shape, tuple | list) and not shape


def _shape(size: Size, *bounds: Any) -> tuple[int, ...]:
    if size is None:
        return broadcast_shapes(*[as_array(x).shape for x in bounds])
    return tuple(size) if isinstance(size, tuple | list) else (operator.index(size),)
